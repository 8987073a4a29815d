"""The example that brings a dialect by an entry point: installed beside streamkit, used by name, and tested by its own tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.command import COMMAND
from tests.corpora import CORPORA
from tests.distributions import install

PROJECT = Path(__file__).parents[2] / "examples" / "legacy-completions"
HEAD = '{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m-1","choices":'
BODY = "".join(
    f"data: {payload}\n\n"
    for payload in (
        HEAD + '[{"text":"Hel","index":0,"logprobs":null,"finish_reason":null}]}',
        HEAD + '[{"text":"lo","index":0,"logprobs":null,"finish_reason":null}]}',
        HEAD + '[{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}]}',
        "[DONE]",
    )
).encode()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Runs a command in an environment that has the example."""
    site = tmp_path_factory.mktemp("site")
    install(PROJECT, site)
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(site), str(PROJECT)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "error",
        "STREAMKIT_CORPORA": str(CORPORA or ""),
    }

    def run(*command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=110, check=False, env=variables, cwd=PROJECT
        )

    return run


def test_it_is_listed_with_the_distribution_that_brings_it(installed):
    done = installed(*COMMAND, "dialects", "--json")
    assert done.returncode == 0, done.stdout
    found = [json.loads(line) for line in done.stdout.splitlines()][-1]
    assert (found["name"], found["distribution"]) == ("openai-completions", "streamkit-legacy-completions")
    assert (found["entry_point"], found["error"]) == ("legacy_completions:DIALECT", None)


def test_a_stream_of_it_becomes_one_of_anthropic(installed):
    done = installed(*COMMAND, "convert", "--from", "openai-completions", "--to", "anthropic", stdin=BODY)
    assert done.returncode == 0, done.stderr
    assert b'"text":"Hel' in done.stdout
    assert done.stdout.rstrip().endswith(b'data: {"type":"message_stop"}')
    cut = installed(*COMMAND, "convert", "--from", "openai-completions", "--to", "anthropic", stdin=BODY[:-200])
    assert cut.returncode == 3
    assert b"message_stop" not in cut.stdout


def test_inspect_finds_it_out(installed):
    done = installed(*COMMAND, "inspect", "--json", stdin=BODY)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["dialect"], found["choices"][0]["text"], found["clean"]) == ("openai-completions", "Hello", True)


def test_lint_knows_its_grammar_and_explains_what_is_broken(installed):
    assert installed(*COMMAND, "lint", stdin=BODY).returncode == 0
    done = installed(*COMMAND, "lint", "--dialect", "openai-completions", stdin=BODY.replace(b'"index":0,', b"", 1))
    assert done.returncode == 6
    assert b"error choices: a choice without an index" in done.stdout
    assert b"choice_index_missing" in done.stdout


def test_its_own_tests_pass(installed):
    done = installed(sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist")
    told = done.stdout.decode()
    assert done.returncode == 0, told
    assert CORPORA is None or "no recordings" not in told, told


def test_its_own_tests_see_an_encoder_that_invents_success(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(PROJECT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    encode = copy / "legacy_completions" / "encode.py"
    sound = encode.read_text("utf-8")
    faulty = sound.replace("""b'data: {"error":%b}\\n\\n'""", """b'data: {"error":%b}\\n\\ndata: [DONE]\\n\\n'""")
    assert faulty != sound
    encode.write_text(faulty, "utf-8")
    install(copy, tmp_path / "site")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(copy)])}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-k", "l3", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=copy, env=variables, capture_output=True, timeout=110, check=False)
    assert done.returncode == 1, done.stdout
    assert b"test_l3_a_stream_that_was_cut_is_no_success" in done.stdout


def test_its_project_file_names_all_that_an_installation_needs():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    (package,) = project["tool"]["setuptools"]["packages"]
    inside = {path.name for path in (PROJECT / package).iterdir() if path.name != "__pycache__"}
    assert inside >= {"__init__.py", "py.typed"}
    assert all(name.endswith((".py", ".typed")) for name in inside), "a folder would be a package of its own"
    assert (PROJECT / project["project"]["readme"]).is_file()
    assert list(project["project"]["entry-points"]) == ["streamkit.dialects"]
