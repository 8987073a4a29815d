"""Recordings from files of any form: ours, raw bytes, and other tools' files."""

from __future__ import annotations

import json

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.lab.recording import BadRecording, lines_of, parse_recording
from streamkit.lab.recording.loading import load, parse_any
from tests.sampling import few, name_of
from tests.vectors import VECTORS


@pytest.mark.parametrize("vector", few(VECTORS, 3, "raw to recording", name=name_of))
def test_a_raw_body_becomes_a_recording_and_is_read_again(vector, tmp_path):
    path = tmp_path / "answer.bin"
    path.write_bytes(vector.body)
    (made,) = load(path, dialect=vector.dialect)
    assert (made.id, made.dialect, made.exact, made.ending) == ("answer.bin", vector.dialect, False, "whole")
    path = tmp_path / "answer.stream.jsonl"
    path.write_bytes(b"".join(lines_of(made)))
    (found,) = load(path)
    assert found == made == parse_recording(path.read_bytes())
    assert (found.body, [read.t for read in found.reads]) == (vector.body, [0.0])


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
def test_the_dialect_of_raw_bytes_is_found_out(dialect):
    body = next(vector.body for vector in VECTORS if vector.dialect == dialect and vector.clean)
    (found,) = parse_any(body)
    assert found.dialect == ("openai-chat" if dialect == "mistral" else dialect)
    assert found.response.headers == {"content-type": DIALECTS[found.dialect].media_type}


def test_the_dialect_may_be_said_late():
    body = next(vector.body for vector in VECTORS if vector.dialect == "anthropic" and vector.clean)
    (found,) = parse_any(20_000 * b": ping\n\n" + body)
    assert found.dialect == "anthropic"


@pytest.mark.parametrize("size", [10, 300_000])
def test_what_is_nothing_that_is_read_is_refused(size):
    with pytest.raises(BadRecording) as caught:
        parse_any(b"<html>" + size * b"x", name="a.html")
    assert str(caught.value).startswith(
        "a.html: neither a recording nor a stream of a known dialect: found an HTML page"
    )


def test_an_unknown_dialect_is_named():
    with pytest.raises(UsageError, match="no dialect or provider is called 'nonsense'"):
        parse_any(b"data: {}\n\n", dialect="nonsense")


@pytest.mark.parametrize(
    "content", [b'{"fixtures": {}}', b'{"fixtures": [}', b'{"_meta"}', json.dumps([{"fixtures": []}]).encode()]
)
def test_what_only_looks_like_another_tools_file_is_raw(content):
    with pytest.raises(BadRecording, match="neither a recording nor"):
        parse_any(content)
