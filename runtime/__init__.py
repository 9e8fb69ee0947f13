"""A controller runtime for Kubernetes in asyncio: objects, watches, queues and leases; no templates, no clouds."""
