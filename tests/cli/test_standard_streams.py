"""Commands whose standard streams are closed, or have an encoding that lacks characters of the help."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.command import COMMAND, DEMO, TIMEOUT_S, run

CONVERT = ("convert", "--to", "anthropic")


def run_without(closed: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A command that a shell starts with closed descriptors, such as ``2>&-``."""
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *arguments]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(shell, capture_output=True, timeout=TIMEOUT_S, check=False, env=environment)


@pytest.mark.parametrize("command", [CONVERT, ("lint",), ("inspect",)], ids=" ".join)
@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_without_standard_error_the_data_is_the_same(command, closed):
    done = run_without(closed, *command, str(DEMO))
    assert (done.returncode, done.stdout) == (0, run(*command, str(DEMO)).stdout)


@pytest.mark.parametrize("command", [CONVERT, ("lint",), ("inspect",), ("dialects",)], ids=" ".join)
def test_data_for_a_closed_standard_output_is_an_error(command):
    done = run_without(">&-", *command, *([] if command == ("dialects",) else [str(DEMO)]))
    assert (done.returncode, done.stderr) == (1, b"streamkit: cannot write (standard output): Bad file descriptor\n")


def test_a_closed_standard_input_is_an_error():
    done = run_without("<&-", *CONVERT)
    assert (done.returncode, done.stderr) == (1, b"streamkit: cannot read (standard input): Bad file descriptor\n")


@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_help_is_printed_in_any_encoding(variables):
    done = run("convert", "--help", **variables)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"curl -N ? |" in done.stdout
