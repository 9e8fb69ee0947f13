"""Serve objects of a cloud's API: their names, owner tags, versions and lists, and what a refusal means."""
