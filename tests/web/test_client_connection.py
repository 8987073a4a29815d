"""Who takes what is written to it is no staller, however little that is."""

import asyncio
import weakref
from types import SimpleNamespace

from aiohttp.http_writer import StreamWriter

from streamkit.web.client_connection import Watch


class Transport(asyncio.Transport):
    """Holds what is written until it is taken."""

    def __init__(self):
        super().__init__()
        self.waiting = 0

    def write(self, data):
        self.waiting += len(data)

    def writelines(self, parts):
        self.write(b"".join(parts))

    def get_write_buffer_size(self):
        return self.waiting

    def is_closing(self):
        return False

    def abort(self):
        raise AssertionError("dropped")


async def looked_at(*, taken_each):
    """What is said of a client that takes so many bytes a second, while small chunks are written, one a second."""
    transport, said = Transport(), []
    protocol = SimpleNamespace(transport=transport)
    watch = Watch(SimpleNamespace(transport=transport), said.append, stall_s=30)  # not started: the test looks
    watch.writer = StreamWriter(protocol, asyncio.get_running_loop())
    watch.writer.enable_chunking()
    now = asyncio.get_running_loop().time()
    for second in range(1, 100):
        await watch.writer.write(b"x" * 10)
        transport.waiting -= taken_each
        watch.look(now + second)
        if said:
            break
    return said


async def test_chunks_are_counted_with_what_is_around_them_as_they_wait():
    assert await looked_at(taken_each=3) == []  # fewer than the five that are around each chunk


async def test_who_takes_nothing_is_stalled(monkeypatch):
    monkeypatch.setattr(Transport, "abort", lambda transport: None)
    assert await looked_at(taken_each=0) == ["client stalled"]


async def test_once_stopped_it_tells_nobody_and_keeps_nobody():
    class Reply:
        def gone(self, why):
            raise AssertionError(why)

    reply = Reply()
    watch = Watch(SimpleNamespace(transport=None), reply.gone, stall_s=30)
    watch.start()
    watch.stop()
    kept = weakref.ref(reply)
    del reply
    assert kept() is None
    watch.look(0.0)
