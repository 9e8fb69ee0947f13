"""A PostgreSQL in memory that takes the statements of the on-prem provider."""
