"""``streamkit dialects``: the table, where each entry comes from, and what is wrong with those that can't be used."""

from __future__ import annotations

import json
import os
import re

import pytest

from streamkit.dialects import DIALECTS
from tests.cli.command import run
from tests.distributions import write_distribution

BUILT_IN = len(DIALECTS.built_in)
ACME = """\
from attrs import evolve
from streamkit.dialects import ollama
DIALECT = evolve(ollama.DIALECT, name="acme", title="Acme\\x1b[2J")
"""


@pytest.fixture
def installed(tmp_path):
    """Runs the command beside a distribution with the given entry points and the module ``acme_wire``."""
    (tmp_path / "acme_wire.py").write_text(ACME, "utf-8")

    def run_beside(entry_points, *arguments, **options):
        write_distribution(tmp_path, "acme-dialects", entry_points)
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        return run(*arguments, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", **options)

    return run_beside


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_built_in_dialects_are_listed_in_the_order_of_the_table():
    done = run("dialects", "--json")
    found = objects(done)[:BUILT_IN]
    assert [one["name"] for one in found] == list(DIALECTS.built_in)
    assert {one["name"] for one in found[0].pop("providers")} >= {"deepseek", "vllm"}
    assert found[0].pop("clients")[0] == {
        "name": "openai-python",
        "title": "the openai package, and programs like it",
        "changes": {},
    }
    assert found[0] == {
        "name": "openai-chat",
        "title": "OpenAI Chat Completions",
        "media_type": "text/event-stream",
        "directions": ["in", "out"],
        "distribution": None,
        "version": None,
        "entry_point": None,
        "error": None,
    }
    lines = run("dialects").stdout.decode().splitlines()
    assert lines[0].split("  ")[0] == "openai-chat"
    assert all(line.endswith("built in") for line in lines[:BUILT_IN])


def test_the_list_fits_a_terminal_of_80_by_24():
    lines = run("dialects").stdout.decode().splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("name", "first", "within"),
    [
        ("anthropic", "anthropic: Anthropic Messages", "  client claude-code (--to claude-code): "),
        ("deepseek", "  provider deepseek (--from deepseek): DeepSeek", "    dialect: openai-chat"),
        ("codex", "  client codex (--to codex): ", "    dialect: openai-responses"),
    ],
)
def test_a_name_is_described(name, first, within):
    lines = run("dialects", name).stdout.decode().splitlines()
    assert lines[0].startswith(first)
    assert any(line.startswith(within) for line in lines)


def test_every_provider_and_client_is_listed_and_described():
    listed = run("dialects").stdout.decode().split()
    named = [each.name for one in DIALECTS.built_in.values() for each in (*one.providers, *one.clients)]
    assert set(named) <= set(listed)
    done = run("dialects", *named)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"    dialect: ") == len(named)


def test_an_installed_dialect_says_who_brings_it(installed):
    done = installed({"acme": "acme_wire:DIALECT"}, "dialects", "--json")
    (found,) = objects(done)[BUILT_IN:]
    assert done.returncode == 0
    assert (found["name"], found["distribution"], found["version"]) == ("acme", "acme-dialects", "1.0")
    assert (found["media_type"], found["entry_point"]) == ("application/x-ndjson", "acme_wire:DIALECT")


def test_a_title_has_no_power_over_the_terminal(installed):
    done = installed({"acme": "acme_wire:DIALECT"}, "dialects")
    assert "acme-dialects 1.0" in done.stdout.decode().splitlines()[BUILT_IN]
    assert b"\x1b" not in done.stdout


def test_a_broken_entry_point_is_listed_with_its_error_and_the_status_says_so(installed):
    done = installed({"acme": "acme_wire:DIALECT", "gone": "no_such_package:DIALECT"}, "dialects")
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    *rows, last = lines[: lines.index("")]
    assert len(rows) == BUILT_IN + 1
    assert last == (
        "cannot be used: gone of acme-dialects 1.0 (no_such_package:DIALECT): "
        "ModuleNotFoundError: No module named 'no_such_package'"
    )
    assert done.stderr == b""


def test_json_lists_a_broken_entry_point_too(installed):
    done = installed({"anthropic": "acme_wire:DIALECT"}, "dialects", "--json")
    assert done.returncode == 1
    found = objects(done)[-1]
    assert found["error"] == "a built-in dialect has that name"
    assert (found["title"], found["media_type"], found["directions"]) == (None, None, [])


@pytest.mark.parametrize(
    ("command", "flag"), [("convert", "--from"), ("convert", "--to"), ("inspect", "--from"), ("lint", "--dialect")]
)
def test_the_commands_take_an_installed_dialect_and_refuse_one_that_nobody_brings(installed, command, flag):
    other = {"--from": ["--to", "ollama"], "--to": ["--from", "ollama"]}[flag] if command == "convert" else []
    line = b'{"model":"m","created_at":"2025-01-01T00:00:00Z","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}\n'
    done = installed({"acme": "acme_wire:DIALECT"}, command, flag, "acme", *other, stdin=line)
    assert done.returncode == 0, done.stderr
    refused = run(command, flag, "acme", *other, stdin=line)
    assert refused.returncode == 2
    assert re.search(rb"no dialect( or provider| or client)? is called 'acme'", refused.stderr)


def test_a_broken_dialect_that_is_asked_for_is_a_usage_error_with_its_cause(installed):
    done = installed({"gone": "no_such_package:DIALECT"}, "inspect", "--from", "gone")
    assert done.returncode == 2
    told = " ".join(done.stderr.decode().split())
    assert "acme-dialects 1.0" in told
    assert "No module named 'no_such_package'" in told
