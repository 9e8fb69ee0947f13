"""The actions of the simulated RDS and STS, and their wire."""
