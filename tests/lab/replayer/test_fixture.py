"""The fixture of pytest: it finds recordings beside a test, serves them, and fails the test that asks for something else."""

from __future__ import annotations

import subprocess
import sys
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import aiohttp
import pytest
from aiohttp import web

from streamkit.errors import UsageError
from streamkit.lab.recording import read_recording
from streamkit.lab.replayer.fixture import ReplayFixture
from streamkit.testing.serving import served
from tests.lab.replayer.recordings import EVENTS, PATH, body, recording, write

pytest_plugins = ["pytester"]

TEST = """
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest


def ask(url, body):
    try:
        with urlopen(Request(url + "/v1/chat/completions", data=body)) as answer:
            return answer.read()
    except HTTPError as error:
        error.close()
        return error.code
"""


def asked(url: str, content: str = "hi") -> bytes | int:
    try:
        with urlopen(Request(f"{url}{PATH}", data=body(content))) as answer:
            return answer.read()
    except HTTPError as error:
        error.close()
        return error.code


@pytest.fixture
def suite(pytester):
    """A suite of tests of its own."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    return pytester


@pytest.fixture
def replays(tmp_path):
    fixture = ReplayFixture(tmp_path)
    yield fixture
    fixture.finish()


def test_a_name_is_that_of_a_file_or_a_folder_of_recordings_or_a_path(replays, tmp_path):
    write(tmp_path / "recordings" / "one.stream.jsonl", recording([b"a"]))
    write(tmp_path / "recordings" / "one" / "more.stream.jsonl", recording([b"b"], at="2027"))
    file = write(tmp_path / "elsewhere" / "two.stream.jsonl", recording([b"c"]))
    write(tmp_path / "one" / "of_another.stream.jsonl", recording([b"d"], at="2028"))
    (tmp_path / "recordings" / "empty").mkdir()
    url = replays("one")
    assert [asked(url), asked(url), asked(url)] == [b"a", b"b", b"b"]
    assert asked(replays("elsewhere/two.stream.jsonl")) == asked(replays(file)) == asked(replays("elsewhere")) == b"c"
    for name in ("three", "empty"):
        with pytest.raises(UsageError, match=rf"no recording at .*{name}, .*; with to=URL, pytest --record makes one"):
            replays(name)


async def test_a_test_with_an_event_loop_uses_it_alike(streamkit_replay, tmp_path):
    url = streamkit_replay(write(tmp_path / "a.stream.jsonl", recording([b"a"])))
    async with aiohttp.ClientSession() as session, session.post(url + PATH, data=body()) as response:
        assert await response.read() == b"a"


def test_options_are_those_of_the_command(replays, tmp_path):
    file = write(tmp_path / "a.stream.jsonl", recording([b"a"], asked=body(user="me")))
    url = replays(file, ignore=["user"], once=True, cut="bytes=1")
    assert [asked(url), asked(url)] == [b"a", 404]
    spaced = write(tmp_path / "b.stream.jsonl", recording([b"b"], asked=body() + b" "))
    assert [asked(replays(spaced, match=how)) for how in ("canonical", "exact")] == [b"b", 404]
    for option in ({"cut": "lines"}, {"match": "exakt"}, {"ignore": ["a..b"]}, {"speed": -1}):
        with pytest.raises(UsageError):
            replays(file, **option)


def test_misses_and_what_was_not_asked_for_are_faults_where_they_are_wanted(tmp_path):
    file = write(tmp_path / "a.stream.jsonl", recording([b"a"]))
    fixture = ReplayFixture(tmp_path)
    assert asked(fixture(file), "bye") == 404
    assert asked(fixture(file, fail_on_miss=False, to="https://api.example.com"), "bye") == 404
    url = fixture(file, all_asked=True)
    miss, unasked = fixture.finish()
    with pytest.raises(URLError, match="refused"):
        urlopen(url)
    assert miss.splitlines()[0] == "no recording answers:"
    assert f"  POST {PATH}: messages[0].content: 'bye' in the request, 'hi' in the recording (" in miss
    assert "--record" not in miss
    assert unasked.startswith("no request for:\n  ")
    assert unasked.endswith("a.stream.jsonl")


def test_a_test_that_misses_fails(suite):
    write(suite.path / "recordings" / "hello.stream.jsonl", recording([b"a"]))
    suite.makepyfile(
        TEST
        + f"""
