"""How instances of the simulated RDS come to life, change and end."""
