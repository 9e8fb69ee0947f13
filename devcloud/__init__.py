"""The whole platform on one machine: control plane, PostgreSQL servers with TLS, and, in time, simulated clouds."""
