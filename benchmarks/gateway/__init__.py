"""What the gateway costs, adds and bears: ``python -m benchmarks.gateway``. See ``__main__.py``."""
