"""Coding agents as their users run them without a terminal: installed from npm, with the gateway as their only provider.

Each gets a home of its own with nothing in it but its configuration, an environment with nothing in it but the settings that
are said here, and a proxy that is not there for whatever is not on this machine. Nothing is reported, updated or fetched.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define, field, frozen

from streamkit.conversation.messages import Tool
from tests import npm

FOLDER: Final = Path(__file__).parent
#: More than a gigabyte is unpacked, on a machine that does other things.
INSTALL_S: Final = 400
#: An agent takes some seconds, and many times that where others want the same cores.
RUN_S: Final = 150
#: Packages that put their program in its place when they are installed.
BUILDING: Final = ("@anthropic-ai/claude-code", "opencode-ai")
KEY: Final = "agents-key"
#: Nobody listens at the port "discard".
NO_PROXY: Final = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
NOTE: Final = "note.txt"
QUESTION: Final = f"Which word stands in {NOTE}?"


@define
class Place:
    """Where an agent runs."""

    folder: Path
    word: str  #: what it is to find
    url: str = ""  #: the gateway's
    environment: dict[str, str] = field(factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def note(self) -> Path:
        return self.folder / "project" / NOTE

    def configure(self, path: str, text: str) -> Path:
        """Write a file of the agent's, below its home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file


@frozen
class Agent:
    name: str
    dialect: str  #: in which it asks the gateway
    tool: str  #: how the name of the tool ends that its model is to call
    #: Writes its configuration and its environment; returns its command and what the tool is called with.
    prepare: Callable[[Place], tuple[list[str], dict[str, Any]]]

    keeps_ids: bool = True  #: whether its history has the ids that calls came with
    over_socket: bool = False  #: whether it asks over a WebSocket

    def calls(self, tool: Tool) -> bool:
        return tool.name.endswith(self.tool)


def claude_code(place: Place) -> tuple[list[str], dict[str, Any]]:
    place.environment |= {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return ["claude", "-p", QUESTION, "--allowedTools", "Read"], {"file_path": str(place.note)}


CODEX: Final = """\
model = "some-model"
model_provider = "gateway"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.gateway]
name = "streamkit"
base_url = "%s/v1"
wire_api = "responses"
env_key = "GATEWAY_KEY"
"""
MCP: Final = """\
[mcp_servers.words]
command = %s
args = %s
"""
CODEX_COMMAND: Final = [
    "codex",
    "exec",
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
    QUESTION,
]


def codex(place: Place) -> tuple[list[str], dict[str, Any]]:
    place.configure(".codex/config.toml", CODEX % place.url)
    place.environment["GATEWAY_KEY"] = KEY
    return CODEX_COMMAND, {"cmd": f"cat {NOTE}"}


def codex_with_mcp(place: Place) -> tuple[list[str], dict[str, Any]]:
    command, _ = codex(place)
    server = MCP % (json.dumps(sys.executable), json.dumps([str(FOLDER / "mcp_server.py"), place.word]))
    place.configure(".codex/config.toml", CODEX % place.url + server)
    return command, {"name": "it"}


#: Codex' own provider, which asks over a WebSocket first, sent here.
CODEX_ITSELF: Final = """\
model = "some-model"
openai_base_url = "%s/v1"
check_for_update_on_startup = false
[analytics]
enabled = false
"""


def codex_over_websocket(place: Place) -> tuple[list[str], dict[str, Any]]:
    place.configure(".codex/config.toml", CODEX_ITSELF % place.url)
    place.environment["CODEX_API_KEY"] = KEY
    return CODEX_COMMAND, {"cmd": f"cat {NOTE}"}


def opencode(package: str, version: str) -> Callable[[Place], tuple[list[str], dict[str, Any]]]:
    """With one of the AI SDK's packages, which come with it; ``version`` is how base URLs of that package end."""

    def prepare(place: Place) -> tuple[list[str], dict[str, Any]]:
        provider = {
            "npm": package,
            "name": "streamkit",
            "options": {"baseURL": place.url + version, "apiKey": KEY},
            "models": {"some-model": {}},
        }
        settings = {"autoupdate": False, "share": "disabled", "provider": {"gateway": provider}}
        place.environment |= {
            "OPENCODE_CONFIG": str(place.configure("opencode.json", json.dumps(settings))),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }
        return ["opencode", "run", "--model", "gateway/some-model", QUESTION], {"filePath": str(place.note)}

    return prepare


def gemini_cli(place: Place) -> tuple[list[str], dict[str, Any]]:
    settings = {
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    place.configure(".gemini/settings.json", json.dumps(settings))
    place.environment |= {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": place.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return ["gemini", "-m", "gemini-2.5-pro", "--yolo", "-p", QUESTION], {"file_path": str(place.note)}


AGENTS: Final = [
    Agent("claude-code", "anthropic", "Read", claude_code),
    Agent("codex", "openai-responses", "exec_command", codex),
    Agent("codex-mcp", "openai-responses", "look_up", codex_with_mcp),
    Agent("codex-websocket", "openai-responses", "exec_command", codex_over_websocket, over_socket=True),
    Agent("gemini-cli", "gemini", "read_file", gemini_cli),
    Agent("opencode", "openai-chat", "read", opencode("@ai-sdk/openai-compatible", "/v1")),
    Agent("opencode-anthropic", "anthropic", "read", opencode("@ai-sdk/anthropic", "/v1")),
    Agent("opencode-openai", "openai-responses", "read", opencode("@ai-sdk/openai", "/v1")),
    Agent("opencode-google", "gemini", "read", opencode("@ai-sdk/google", "/v1beta"), keeps_ids=False),
]


@frozen
class Ran:
    status: int | None
    output: str
    errors: str


async def run(place: Place, command: list[str]) -> Ran:
    """Run an agent in its project until it ends; all that is left of it is killed then."""
    program = programs() / command[0]
    if not program.exists():
        pytest.skip(f"npm has no {command[0]} for this machine")
    process = await asyncio.create_subprocess_exec(
        program,
        *command[1:],
        cwd=place.note.parent,
        env=environment(place),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(RUN_S):
            output, errors = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return Ran(process.returncode, output.decode(), errors.decode())


def programs() -> Path:
    return npm.installed(FOLDER, "the agents' test", within_s=INSTALL_S, building=BUILDING) / ".bin"


def environment(place: Place) -> Mapping[str, str]:
    proxies = {**NO_PROXY, **{name.upper(): value for name, value in NO_PROXY.items()}}
    return {"PATH": os.environ["PATH"], "HOME": str(place.home), "TERM": "dumb", **proxies, **place.environment}
