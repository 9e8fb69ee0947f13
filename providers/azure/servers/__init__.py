"""Flexible servers: what holds the databases, and the login of their administrator."""
