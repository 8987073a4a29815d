"""Which recording answers, and what a request gets that none answers, as the official clients see it."""

from __future__ import annotations

import gzip
import json
from urllib.request import Request, urlopen

import anthropic
import openai
import pytest
from aiohttp import web
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.lab.recording.matching import pattern_in
from streamkit.lab.replayer.app import REQUEST_BYTES, Outcome, Replay, ReplayOptions
from streamkit.testing.serving import served
from streamkit.web.hosts import Hosts
from tests.lab.replayer.recordings import PATH, body, recording, replay_of
from tests.web.raw_client import ask

MESSAGES = "/v1/messages"
SAID = "no recording answers POST {!r}: messages[0].content: 'bye' in the request, 'hi' in the recording (1)"


async def start(aiohttp_server, replay: Replay, hosts: Hosts | None = None) -> str:
    server = await aiohttp_server(replay.app(hosts))
    return f"http://{server.host}:{server.port}"


def ordered(*texts: bytes):
    return [recording([text], id=text.decode(), asked=body()) for text in texts]


async def asked(url: str, times: int, **request) -> list[bytes]:
    return [bytes((await ask(url, PATH, **{"body": body(), **request})).body) for _ in range(times)]


async def test_answers_to_one_request_come_in_order_and_the_last_is_repeated(aiohttp_server):
    replay = replay_of(*ordered(b"a", b"b"), recording([b"c"], asked=body("other")))
    url = await start(aiohttp_server, replay)
    assert await asked(url, 4) == [b"a", b"b", b"b", b"b"]
    assert await asked(url, 1, body=body("other")) == [b"c"]
    assert replay.misses == []


async def test_each_answers_once_where_that_is_wanted(aiohttp_server):
    replay = replay_of(*ordered(b"a", b"b"), once=True)
    url = await start(aiohttp_server, replay)
    assert (await asked(url, 3))[:2] == [b"a", b"b"]
    assert [outcome.reason for outcome in replay.misses] == [
        "each of the 2 matching ones has answered a request, the last b"
    ]


async def test_a_recording_without_a_request_answers_what_no_other_one_does(aiohttp_server):
    replay = replay_of(*ordered(b"a"), evolve(recording([b"raw"], id="raw"), request=None))
    url = await start(aiohttp_server, replay)
    assert await asked(url, 1) == [b"a"]
    assert await asked(url, 2, body=body("other")) == [b"raw", b"raw"]
    assert (await ask(url, "/v1/models", method="GET")).status == 404
    assert [outcome.reason for outcome in replay.misses] == [f"the recorded requests are 'POST {PATH}'"]


async def test_recordings_without_requests_answer_no_other_method(aiohttp_server):
    replay = replay_of(evolve(recording([b"raw"]), request=None))
    url = await start(aiohttp_server, replay)
    assert await asked(url, 1) == [b"raw"]
    assert (await ask(url, "/v1/models", method="GET")).status == 404
    assert [outcome.reason for outcome in replay.misses] == ["the recordings have no requests, and answer only POST"]


async def test_what_answered_nothing_is_known(aiohttp_server):
    replay = replay_of(*ordered(b"a", b"b"))
    url = await start(aiohttp_server, replay)
    assert replay.unasked == ["a", "b"]
    await asked(url, 1)
    assert replay.unasked == ["b"]


async def test_bodies_match_as_the_options_say(aiohttp_server):
    shuffled = json.dumps(dict(reversed(json.loads(body(user="me")).items()))).encode()
    for options, is_hit in (({"ignored": [pattern_in("user")]}, True), ({}, False), ({"exact": True}, False)):
        replay = replay_of(recording([b"a"]), **options)
        url = await start(aiohttp_server, replay)
        assert (await asked(url, 1, body=shuffled) == [b"a"]) is is_hit
        assert len(replay.misses) == (not is_hit)


async def test_a_list_of_models_is_served_too(aiohttp_server):
    listed = recording([b'{"object":"list"}'], method="GET", path="/v1/models?key=secret&after=a%2Fb", headers={})
    url = await start(aiohttp_server, replay_of(listed))
    answer = await ask(url, "/v1/models?after=a%2Fb&key=other", method="GET")
    assert (answer.status, answer.json()) == (200, {"object": "list"})
    assert (await ask(url, "/v1/models?after=b", method="GET")).status == 404