def test_hit(streamkit_replay):
    assert ask(streamkit_replay("hello"), {body()!r}) == b"a"


def test_miss(streamkit_replay):
    assert ask(streamkit_replay("hello", to="https://api.example.com"), {body("bye")!r}) == 404
"""
    )
    done = suite.runpytest_inprocess()
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines([
        "no recording answers:",
        f"  POST {PATH}: messages[[]0[]].content: 'bye' in the request, 'hi' in the recording (*hello.stream.jsonl)",
        "pytest --record records them from the provider",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("conftest", "option", "is_on"),
    [
        ("", [], False),
        ("", ["--record"], True),
        ("", ["--streamkit-record"], True),
        ("def pytest_addoption(parser): parser.addoption('--record', action='store_true')", ["--record"], False),
    ],
)
def test_the_short_option_is_ours_unless_somebody_else_has_it(suite, conftest, option, is_on):
    suite.makeconftest(conftest)
    suite.makepyfile(f"def test(request): assert request.config.getoption('streamkit_record') is {is_on}")
    suite.runpytest_inprocess(*option).assert_outcomes(passed=1)


def test_the_plugin_loads_nothing_and_the_fixture_needs_no_extra():
    """In a process of its own: pytest alone until a test asks, and then no library that only the gateway needs."""
    program = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"cattrs", "prometheus_client", "tenacity", "brotli", "backports", "opentelemetry", "openai"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import pytest_streamkit
assert not {"streamkit", "aiohttp"} & sys.modules.keys()
import streamkit.lab.replayer.fixture
assert "aiohttp" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- record mode -------------------------------------------------------------------------------------------------------

KEY = "sk-planted-0123456789abcdef"


@pytest.fixture
def provider():
    """A provider's URL, and the contents that it was asked with."""
    contents = []

    async def chat(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        contents.append((await request.json())["messages"][0]["content"])
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in EVENTS:
            await response.write(event)
        return response

    def make_app() -> web.Application:
        app = web.Application()
        app.router.add_post(f"/api{PATH}", chat)
        return app

    with served(make_app) as url:
        yield f"{url}/api", contents


def test_what_has_no_recording_is_asked_of_the_provider_once_and_recorded_without_the_key(suite, provider):
    to, contents = provider
    suite.makepyfile(f"""
from urllib.request import Request, urlopen

def ask(url, body):
    with urlopen(Request(url + "{PATH}", data=body, headers={{"Authorization": "Bearer {KEY}"}})) as answer:
        return answer.read()

def test(streamkit_replay):
    url = streamkit_replay("made/here", to="{to}", all_asked=True)
    assert ask(url, {body("one")!r}) == ask(url, {body("two")!r}) == {b"".join(EVENTS)!r}
""")
    missing = suite.runpytest_inprocess()
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*no recording at recordings/made/here, *; pytest --record makes one"])
    assert contents == []
    for _ in range(2):
        suite.runpytest_inprocess("--record").assert_outcomes(passed=1)
        suite.runpytest_inprocess().assert_outcomes(passed=1)
        assert contents == ["one", "two"]
    files = list((suite.path / "recordings" / "made" / "here").iterdir())
    assert len(files) == 2
    for file in files:
        assert KEY not in file.read_text("utf-8")
        assert read_recording(file).ending == "whole"


def test_recordings_are_written_where_the_others_of_that_name_are(tmp_path):
    made = []

    def record(app, to, folder, warn):
        made.append((to, folder))
        warn("the disk is full")

    write(tmp_path / "elsewhere" / "a.stream.jsonl", recording())
    fixture = ReplayFixture(tmp_path, record=record)
    for name, to in (("elsewhere", "http://a.example"), ("new", "http://a.example"), ("elsewhere", None)):
        fixture(name, to=to)
    assert made == [("http://a.example", tmp_path / "elsewhere"), ("http://a.example", tmp_path / "recordings" / "new")]
    assert fixture.finish() == ["the disk is full"] * 2


def test_a_provider_that_is_away_is_an_error_of_the_dialect(suite):
    suite.makepyfile(f"""
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

def test(streamkit_replay):
    url = streamkit_replay("away", to="http://127.0.0.1:9")
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(url + "{PATH}", data={body()!r}))
    with refused.value as answer:
        assert (answer.code, "message" in json.load(answer)["error"]) == (502, True)
""")
    suite.runpytest_inprocess("--record").assert_outcomes(passed=1)
