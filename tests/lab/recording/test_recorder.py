"""Exchanges are told of on a loop and written by a thread: what stands in the files, within which bounds, and what does not."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.lab.recording import Read, RecordedRequest, parse_recording, read_recording
from streamkit.lab.recording import writer as writing
from streamkit.lab.recording.recorder import Recorder
from streamkit.lab.recording.writer import Directory, RecorderLimits

KEY = "sk-planted-0123456789"
LIMITS = RecorderLimits()
CHUNK = b'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'


class Recording:
    """A recorder, and what it said."""

    def __init__(self, directory: Path, **options) -> None:
        self.directory, self.said = directory, []
        self.recorder = Recorder(directory, warn=self.said.append, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.recorder.close()

    def exchange(
        self, reads=(), *, end="whole", headers=(), body=b"{}", target="/v1/x", dialect="openai-chat", answer=()
    ):
        """One exchange, read as it was written."""
        saved = []
        opened = self.recorder.open(dialect=dialect, saved=lambda path, end: saved.append((path, end)))
        opened.request("POST", target, headers, body)
        opened.response(200, answer)
        for read in reads:
            opened.read(read)
        opened.end(end)
        until = time.monotonic() + 10
        while not saved and time.monotonic() < until:
            time.sleep(0.001)
        ((path, ending),) = saved
        found = path and read_recording(path)
        assert found is None or ending == (found.end.kind if found.end is not None else "")
        return found

    def everything(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.directory.iterdir())


def test_an_exchange_is_written_and_read_again(tmp_path):
    reads = [b"data: 1\n\n", b"\xf0\x9f", b"\x99\x82"]
    with Recording(tmp_path) as recording:
        found = recording.exchange(
            reads, headers=[("Accept", "*/*")], body=b'{"n":18446744073709551616}', answer=[("Content-Type", "a/b")]
        )
    assert [read.data for read in found.reads] == reads
    assert found.request == RecordedRequest(
        path="/v1/x",
        headers={"accept": "*/*"},
        body=b'{"n":18446744073709551616}',
        body_sha256=hashlib.sha256(b'{"n":18446744073709551616}').hexdigest(),
    )
    assert (found.response.status, found.response.headers) == (200, {"content-type": "a/b"})
    assert (found.end.kind, found.end.reads, found.end.bytes, found.end.dropped) == ("whole", 3, 13, 0)
    assert found.end.sha256 == hashlib.sha256(b"".join(reads)).hexdigest()
    assert (found.dialect, found.side, found.exact, found.removed) == ("openai-chat", "upstream", True, ())


def test_files_are_the_users_alone_and_are_named_by_time_digits_and_dialect(tmp_path):
    directory = tmp_path / "a" / "recordings"
    with Recording(directory) as recording:
        recording.exchange(target="/../../../etc/passwd")
    (path,) = directory.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    at, digits, dialect = path.name.removesuffix(".stream.jsonl").split("-", 2)
    assert (at[8], at[-1], len(digits), dialect) == ("T", "Z", 16, "openai-chat")


def test_a_file_that_is_there_is_never_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr("streamkit.lab.recording.writer.secrets.token_hex", lambda _: "0" * 16)
    monkeypatch.setattr("streamkit.lab.recording.writer.datetime", Frozen)
    with Recording(tmp_path) as recording:
        assert recording.exchange() is not None
        before = recording.everything()
        assert recording.exchange() is None
        assert recording.everything() == before
        assert recording.recorder.unrecorded == {"disk_error": 1}
    assert recording.said == [f"exchanges are not recorded in '{tmp_path}': File exists"]


class Frozen:
    @staticmethod
    def now(zone):
        return datetime(2026, 11, 26, tzinfo=zone)


def test_names_are_in_the_order_in_which_exchanges_began(tmp_path):
    with Recording(tmp_path) as recording:
        opened = [recording.recorder.open(dialect=None) for _ in range(5)]
        for exchange in reversed(opened):
            exchange.request("GET", "/", (), None)
            exchange.end("unreachable")
    found = [read_recording(path) for path in sorted(tmp_path.iterdir())]
    assert [each.at for each in found] == sorted({each.at for each in found})


def test_times_are_those_of_the_loop_however_late_the_thread_is(tmp_path):
    with Recording(tmp_path) as recording:
        opened = recording.recorder.open()
        began = time.monotonic()
        opened.request("GET", "/", (), None)
        times = []
        for pause_s in (0.0, 0.03, 0.001, 0.005):
            time.sleep(pause_s)
            times.append(time.monotonic() - began)
            opened.read(b"x")
        opened.end("whole")
    (path,) = tmp_path.iterdir()
    for read, at in zip(read_recording(path).reads, times, strict=True):
        assert abs(read.t - at) < 0.002


# -- keys --------------------------------------------------------------------------------------------------------------


def test_planted_keys_of_the_process_and_of_the_request_stand_in_no_file(tmp_path):
    own = "client-own-987654321"
    body = f'{{"a":"{KEY}","b":["{own}"],"c":"{KEY[:-1]}\\u0039"}}'.encode()
    headers = [("Authorization", f"Bearer {own}"), ("X-Api-Key", own), ("Cookie", f"s={own}"), ("User-Agent", own)]
    with Recording(tmp_path, keys=[KEY]) as recording:
        found = recording.exchange(
            [f"data: {own[:9]}".encode()],
            headers=headers,
            body=body.replace(b"\\u0039", b"9"),
            target=f"/v1/{KEY}?key={own}&a=1",
            answer=[("Set-Cookie", f"s={own}"), ("X-Request-Id", own)],
        )
        recording.exchange([b"data: ", own.encode()], headers=headers)
        written = recording.everything()
    assert own.encode() not in written
    assert KEY.encode() not in written
    assert found.removed == ("request.headers", "request.path", "request.body", "response.headers")
    assert found.request.path == "/v1/[removed]?a=1"
    assert found.request.body == b'{"a":"[removed]","b":["[removed]"],"c":"[removed]"}'
    assert (found.request.headers, found.response.headers) == ({}, {})
    assert found.ending == "whole"


@pytest.mark.parametrize("cut", [None, 0, 1, 3, 4, 5, 10, len(KEY) - 1])
def test_a_recording_ends_before_a_known_key_however_its_reads_are_cut(tmp_path, cut):
    text = f"data: {KEY}!\n\n".encode()
    parts = [bytes([byte]) for byte in text] if cut is None else [text[: 6 + cut], text[6 + cut :]]
    with Recording(tmp_path, keys=[KEY]) as recording:
        found = recording.exchange([b"data: first\n\n", *parts, b"data: last\n\n"])
    assert found.ending == "withheld"
    body = found.body
    assert body.startswith(b"data: first\n\n")
    assert b"last" not in body
    assert len(body) <= len(b"data: first\n\ndata: ") + 3
    assert KEY[:4].encode() not in body


def test_reads_that_only_begin_like_a_key_are_all_there_in_their_order_and_at_their_times(tmp_path):
    reads = [b"x sk-plan", b"e\n", b"sk-p", b"l", b"a", b"n", b"t", b"e", b" sk-planted-012345678", b"8", b"sk-plante"]
    with Recording(tmp_path, keys=[KEY]) as recording:
        found = recording.exchange(reads)
    assert [read.data for read in found.reads] == reads
    assert [read.t for read in found.reads] == sorted(read.t for read in found.reads)
    assert found.ending == "whole"


@pytest.mark.parametrize(("bodies", "body"), [("none", None), ("shape", b'{"a":"string","[removed]":"number"}')])
def test_of_a_body_its_shape_or_nothing_is_kept(tmp_path, bodies, body):
    with Recording(tmp_path, bodies=bodies, keys=[KEY]) as recording:
        found = recording.exchange(body=f'{{"a":"private","{KEY}":1}}'.encode())
        assert b"private" not in recording.everything()
    assert found.request.body == body
    assert found.request.body_sha256 is not None
    assert found.removed == ("request.body",)


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_file_ends_before_it_is_too_long_and_the_exchange_goes_on(tmp_path):
    limits = evolve(LIMITS, file_bytes=8192)
    with Recording(tmp_path, limits=limits) as recording:
        found = recording.exchange([b"x" * 1000] * 50)
        assert recording.recorder.dropped == 0
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size <= 8192
    assert found.ending == "truncated_by_recorder"
    assert 6 <= len(found.reads) < 8 <= found.end.reads + 1


def test_reads_behind_the_end_of_a_file_are_queued_no_more(tmp_path):
    with Recording(tmp_path, limits=evolve(LIMITS, file_bytes=8192)) as recording:
        opened = recording.recorder.open()
        opened.request("GET", "/", (), None)
        until = time.monotonic() + 10
        while not opened.is_over and time.monotonic() < until:
            opened.read(b"x" * 1000)
            time.sleep(0.001)
        queued = recording.recorder.queued_bytes
        opened.read(b"x")
        assert (opened.is_over, recording.recorder.queued_bytes) == (True, queued)
        opened.end("whole")


def test_a_body_that_is_longer_than_a_file_is_left_out(tmp_path):
    with Recording(tmp_path, limits=evolve(LIMITS, file_bytes=8192)) as recording:
        found = recording.exchange([b"data: 1\n\n"], body=b'"' + b"x" * 10_000 + b'"')
    assert (found.request.body, found.removed, found.ending) == (None, ("request.body",), "whole")


def test_a_file_is_no_longer_though_its_dialect_is_found_late(tmp_path):
    with Recording(tmp_path, limits=evolve(LIMITS, file_bytes=8192)) as recording:
        found = recording.exchange([b"x" * 500] * 20, body=b'"' + b"y" * 5000 + b'"', dialect=None)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size <= 8192
    assert (found.ending, len(found.request.body)) == ("truncated_by_recorder", 5002)


def test_a_directory_with_enough_files_gets_no_other_which_is_said_once(tmp_path):
    (tmp_path / "another.stream.jsonl").write_text("{}")
    (tmp_path / "notes.txt").write_text("no recording")
    with Recording(tmp_path, limits=evolve(LIMITS, files=2)) as recording:
        assert recording.exchange() is not None
        assert recording.exchange() is None
        assert recording.exchange() is None
        assert (recording.recorder.files, recording.recorder.unrecorded) == (1, {"directory_full": 2})
    assert len(recording.said) == 1
    assert "2 files" in recording.said[0]


def test_a_directory_with_enough_bytes_ends_what_is_recorded(tmp_path):
    (tmp_path / "another.stream.jsonl").write_bytes(b"x" * 9000)
    with Recording(tmp_path, limits=evolve(LIMITS, all_bytes=12_000)) as recording:
        assert recording.exchange([b"x" * 1000] * 5).ending == "truncated_by_recorder"
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 12_000 + writing.END_BYTES


def test_what_others_write_into_the_directory_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("streamkit.lab.recording.writer.COUNT_S", 0.0)
    with Recording(tmp_path, limits=evolve(LIMITS, files=2)) as recording:
        assert recording.exchange() is not None
        (tmp_path / "another.stream.jsonl").write_text("{}")
        assert recording.exchange() is None


def test_a_slow_disk_drops_reads_and_delays_nobody(tmp_path, monkeypatch):
    is_slow, write = threading.Event(), os.write

    def slow(descriptor, data):
        is_slow.wait(10)
        return write(descriptor, data)

    monkeypatch.setattr(writing.os, "write", slow)
    with Recording(tmp_path, limits=evolve(LIMITS, queue_bytes=20_000)) as recording:
        opened = recording.recorder.open()
        opened.request("GET", "/", (), None)
        time.sleep(0.05)
        began = time.monotonic()
        for _ in range(100):
            opened.read(b"x" * 1000)
        opened.end("whole")
        assert time.monotonic() - began < 5
        dropped = recording.recorder.dropped
        recording.recorder.open().request("POST", "/", (), b"x" * 30_000)
        is_slow.set()
    (path,) = tmp_path.iterdir()
    found = read_recording(path)
    assert 80 <= dropped < 100
    assert (found.end.dropped, found.end.reads, found.end.bytes, found.end.sha256) == (dropped, 100, 100_000, "")
    assert len(found.reads) == 100 - dropped
    assert found.exact is False
    assert recording.recorder.unrecorded == {"slow_disk": 1}
    assert "20,000 bytes wait" in recording.said[0]


def test_a_full_disk_is_said_once_and_counted(tmp_path, monkeypatch):
    def full(_descriptor, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "write", full)
    with Recording(tmp_path) as recording:
        for _ in range(3):
            assert recording.exchange([b"x"]) is None
        assert recording.recorder.unrecorded == {"disk_error": 3}
        assert recording.recorder.bytes == 0
    assert list(tmp_path.iterdir()) == []
    assert recording.said == [f"exchanges are not recorded in '{tmp_path}': No space left on device"]


def test_a_fault_in_one_exchange_is_counted_and_others_are_recorded(tmp_path, monkeypatch):
    with Recording(tmp_path) as recording:
        with monkeypatch.context() as patched:
            patched.setattr(writing, "read_line", {}.__getitem__)
            assert recording.exchange([b"x"]).end is None
        assert recording.recorder.unrecorded == {"fault": 1}
        assert recording.exchange([b"x"]).ending == "whole"
    assert recording.said == [f"exchanges are not recorded in '{tmp_path}': KeyError"]


def test_a_directory_that_can_not_be_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path is shortened
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"'file/below' for recordings can't be made: not a directory"):
        Directory(Path("file", "below"), LIMITS, print)


# -- who tells ---------------------------------------------------------------------------------------------------------


def test_what_was_put_back_is_recorded_once(tmp_path):
    with Recording(tmp_path) as recording:
        opened = recording.recorder.open()
        opened.request("GET", "/", (), None)
        opened.read(b"abc")
        opened.unread(b"abc")
        for again in (b"ab", b"cde", b"f"):
            opened.read(again)
        opened.end("whole")
        opened.end("cut")
        assert opened.ending == "whole"
    (path,) = tmp_path.iterdir()
    found = read_recording(path)
    assert [read.data for read in found.reads] == [b"abc", b"de", b"f"]
    assert found.ending == "whole"


def test_the_dialect_is_told_by_the_bytes_where_nothing_else_tells_it(tmp_path):
    with Recording(tmp_path) as recording:
        by_bytes = recording.exchange([CHUNK[:40], CHUNK[40:], CHUNK], dialect=None)
        unknown = recording.exchange([b"<html>"], dialect=None)
        nothing = recording.exchange([], dialect=None, end="unreachable")
    assert [by_bytes.dialect, unknown.dialect, nothing.dialect] == ["openai-chat", "", ""]
    assert [read.data for read in by_bytes.reads] == [CHUNK[:40], CHUNK[40:], CHUNK]
    assert unknown.body == b"<html>"
    assert nothing.ending == "unreachable"


KILLED = """
import sys, time
from streamkit.lab.recording.recorder import Recorder
recorder = Recorder(sys.argv[1], warn=print)
opened = recorder.open(dialect="openai-chat")
opened.request("POST", "/v1/x", (), b"{}")
opened.response(200, ())
for n in range(3):
    opened.read(b"data: %d\\n\\n" % n)
time.sleep(0.2)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.exhaustive
def test_the_file_of_a_process_that_was_killed_can_be_read(tmp_path):
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    (path,) = tmp_path.iterdir()
    found = read_recording(path)
    assert [read.data for read in found.reads] == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    assert (found.end, found.ending) == (None, "cut")
    half = parse_recording(path.read_bytes()[:-5])
    assert [read.data for read in half.reads] == [b"data: 0\n\n", b"data: 1\n\n"]
    assert isinstance(half.reads[0], Read)
