"""Other gateways. ``python -m benchmarks.gateway.peers`` makes an environment for each, under ``benchmarks/.peers``.

They stand in front of the same upstream, one process each, set up as their documents say for production, without a database.
LiteLLM translates as streamkit does, Chat to Anthropic, once it is told to ask the upstream's ``/v1/chat/completions`` for
``/v1/messages``. Portkey's gateway refuses Anthropic's clients in front of such an upstream: its line is Chat to Chat.

One that can't be installed, or does not start, is named with its error.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from benchmarks.environments import FOLDER, CannotInstall, Environment, install, run
from benchmarks.gateway.process import Server, running

START_S: Final = 120.0
#: LiteLLM demands one, and refuses weak ones.
MASTER_KEY: Final = "sk-bench-5f0c7e1b9a3d48626f7d0e2c4b8a9135"


@frozen(kw_only=True)
class Peer:
    """Another gateway."""

    name: str
    environment: Environment
    dialect: Literal["anthropic", "openai-chat"]
    #: From its folder, the upstream's URL and its port to a command; may write files to the folder.
    command: Callable[[Path, str, int], list[str]]
    variables: Mapping[str, str] = field(factory=dict)
    #: From the upstream's URL to what its clients send.
    headers: Callable[[str], Mapping[str, str]]


def _litellm(folder: Path, upstream: str, port: int) -> list[str]:
    asked = {"model": "openai/*", "api_base": f"{upstream}/v1", "api_key": "sk-upstream"}
    settings = {"set_verbose": False, "request_timeout": 600, "num_retries": 0}
    path = folder / "litellm.yaml"  # JSON is YAML
    path.write_text(
        json.dumps({"model_list": [{"model_name": "*", "litellm_params": asked}], "litellm_settings": settings})
    )
    command = [str(FOLDER / "litellm-proxy" / "bin" / "litellm"), "--config", str(path)]
    return [*command, "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]


def _portkey(_folder: Path, _upstream: str, port: int) -> list[str]:
    script = FOLDER / "portkey" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    return [shutil.which("node") or "node", str(script), f"--port={port}", "--headless"]


PEERS: Final = (
    Peer(
        name="LiteLLM 1.106.2",
        environment=Environment("litellm-proxy", ("litellm[proxy]==1.106.2", "mcp==2.3.0")),
        dialect="anthropic",
        command=_litellm,
        variables={
            "LITELLM_MASTER_KEY": MASTER_KEY,
            "LITELLM_MODE": "PRODUCTION",
            "LITELLM_LOG": "ERROR",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_USE_CHAT_COMPLETIONS_URL_FOR_ANTHROPIC_MESSAGES": "True",
        },
        headers=lambda _upstream: {"Authorization": f"Bearer {MASTER_KEY}"},
    ),
    Peer(
        name="Portkey 1.15.2",
        environment=Environment("portkey", ("@portkey-ai/gateway@1.15.2",), node=True),
        dialect="openai-chat",
        command=_portkey,
        variables={"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1"},
        headers=lambda upstream: {
            "Authorization": "Bearer sk-upstream",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": f"{upstream}/v1",
        },
    ),
)
#: With the newest one that Portkey's package allows (1.19), each of its streams is a status 500: "immutable".
OVERRIDES: Final = {"portkey": {"@hono/node-server": "1.13.8"}}


@contextmanager
def serving(peer: Peer, folder: Path, upstream: Server) -> Iterator[tuple[Server, dict[str, Any]]]:
    """A peer, and how a group of clients asks it. Raises RuntimeError with what is wrong."""
    if not peer.environment.ready:
        raise RuntimeError("not installed: python -m benchmarks.gateway.peers")
    port = _free()
    command = peer.command(folder, upstream.url, port)

    def listens(_printed: str) -> int | None:
        with socket.socket() as sock:
            return None if sock.connect_ex(("127.0.0.1", port)) else port

    name = peer.environment.name
    with running(command, folder, name, port=listens, environment=peer.variables, within_s=START_S) as server:
        yield server, {"port": port, "dialect": peer.dialect, "headers": dict(peer.headers(upstream.url))}


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def make(environment: Environment) -> None:
    """Make an environment, unless it is there. Raises CannotInstall."""
    if environment.ready or environment.name not in OVERRIDES:
        install(environment)
        return
    npm = shutil.which("npm")
    if npm is None:
        raise CannotInstall("npm is not installed")
    shutil.rmtree(environment.folder, ignore_errors=True)
    environment.folder.mkdir(parents=True)
    package = {"private": True, "type": "module", "overrides": OVERRIDES[environment.name]}
    (environment.folder / "package.json").write_text(json.dumps(package), "utf-8")
    run([npm, "install", "--no-audit", "--no-fund", "--save-exact", *environment.requirements], environment.folder)
    environment.done.write_text(json.dumps(environment.requirements), "utf-8")


def main() -> int:
    failed = 0
    for peer in PEERS:
        try:
            make(peer.environment)
        except CannotInstall as error:
            failed += 1
            print(f"{peer.name}: {error}")
        else:
            print(f"{peer.name}: ready")
    return failed


if __name__ == "__main__":
    sys.exit(main())
