"""The simulated Azure: ARM with PostgreSQL flexible servers, Entra's tokens, the metadata service of machines."""
