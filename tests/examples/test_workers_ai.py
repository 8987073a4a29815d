"""The example that brings a dialect by an entry point: installed beside streamkit, used by name, and tested by its own test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, DEMO
from tests.distributions import install

PROJECT = Path(__file__).parents[2] / "examples" / "workers-ai"
STREAMS, BODIES = "workers_ai/streams.py", "workers_ai/bodies.py"
BODY = (
    b'data: {"response":"Let me "}\n\ndata: {"response":"look."}\n\n'
    b'data: {"tool_calls":[{"name":"get_weather","arguments":{"city":"Oslo","days":1.0}}]}\n\n'
    b'data: {"response":"","usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}\n\ndata: [DONE]\n\n'
)
TESTS = (sys.executable, "-m", "pytest", "-q", "-rs", "-pno:cacheprovider", "-pno:xdist", "-pno:langsmith_plugin")


def runner(project: Path, site: Path | None = None):
    """Runs a command in an environment that has the example, installed where a ``site`` is given."""
    if site is not None:
        install(project, site)
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [site and str(site), str(project), os.environ.get("PYTHONPATH")])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "error",
    }

    def run(*command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=110, check=False, env=variables, cwd=project
        )

    return run


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return runner(PROJECT, tmp_path_factory.mktemp("site"))


def test_it_is_listed_with_the_distribution_that_brings_it(installed):
    done = installed(*COMMAND, "dialects", "--json")
    assert done.returncode == 0, done.stdout
    found = [json.loads(line) for line in done.stdout.splitlines()][-1]
    assert (found["name"], found["distribution"]) == ("workers-ai", "streamkit-workers-ai")
    assert (found["entry_point"], found["error"]) == ("workers_ai:DIALECT", None)


def test_a_call_of_it_becomes_one_of_anthropic_with_its_own_text(installed):
    done = installed(*COMMAND, "convert", "--from", "workers-ai", "--to", "anthropic", stdin=BODY)
    assert done.returncode == 0, done.stderr
    assert b'"text":"Let me look."' in done.stdout
    assert b'"name":"get_weather"' in done.stdout
    assert rb"{\"city\":\"Oslo\",\"days\":1.0}" in done.stdout
    assert b'"stop_reason":"tool_use"' in done.stdout
    assert done.stdout.rstrip().endswith(b'data: {"type":"message_stop"}')
    cut = installed(*COMMAND, "convert", "--from", "workers-ai", "--to", "anthropic", stdin=BODY[:-20])
    assert cut.returncode == 3
    assert b"message_stop" not in cut.stdout


def test_reasoning_is_a_counted_loss(installed):
    done = installed(*COMMAND, "convert", "--from", "openai-chat", "--to", "workers-ai", stdin=DEMO.read_bytes())
    assert done.returncode == 0, done.stderr
    assert b"loss reasoning (1)" in done.stderr
    assert done.stdout.endswith(b"data: [DONE]\n\n")


def test_inspect_finds_it_out_and_takes_no_other_dialect_for_it(installed):
    done = installed(*COMMAND, "inspect", "--json", stdin=BODY)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["dialect"], found["choices"][0]["text"], found["clean"]) == ("workers-ai", "Let me look.", True)
    generate = b'{"model":"m","created_at":"2026-01-01T00:00:00Z","response":"Hi","done":true,"done_reason":"stop"}\n'
    assert json.loads(installed(*COMMAND, "inspect", "--json", stdin=generate).stdout)["dialect"] == "ollama"


def test_lint_judges_a_stream_by_the_grammar_of_the_example(installed):
    assert installed(*COMMAND, "lint", stdin=BODY).returncode == 0
    done = installed(*COMMAND, "lint", "--dialect", "workers-ai", stdin=BODY.replace(b'"look."}', b'"look."'))
    assert done.returncode == 1, done.stdout
    assert b"error not_json" in done.stdout
    cut = installed(*COMMAND, "lint", "--dialect", "workers-ai", stdin=BODY.removesuffix(b"data: [DONE]\n\n"))
    assert b"error truncated" in cut.stdout


def test_a_request_goes_there_and_back(installed):
    asked = {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather in Oslo?"}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "seed": 7,
        "n": 1,
    }
    ours = installed(
        *COMMAND, "convert-request", "--from", "openai-chat", "--to", "workers-ai", stdin=json.dumps(asked).encode()
    )
    assert ours.returncode == 0, ours.stderr
    assert json.loads(ours.stdout) == {
        "messages": asked["messages"], "tools": asked["tools"], "tool_choice": "any", "seed": 7
    }  # fmt: skip
    assert b"loss tool_choice (1)" in ours.stderr
    back = installed(*COMMAND, "convert-request", "--from", "workers-ai", "--to", "openai-chat", stdin=ours.stdout)
    assert json.loads(back.stdout)["tool_choice"] == "required"


def test_a_whole_response_is_read(installed):
    body = b'{"result":{"response":"Hi","tool_calls":[{"name":"f","arguments":{"x":1.0}}]},"success":true,"errors":[]}'
    done = installed(*COMMAND, "convert-response", "--from", "workers-ai", "--to", "ollama", stdin=body)
    assert done.returncode == 0, done.stderr
    assert b'"content":"Hi"' in done.stdout
    assert b'"arguments":{"x":1.0}' in done.stdout
    failed = body.replace(b'"success":true', b'"success":false')
    done = installed(*COMMAND, "convert-response", "--from", "workers-ai", "--to", "ollama", stdin=failed)
    assert done.returncode == 3
    assert b'"done":true' not in done.stdout


def changed(folder: Path, file: str, here: str, there: str):
    """Runs a command in a copy of the example, in which one text of a file is another."""
    copy = folder / "copy"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / file).read_text("utf-8")
    assert text.count(here) == 1
    (copy / file).write_text(text.replace(here, there), "utf-8")
    return runner(copy)


@pytest.mark.parametrize("every_cut", [pytest.param("True", marks=pytest.mark.exhaustive), "False"])
def test_its_own_test_passes(tmp_path, every_cut):
    done = changed(tmp_path, "test_workers_ai.py", "exhaustive=True", f"exhaustive={every_cut}")(*TESTS)
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.parametrize(
    ("file", "sound", "faulty", "law"),
    [
        (
            STREAMS,
            "[write_error(event)])\n",
            '[write_error(event)])\n        self.write(b"data: [DONE]\\n\\n")\n',
            b"L3",
        ),
        (BODIES, "            call.extras = fields.rest() or None\n", "", b"L5"),
        *(
            pytest.param(*fault, marks=pytest.mark.exhaustive)  # each is a run of all laws
            for fault in (
                (STREAMS, "        delta.anonymous = True", "        # ", b"L4"),
                (STREAMS, '        self.keep_others(chunk, KNOWN, "")\n', "", b"L5"),
                (STREAMS, "        self._chunk(response=text)\n", "        self._chunk(response=text[:5])\n", b"L5"),
            )
        ),
    ],
)
def test_its_own_test_sees_a_dialect_that_breaks_a_law(tmp_path, file, sound, faulty, law):
    done = changed(tmp_path, file, sound, faulty)(*TESTS, "-x")
    assert done.returncode == 1, done.stdout
    assert b"AssertionError: " + law in done.stdout


def test_its_project_file_names_all_that_an_installation_needs():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    (package,) = project["tool"]["setuptools"]["packages"]
    assert (PROJECT / package / "__init__.py").is_file()
    assert (PROJECT / project["project"]["readme"]).is_file()
    assert list(project["project"]["entry-points"]) == ["streamkit.dialects"]


def test_its_streams_fit_in_140_lines_of_88_columns_and_all_of_it_in_470():
    lines = {path.stem: path.read_text("utf-8").count("\n") for path in (PROJECT / "workers_ai").glob("*.py")}
    assert lines["streams"] <= 140
    assert sum(lines.values()) <= 470
