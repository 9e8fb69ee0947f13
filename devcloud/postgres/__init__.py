"""PostgreSQL servers of a platform on one machine: with TLS, logins, copies."""
