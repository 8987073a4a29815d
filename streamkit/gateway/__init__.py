"""The gateway, ``streamkit serve``: any client in front, any provider behind. See docs/how-to/run-the-gateway.md."""
