"""Instances of RDS: their clients, and the pure rules of what they are made of."""
