"""Speak SQL to PostgreSQL: sessions of an administrator, names and texts, memberships, SCRAM, SQLSTATE codes."""
