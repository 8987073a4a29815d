"""The sources of docs/how-to/other-sources.md read vectors from a server on loopback, and what the page says of libraries is so.

An upstream here answers one body: whole, cut off in the middle, or half of it and then silence. Each source must bring it to
``transcode`` unharmed, tell a cut, and let go of the connection when its task is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from streamkit import StreamReport, collect, pipe, transcode, transcode_sync
from streamkit.errors import SourceFailed
from streamkit.sources import iter_httpx
from streamkit.testing import FaultySource, open_sources, source_of
from streamkit.web import relay
from tests.docs.pages import ROOT, blocks, run
from tests.vectors import VECTORS, anthropic, bedrock, openai_chat, openai_responses
from tests.vectors.vector import sse

PAGE = ROOT / "docs" / "how-to" / "other-sources.md"
OF = {
    name: [v for v in VECTORS if v.dialect == name]
    for name in ("openai-chat", "openai-responses", "anthropic", "bedrock")
}
PIECE_BYTES = 97  # no multiple of anything
WAIT_S = 10  # for what comes at once
SILENT_S = 0.2  # for what must not come


class Upstream:
    """An aiohttp application that answers ``body`` to whatever is asked."""

    def __init__(self) -> None:
        self.body = b""
        self.status = 200
        self.cut_at: int | None = None  #: reset the connection behind that byte
        self.stall_at: int | None = None  #: say no more behind that byte until ``go``
        self.late = False  #: say nothing at all until ``go``
        self.chunked = True
        self.headers: dict[str, str] = {}
        self.asked: list[Any] = []
        self.reached = asyncio.Event()  #: it stalls
        self.left = asyncio.Event()  #: the client closed the connection meanwhile
        self.go = asyncio.Event()
        self.app = web.Application()
        self.app.router.add_post("/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers)
        await request.read()
        if self.late:
            await self.stall(request)
        response = web.StreamResponse(status=self.status, headers={"Content-Type": "text/event-stream", **self.headers})
        if not self.chunked:
            response.content_length = len(self.body)
        await response.prepare(request)
        for start in range(0, len(self.body), PIECE_BYTES):
            end = start + PIECE_BYTES
            for stop, act in ((self.cut_at, self.reset), (self.stall_at, self.stall)):
                if stop is not None and start <= stop < end:
                    await response.write(self.body[start:stop])
                    await act(request)
                    start = stop  # noqa: PLW2901 - the rest of this piece
            await response.write(self.body[start:end])
        await response.write_eof()
        return response

    async def reset(self, request: web.Request) -> None:
        assert request.transport is not None
        request.transport.abort()
        raise ConnectionResetError

    async def stall(self, request: web.Request) -> None:
        self.reached.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:  # aiohttp's test server cancels a handler when its client leaves
            self.left.set()
            raise


@pytest.fixture
async def upstream(aiohttp_server) -> AsyncIterator[Upstream]:
    made = Upstream()
    server = await aiohttp_server(made.app)
    made.url = str(server.make_url("/")).rstrip("/")
    yield made
    made.go.set()


@pytest.fixture(autouse=True)
def _sockets_of_libraries():
    """What libraries leave to the garbage collector when a task is cancelled goes here, and not in whatever test comes next."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What the page defines. Its threads end with the tests."""
    folder = tmp_path_factory.mktemp("page")
    with contextlib.chdir(folder):
        namespace = run(PAGE, folder)
    yield namespace
    namespace["THREADS"].shutdown()


