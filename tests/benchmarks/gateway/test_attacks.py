"""The table of attacks: each is a request of HTTP, as large as it is meant to be."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.gateway import attacks


@pytest.mark.parametrize("name", attacks._BOMBS)
def test_a_bomb_fits_the_longest_body(name):
    assert 0 < len(attacks._BOMBS[name]()) <= 32 * attacks.MIB


@pytest.mark.parametrize("name", ["nothing", "refusal: role", "refusal: path", "bomb: depth"])
async def test_an_attack_tells_what_each_request_was_answered(name):
    async def refused(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refused, "127.0.0.1", 0)
    async with server:
        answers = await attacks.ATTACKS[name](server.sockets[0].getsockname()[1])
    assert set(answers) <= {"400"}
