"""The composer, a provider, an API server in memory and a cloud in one process on virtual time.

`platform` starts and kills the two processes; `faulty` is their way to the API server; `virtual_time` is the clock,
and chance as a function of a seed. A cloud is described in `gcp_cloud`, `aws_cloud`, `azure_cloud` or `onprem_cloud`:
the simulated clouds of devcloud called without sockets (`cloud_sql`, `rds`, `arm`), and a PostgreSQL in memory
(`postgres`).
"""
