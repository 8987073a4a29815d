"""``streamkit inspect --web``: it serves a page of the files, says where, and ends at once where there is nothing to show."""

import json
import re
import signal
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest

from tests.cli.command import DEMO, run, start


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


def fed(url, token, kind):
    """The messages of the first stream, up to one of that kind."""
    with urlopen(Request(f"{url}/feed?stream=0", headers={"Authorization": f"Bearer {token}"}), timeout=20) as lines:
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
        (str(DEMO), "whole"),
        (str(cut), "cut"),
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


@pytest.mark.parametrize("option", ["--json", "--profile"])
def test_what_the_page_does_not_show_is_refused_with_it(option):
    done = run("inspect", "--web", option, str(DEMO))
    assert done.returncode == 2
    assert b"do not go with --web" in done.stderr


def test_a_port_that_is_taken_is_said():
    with serving(str(DEMO)) as (url, _, _):
        port = url.rpartition(":")[2]
        done = run("inspect", "--web", "--port", port, str(DEMO))
    assert done.returncode == 2
    assert f"cannot listen on http://127.0.0.1:{port} for the inspector".encode() in done.stderr
