"""``streamkit mock``: what it refuses, and that it serves until it is interrupted and then says its verdict."""

from __future__ import annotations

import asyncio
import os
import re
import signal

import httpx
import pytest

from streamkit.cli.commands import parser
from streamkit.errors import UsageError
from streamkit.report import Status
from tests.cli.command import start
from tests.lab.mock.asking import chat, user

SCRIPT = """
[[turn]]
steps = [{ status = 401 }]
[[turn]]
steps = [{ say = "Hello" }]
"""
URL = re.compile(r"openai-chat +(http://127\.0\.0\.1:\d+/v1)\n")


async def run_here(*arguments: str) -> Status:
    """The command without a process, which takes a second to start. Raises UsageError."""
    options = parser().parse_args(["mock", *arguments])
    return await options.run(options)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SCRIPT, "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(["--dialect", "opnai"], "no dialect is called 'opnai'"), (["--speed", "-1"], "speed: must be 0 or more, not -1")],
)
async def test_what_cannot_be_is_refused(arguments, reason):
    with pytest.raises(UsageError, match=reason):
        await run_here(*arguments)


async def test_each_fault_of_a_script_has_a_line(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text("[[turn]]\nsteps = [{ sya = 'x' }, { wait = 'x' }]", "utf-8")
    assert await run_here(str(path)) is Status.USAGE
    assert [line.partition("s.toml:")[2][:4] for line in capsys.readouterr().err.splitlines()] == ["2:12", "2:27"]


async def test_the_quirks_are_listed(capfdbinary):
    assert await run_here("--list-quirks", "--dialect", "ollama") is Status.DONE
    some = capfdbinary.readouterr().out.decode()
    assert await run_here("--list-quirks") is Status.DONE
    every = capfdbinary.readouterr().out.decode()
    assert re.search(
        r"^id_missing: no call has an id\n    needs: stream, call\n    of: openai-chat, ", every, re.MULTILINE
    )
    assert "array_unclosed" in every
    assert "array_unclosed" not in some
    assert "of:" not in some.replace("of the reader:", "")


async def test_a_clean_client_gives_a_clean_status(script, capsys):
    serving = asyncio.create_task(run_here(script, "--dialect", "openai-chat", "--port", "0", "--speed", "0"))
    while not (found := URL.search(capsys.readouterr().out)):  # noqa: ASYNC110 - printing sets no event
        await asyncio.sleep(0.01)
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.post(f"{found[1]}/chat/completions", content=chat(user()))
    os.kill(os.getpid(), signal.SIGINT)
    assert await serving is Status.DONE
    assert capsys.readouterr().out == "verdict on the client: clean, 1 request\n"


def test_it_serves_until_it_is_interrupted_and_then_judges(script):
    process = start("mock", script, "--dialect", "openai-chat", "--port", "0", "--first-token-s", "0")
    try:
        assert process.stdout.readline() == b"base URLs:\n"
        url = URL.search(process.stdout.readline().decode())[1]
        for status in 401, 200:
            answer = httpx.post(f"{url}/chat/completions", content=chat(user()), trust_env=False)
            assert answer.status_code == status
        process.send_signal(signal.SIGINT)
        printed, logged = process.communicate(timeout=40)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == Status.FAILED
    assert printed.decode().startswith(
        "verdict on the client: not clean, 2 requests\nfault: bad_request_retried: request 2"
    )
    assert [line.partition(":")[0] for line in logged.decode().splitlines()] == ["request 1", "request 2"]
