"""The bar on standard error: after a second, on a terminal, of all input files, and never between the lines of a report."""

from __future__ import annotations

import asyncio
import io
import sys

import pytest

from streamkit.cli import inputs, lint, progress, streams
from streamkit.cli.commands import parser
from streamkit.cli.streams import write
from tests.cli.command import DEMO
from tests.cli.recorded import recorded

DATA = DEMO.read_bytes()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """Runs a command in this process on two files, with standard error as given, and returns what is printed there."""
    files = tmp_path / "a.sse", tmp_path / "b.stream.jsonl"
    files[0].write_bytes(DATA)
    files[1].write_bytes(recorded([(0.1, DATA)], "openai-chat"))

    def run_it(*arguments, stderr=Terminal, after=0.0):
        monkeypatch.setattr(sys, "stderr", stderr())
        monkeypatch.setattr(progress, "DELAY_S", after)
        options = parser().parse_args([*arguments, *map(str, files)])
        asyncio.run(options.run(options))
        return sys.stderr.getvalue()

    return run_it


@pytest.mark.parametrize(
    "command", [["lint"], ["inspect", "--json"], ["convert", "--to", "anthropic", "-o"]], ids=" ".join
)
def test_a_long_run_shows_a_bar_on_a_terminal_and_removes_it(shown, command, tmp_path):
    out = [str(tmp_path / "out")] if "-o" in command else []
    bar = shown(*command, *out)
    assert "100%" in bar or "%|" in bar
    assert bar.rpartition("\n")[2].rstrip(" ").endswith("\r")
    if out:  # the bar is removed before each line of the report
        lines = [line.rpartition("\r")[2] for line in bar.split("\n") if "frames, clean" in line]
        assert len(lines) == 2
        assert all(line.startswith("streamkit: ") for line in lines)


def test_the_bar_is_removed_before_a_line_on_standard_output(shown, monkeypatch):
    said = []
    monkeypatch.setattr(lint, "write", lambda data: said.append(sys.stderr.getvalue()) or write(data))
    monkeypatch.setattr(streams.os, "write", lambda _, data: said.append(sys.stderr.getvalue()) or len(data))
    shown("lint")
    assert len(said) == 4
    assert all("%|" in before and after.endswith("\r") for before, after in zip(said[::2], said[1::2], strict=True))


@pytest.mark.parametrize("how", [{"stderr": io.StringIO}, {"after": 60.0}], ids=["no terminal", "a short run"])
def test_nothing_is_shown_elsewhere(shown, how):
    assert shown("lint", **how) == ""


def test_without_the_library_there_is_no_bar_and_no_error(shown, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert shown("lint") == ""


def test_an_input_without_a_size_has_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    with progress.progress(["/dev/null"]):
        progress.advance(1)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(("is_recorded", "has_times"), [(False, False), (True, True)])
async def test_a_file_of_bytes_has_no_times(tmp_path, is_recorded, has_times):
    """However long reading the file takes."""
    path = tmp_path / "a"
    path.write_bytes(recorded([(0.1, DATA)]) if is_recorded else DATA)
    opened, _ = await inputs.open_input(str(path), "openai-chat")
    await opened.aclose()
    assert opened.has_times is has_times