@pytest.fixture
async def sources(page, upstream):
    """``ask(write)`` for each source of the page, with the dialects it goes from and to."""
    httpx, openai, anthropic_sdk, boto3 = map(pytest.importorskip, ("httpx", "openai", "anthropic", "boto3"))
    from botocore.config import Config  # noqa: PLC0415 - it comes with boto3

    client = httpx.AsyncClient(trust_env=False)
    sdk = openai.AsyncOpenAI(
        base_url=f"{upstream.url}/v1", api_key="none", max_retries=0, http_client=openai.DefaultAsyncHttpxClient(trust_env=False)
    )  # fmt: skip
    messages = anthropic_sdk.AsyncAnthropic(
        base_url=upstream.url, api_key="none", max_retries=0, http_client=anthropic_sdk.DefaultAsyncHttpxClient(trust_env=False)
    )  # fmt: skip
    aws = boto3.client(
        "bedrock-runtime", "us-east-1", endpoint_url=upstream.url, aws_access_key_id="none", aws_secret_access_key="none",
        config=Config(proxies={}, retries={"max_attempts": 0}),
    )  # fmt: skip
    hi = [{"role": "user", "content": "Hi"}]
    ask_sdk = page["ask_sdk"]

    def in_thread(work: Callable[..., StreamReport]) -> Callable[..., Any]:
        """What blocks runs in a thread, because the server runs in this one."""

        def ask(write) -> Any:
            loop = asyncio.get_running_loop()
            return asyncio.to_thread(work, lambda chunk: asyncio.run_coroutine_threadsafe(write(chunk), loop).result())

        return ask

    def over_httpx(write) -> StreamReport:
        with httpx.Client(trust_env=False) as client:
            return page["ask_sync"](client, upstream.url, b"{}", write)

    def over_urllib3(write) -> StreamReport:
        import urllib3  # noqa: PLC0415 - it comes with boto3

        with (
            urllib3.PoolManager() as pool,
            pool.request("POST", upstream.url, body=b"{}", preload_content=False) as response,
            transcode_sync(page["chunks_of"](response), "openai-chat", "anthropic") as stream,
        ):
            for chunk in stream:
                write(chunk)
        return stream.report

    yield {
        "httpx": ("openai-chat", "anthropic", lambda write: page["ask"](client, upstream.url, b"{}", write)),
        "openai chat": ("openai-chat", "anthropic", lambda write: ask_sdk(
            sdk.chat.completions.with_streaming_response.create, "openai-chat", "anthropic", write, model="m", messages=hi)),
        "openai responses": ("openai-responses", "anthropic", lambda write: ask_sdk(
            sdk.responses.with_streaming_response.create, "openai-responses", "anthropic", write, model="m", input="Hi")),
        "anthropic": ("anthropic", "openai-chat", lambda write: ask_sdk(
            messages.messages.with_streaming_response.create, "anthropic", "openai-chat", write, model="m", max_tokens=9, messages=hi)),
        "boto3": ("bedrock", "anthropic", lambda write: page["ask_bedrock"](
            aws, write, modelId="m", messages=[{"role": "user", "content": [{"text": "Hi"}]}])),
        "httpx, blocking": ("openai-chat", "anthropic", in_thread(over_httpx)),
        "urllib3": ("openai-chat", "anthropic", in_thread(over_urllib3)),
    }  # fmt: skip
    await client.aclose()
    await sdk.close()
    await messages.close()
    aws.close()


CANCELLABLE = ["httpx", "openai chat", "openai responses", "anthropic", "boto3"]
SOURCES = [*CANCELLABLE, "httpx, blocking", "urllib3"]
TEXT = {
    "openai-chat": openai_chat.HEALTHY[0],
    "openai-responses": openai_responses.HEALTHY[0],
    "anthropic": anthropic.HEALTHY[0],
    "bedrock": bedrock.HEALTHY[0],
}


class Client:
    """What was written to it."""

    def __init__(self) -> None:
        self.got = b""

    async def write(self, chunk: bytes) -> None:
        assert chunk
        self.got += chunk


def facts(report: StreamReport) -> tuple[Any, ...]:
    return report.status, dict(report.repairs), dict(report.losses), str(report.error)


async def said(body: bytes, dialect: str) -> tuple[Any, ...]:
    """A stream without what is made up anew each time: ids and times."""
    response = await collect(source_of([body]), dialect)
    choices = [
        (c.text, c.reasoning, c.stop_reason, [(k.name, k.arguments, k.verdict) for k in c.tool_calls])
        for c in response.choices
    ]
    return choices, response.clean, response.error


@pytest.mark.parametrize("name", SOURCES)
async def test_a_source_brings_every_vector_as_it_is(sources, upstream, name):
    dialect, to, ask = sources[name]
    for vector in OF[dialect]:
        upstream.body = vector.body
        client = Client()
        report = await ask(client.write)
        async with transcode(source_of([vector.body]), dialect, to) as stream:
            expected = b"".join([chunk async for chunk in stream])
        assert facts(report) == facts(stream.report), vector.name
        assert await said(client.got, to) == await said(expected, to), vector.name


