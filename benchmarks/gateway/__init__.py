"""What the gateway costs and adds: ``python -m benchmarks.gateway``. See ``__main__.py``."""
