"""Every example of README.md and docs/ runs, and says what it prints. See ``pages.py`` for what is run and how."""

from __future__ import annotations

import asyncio
import importlib
import re
import shutil
import sys
import tomllib

import pytest
from aiohttp import web
from attrs import evolve

from streamkit.dialects import DIALECTS
from streamkit.gateway.app import gateway_app
from streamkit.gateway.demo import demo_config, start_demo, welcome
from streamkit.gateway.metrics import Metrics
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.web import setup
from tests.docs.pages import DEMO, PAGES, ROOT, blocks, commands, run, write_files

TUTORIAL = ROOT / "docs" / "tutorial" / "first-stage.md"
README = ROOT / "README.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to run a page in, from which its files can be imported, and forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, folder):
    run(page, folder)


def test_the_pages_have_examples():
    found = [block for page in PAGES for block in blocks(page)]
    assert sum(block.language == "python" and not block.fragment for block in found) >= 15
    assert sum(len(commands(block)) for block in found if block.language == "console") >= 8


# -- the commands of README.md -----------------------------------------------------------------------------------------


def test_the_readme_begins_with_the_commands_that_the_gateway_prints():
    printed = welcome("http://127.0.0.1:8080").partition("In another terminal:\n\n")[2]
    assert f"```sh\n{printed}```" in README.read_text("utf-8")


async def test_the_commands_of_the_readme_resume_a_stream(folder, aiohttp_server):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    runner, url = await start_demo()
    server = await aiohttp_server(gateway_app(demo_config(url), Metrics()))
    (script,) = [
        text for text in re.findall(r"```sh\n(.*?)```", README.read_text("utf-8"), re.DOTALL) if "tee cut" in text
    ]
    script = script.replace("http://127.0.0.1:8080", str(server.make_url("")).rstrip("/"))
    process = await asyncio.create_subprocess_shell(
        script, cwd=folder, stdout=asyncio.subprocess.PIPE, env={"PATH": "/usr/bin:/bin", "no_proxy": "*"}
    )
    written, _ = await process.communicate()
    await runner.cleanup()
    body = re.sub(rb"id: [^\n]*\n", b"", written)
    assert len((folder / "cut").read_bytes()) < len(written)
    assert violations("anthropic", body) == []
    assert body.endswith(b'data: {"type":"message_stop"}\n\n')


def test_the_page_of_promises_names_the_pythons_of_the_classifiers():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    versions = [found[1] for each in classifiers if (found := re.search(r"Python :: (3\.\d+)$", each))]
    page = (ROOT / "docs" / "status.md").read_text("utf-8")
    assert len(versions) >= 3
    assert [version for version in versions if version not in page] == []


# -- what a page defines and does not call -----------------------------------------------------------------------------


async def replay(request: web.Request) -> web.StreamResponse:
    """An upstream that answers everything with the demo recording, a line at a time."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for line in DEMO.read_bytes().splitlines(keepends=True):
        await response.write(line)
    return response


def application(handler, path="/") -> web.Application:
    app = web.Application()
    app.router.add_post(path, handler)
    return app


def violations(dialect: str, body: bytes) -> list[object]:
    """What the dialect's own checker finds in a whole stream."""
    named = DIALECTS[dialect]
    parser, linter = named.parser(DEFAULT_LIMITS, StreamReport()), named.linter()
    frames = parser.feed(body) + parser.finish()
    return [*linter.feed(frames), *linter.finish()]


@pytest.fixture
def readme(folder):
    return run(README, folder, console=False)


async def test_the_application_of_the_readme_answers(readme, aiohttp_server, aiohttp_client):
    upstream = await aiohttp_server(application(replay, "/v1/chat/completions"))
    app = web.Application()
    setup(app, evolve(readme["upstream"], base_url=str(upstream.make_url("/v1"))), clients=["anthropic"])
    mounted = [route.resource.canonical for route in readme["app"].router.routes()]
    assert mounted == ["/v1/messages", "/v1/messages/count_tokens"]
    await answers_as_anthropic(await aiohttp_client(app), "/v1/messages")


async def test_the_handler_of_the_how_to_answers(folder, aiohttp_server, aiohttp_client):
    how_to = run(ROOT / "docs" / "how-to" / "serve-with-aiohttp.md", folder, console=False)
    upstream = await aiohttp_server(application(replay))
    how_to["UPSTREAM"] = upstream.make_url("/")
    client = await aiohttp_client(application(how_to["messages"]))
    await answers_as_anthropic(client, "/")
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    async with client.post("/", json=asked) as response:
        assert response.status == 400
    await upstream.close()
    async with client.post("/", json=asked | {"stream": True}) as response:
        assert (response.status, (await response.json())["type"]) == (502, "error")


async def answers_as_anthropic(client, path):
    asked = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    async with client.post(path, json=asked) as response:
        body = await response.read()
    assert response.status == 200
    assert violations("anthropic", body) == []
    assert body.count(b'"type":"tool_use"') == 2
    async with client.post(path, json=asked | {"messages": 7}) as response:
        assert response.status == 400
        assert (await response.json())["error"]["message"].startswith("messages: must be a list")


async def test_the_stages_of_the_readme_redact_across_deltas_and_drop_usage(readme, capsys):
    recording = DEMO.read_bytes().replace(b'"Let me "', b'"It is ACME-"').replace(b'"look that "', b'"4711, look "')
    await readme["run"](source_of([recording]))
    body = capsys.readouterr().out.encode()
    assert violations("anthropic", body) == []
    assert b"".join(re.findall(rb'"text_delta","text":"([^"]*)"', body)).startswith(b"It is [redacted], look ")
    assert b"4711" not in body


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_the_service_of_the_tutorial_answers_with_the_allowed_call(
    folder, stream, aiohttp_server, aiohttp_client
):
    write_files(TUTORIAL, folder)
    upstream = await aiohttp_server(importlib.import_module("upstream").app)
    service = (folder / "service.py").read_text("utf-8")
    assert "http://127.0.0.1:8081" in service
    (folder / "service.py").write_text(service.replace(":8081", f":{upstream.port}"), "utf-8")
    client = await aiohttp_client(importlib.import_module("service").app)
    asked = {"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}
    async with client.post("/v1/messages", json=asked) as response:
        body = await response.read()
    assert response.status == 200
    assert not stream or violations("anthropic", body) == []
    assert b'"name":"get_weather"' in body
    assert b"get_time" not in body