@pytest.mark.parametrize("name", SOURCES)
async def test_a_connection_that_breaks_is_told_in_the_clients_dialect(sources, upstream, name):
    dialect, _, ask = sources[name]
    upstream.body = TEXT[dialect].body
    upstream.cut_at = len(upstream.body) // 2
    client = Client()
    report = await ask(client.write)
    assert type(report.error) is SourceFailed
    assert report.error.__cause__ is not None
    assert b"the connection to the upstream broke" in client.got
    assert b"message_stop" not in client.got
    assert b"[DONE]" not in client.got


@pytest.mark.parametrize("name", CANCELLABLE)
async def test_a_cancelled_task_lets_go_of_the_upstream(sources, upstream, page, name):
    dialect, _, ask = sources[name]
    upstream.body = TEXT[dialect].body
    upstream.stall_at = len(upstream.body) // 2
    task = asyncio.create_task(ask(Client().write))
    async with asyncio.timeout(WAIT_S):
        await upstream.reached.wait()
        await asyncio.sleep(0.05)  # until the source waits for more
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await upstream.left.wait()


# -- what the page says of others --------------------------------------------------------------------------------------


def test_lines_are_cut_at_a_line_separator_and_bytes_are_not():
    httpx = pytest.importorskip("httpx")
    body = 'data: "a\u2028b"\n\n'.encode()
    assert len(list(httpx.Response(200, content=body).iter_lines())) == 3
    assert len('data: "a\u2028b"'.splitlines()) == 2


async def test_httpx_gives_up_after_5_s_and_asks_for_gzip(page):
    httpx = pytest.importorskip("httpx")
    async with httpx.AsyncClient() as client:
        assert client.timeout.read == 5
        assert "gzip" in client.headers["Accept-Encoding"]
    assert page["TIMEOUT"].read == 300
    assert page["TIMEOUT"].connect == 10


@pytest.mark.parametrize("name", ["httpx", "httpx, blocking", "openai chat", "openai responses", "anthropic"])
async def test_a_source_asks_for_no_compression(sources, upstream, name):
    dialect, _, ask = sources[name]
    upstream.body = TEXT[dialect].body
    await ask(Client().write)
    assert [headers["Accept-Encoding"] for headers in upstream.asked] == ["identity"]


async def test_a_status_of_an_sdk_is_its_own_error_on_entering(sources, upstream):
    openai = pytest.importorskip("openai")
    upstream.status, upstream.body = 404, b"{}"
    with pytest.raises(openai.APIStatusError):
        await sources["openai chat"][2](Client().write)


async def test_a_raw_response_stays_open_until_its_source_is_closed(upstream):
    openai = pytest.importorskip("openai")
    upstream.body = TEXT["openai-chat"].body
    transport = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(base_url=upstream.url, api_key="none", http_client=transport) as sdk:
        raw = await sdk.chat.completions.with_raw_response.create(model="m", messages=[], stream=True)
        assert not raw.http_response.is_closed
        async with pipe(iter_httpx(raw)) as source:
            assert (await anext(source))[:6] == b"data: "
        assert raw.http_response.is_closed


async def test_what_botocore_parsed_lacks_what_it_does_not_know(upstream):
    boto3 = pytest.importorskip("boto3")
    from botocore.config import Config  # noqa: PLC0415 - it comes with boto3
    from botocore.exceptions import EventStreamError  # noqa: PLC0415 - it comes with boto3

    assert Config().read_timeout == 60
    novel = bedrock.vector("novel", bedrock.START, ("novelty", {"x": 1}), *bedrock.HI, bedrock.finish())
    failed = next(vector for vector in bedrock.BROKEN if vector.name == "an exception")
    client = boto3.client(
        "bedrock-runtime", "us-east-1", endpoint_url=upstream.url, aws_access_key_id="none", aws_secret_access_key="none",
        config=Config(proxies={}),
    )  # fmt: skip

    def events() -> list[dict[str, Any]]:
        return list(client.converse_stream(modelId="m", messages=[])["stream"])

    with contextlib.closing(client):
        upstream.body = novel.body
        parsed = await asyncio.to_thread(events)
        assert [name for event in parsed for name in event] == [
            "messageStart", "contentBlockDelta", "contentBlockStop", "messageStop",
        ]  # fmt: skip
        upstream.body = failed.body
        with pytest.raises(EventStreamError):
            await asyncio.to_thread(events)


