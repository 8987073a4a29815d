"""The gateway, ``streamkit serve``: clients of any dialect, providers of any dialect. See docs/how-to/run-the-gateway.md."""
