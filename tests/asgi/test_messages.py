"""What no server of the other tests does: messages of a framework's middlewares, and of clients that leave at odd moments."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from streamkit import transcode
from streamkit.asgi import ASGIApplication, relay
from streamkit.asgi import application as ready_routes
from streamkit.web import Secret, Upstream

SOON_S = 30.0


async def call(app, method="GET", path="/", *, headers=(), bodies=(), leaves=False, **scope):
    """Send the request in pieces. The client leaves after them, or after the whole response. Returns the messages."""
    sent, over = [], asyncio.Event()
    given = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]

    async def receive():
        if given:
            return given.pop(0)
        if not leaves:
            await over.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            over.set()

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": None,
        "query_string": b"",
        "headers": [*headers],
        "root_path": "",
        **scope,
    }
    running = asyncio.ensure_future(app(scope, receive, send))
    done, _ = await asyncio.wait({running}, timeout=SOON_S)
    running.cancel()
    assert done, "the application has not returned"
    running.result()
    return sent


def application(path, handler):
    app = web.Application()
    app.router.add_route("*", path, handler)
    return ASGIApplication(app)


async def ignores_its_body(_request):
    return web.Response(text="no")


async def reads_its_body(request):
    return web.Response(text=str(len(await request.read())))


@pytest.mark.parametrize("headers", [(), [(b"content-length", b"100")]], ids=["chunked", "sized"])
async def test_a_response_before_the_end_of_the_request_ends_at_once(headers):
    sent = await call(application("/", ignores_its_body), "POST", headers=headers, bodies=[b"a"])
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"no")


@pytest.mark.parametrize("headers", [(), [(b"content-length", b"100")]], ids=["chunked", "sized"])
async def test_a_client_that_leaves_within_its_request_ends_the_handler(headers):
    ended = []

    async def reads(request):
        try:
            return await reads_its_body(request)
        except BaseException as error:
            ended.append(type(error))
            raise

    assert await call(application("/", reads), "POST", headers=headers, bodies=[b"a"], leaves=True) == []
    await asyncio.sleep(0.01)
    assert len(ended) == 1


@pytest.mark.parametrize("bodies", [[], [b"unread"]])
@pytest.mark.parametrize("path", ["/v1", "*"])
async def test_a_relay_ends_at_once_whoever_has_read_the_request(path, bodies):
    async def stored():
        yield b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'

    made = relay(stored(), lambda source: transcode(source, "openai-chat", "anthropic"), client="anthropic")
    sent = await call(made, "POST", path, headers=[(b"content-length", b"100")], bodies=bodies)
    assert sent[0]["status"] == 200
    assert sent[-1] == {"type": "http.response.body", "body": b""}


async def its_path(request):
    return web.json_response([request.path, request.match_info["name"]])


@pytest.mark.parametrize(
    ("path", "raw", "root", "name"),
    [
        ("/m/a b", b"/m/a%20b", "", "a b"),
        ("/m/a/b", b"/m/a%2Fb", "", "a/b"),  # one segment, as the client wrote it
        ("/m/a%2Fb", b"/m/a%252Fb", "", "a%2Fb"),
        ("/m/100%", None, "", "100%"),
        ("/m/a%41", None, "", "a%41"),
        ("/llm/m/a/b", b"/llm/m/a%2Fb", "/llm", "a/b"),
        ("/l m/\u00e9/m/a/b", b"/l%20m/%C3%A9/m/a%2fb", "/l m/\u00e9", "a/b"),
        ("/m/a", b"/llm/m/a", "", "a"),  # mounted by a framework that shortens the path
        ("/mm/m/a", b"/mm/m/a", "/mm/", "a"),
        ("/m/a", None, "/", "a"),
    ],
)
async def test_a_path_arrives_as_the_client_wrote_it(path, raw, root, name):
    sent = await call(application("/m/{name}", its_path), path=path, raw_path=raw, root_path=root)
    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"])[1] == name


def test_an_application_runs_in_one_event_loop_after_another_and_after_a_stop():
    """As Starlette's ``TestClient`` runs it: each request, or each test, in an event loop of its own."""

    def made():
        app = web.Application()
        app.router.add_get("/", ignores_its_body)
        return app

    app = ASGIApplication(made)

    async def twice():
        for _ in range(2):
            async with app.lifespan():
                assert (await call(app))[0]["status"] == 200

    for _ in range(2):
        assert asyncio.run(call(app))[0]["status"] == 200
        asyncio.run(twice())


async def test_a_start_that_fails_is_told_and_tried_again():
    async def fails(_app):
        raise ValueError("no key")

    app = web.Application()
    app.on_startup.append(fails)
    sent = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        sent.append(message)

    running = ASGIApplication(app)
    for _ in range(2):
        with pytest.raises(ValueError, match="no key"):
            await running({"type": "lifespan"}, receive, send)
    assert sent == [{"type": "lifespan.startup.failed", "message": "no key"}] * 2


def test_the_ready_routes_run_in_one_event_loop_after_another():
    upstream = Upstream(name="u", dialect="openai-chat", base_url="http://127.0.0.1:9", key=Secret("k"))
    app = ready_routes(upstream, clients=["anthropic"])
    body = b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}'
    headers = [(b"content-length", b"%d" % len(body))]
    for _ in range(2):
        sent = asyncio.run(call(app, "POST", "/v1/messages/count_tokens", headers=headers, bodies=[body]))
        assert sent[0]["status"] == 200
