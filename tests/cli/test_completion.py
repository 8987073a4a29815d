"""What a shell completes with the printed script, and the page for ``man``."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from streamkit.cli.commands import COMMANDS, run
from streamkit.cli.completion import SHELLS
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "streamkit.1"
#: bash's own completion calls the function of the script with the words of the line
ASK = """\
source ./script
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$(complete -p streamkit | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" streamkit "${COMP_WORDS[COMP_CWORD]}"
echo "${COMPREPLY[@]}"
"""


def program(name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture
def script(capfdbinary, tmp_path, monkeypatch):
    def printed(shell):
        assert run(["completion", shell]) == 0
        (tmp_path / "script").write_bytes(capfdbinary.readouterr().out)

    monkeypatch.chdir(tmp_path)
    return printed


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("con", "convert convert-request convert-response convert-recording"),
        ("convert --to gem", "gemini gemini-interactions"),
        ("completion ", " ".join(SHELLS)),
        ("convert --to claude", "claude-code"),
        ("convert --from deep", "deepseek"),
        ("inspect --from au", "auto"),
        ("inspect --think-tags o", "on opened off"),
        ("convert --pol", "--policy"),
        ("lint answer", "answer.sse"),
        ("completion z", "zsh"),
    ],
)
def test_bash_completes(line, found, script, tmp_path):
    script("bash")
    (tmp_path / "answer.sse").touch()
    words = ["streamkit", *line.split(" ")]
    done = subprocess.run([program("bash"), "-c", ASK, "bash", *words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == found.split()


def test_fish_shows_what_each_command_does(script):
    script("fish")
    ask = 'source script; complete -C "streamkit conv"'
    done = subprocess.run([program("fish"), "-c", ask], capture_output=True, text=True, check=True)
    assert "convert\ttranslate a stream into another dialect" in done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_its_script(shell, script):
    script(shell)
    subprocess.run([program(shell), "-n", "script"], check=True)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_every_command(shell, script, tmp_path):
    script(shell)
    text = (tmp_path / "script").read_text("utf-8")
    assert all(name in text for name in COMMANDS)


def test_without_the_library_it_says_what_to_install(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert run(["completion", "bash"]) == 2
    assert "pip install 'streamkit-llm[cli]'" in capfd.readouterr().err


def test_man_reads_the_page():
    command = [program("man"), "--warnings=w", "--local-file", str(PAGE)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    )
    assert done.stderr == ""
    assert all(f"streamkit {name}" in done.stdout for name in COMMANDS)
