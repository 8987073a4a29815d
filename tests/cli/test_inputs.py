"""Commands read a recording as they read the bytes of it, and report its end as they would have live."""

from __future__ import annotations

import gzip
import json

import pytest

from streamkit.cli import inputs
from streamkit.cli.picture import STALL_S
from streamkit.dialects import DIALECTS, source_named
from streamkit.errors import StreamError
from streamkit.lab.recording import parse_recording
from streamkit.lab.recording.source import RecordedSource
from streamkit.recipes import events_of
from streamkit.report import StreamReport
from streamkit.web import observers
from tests.cli.command import DEMO, run, start
from tests.cli.recorded import in_reads, recorded
from tests.sampling import drawn, few, name_of
from tests.vectors import VECTORS
from tests.vectors.vector import sse

DATA = DEMO.read_bytes()
READS = in_reads(DATA, 200)
SUFFIX = ".stream.jsonl"


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def kept(folder, content, name="a"):
    path = folder / f"{name}{SUFFIX}"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("vector", few(VECTORS, 1, "commands over recordings", name=name_of))
def test_each_command_says_the_same_of_a_recording_as_of_its_bytes(vector, tmp_path):
    raw = tmp_path / "raw"
    raw.write_bytes(vector.body)
    recording = kept(tmp_path, recorded(in_reads(vector.body, 7), vector.dialect))
    for command, named, asked in ("inspect", "--from", "--json"), ("lint", "--dialect", "--json"):
        of_bytes, of_recording = (
            run(command, asked, *arguments) for arguments in ([named, vector.dialect, str(raw)], [recording])
        )
        assert of_recording.returncode == of_bytes.returncode
        of_file = str(raw).encode()
        assert of_recording.stderr.replace(recording.encode(), of_file) == of_bytes.stderr
        assert list(map(alike, objects(of_recording))) == list(map(alike, objects(of_bytes)))


def alike(found):
    """What is the same of a recording and its bytes: ids that were made are others each time."""
    for choice in found.get("choices", ()):
        for call in choice["tool_calls"]:
            del call["id"]
    return {**found, "file": "", "times": {}}


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
def test_convert_writes_of_a_recording_what_it_writes_of_its_bytes(dialect, tmp_path):
    vector = drawn([v for v in VECTORS if v.dialect == dialect and v.clean], 1, "convert recordings")[0]
    of_bytes = run("convert", "--from", dialect, "--to", dialect, stdin=vector.body)
    of_recording = run("convert", "--to", dialect, stdin=recorded(in_reads(vector.body, 7), dialect))
    assert (of_recording.stdout, of_recording.returncode) == (of_bytes.stdout, of_bytes.returncode)
    assert of_recording.stderr == of_bytes.stderr


def test_reads_come_as_they_were_cut():
    """What one read brought of one block leaves as one delta, so the deltas say where the reads were."""
    for size in 300, len(DATA):
        deltas = run("convert", "--to", "anthropic", stdin=recorded(in_reads(DATA, size))).stdout.count(b"text_delta")
        assert (deltas > 1) == (size == 300)


def test_a_recording_is_told_by_its_beginning_however_slowly_that_comes(tmp_path):
    content = recorded(READS)
    with start("inspect", "--json") as process:
        for piece in content[:5], content[5:21], content[21:30], content[30:]:
            process.stdin.write(piece)
        process.stdin.close()
        (found,) = [json.loads(line) for line in process.stdout]
    (of_file,) = objects(run("inspect", "--json", kept(tmp_path, content)))
    assert found == {**of_file, "file": "-"}


async def test_a_recording_that_comes_in_small_pieces_is_put_together(monkeypatch):
    content = recorded(READS)
    monkeypatch.setattr(
        inputs, "read", lambda _path: pieces([content[at : at + 5] for at in range(0, len(content), 5)])
    )
    opened, dialect = await inputs.open_input("-")
    assert (opened.recording, dialect) == (parse_recording(content), "openai-chat")


async def test_bytes_have_the_times_at_which_they_came_however_late_they_are_taken(monkeypatch):
    clock = [10.0]
    reads = [b"{", b'"streamkit_', b": a comment\n\n", DATA]  # the first two could begin a recording
    monkeypatch.setattr(inputs, "read", lambda _path: pieces(reads, clock))
    monkeypatch.setattr(inputs.time, "monotonic", lambda: clock[0])
    opened, _ = await inputs.open_input("-", "openai-chat")
    clock[0] = 99.0
    source = opened.source(StreamReport())
    assert [(chunk, source.now) async for chunk in source] == list(zip(reads, [1.0, 2.0, 3.0, 90.0], strict=True))
    assert source.ended_at == 90.0


async def pieces(reads, clock=None):
    for read in reads:
        if clock is not None:
            clock[0] += 1
        yield read