async def test_read1_returns_what_is_there_and_iter_content_waits_for_the_whole(upstream):
    requests = pytest.importorskip("requests")
    upstream.body = sse({"x": 1}, {"x": 2})
    upstream.chunked, upstream.stall_at = False, 12
    with requests.Session() as session:
        session.trust_env = False

        def ask() -> Any:
            return session.post(upstream.url, stream=True, headers={"Accept-Encoding": "identity"})

        answer = await asyncio.to_thread(ask)
        assert await asyncio.to_thread(answer.raw.read1) == upstream.body[:12]
        answer.close()

        upstream.reached.clear()
        answer = await asyncio.to_thread(ask)
        await upstream.reached.wait()
        reading = asyncio.ensure_future(asyncio.to_thread(next, answer.iter_content(None)))
        await asyncio.wait({reading}, timeout=SILENT_S)
        assert not reading.done()
        upstream.go.set()
        assert await reading == upstream.body


async def test_relay_takes_a_source_of_the_page(upstream, aiohttp_client):
    httpx = pytest.importorskip("httpx")
    upstream.body = TEXT["openai-chat"].body

    async def handler(request: web.Request) -> web.StreamResponse:
        async with httpx.AsyncClient(trust_env=False) as client, client.stream("POST", upstream.url) as response:
            return await relay(
                request, iter_httpx(response), lambda s: transcode(s, "openai-chat", "anthropic"), client="anthropic"
            )

    app = web.Application()
    app.router.add_post("/", handler)
    client = await aiohttp_client(app)
    async with client.post("/") as response:
        assert (await said(await response.read(), "anthropic"))[0][0][0] == TEXT["openai-chat"].text


# -- Starlette as the sink ---------------------------------------------------------------------------------------------

WHY = "the page's answers of Starlette: install starlette"


class Caller:
    """The server's side of ASGI for one request, and its client."""

    def __init__(self, body: bytes = b"", *, headers: dict[str, str] | None = None) -> None:
        self.scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "method": "POST", "path": "/", "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        }  # fmt: skip
        self.messages: list[dict[str, Any]] = []
        self.left = asyncio.Event()  #: the client leaves
        self.blocked = asyncio.Event()  #: a write waits for the client
        self.block_at: int | None = None  #: the write that waits
        self.freed = asyncio.Event()  #: it waits no longer, as in a server that has noticed the departure
        self.asked: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive(self) -> dict[str, Any]:
        if self.asked:
            return self.asked.pop()
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if len(self.messages) == self.block_at:
            self.blocked.set()
            await self.freed.wait()

    async def call(self, app: Callable[..., Any]) -> None:
        await app(self.scope, self.receive, self.send)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])


@pytest.fixture(scope="module")
def sink(page):
    """The page with its handler for Starlette, which is a fragment there because Starlette may not be installed."""
    pytest.importorskip("starlette", reason=WHY)
    block = next(block for block in blocks(PAGE) if "asgi import" in block.text)
    namespace = dict(page)
    exec(compile(block.text, str(block), "exec"), namespace)
    return namespace


@pytest.fixture
async def service(sink, upstream, monkeypatch):
    """An application with the page's endpoint, in front of ``upstream``."""
    from starlette.applications import Starlette  # noqa: PLC0415 - it may be missing
    from starlette.routing import Route  # noqa: PLC0415 - it may be missing

    monkeypatch.setitem(sink, "UPSTREAM", upstream.url)
    app = Starlette(routes=[Route("/", sink["messages"], methods=["POST"])])
    async with sink["httpx"].AsyncClient(trust_env=False) as client:
        app.state.client = client
        yield app


ASKED = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hi"}]}'


async def test_a_handler_of_starlette_relays_httpx(service, upstream):
    upstream.body = TEXT["openai-chat"].body
    caller = Caller(ASKED)
    await caller.call(service)
    assert caller.status == 200
    assert caller.headers[b"content-type"] == b"text/event-stream"
    assert (await said(caller.body, "anthropic"))[0][0][0] == TEXT["openai-chat"].text


async def test_what_can_not_be_answered_is_an_error_of_the_dialect(service, upstream, sink, monkeypatch):
    bad = Caller(b"{}")
    await bad.call(service)
    upstream.status, upstream.body = 429, b'{"error":{"message":"Slow down","type":"rate_limit_exceeded"}}'
    limited = Caller(ASKED)
    await limited.call(service)
    monkeypatch.setitem(sink, "UPSTREAM", "http://127.0.0.1:1/")
    unreachable = Caller(ASKED)
    await unreachable.call(service)
    assert [caller.status for caller in (bad, limited, unreachable)] == [400, 429, 529]
    assert all(b'"type":"error"' in caller.body for caller in (bad, limited, unreachable))


