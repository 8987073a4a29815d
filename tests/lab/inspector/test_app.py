"""The inspector's listener gives nothing to whoever has no token, asks by another name or from another site, and stays bounded."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from streamkit.lab.inspector import app as inspector
from streamkit.lab.inspector.app import HEADERS, STATIC, WATCHERS, inspector_app, new_token, url_with
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import TEXT_CHARS
from streamkit.read_options import DEFAULT_OPTIONS
from tests.cli.command import DEMO
from tests.web.raw_client import RawClient
from tests.web.serving import eventually

TOKEN = "token-of-this-test"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}
SECRET = "sk-canary-8d1f02"
PATHS = ["/", *(f"/{path.name}" for path in STATIC.iterdir() if path.name != "index.html")]
#: The headers of O36, to the letter.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@pytest.fixture
def captures():
    return Captures()


@pytest.fixture
async def client(captures, aiohttp_client):
    return await aiohttp_client(inspector_app(captures, TOKEN))


def recorded(captures, name="one", *, body=None, **facts):
    """A capture of the demo that is over, in reads of 500 bytes."""
    capture = captures.open(name, **{"about": {"model": "demo"}, "client": "anthropic", **facts})
    capture.attempt("up", "openai-chat", DEFAULT_OPTIONS)
    body = DEMO.read_bytes() if body is None else body
    for at in range(0, len(body), 500):
        capture.read(body[at : at + 500])
        capture.wrote(b"event: x\n\n")
    capture.end({"ending": "whole", "status": 200})
    return capture


@asynccontextmanager
async def feeding(client, **query):
    """The lines of a feed, as they come."""

    async def lines(response):
        async for line in response.content:
            if line.strip():
                yield json.loads(line)

    async with client.get("/feed", params=query, headers=WITH_TOKEN) as response:
        assert response.status == 200
        reader = lines(response)
        try:
            yield reader
        finally:
            await reader.aclose()


async def until(lines, kind):
    """All messages up to the first of that kind."""
    came = []
    async with asyncio.timeout(10):
        async for message in lines:
            came.append(message)
            if message["type"] == kind:
                return came
    raise AssertionError("the feed ended")


# -- who may have it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN[:-1]}é"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
async def test_without_the_token_there_is_no_feed(client, captures, headers):
    recorded(captures)
    answer = await client.get("/feed", headers=headers)
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "demo" not in await answer.text()
    assert not captures.watchers


async def test_the_token_counts_in_the_header_alone(client):
    assert (await client.get(f"/feed?token={TOKEN}&access_token={TOKEN}")).status == 401


@pytest.mark.parametrize("path", [*PATHS, "/feed", "/nowhere"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1", "a b"])
async def test_another_name_is_told_that_it_is_not_served(client, path, host):
    answer = await client.get(path, headers={**WITH_TOKEN, "Host": host})
    assert answer.status == 421
    assert "evil" not in await answer.text()


@pytest.mark.parametrize("host", ["127.0.0.1:1234", "localhost", "localhost:80", "[::1]:80"])
async def test_this_machines_own_names_are_served(client, host):
    assert (await client.get("/", headers={"Host": host})).status == 200


@pytest.mark.parametrize("path", [*PATHS, "/feed"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
async def test_pages_of_other_sites_may_not_ask(client, path, site):
    assert (await client.get(path, headers={**WITH_TOKEN, "Sec-Fetch-Site": site})).status == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_the_page_itself_may(client, site):
    assert (await client.get("/", headers={"Sec-Fetch-Site": site})).status == 200


@pytest.mark.parametrize("path", [*PATHS, "/feed", "/nowhere"])
async def test_every_answer_has_the_headers(client, path):
    for headers in {}, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}:
        answer = await client.get(path, headers=headers)
        assert {name: answer.headers.get(name) for name in HEADERS} == {
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/feed"])
async def test_there_is_nothing_to_change(client, captures, method, path):
    recorded(captures)
    assert (await client.request(method, path, headers=WITH_TOKEN)).status == 405
    assert len(list(captures)) == 1


async def test_a_path_leads_out_of_nothing(client):
    for path in "/../app.py", "/%2e%2e/app.py", "/static/index.html", "/app.py":
        assert (await client.get(path)).status == 404


def test_the_token_is_nobodys_guess_and_stands_behind_the_fragment():
    assert len(new_token()) == 43
    assert new_token() != new_token()
    assert url_with("http://127.0.0.1:1", "T") == "http://127.0.0.1:1/#T"


def test_the_page_loads_nothing_from_elsewhere_and_makes_no_markup():
    for path in STATIC.iterdir():
        text = path.read_text("utf-8")
        assert "//" not in text.replace("// ", "") or path.suffix == ".js", path
        for word in (
            "http:",
            "https:",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "style=",
        ):
            assert word not in text, f"{path.name}: {word}"


# -- the feed ----------------------------------------------------------------------------------------------------------


async def test_the_list_comes_first_and_then_what_changes(client, captures):
    recorded(captures, "old")
    async with feeding(client) as lines:
        [listed] = await until(lines, "streams")
        assert [(s["id"], s["about"]["model"], s["ended"]["ending"]) for s in listed["changed"]] == [
            ("old", "demo", "whole")
        ]
        captures.open("new", client="ollama")
        [changed] = await until(lines, "streams")
        assert [(stream["id"], stream["ended"]) for stream in changed["changed"]] == [("new", None)]


async def test_a_stream_is_sent_from_its_beginning_and_on_as_it_grows(client, captures):
    body = DEMO.read_bytes()
    capture = captures.open("one", client="anthropic")
    capture.attempt("up", "openai-chat", DEFAULT_OPTIONS)
    capture.read(body[:3000])
    async with feeding(client, stream="one") as lines:
        came = await until(lines, "read")
        assert [message["type"] for message in came] == ["streams", "attempt", "read"]
        capture.read(body[3000:])
        capture.end({"ending": "whole"})
        came += await until(lines, "ended")
    reads = [message for message in came if message["type"] == "read"]
    assert "".join(read["text"] for read in reads) == body.decode()
    assert [read["offset"] for read in reads] == [0, 3000]
    events = [event for message in came for event in message.get("events", [])]
    assert [e["verdict"]["kind"] for e in events if e["type"] == "ToolCallFinished"] == ["complete", "complete"]
    assert next(message for message in came if message["type"] == "end")["status"] == "done"


async def test_a_stream_that_nobody_knows_is_no_error(client, captures):
    recorded(captures)
    async with feeding(client, stream="no-such") as lines:
        assert [message["type"] for message in await until(lines, "streams")] == ["streams"]


async def test_a_long_line_is_cut_and_says_so(client, captures):
    recorded(captures, body=b"data: " + b"x" * 1_000_000)
    async with feeding(client, stream="one") as lines:
        came = await until(lines, "ended")
    assert all(len(message.get("text", "")) <= TEXT_CHARS for message in came)


async def test_where_the_rest_was_not_kept_no_end_is_made_up(aiohttp_client):
    captures = Captures(capture_bytes=3000)
    client = await aiohttp_client(inspector_app(captures, TOKEN))
    recorded(captures)
    async with feeding(client, stream="one") as lines:
        came = await until(lines, "ended")
    assert (came[-2]["type"], came[-2]["status"], came[-2]["events"]) == ("end", "not_kept", [])
    assert came[0]["changed"][0]["left_out"] > 2000


async def test_bytes_that_are_no_text_are_escaped(client, captures):
    capture = captures.open("one")
    for chunk in b"\xff", "é".encode()[:1], "é".encode()[1:]:
        capture.read(chunk)
    capture.end({})
    async with feeding(client, stream="one") as lines:
        came = await until(lines, "ended")
    assert [message["text"] for message in came if message["type"] == "read"] == ["\\xff", "\\xc3", "\\xa9"]


async def test_known_keys_are_cut_out_of_whatever_is_shown(client, captures):
    chunk = f'data: {{"model":"{SECRET}","choices":[{{"index":0,"delta":{{"content":"{SECRET}"}}}}]}}\n\n'.encode()
    recorded(captures, body=chunk, hide=lambda text: text.replace(SECRET, "[removed]"))
    async with feeding(client, stream="one") as lines:
        came = json.dumps(await until(lines, "ended"))
    assert "[removed]" in came
    assert SECRET not in came


async def test_so_many_pages_and_no_more(client, captures):
    answers = [await client.get("/feed", headers=WITH_TOKEN) for _ in range(WATCHERS)]
    refused = await client.get("/feed", headers=WITH_TOKEN)
    assert (WATCHERS, refused.status) == (8, 503)
    answers[0].close()
    await eventually(lambda: len(captures.watchers) < WATCHERS)
    async with feeding(client):
        pass
    for answer in answers:
        answer.close()
    await eventually(lambda: not captures.watchers)


async def test_a_page_that_takes_nothing_is_left_and_the_stream_is_not(client, captures, monkeypatch):
    monkeypatch.setattr(inspector, "PATIENCE_S", 0.1)
    capture = captures.open("one")
    async with RawClient(str(client.make_url("")), receive_buffer_bytes=4096) as page:
        await page.send("GET", "/feed?stream=one", headers=WITH_TOKEN)
        await page.read_headers()
        for _ in range(60):  # what is sent of it is five times as long: more than the sockets between take
            capture.read(b"\xff" * 16_000)
        await eventually(lambda: not captures.watchers)
    capture.read(b"more")
    assert capture.steps[-1].data == b"more"


async def test_a_stream_that_is_gone_is_told(client, captures):
    recorded(captures, "one")
    async with feeding(client) as lines:
        await until(lines, "streams")
        for number in range(100):
            captures.open(f"n{number}")
        gone = []
        while "one" not in gone:
            gone += (await until(lines, "streams"))[-1]["gone"]
