"""``streamkit inspect --web``: it serves a page of the files, says where, and ends at once where there is nothing to show."""

import json
import re
import signal
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from urllib.request import Request, urlopen

import orjson
import pytest

from streamkit.cli.inspect_web import _Shown, shown_names
from streamkit.cli.options import AUTO
from streamkit.gateway.app import gateway_app
from streamkit.gateway.metrics import Metrics
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import Feed
from streamkit.read_options import DEFAULT_OPTIONS
from tests.cli.command import DEMO, run, start
from tests.cli.recorded import in_reads, recorded
from tests.gateway.running import asking, config_of, upstream_at
from tests.sampling import by_turns
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, good, reset_mid_line, speech, truncated_chunked
from tests.web.raw_client import ask
from tests.web.serving import eventually
from tests.web.serving import serving as serving_app

#: How an upstream's answer ends, as a recording says it.
SCRIPTS = {"whole": partial(good, delay_s=0.002), "cut": truncated_chunked, "reset": reset_mid_line}


@contextmanager
def serving(*arguments):
    """The page's address and its token, and the process."""
    process = start("inspect", "--web", *arguments)
    try:
        first = process.stdout.readline().decode()
        url, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#([\w-]{43})\n", first).groups()
        yield url, token, process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        for pipe in process.stdin, process.stdout, process.stderr:
            pipe.close()


def fed(url, token, kind, stream=0):
    """The messages of a stream, up to one of that kind."""
    with urlopen(
        Request(f"{url}/feed?stream={stream}", headers={"Authorization": f"Bearer {token}"}), timeout=20
    ) as lines:
        for line in lines:
            message = json.loads(line)
            yield message
            if message["type"] == kind:
                return


def test_files_are_shown_with_what_a_client_would_get(tmp_path):
    cut = tmp_path / "cut.sse"
    cut.write_bytes(DEMO.read_bytes()[:2000])
    with serving("--to", "anthropic", str(DEMO), str(cut), "/no/such/file") as (url, token, process):
        came = list(fed(url, token, "ended"))
        assert b"/no/such/file" in process.stderr.readline()
    assert [(s["about"]["file"], s["ended"]["ending"]) for s in came[0]["changed"]] == [
        (DEMO.name, "whole"),
        (cut.name, "cut"),
    ]
    assert "".join(each["text"] for each in came if each["type"] == "read") == DEMO.read_text("utf-8")
    assert "message_stop" in "".join(each["text"] for each in came if each["type"] == "write")


def test_a_stream_on_standard_input_is_shown_as_it_comes():
    body = DEMO.read_bytes()
    with serving() as (url, token, process):
        process.stdin.write(body[:3000])
        *_, read = fed(url, token, "read")
        assert (read["offset"], read["text"]) == (0, body[:3000].decode())
        process.stdin.write(body[3000:])
        process.stdin.close()
        *_, end, _ = fed(url, token, "ended")
        assert end["status"] == "done"


