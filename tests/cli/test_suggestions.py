"""A wrong word of a command line is refused with the nearest known word, and a bare ``streamkit`` prints its help."""

from __future__ import annotations

import pytest

from streamkit.cli.commands import filled, parser
from tests.cli.command import run


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["conver"], "'convert'"),
        (["convert-respons"], "'convert-response'"),
        (["--verson"], "--version"),
        (["convert", "--polcy=strict", "--to", "ollama"], "--policy"),
        (["convert-request", "--form", "ollama"], "--from"),  # rather than that --from is missing
        (["serve", "--prot", "1"], "--port"),
        (["lint", "--from", "ollama"], "--dialect"),  # which other commands call --from
        (["inspect", "--dialect", "ollama"], "--from"),
        (["inspect", "--policy", "strickt"], "'strict'"),
        (["convert", "--from", "openai-chta", "--to", "ollama"], "'openai-chat'"),
        (["convert", "--from", "vlm", "--to", "ollama"], "'vllm'"),
        (["convert", "--to", "claude-cod"], "'claude-code'"),
        (["convert-recording", "-o", "x", "--dialect", "gemni", "y"], "'gemini'"),
        (["lint", "--dialect", "antropic"], "'anthropic'"),
        (["doctor", "http://127.0.0.1:1", "--model", "m", "--dialect", "mistrall"], "'mistral'"),
        (["mock", "--dialect", "olama"], "'ollama'"),
        (["mock", "--quirk", "index_mising"], "'index_missing'"),
        (["dialects", "claud-code"], "'claude-code'"),
    ],
    ids=" ".join,
)
def test_a_wrong_word_is_refused_with_the_nearest_known_one(arguments, meant):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().strip().endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "--reenc", "--to", "ollama", "--", "--no-file"],  # an abbreviation; then a file
        ["inspect", "--from=ollama", "--tools", "-", "--", "--no-file"],
    ],
    ids=" ".join,
)
def test_an_abbreviation_and_a_file_that_looks_like_an_option_are_taken(arguments):
    assert b"did you mean" not in run(*arguments).stderr


def test_a_word_that_resembles_nothing_gets_no_suggestion():
    done = run("convert", "--zzzzzz", "--to", "ollama")
    assert done.returncode == 2
    assert done.stderr.endswith(b"no option is called --zzzzzz\n")


def test_the_command_alone_prints_its_help_as_an_error():
    alone = run()
    assert (alone.returncode, alone.stdout) == (2, b"")
    assert alone.stderr == run("--help").stdout


@pytest.mark.parametrize("columns", [40, 70, 100])
def test_the_examples_of_help_are_commands_at_any_width(columns):
    (commands,) = (action for action in parser()._actions if isinstance(action.choices, dict))
    for name, command in commands.choices.items():
        shown = filled(command.description, columns).replace(" \\\n     ", "")
        examples = [line for line in command.description.splitlines() if line.startswith("  ") and "streamkit " in line]
        assert [line for line in examples if line not in shown] == [], name
