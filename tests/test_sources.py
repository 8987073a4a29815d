"""Responses of httpx, and of SDKs on it, as sources. docs/how-to/other-sources.md has them over a network."""

from __future__ import annotations

import errno
import subprocess
import sys
from types import SimpleNamespace

import pytest

from streamkit import SourceFailed, UsageError, pipe
from streamkit.sources import iter_httpx
from streamkit.sync import BlockingSource, SyncPipe

LIBRARIES = ["httpx", "httpx2"]


def response_of(library, error):
    """A streamed response whose connection breaks with ``error`` after one chunk; in both ways to read it."""

    class Body(library.SyncByteStream, library.AsyncByteStream):
        def __iter__(self):
            yield b"data: 1\n\n"
            raise error

        async def __aiter__(self):
            for chunk in self:
                yield chunk

    return library.Response(200, stream=Body())


def reset(kind):
    error = kind("the host's own words")
    error.__cause__ = ConnectionResetError(errno.ECONNRESET, "as the system says")
    return error


async def read(response):
    got = []
    async with pipe(iter_httpx(response)) as source:
        async for chunk in source:
            got.append(chunk)
    return got


def read_sync(response):
    return list(SyncPipe(pipe(BlockingSource(iter_httpx(response)))))


@pytest.mark.parametrize("name", LIBRARIES)
async def test_an_error_of_the_transport_is_a_failed_source(name):
    library = pytest.importorskip(name)
    for wrapped in (lambda response: response, lambda response: SimpleNamespace(http_response=response)):
        response = response_of(library, reset(library.ReadError))
        with pytest.raises(
            SourceFailed, match=r"^the connection to the upstream broke: Connection reset by peer$"
        ) as failed:
            await read(wrapped(response))
        assert failed.value.is_reset
        assert isinstance(failed.value.__cause__, library.ReadError)
        assert response.is_closed
        with pytest.raises(SourceFailed, match="Connection reset by peer"):
            read_sync(wrapped(response_of(library, reset(library.ReadError))))


@pytest.mark.parametrize("error", ["ReadTimeout", "RemoteProtocolError", "DecodingError"])
async def test_an_error_without_a_reason_shows_none_of_its_words(error):
    httpx = pytest.importorskip("httpx")
    with pytest.raises(SourceFailed, match=r"^the connection to the upstream broke$") as failed:
        await read(response_of(httpx, getattr(httpx, error)("http://upstream.internal/")))
    assert not failed.value.is_reset


async def test_any_other_error_is_raised_as_it_is():
    httpx = pytest.importorskip("httpx")
    with pytest.raises(KeyError):
        await read(response_of(httpx, KeyError("mine")))


async def test_a_source_that_was_never_read_closes_its_response():
    httpx = pytest.importorskip("httpx")
    response = response_of(httpx, KeyError("mine"))
    async with pipe(iter_httpx(response)):
        pass
    assert response.is_closed
    response = response_of(httpx, KeyError("mine"))
    with SyncPipe(pipe(BlockingSource(iter_httpx(response)))):
        pass
    assert response.is_closed


class Response:
    """A response of another library."""


@pytest.mark.parametrize("given", [object(), Response(), [b"data: 1\n\n"]])
def test_what_is_no_response_of_httpx_is_refused(given):
    with pytest.raises(UsageError, match=r"^iter_httpx takes a streamed response of httpx, not \w+"):
        iter_httpx(given)


def test_a_request_of_httpx_is_refused():
    httpx = pytest.importorskip("httpx")
    with pytest.raises(UsageError, match="not Request"):
        iter_httpx(httpx.Request("POST", "http://localhost/"))


def test_no_http_library_is_imported():
    program = "import streamkit.sources, sys; print({'httpx', 'httpx2', 'aiohttp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
