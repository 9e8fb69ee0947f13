"""Instances of Cloud SQL: read, classed, created, changed, deleted, restored."""
