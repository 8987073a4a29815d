"""Recordings are found in files and folders, in the order of their times; what can't be replayed is named."""

from __future__ import annotations

import pytest
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.lab.recording import BadRecording, End, sha256_of
from streamkit.lab.recording.matching import RequestMatcher
from streamkit.lab.replayer.loading import load
from tests.cli.command import DEMO
from tests.lab.replayer.recordings import recording, write


def test_files_and_folders_are_read_in_the_order_of_their_times(tmp_path):
    late, early = recording(at="2026-11-22T18:01:21Z"), recording(at="2026-11-22T18:01:20Z")
    one = write(tmp_path / "folder" / "below" / "a.stream.jsonl", late)
    two = write(tmp_path / "folder" / "b.stream.jsonl", early)
    three = write(tmp_path / "c.jsonl", late)
    (tmp_path / "folder" / "notes.txt").write_text("none")
    assert [each.name for each in load([tmp_path / "folder", three])] == [str(two), str(three), str(one)]


def test_a_folder_without_any_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no file in this folder ends with \.stream\.jsonl"):
        load([tmp_path])


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (recording(status=None), "it has neither a response nor an end"),
        (recording(status=None, kind=None), "it has neither a response nor an end"),
        (evolve(recording(), end=End(t=1.0, kind="whole", dropped=3)), "it lacks 3 reads"),
    ],
)
def test_what_cannot_be_replayed_is_named(tmp_path, made, reason):
    file = write(tmp_path / "a.stream.jsonl", made)
    with pytest.raises(BadRecording, match=rf"a\.stream\.jsonl: {reason}"):
        load([file])


def test_a_file_may_have_the_bytes_of_a_stream_alone():
    (loaded,) = load([DEMO])
    assert (loaded.request, loaded.recording.body, loaded.recording.dialect) == (None, DEMO.read_bytes(), "openai-chat")


def test_a_body_that_was_not_kept_as_it_was_is_known_by_its_sum(tmp_path):
    made = recording(asked=b'{"model":"string"}', removed=["request.body"])
    made = evolve(made, request=evolve(made.request, body_sha256=sha256_of(b'{"model":"m"}')))
    (loaded,) = load([write(tmp_path / "a.stream.jsonl", made)])
    matcher = RequestMatcher([loaded.request])
    assert matcher.matches(evolve(made.request, body=b'{"model":"m"}', body_sha256=None)) == [0]
    assert matcher.matches(evolve(made.request, body_sha256=None)) == []


def test_what_is_no_recording_is_named(tmp_path):
    (tmp_path / "a.stream.jsonl").write_text("data: {}\n\n")
    with pytest.raises(BadRecording, match="neither a recording nor a stream of a known dialect"):
        load([tmp_path])
    with pytest.raises(OSError, match=r"b\.stream\.jsonl"):
        load([tmp_path / "b.stream.jsonl"])
