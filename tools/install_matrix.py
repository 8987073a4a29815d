"""Install the wheel in empty environments, for each Python here, without extras and with each extra alone.

``make install-matrix``. In each environment, the commands of the README that need no server run, and so do its programs in
Python; with the extra ``gateway``, the demo model answers a request. A row says what was tried.
``python -m tools.install_matrix 3.14 gateway`` tries one version and one extra.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from tools.release import EXTRAS, build, copy, run
from tools.versions import interpreter, named

ROOT = Path(__file__).resolve().parents[1]
#: What must be importable with an extra that was installed alone.
IMPORTS = {
    "": "streamkit, streamkit.web, streamkit.asgi, streamkit.testing, streamkit.plugin, streamkit.resume, streamkit.lab.mock",
    "aws": "botocore",
    "cli": "shtab, tqdm",
    "gateway": "streamkit.gateway.serve",
    "google": "google.auth.transport.requests",
    "import": "yaml, tomli_w",
    "otel": "streamkit.otel, opentelemetry.sdk",
    "redis": "streamkit.resume.redis_store",
    "schema": "jsonschema_rs",
    "tokens": "bpe_openai",
    "tools": "bm25s",
}
RUN = """
import asyncio
from pathlib import Path

async def chunks():
    yield Path("recording.sse").read_bytes()

asyncio.run(run(chunks()))
"""
COMMANDS = (
    "streamkit --version",
    "streamkit convert --from openai-chat --to anthropic recording.sse",
    "streamkit inspect recording.sse",
    "streamkit lint --dialect openai-chat recording.sse",
    "streamkit dialects",
)
ASK = {"model": "demo", "max_tokens": 50, "stream": True, "messages": [{"role": "user", "content": "Hello!"}]}


def readme_programs() -> list[str]:
    """Return the README's programs in Python; that with a pipe reads the recording."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [code + RUN if "async def run(" in code else code for code in blocks]


def tried(folder: Path, bin_: Path, extra: str) -> list[str]:
    """Run everything in an environment. Return what failed, each with the end of its output."""
    python = bin_ / "python"
    commands = [[python, "-c", f"import {IMPORTS['']}"]]
    commands += [[python, "-c", code] for code in readme_programs()]
    commands += [[python, "-c", f"import {IMPORTS[extra]}"]] if extra else []
    commands += [[bin_ / command.split()[0], *command.split()[1:]] for command in COMMANDS]
    failed = []
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or not (done.stdout or "-c" in command):
            failed.append(f"{' '.join(map(str, command))}: {done.stderr[-300:]}")
    if extra == "gateway" and "message_stop" not in (said := demo_answer(bin_, folder)):
        failed.append(f"the demo model: {said[-300:]}")
    return failed


def demo_answer(bin_: Path, folder: Path) -> str:
    """Start the gateway with its demo model, send the README's request, and return the response."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = subprocess.Popen(
        [bin_ / "streamkit", "serve", "--port", port], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                url = f"http://127.0.0.1:{port}/v1/messages"
                request = urllib.request.Request(url, json.dumps(ASK).encode(), {"content-type": "application/json"})
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - this machine
                    return answer.read().decode()
            time.sleep(0.1)
        return "no answer in ten seconds"
    finally:
        server.terminate()
        server.wait(30)


def main(chosen: list[str]) -> int:
    """0 if nothing failed."""
    versions = [each for each in chosen if each[0] == "3"] or named()
    extras = [each for each in chosen if each in EXTRAS] or ["", *EXTRAS]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        out = Path(name, "dist")
        epoch = run("git", "log", "-1", "--format=%ct")
        build(copy(Path(name, "tree", "streamkit")), out, epoch)
        [wheel] = out.glob("*.whl")
        for version, extra in itertools.product(versions, extras):
            program = interpreter(version)
            if program is None:
                print(f"Python {version}: not on this machine, not tried", flush=True)
                continue
            folder = Path(name, f"{version}-{extra}")
            folder.mkdir()
            shutil.copy(ROOT / "streamkit/cli/demo/two_calls.sse", folder / "recording.sse")
            began = time.perf_counter()
            subprocess.run([program, "-m", "venv", folder / "venv"], check=True)
            pip = [
                folder / "venv/bin/python",
                "-m",
                "pip",
                "install",
                "--quiet",
                f"{wheel}[{extra}]" if extra else wheel,
            ]
            done = subprocess.run(pip, capture_output=True, text=True, check=False, env=os.environ)
            failed = [done.stderr[-500:]] if done.returncode else tried(folder, folder / "venv/bin", extra)
            took = f"{time.perf_counter() - began:.0f} s"
            print(
                f"Python {version}, {extra or 'no extra'}: {'FAILED' if failed else 'ok'}, {took}",
                *failed,
                sep="\n  ",
                flush=True,
            )
            bad += bool(failed)
            shutil.rmtree(folder)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