async def test_every_outcome_is_told_without_the_query(aiohttp_server):
    outcomes: list[Outcome] = []
    url = await start(aiohttp_server, replay_of(recording([b"a"]), notify=outcomes.append))
    await ask(url, f"{PATH}?key=secret", body=body())
    await ask(url, "/v1/other?key=secret", body=body())
    assert outcomes == [("POST", PATH, "1", ""), ("POST", "/v1/other", "", f"the recorded requests are 'POST {PATH}'")]


# -- misses ------------------------------------------------------------------------------------------------------------


async def test_the_official_client_of_openai_shows_the_difference_and_asks_once(aiohttp_server):
    replay = replay_of(recording())
    url = await start(aiohttp_server, replay)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-none") as client:
        with pytest.raises(openai.NotFoundError) as refused:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "bye"}], stream=True)
    assert SAID.format(PATH) in str(refused.value)
    assert (refused.value.code, len(replay.misses)) == ("not_recorded", 1)


async def test_the_official_client_of_anthropic_shows_the_difference_and_asks_once(aiohttp_server):
    replay = replay_of(recording(path=MESSAGES, asked=body(max_tokens=5)))
    url = await start(aiohttp_server, replay)
    async with anthropic.AsyncAnthropic(base_url=url, api_key="sk-none") as client:
        with pytest.raises(anthropic.NotFoundError) as refused:
            await client.messages.create(
                model="m", max_tokens=5, messages=[{"role": "user", "content": "bye"}], stream=True
            )
    assert SAID.format(MESSAGES) in str(refused.value)
    assert len(replay.misses) == 1


@pytest.mark.parametrize("path", ["/v1beta/models/m:streamGenerateContent", "/api/chat", "/v1/responses", "/nowhere"])
async def test_a_miss_is_said_in_the_dialect_of_the_path_and_not_to_be_tried_again(aiohttp_server, path):
    url = await start(aiohttp_server, replay_of(recording()))
    answer = await ask(url, path, body=body())
    assert (answer.status, answer.headers["x-should-retry"]) == (404, "false")
    error = answer.json()["error"]
    assert "no recording answers POST" in (error if isinstance(error, str) else error["message"])


async def test_somebody_else_may_answer_what_is_not_recorded(aiohttp_server):
    async def otherwise(_request: web.Request, body: bytes) -> web.Response:
        return web.Response(body=body)

    replay = replay_of(recording([b"a"]), otherwise=otherwise)
    url = await start(aiohttp_server, replay)
    assert await asked(url, 1) == [b"a"]
    assert await asked(url, 1, body=body("bye")) == [body("bye")]
    assert replay.misses == []


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_a_body_that_is_too_large_is_refused(aiohttp_server):
    url = await start(aiohttp_server, replay_of(recording()))
    answer = await ask(url, PATH, headers={"content-length": str(REQUEST_BYTES + 1)}, body=b"x" * (REQUEST_BYTES + 1))
    assert answer.status == 413
    assert "exceeds the limit" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 421), ("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:80", 200)]
)
async def test_a_page_of_the_web_gets_nothing_by_a_name_of_its_own(aiohttp_server, host, status):
    url = await start(aiohttp_server, replay_of(recording()), Hosts())
    assert (await ask(url, PATH, headers={"host": host}, body=body())).status == status


async def test_any_name_is_served_where_nothing_is_said_of_names(aiohttp_server):
    url = await start(aiohttp_server, replay_of(recording()))
    assert (await ask(url, PATH, headers={"host": "replay"}, body=body())).status == 200


def test_ignored_paths_and_an_exact_match_exclude_each_other():
    with pytest.raises(UsageError, match="paths can be ignored only in a canonical match"):
        ReplayOptions(exact=True, ignored=[("a",)])


@pytest.mark.parametrize("options", [{"speed": -1}, {"speed": float("nan")}, {"silence_s": float("inf")}])
def test_what_is_no_speed_and_no_time_is_refused(options):
    with pytest.raises(UsageError, match="must be 0 or more"):
        ReplayOptions(**options)


def test_compressed_requests_match_by_their_bytes():
    sent = gzip.compress(body(), mtime=0)
    with served(replay_of(recording([b"a"], asked=sent)).app, decompress=False) as url:
        request = Request(f"{url}{PATH}", data=sent, headers={"Content-Encoding": "gzip"})
        with urlopen(request) as answer:
            assert answer.read() == b"a"


async def test_a_page_of_another_site_gets_nothing(aiohttp_server):
    url = await start(aiohttp_server, replay_of(recording()), Hosts())
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://localhost:5173", 200)):
        assert (await ask(url, PATH, headers={"origin": origin}, body=body())).status == status
