"""``streamkit replay``: it says where it is and what it has, answers what was asked, and says what came of each request."""

import re
import signal
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.command import run, start
from tests.lab.replayer.recordings import EVENTS, PATH, body, recording, write


@contextmanager
def serving(*arguments):
    """The address, and the process."""
    process = start("replay", "--port", "0", *arguments)
    try:
        first = process.stdout.readline().decode()
        (url,) = re.fullmatch(r"(http://127\.0\.0\.1:\d+)\n", first).groups()
        yield url, process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        for pipe in process.stdin, process.stdout, process.stderr:
            pipe.close()


def test_it_says_what_it_has_and_what_came_of_each_request(tmp_path):
    file = write(tmp_path / "hello.stream.jsonl", recording(path=f"{PATH}?key=secret", headers={"server": "theirs"}))
    with serving(str(tmp_path), "--speed", "0", "--ignore", "user", "--cut", "bytes=9") as (url, process):
        assert process.stdout.readline().decode() == (f"  POST {PATH}  {file}  200, 8 reads in 0.0 s, whole\n")
        with urlopen(Request(url + PATH, data=body(user="me"))) as answer:
            assert answer.read() == b"".join(EVENTS)
            assert (answer.headers["server"], answer.headers["date"]) == ("theirs", None)
        assert process.stdout.readline().decode() == f"hit   POST {PATH}  {file}\n"
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(url + PATH, data=body("bye")))
        refused.value.close()
        reason = f"messages[0].content: 'bye' in the request, 'hi' in the recording ({file})"
        assert process.stdout.readline().decode() == f"miss  POST {PATH}  {reason}\n"
        with pytest.raises(HTTPError, match="421"):
            urlopen(Request(url, headers={"Host": "evil.example"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cut", "lines"], b"a cut must be reads"),
        (["--ignore", "a..b"], b"not a path in a JSON body: 'a..b'"),
        (["--ignore", "a", "--match", "exact"], b"paths can be ignored only in a canonical match"),
        (["--speed", "-1"], b"speed must be 0 or more, not -1"),
        ([], b"no file in this folder ends with .stream.jsonl"),
    ],
)
def test_what_it_cannot_do_is_refused(tmp_path, arguments, message):
    done = run("replay", str(tmp_path), *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr


def test_a_file_that_is_no_recording_is_named(tmp_path):
    (tmp_path / "a.stream.jsonl").write_text("data: {}\n\n")
    done = run("replay", str(tmp_path))
    assert done.returncode == 5
    assert b"a.stream.jsonl: neither a recording nor a stream" in done.stderr
    assert run("replay", str(tmp_path / "none")).returncode == 1