def test_recordings_are_shown_over_their_own_times(tmp_path):
    reads = in_reads(DEMO.read_bytes(), 500)
    body = b'{"error":{"message":"Slow down.","type":"rate_limit_error"}}'
    contents = [
        recorded(reads, t=9.0),
        recorded(reads[:4], end="timeout:idle", t=61.25),
        recorded([(0.2, body)], status=429),
        recorded([(0.0, DEMO.read_bytes())]),
    ]
    paths = [tmp_path / f"{number}.stream.jsonl" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    with serving("--to", "anthropic", *map(str, paths)) as (url, token, _):
        came = list(fed(url, token, "ended"))
        cut = list(fed(url, token, "ended", stream=1))
        streams = came[0]["changed"]
    assert [(each["at"], each["text"]) for each in came if each["type"] == "read"] == [
        (at, data.decode("utf-8", "backslashreplace")) for at, data in reads
    ]
    assert {each["at"] for each in came if each["type"] == "write"} <= {at for at, _ in reads} | {9.0}
    assert [(each["at"], each["status"]) for each in cut if each["type"] == "end"] == [(61.25, "cut")]
    assert [(each["timed"], each["seconds"], each["ended"]) for each in streams] == [
        (True, 9.0, {"ending": "whole"}),
        (True, 61.25, {"ending": "failed", "error": "The upstream sent no further bytes within 60 s"}),
        (True, 0.2, {"ending": "error", "status": 429, "error": "rate_limit: Slow down."}),
        (False, 0.0, {"ending": "whole"}),
    ]
    assert streams[0]["began"] == datetime(2026, 11, 22, 18, 1, 20, 955000, UTC).timestamp()


@pytest.mark.parametrize(
    ("dialect", "end"), by_turns(["openai-chat", "anthropic", "ollama", "gemini", "bedrock"], SCRIPTS, 1, "lanes")
)
async def test_the_lanes_of_a_recording_are_those_of_the_live_stream(dialect, end, tmp_path):
    """The page draws its lanes from what it is sent of a stream: reads with their times and events, and the end."""
    script = SCRIPTS[end](dialect)
    live = Captures()
    async with EvilUpstream(script) as evil:
        app = gateway_app(config_of([upstream_at(evil, dialect)]), Metrics(), captures=live)
        async with serving_app(app, handler_cancellation=True) as port:
            path, body = asking("anthropic")
            await ask(f"http://127.0.0.1:{port}", path, body=orjson.dumps(body))
            (capture,) = live
            await eventually(lambda: capture.ended is not None)
    reads = [(step.at, step.data) for step in capture.steps if step.kind == "read"]
    file = tmp_path / "a.stream.jsonl"
    file.write_bytes(recorded(reads, dialect, end=end, t=capture.seconds))
    shown = _Shown(AUTO, DEFAULT_OPTIONS, None, Captures(), [])
    await shown.add(str(file))
    (replayed,) = shown.captures
    assert lanes(shown.captures, replayed) == lanes(live, capture)
    assert reads


@pytest.mark.parametrize(
    "dialect", ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini", "bedrock", "cohere"]
)
async def test_a_whole_response_is_shown_as_the_stream_that_says_the_same(dialect, tmp_path):
    body = b"".join(speech(dialect, whole=True))
    file = tmp_path / "a.stream.jsonl"
    file.write_bytes(recorded([(0.5, body)], dialect, end="whole", t=0.6))
    shown = _Shown(AUTO, DEFAULT_OPTIONS, "anthropic", Captures(), [])
    await shown.add(str(file))
    (capture,) = shown.captures
    assert capture.ended == {"ending": "whole"}
    assert [attempt.upstream for attempt in capture.attempts] == [dialect]
    events = [event for message in lanes(shown.captures, capture) for event in message["events"]]
    assert TEXT in "".join(event["text"] for event in events if event.get("event", event["type"]) == "TextDelta")


def test_files_are_called_by_as_much_as_tells_them_apart():
    assert shown_names(["/a/x.jsonl", "/a/y.jsonl"]) == {"/a/x.jsonl": "x.jsonl", "/a/y.jsonl": "y.jsonl"}
    assert shown_names(["/a/x.jsonl", "/b/x.jsonl"]) == {"/a/x.jsonl": "/a/x.jsonl", "/b/x.jsonl": "/b/x.jsonl"}


def lanes(captures, capture):
    feed, text = Feed(captures, capture.id), b""
    while data := feed.take():
        text += data
    found = [message for message in map(json.loads, text.splitlines()) if message["type"] in ("read", "end")]
    for message in found:
        del message["losses"]  # of what was written
        if message["type"] == "end":
            del message["at"]  # when the client had all
        for event in message["events"]:
            event.pop("id", None)  # made ids are others each time
    return found


@pytest.mark.parametrize(("arguments", "status"), [(["/no/such/file"], 1), ([__file__], 5)])
def test_with_nothing_to_show_it_ends(arguments, status):
    done = run("inspect", "--web", *arguments)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr


def test_with_no_stream_on_standard_input_it_ends():
    done = run("inspect", "--web", stdin=b"<html>")
    assert done.returncode == 5
    assert b"HTML" in done.stderr


@pytest.mark.parametrize("option", [["--to", "anthropic"], ["--port", "1"]])
def test_what_goes_with_the_page_alone_is_refused_without_it(option):
    done = run("inspect", *option, str(DEMO))
    assert done.returncode == 2
    assert b"--web" in done.stderr


@pytest.mark.parametrize("option", ["--json", "--timings"])
def test_what_the_page_does_not_show_is_refused_with_it(option):
    done = run("inspect", "--web", option, str(DEMO))
    assert done.returncode == 2
    assert b"cannot be used with --web" in done.stderr


def test_a_port_that_is_taken_is_said():
    with serving(str(DEMO)) as (url, _, _):
        port = url.rpartition(":")[2]
        done = run("inspect", "--web", "--port", port, str(DEMO))
    assert done.returncode == 2
    assert f"cannot listen on http://127.0.0.1:{port} for the inspector".encode() in done.stderr
