"""Figures that the project promises, printed by `python -m benchmarks`."""
