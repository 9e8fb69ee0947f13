"""Who calls the simulated RDS, and what they may do."""
