"""Databases and users inside an instance of Cloud SQL."""
