"""A controller runtime for Kubernetes in asyncio: knows objects, watches, queues and leases; no templates, no clouds."""
