"""The server and the official clients of ``tests/clients``, for bodies."""

from tests.clients.conftest import client, replay

__all__ = ["client", "replay"]
