"""The mock in a thread, as tests have it, and what it needs to be imported."""

from __future__ import annotations

import subprocess
import sys

import httpx

from streamkit.lab.mock import MockTurn, Say, Script, served_mock
from streamkit.lab.mock.server import script_of
from tests.lab.mock.asking import chat, user

pytest_plugins = ("pytester",)

#: Packages of the extra ``gateway``, and of none: a mock in Python does without them.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"cattrs", "prometheus_client", "tenacity", "brotli", "zstd", "pytest"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from streamkit.lab.mock import Say, served_mock
with served_mock([Say("x")]) as mock:
    print(mock.verdict)
try:
    with served_mock("script.toml"):
        pass
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_a_script_in_python_needs_the_library_alone():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["verdict on the client: clean, 0 requests", "cattrs"]


def test_the_base_url_of_one_dialect_is_its_url():
    with served_mock([Say("x")], dialect="openai-chat") as mock:
        assert mock.url == mock.root + "/v1"
        assert "x" in httpx.post(f"{mock.url}/chat/completions", content=chat(user()), trust_env=False).text
    with served_mock() as mock:
        assert mock.url == mock.root
        assert mock.urls["openai-chat"] == mock.root + "/v1"


def test_one_quirk_or_several_are_named():
    for quirk in "body_for_stream", ["after_end", "body_for_stream"]:
        with served_mock([Say("x")], dialect="openai-chat", quirk=quirk) as mock:
            answer = httpx.post(f"{mock.url}/chat/completions", content=chat(user()), trust_env=False)
            assert answer.headers["content-type"] == "application/json"


def test_a_script_is_named_in_several_ways(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("[[turn]]\nsteps = [{ say = 'x' }]", "utf-8")
    script = Script([Say("x")])
    assert all(script_of(given) == script for given in (script, [Say("x")], [MockTurn([Say("x")])], path, str(path)))
    assert script_of(None) is None


def test_the_fixture_serves_and_judges(pytester):
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(
        """
        import urllib.request

        def ask(mock):
            body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
            try:
                return urllib.request.urlopen(f"{mock.url}/chat/completions", body).read()
            except OSError as error:
                return error

        def test_an_answer(streamkit_mock):
            from streamkit.lab.mock import Say
            mock = streamkit_mock([Say("Hello")], dialect="openai-chat", clean=True)
            assert b"Hello" in ask(mock)
            assert mock.verdict.clean

        def test_a_fault_is_no_failure_unless_it_is_to_be(streamkit_mock):
            from streamkit.lab.mock import ErrorStatus, MockTurn, Say, Script
            mock = streamkit_mock(Script([MockTurn([ErrorStatus(401)]), MockTurn([Say("x")])]), dialect="openai-chat")
            ask(mock), ask(mock)

        def test_a_fault(streamkit_mock):
            from streamkit.lab.mock import ErrorStatus, MockTurn, Say, Script
            mock = streamkit_mock(Script([MockTurn([ErrorStatus(401)]), MockTurn([Say("x")])]), dialect="openai-chat", clean=True)
            ask(mock), ask(mock)
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*fault: bad_request_retried: request 2: *"])