@pytest.mark.parametrize("when", ["at once", "in a read", "in a write"])
async def test_a_client_that_leaves_takes_the_upstream_with_it(service, upstream, when):
    upstream.body = TEXT["openai-chat"].body
    upstream.stall_at = len(upstream.body) // 2
    caller = Caller(ASKED)
    if when == "in a write":
        caller.block_at = 2
    if when == "at once":
        caller.left.set()
    async with asyncio.timeout(WAIT_S):
        call = asyncio.create_task(caller.call(service))
        await upstream.reached.wait()
        if when == "in a write":
            await caller.blocked.wait()
        caller.left.set()
        caller.freed.set()
        await call
        await upstream.left.wait()


async def test_a_departure_before_the_upstreams_headers_is_noticed_when_they_come(service, upstream):
    upstream.body, upstream.late = TEXT["openai-chat"].body, True
    caller = Caller(ASKED)
    call = asyncio.create_task(caller.call(service))
    async with asyncio.timeout(WAIT_S):
        await upstream.reached.wait()
        caller.left.set()
        await asyncio.wait({call}, timeout=SILENT_S)
        assert not call.done()
        upstream.go.set()
        await call


async def test_a_streaming_response_leaves_a_pipe_open_that_waits_in_a_write(sink):
    from starlette.responses import StreamingResponse  # noqa: PLC0415 - it may be missing

    async def answer(source: FaultySource[bytes]) -> AsyncIterator[bytes]:
        async with transcode(source, "openai-chat", "anthropic") as stream:
            async for chunk in stream:
                yield chunk

    body = TEXT["openai-chat"].body
    source = FaultySource([body[: len(body) // 2], body[len(body) // 2 :]])
    caller = Caller()
    caller.asked, caller.block_at = [], 2
    response = StreamingResponse(answer(source))
    call = asyncio.create_task(caller.call(response))
    async with asyncio.timeout(WAIT_S):
        await caller.blocked.wait()
        caller.left.set()
        await call
    assert open_sources() == 1
    await response.body_iterator.aclose()
    assert open_sources() == 0


@pytest.mark.parametrize(
    ("media_type", "excluded", "encoding"),
    [("text/event-stream", (), None), ("application/x-ndjson", (), b"gzip"), ("application/x-ndjson", ("application/x-ndjson",), None)],
)  # fmt: skip
async def test_gzip_holds_no_chunk_of_a_stream_back(sink, media_type, excluded, encoding):
    from starlette.middleware import gzip  # noqa: PLC0415 - it may be missing
    from starlette.responses import StreamingResponse  # noqa: PLC0415 - it may be missing

    chunks = [b'{"x":1}\n', b'{"x":2}\n', b'{"x":3}\n']
    caller = Caller(headers={"Accept-Encoding": "gzip"})
    caller.asked = []
    app = gzip.GZipMiddleware(
        StreamingResponse(source_of(chunks), media_type=media_type),
        exclude_content_types=(*gzip.DEFAULT_EXCLUDED_CONTENT_TYPES, *excluded),
    )
    await caller.call(app)
    assert caller.headers.get(b"content-encoding") == encoding
    assert sum(bool(message.get("body")) for message in caller.messages) >= len(chunks)


@pytest.mark.parametrize("behind_middleware", [False, True])
async def test_base_http_middleware_hides_a_departure_from_the_endpoint(sink, behind_middleware):
    from starlette.applications import Starlette  # noqa: PLC0415 - it may be missing
    from starlette.middleware import Middleware  # noqa: PLC0415 - it may be missing
    from starlette.middleware.base import BaseHTTPMiddleware  # noqa: PLC0415 - it may be missing
    from starlette.responses import Response  # noqa: PLC0415 - it may be missing
    from starlette.routing import Route  # noqa: PLC0415 - it may be missing

    seen: list[bool] = []

    async def endpoint(request):
        await request.body()
        caller.left.set()
        for _ in range(5):
            await asyncio.sleep(0)
            seen.append(await request.is_disconnected())
        return Response()

    async def passed(request, call_next):
        return await call_next(request)

    middleware = [Middleware(BaseHTTPMiddleware, dispatch=passed)] if behind_middleware else []
    caller = Caller(b"{}")
    await caller.call(Starlette(routes=[Route("/", endpoint, methods=["POST"])], middleware=middleware))
    assert any(seen) is not behind_middleware
