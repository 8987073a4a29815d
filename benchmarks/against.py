"""Peers and streamkit at the same work: the same bytes in, each in a process and an environment of its own, in turns.

A round asks every process for one timed run, one after the other; a peer's ratio is its time over streamkit's in that round.
What each came to is judged before it is timed (``contests.py``): a peer whose result is wrong is named with what is wrong,
without a time. A peer that can't be run is named with its error.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from attrs import field, frozen

from benchmarks import oracle, timing
from benchmarks.contests import Contest, Peer, SomeWrong, contests
from benchmarks.environments import BY_NAME, ENVIRONMENTS, Environment
from benchmarks.machine import ROOT
from benchmarks.progress import bar

PEERS = ROOT / "benchmarks" / "peers"
ROUNDS = 5
#: Once a run of anyone takes so many seconds there are fewer rounds.
SLOW_SECONDS, SLOW_ROUNDS = 0.4, 3
LEAST_SECONDS = 0.03


class Failed(Exception):
    """A peer's process says an error, or is gone."""


class Process:
    """A worker, asked one thing at a time."""

    def __init__(self, script: str, environment: Environment | None) -> None:
        variables = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0"}
        folder: Path | None = None
        if environment is None:
            command = [sys.executable, str(PEERS / script)]
            variables["PYTHONPATH"] = str(ROOT)
        elif environment.node:
            command, folder = [shutil.which("node") or "node", str(PEERS / script)], environment.folder
        else:
            command = [str(environment.python), str(PEERS / script)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=folder,
            env=variables,
        )
        #: Of what does each work, once the process has said so.
        self.versions: dict[str, str] = {}

    def greet(self) -> None:
        """Wait until its imports are done. Raises Failed."""
        self.versions = self._read()["versions"]

    def ask(self, **order: Any) -> dict[str, Any]:
        """Raises Failed."""
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise Failed(self._last_words()) from error
        answer = self._read()
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise Failed(self._last_words())
        return dict(json.loads(line))

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else f"exit status {self._process.returncode}"

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


@frozen
class Standing:
    """What came of one peer in one contest, as long as it is run: its times by round, or what was wrong."""

    peer: Peer
    process: Process | None
    error: str = ""
    wrong: str = ""
    #: What is wrong with some of many streams.
    some_wrong: str = ""
    seconds: list[float] = field(factory=list)
    floors: list[float] = field(factory=list)


class Processes:
    """All processes, started when they are first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._found: dict[tuple[str, str], Process | str] = {}

    def process(self, peer: Peer) -> Process:
        """Raises Failed, with the same words whenever it is asked."""
        if peer.worker not in self._found:
            self._found[peer.worker] = self._start(peer)
        found = self._found[peer.worker]
        if isinstance(found, str):
            raise Failed(found)
        return found

    def _start(self, peer: Peer) -> Process | str:
        environment = BY_NAME[peer.environment] if peer.environment else None
        if environment is not None and not environment.ready:
            return "not installed (make bench-peers)"
        try:
            process = Process(peer.script, environment)
            self._stack.callback(process.close)
            process.greet()
        except (Failed, OSError) as error:
            return f"can't be run: {error}"
        return process


def enter(contest: Contest, peer: Peer, processes: Processes, body: Path) -> Standing:
    """Have a peer do the work once, and judge what it came to."""
    try:
        process = processes.process(peer)
        answer = process.ask(do="prepare", work=peer.work, body=str(body) if contest.body else "", **contest.order)
    except Failed as error:
        return Standing(peer, None, error=str(error))
    try:
        contest.judge(answer["result"])
    except SomeWrong as error:
        return Standing(peer, process, some_wrong=str(error))
    except (oracle.Wrong, LookupError, TypeError, ValueError) as error:
        return Standing(peer, process, wrong=str(error) or type(error).__name__)
    return Standing(peer, process)


def run(contest: Contest, processes: Processes, body: Path, on_run: Callable[[], object]) -> list[dict[str, Any]]:
    body.write_bytes(contest.body)
    standings = [enter(contest, peer, processes, body) for peer in contest.peers]
    able = [standing for standing in standings if standing.process is not None and not standing.wrong]
    rounds = ROUNDS
    number = 0
    while number < rounds:
        for standing in able:
            answer = standing.process.ask(do="time", least=LEAST_SECONDS)
            standing.seconds.append(answer["seconds"])
            standing.floors.append(answer["floor"])
            on_run()
        number += 1
        if max(standing.seconds[-1] for standing in able) > SLOW_SECONDS:
            rounds = SLOW_ROUNDS
    return [_row(contest, standing, able[0]) for standing in standings]


def _row(contest: Contest, standing: Standing, first: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {
        "work": contest.work,
        "input": contest.input,
        "cut": contest.cut,
        "events": contest.events,
        "peer": standing.peer.name,
        "kind": standing.peer.kind,
        "version": standing.process.versions[standing.peer.work] if standing.process else "",
        "error": standing.error,
        "wrong": standing.wrong,
        "some_wrong": standing.some_wrong,
    }
    if standing.seconds:
        row["microseconds_per_event"] = timing.spread(standing.seconds).median / contest.events * 1e6
        row["times_streamkit"] = _ratio(standing.seconds, first.seconds)
        if contest.body:
            row["times_floor"] = _ratio(standing.seconds, standing.floors)
    return row


def _ratio(seconds: Sequence[float], others: Sequence[float]) -> dict[str, Any]:
    return timing.spread([one / other for one, other in zip(seconds, others, strict=True)]).json()


def measure() -> dict[str, Any]:
    """Everything that can be run now: ``{"rows": …}``. Without any environment there is nothing to compare with."""
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamkit-bench-")))
        processes = Processes(stack)
        todo = list(contests())
        progress = stack.enter_context(bar("peers", sum(len(contest.peers) for contest in todo) * ROUNDS))
        for contest in todo:
            rows += run(contest, processes, folder / "body", progress.update)
    return {"rows": rows}


def any_ready() -> bool:
    return any(environment.ready for environment in ENVIRONMENTS)