def test_what_begins_as_a_recording_and_is_none_is_read_as_bytes():
    done = run("inspect", stdin=b'{"streamkit_rec')
    assert (done.returncode, done.stdout) == (5, b"")
    assert b"not a stream of a known dialect" in done.stderr


ENDS = {
    "cut": "the connection to the upstream broke",
    "reset": "the connection to the upstream broke: Connection reset by peer",
    "timeout:idle": "The upstream sent no further bytes within 60 s",
    "timeout:total": "The upstream's response did not end within 63.2 s",
    "client_left": "the client disconnected before the response ended",
    "shut_down": "the server was shutting down",
    None: "the recording has no end: its recorder was killed",
}


@pytest.mark.parametrize(("end", "message"), ENDS.items())
def test_a_recording_that_is_not_whole_fails_as_it_did_live(end, message, tmp_path):
    path = kept(tmp_path, recorded(READS[:12], end=end, t=63.25))
    done = run("inspect", "--json", path)
    (found,) = objects(done)
    assert (done.returncode, found["clean"], found["error"]["message"]) == (1, False, message)
    assert found["choices"][0]["text"] == "Let me look that up for you."
    assert found["times"]["last_output_s"] == READS[10][0]  # the call that was announced came of the end alone
    assert done.stderr.decode() == f"streamkit: {path}: {message}\n"
    done = run("convert", "--to", "anthropic", path)
    assert done.returncode == 1
    assert f"failed: {message}" in done.stderr.decode()
    assert b"event: error" in done.stdout
    assert b"message_stop" not in done.stdout
    done = run("lint", "--json", path)
    assert (done.returncode, objects(done)[0]["verdict"]) == (1, "broken")
    assert done.stderr.decode() == f"streamkit: {path}: {message}\n"


@pytest.mark.parametrize("end", [*ENDS])
def test_what_broke_behind_the_terminator_takes_nothing_back(end):
    content = recorded(READS, end=end, t=99)
    done = run("inspect", "--json", stdin=content)
    repairs = {} if end == "client_left" else {"fault_after_end": 1}
    assert (done.returncode, objects(done)[0]["clean"], objects(done)[0]["repairs"]) == (0, True, repairs)
    assert run("convert", "--to", "anthropic", stdin=content).returncode == 0
    assert run("lint", stdin=content).stdout == b"(standard input): openai-chat, clean\n"


def test_the_completion_point_is_what_counts_for_lint_too():
    said, stop = (
        sse({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, **choice}]})
        for choice in ({"delta": {"content": "Hi"}, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"})
    )  # fmt: skip
    for body, status, told in (said, 1, ENDS["reset"]), (said + stop, 0, ""), (said + stop[:-1], 6, ""):
        done = run("lint", stdin=recorded([(0.5, body)], end="reset"))
        assert done.returncode == status
        assert done.stderr.decode() == (told and f"streamkit: (standard input): {told}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (recorded([], end="unreachable", t=1.0), "no connection to the upstream could be made"),
        (recorded([], end="timeout:first_byte", t=30.0), "The upstream sent no first byte within 30 s"),
        (recorded(READS, dropped=3), "the recording lacks 3 reads, which came too fast to be written"),
    ],
    ids=["unreachable", "first-byte", "dropped"],
)
def test_where_no_answer_is_none_is_shown(content, message):
    for command in ["inspect"], ["convert", "--to", "anthropic"], ["lint"]:
        done = run(*command, stdin=content)
        assert done.returncode == 1
        assert message in done.stderr.decode()
    assert done.stdout == b""


def test_an_error_instead_of_an_answer_is_shown_as_the_error_it_is(tmp_path):
    body = b'{"error":{"message":"Slow down.","type":"rate_limit_error"}}'
    path = kept(tmp_path, recorded([(0.2, body)], status=429, headers={"retry-after": "7"}))
    done = run("inspect", path)
    assert done.returncode == 4
    assert "the provider reported rate_limit (status 429): Slow down." in done.stdout.decode()
    assert objects(run("inspect", "--json", "--timings", path))[0]["error"] == {
        "type": "rate_limit", "message": "Slow down.",
    }  # fmt: skip
    done = run("lint", path)
    assert (done.returncode, done.stdout) == (4, b"")
    assert (
        done.stderr.decode()
        == f"streamkit: {path}: not a stream: the provider responded with status 429, rate_limit: Slow down.\n"
    )
    done = run("convert", "--to", "anthropic", path)
    assert done.returncode == 4
    assert b"status 429, the provider reported an error: rate_limit: Slow down." in done.stderr
    assert done.stdout.startswith(b"event: error\ndata: ")
    assert b'"rate_limit_error"' in done.stdout
    done = run("convert-response", "--to", "anthropic", path)
    assert (done.returncode, json.loads(done.stdout)["error"]["type"]) == (4, "rate_limit_error")
    assert b"status 429, the provider reported an error" in done.stderr


