"""Hours of mixed load on the gateway: ``python -m benchmarks.soak``. See ``__main__.py``."""
