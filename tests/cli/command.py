"""Runs the command in a process of its own, as a user does.

Importing streamkit takes such a process 0.2 s, a command a few milliseconds, and there are some three hundred of them: so one
process imports it and waits, and every command is a fork of that one, with its own environment, folder and pipes.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

DEMO = Path(__file__).parents[2] / "streamkit" / "cli" / "demo" / "two_calls.sse"
COMMAND = [sys.executable, "-m", "streamkit"]
TIMEOUT_S = 60
#: Longer than any environment and arguments of a test; a message of this socket is received whole or not at all.
MESSAGE_BYTES = 128 * 1024
WAITING = f"""
import gc, json, os, socket, sys
from streamkit.cli import main
from streamkit.cli.commands import parser

parser()  # imports every command, which main does only for the one that is given
requests = socket.socket(fileno=int(sys.argv[1]))
gc.freeze()
while True:
    message, pipes, *_ = socket.recv_fds(requests, {MESSAGE_BYTES}, 3)
    if not message:
        break
    asked = json.loads(message)
    child = os.fork()
    if child == 0:
        requests.close()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        sys.argv = ["streamkit", *asked["arguments"]]
        status = 1
        try:
            status = main(asked["arguments"])
        except SystemExit as left:
            status = left.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
    for pipe in pipes:
        os.close(pipe)
    requests.send(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
"""


@cache
def waiting() -> socket.socket:
    """The socket of the process that has imported streamkit; it ends with this one."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(its.fileno())], pass_fds=[its.fileno()], env=environment
    )
    its.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    ours.settimeout(TIMEOUT_S)
    return ours


def run(*arguments: str, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A command and what became of it. With ``variables``, which Python itself may read when it starts, it is not a fork."""
    if variables or "serve" in arguments or not hasattr(socket, "SOCK_SEQPACKET"):
        environment = {**os.environ, "PYTHONWARNINGS": "error", **variables}
        return subprocess.run(
            [*COMMAND, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False, env=environment
        )
    asked = {"arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd())}
    (its_in, to), (out, its_out), (err, its_err) = os.pipe(), os.pipe(), os.pipe()
    theirs = [its_in, its_out, its_err]
    try:
        socket.send_fds(waiting(), [json.dumps(asked).encode()], theirs)
    finally:
        for pipe in theirs:
            os.close(pipe)
    said: dict[int, bytes] = {}
    threads = [threading.Thread(target=write_all, args=(to, stdin))]
    threads += [threading.Thread(target=lambda pipe=pipe: said.update({pipe: read_all(pipe)})) for pipe in (out, err)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    status = json.loads(waiting().recv(MESSAGE_BYTES))
    return subprocess.CompletedProcess([*COMMAND, *arguments], status, said[out], said[err])


def write_all(pipe: int, data: bytes) -> None:
    with os.fdopen(pipe, "wb", buffering=0) as file:
        view = memoryview(data)
        try:
            while view:
                view = view[file.write(view) :]
        except BrokenPipeError:  # the command didn't want more
            pass


def read_all(pipe: int) -> bytes:
    with os.fdopen(pipe, "rb") as file:
        return file.read()


def start(*arguments: str, **options) -> subprocess.Popen[bytes]:
    """A command that is still running, in a Python of its own: unbuffered pipes on both sides."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        **options,
    )