def test_a_whole_answer_that_was_recorded_is_converted(tmp_path):
    message = {"role": "assistant", "content": "Hi!"}
    body = json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    arguments = "convert-response", "--to", "anthropic"
    done = run(*arguments, stdin=recorded([(0.5, body[:20].encode()), (0.6, body[20:].encode())]))
    assert (done.returncode, json.loads(done.stdout)["content"][0]["text"]) == (0, "Hi!")
    done = run(*arguments, stdin=recorded([(0.5, body.encode())], end="cut"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"streamkit: (standard input): the connection to the upstream broke\n"
    done = run(*arguments, stdin=body.encode())
    assert (done.returncode, b"add --from" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments", [["inspect"], ["lint"], ["convert", "--to", "anthropic"], ["convert-response", "--to", "anthropic"], ["inspect", "--web"]]
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named_with_its_file(arguments, tmp_path):
    path = kept(tmp_path, recorded(READS).replace(b"[1.0,", b"[-1.0,"))
    done = run(*arguments, path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert (
        done.stderr.decode()
        == f"streamkit: {path}:5: the line can't be read: a time must be a number of seconds, not -1.0\n"
    )


def test_the_dialect_is_the_recordings_own_unless_it_is_named(tmp_path):
    body = next(vector.body for vector in VECTORS if vector.dialect == "mistral" and vector.clean)
    reads = [(0.5, body)]
    names = [
        (recorded(reads, "mistral"), [], "mistral"),
        (recorded(reads, "mistral"), ["--from", "openai-chat"], "openai-chat"),
        (recorded(reads, ""), [], "openai-chat"),
        (recorded(READS, "openai-chat", provider="deepseek"), [], "deepseek"),
        (recorded(READS, "openai-chat", provider="my own"), [], "openai-chat"),
        (recorded(reads, "mistral", provider="deepseek"), [], "mistral"),
    ]
    for content, named, dialect in names:
        assert objects(run("inspect", "--json", *named, stdin=content))[0]["dialect"] == dialect
    path = kept(tmp_path, recorded(reads, "nonsense"))
    done = run("lint", path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"streamkit: {path}:1: no dialect or provider is called 'nonsense'".encode())


def test_a_dialect_that_nothing_says_has_to_be_named():
    for body in b"<html>", b'{"a":1}':
        done = run("convert-response", "--to", "anthropic", stdin=recorded([(0.5, body)], ""))
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == b"streamkit: (standard input): its dialect was not recognized; add --from DIALECT\n"
    for stdin in recorded([(0.5, b"<html>")], ""), b"<html>":
        done = run("convert", "--to", "anthropic", stdin=stdin)
        assert (done.returncode, done.stdout) == (5, b"")
        assert b"not a stream of a known dialect: found an HTML page" in done.stderr
    assert run("inspect", stdin=recorded([(0.5, b"<html>")], "")).returncode == 5
    assert run("inspect", stdin=recorded([], "", end="unreachable", t=1)).returncode == 1
    refused = recorded([(0.1, b'{"error":{"message":"no"}}')], "", status=401)
    assert b"auth (status 401)" in run("inspect", stdin=refused).stdout


def test_the_picture_of_a_recording_has_its_times():
    reads = [(t + (7 if t > 2 else 0), data) for t, data in READS]
    shown = run("inspect", stdin=recorded(reads), PYTHONIOENCODING="utf-8", COLUMNS="80").stdout.decode().splitlines()
    assert [line.rstrip() for line in shown[2:8]] == [
        "  reasoning               ▆▇▄▆▇",
        "  text                                                       ▃▄▃▂",
        "  call 0 get_weather                                               ▅▂ ▄  ▄ █   ▄",
        "  call 1 get_time                                                   ▄▄  ▅ ▇ ▅",
        "                      0                                                   13.5 s",
        "  first output after 1.000 s, greatest gap 7.250 s, stalls above 5 s: 1",
    ]


def test_the_times_of_a_recording_are_true_however_few_they_are():
    (found,) = objects(run("inspect", "--json", stdin=recorded(in_reads(DATA, 200, 0.001, 0.0005))))
    assert found["times"] == {"first_output_s": 0.002, "last_output_s": 0.013, "greatest_gap_s": 0.0015, "stalls": 0}


def test_bytes_that_did_not_come_live_have_no_times(tmp_path):
    path = tmp_path / "raw.sse"
    path.write_bytes(DATA)
    (found,) = objects(run("inspect", "--json", str(path)))
    assert "times" not in found
    assert b" deltas\n" in run("inspect", stdin=recorded([(0.0, DATA)])).stdout


CLOSED = [vector for vector in VECTORS if vector.clean and "block_unclosed" not in vector.repairs]


@pytest.mark.parametrize("vector", few(CLOSED, 1, "times of recordings", name=name_of))
async def test_times_are_those_that_the_gateway_counts(vector, tmp_path):
    """Where a stream was cut, or left a call open, the gateway counts what comes of the unfinished last event, too."""
    assert STALL_S == observers.STALL_S
    content = recorded(in_reads(vector.body, 40, step_s=2.6), vector.dialect)
    counted, report = observers.OutputTimes(), StreamReport()

    class Counted(RecordedSource):
        async def __anext__(self):
            chunk = await super().__anext__()
            counted.read(report, self.now)
            return chunk

    source = Counted(parse_recording(content), report)
    async with events_of(source, source_named(vector.dialect)[0].name, report=report, join=True) as stream:
        try:
            async for _ in stream:
                pass
        except StreamError:
            pass
    counted.settle(report)
    (found,) = objects(run("inspect", "--json", kept(tmp_path, content))) or [{}]
    times = found.get("times")
    if times is None:
        assert counted.first_at is None
        return
    assert times["first_output_s"] == pytest.approx(counted.first_at)
    assert (times["greatest_gap_s"] or 0.0) == pytest.approx(counted.greatest_gap_s)
    assert times["stalls"] == counted.stalls


@pytest.mark.parametrize(
    "command", [("inspect",), ("lint",), ("convert", "--to", "ollama")], ids=lambda words: words[0]
)
def test_a_whole_response_is_refused_with_the_command_that_reads_it(command):
    done = run(*command, stdin=b'{"id":"c","object":"chat.completion","choices":[]}')
    assert done.returncode == 5
    assert done.stderr.endswith(b"; for a whole response, use streamkit convert-response\n")


# -- inputs that no command can use ------------------------------------------------------------------------------------

TO = ("--to", "anthropic")
BODIES = [(name, "--from", "openai-chat", *TO) for name in ("convert-request", "convert-response")]


@pytest.mark.parametrize("named", [[], ["--dialect", "openai-chat"]])
@pytest.mark.parametrize("content", [b"", b" \n"])
def test_an_empty_input_has_the_status_of_a_stream_without_an_end(content, named, tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(content)
    commands = [("convert", *TO), ("inspect",), ("convert-recording", "-o", str(tmp_path / "out"), *named), *BODIES]
    assert [run(*command, str(path)).returncode for command in commands] == [3] * len(commands)
    assert run("lint", *named, str(path)).returncode == 1


@pytest.mark.parametrize(
    ("command", "content", "advice"),
    [
        (("convert", *TO), b'{"a":1}', "for a whole response, use streamkit convert-response"),
        (("convert-recording", "-o", "out"), b'{"a":1}', "for a whole response, name the dialect"),
        *[(body, DATA, "found a stream of openai-chat (at byte 0); for a stream, use streamkit convert") for body in BODIES],
        *[(body, gzip.compress(DATA), "this is a gzip file: decompress it first (gunzip)") for body in BODIES],
        (("lint",), gzip.compress(DATA), "this is a gzip file: decompress it first (gunzip)"),
        (("lint",), b'data: {"a":"'.ljust(2 << 20, b"x"), "without an event that ends within 1,048,576 bytes (at byte 0); name the dialect"),
        (BODIES[0], b'{"a":NaN}', "unexpected character, expected a JSON value: line 1 column 6 (char 5)"),
        (BODIES[1], b'{"a":NaN}', "unexpected character, expected a JSON value: line 1 column 6 (char 5)"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_the_message_says_what_to_do_instead(command, content, advice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(content)
    done = run(*command, "file")
    assert (done.returncode, done.stdout) == (5, b"")
    assert done.stderr.decode().endswith(f"{advice}\n")


@pytest.mark.parametrize("command", ["lint", "inspect"])
def test_json_has_an_object_for_each_file(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page").write_bytes(b"<html>")
    (tmp_path / "empty").touch()
    (tmp_path / "stream").write_bytes(DATA)
    failed = b"".join(
        [b'{"streamkit_recording":1}\n', b'{"t":0,"response":{"status":429}}\n', b'{"t":1,"end":"whole"}\n']
    )
    kept(tmp_path, failed)
    done = run(command, "--json", "missing", "page", "empty", "stream", f"a{SUFFIX}")
    assert len({frozenset(each) - {"error", "times"} for each in objects(done)}) == 1
    missing, page, empty, stream, recording = objects(done)
    reason = "cannot read missing: No such file or directory"
    assert (missing["file"], missing["error"]) == ("missing", {"type": "SourceFailed", "message": reason})
    assert page["error"]["type"] == empty["error"]["type"] == "NotThisDialect"
    assert (page["file"], stream["file"], recording["file"]) == ("page", "stream", f"a{SUFFIX}")
    assert stream.get("error") is None
    assert recording["error"]["type"] == "rate_limit"
