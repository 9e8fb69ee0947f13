"""What the simulated RDS keeps and offers, as frozen data."""
