"""Subnet groups and parameter groups of RDS, which hold no data."""
