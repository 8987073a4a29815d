"""Ports for servers that can't be asked which one they got."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, nor on the next one, where the gateway has its private paths.

    Both lie below the ports that systems give to connections that go out (32768 and up on Linux), so that none of the other
    tests' connections takes one before the server does.
    """
    for port in random.sample(range(20_000, 30_000, 2), 100):
        try:
            with socket.socket() as public, socket.socket() as private:
                public.bind(("127.0.0.1", port))
                private.bind(("127.0.0.1", port + 1))
        except OSError:
            continue
        return port
    raise RuntimeError("none of a hundred ports is free")
