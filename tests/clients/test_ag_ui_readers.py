"""AG-UI's own readers over what our encoder writes: of vectors and recordings in every dialect, whole and cut.

A clean stream is accepted by both versions of ``@ag-ui/client``, and CopilotKit runs exactly the calls that are complete. One
that is not is shown as an error: no tool is run, and nothing is asked again. The readers run in Node (``ag_ui/readers.mjs``)
and are installed beside it when they are first asked for.

Source: ui-protocols.md §2.5, §3.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from aiohttp import web
from attrs import frozen

from streamkit.dialects.ag_ui.encode import AgUiEncoder
from streamkit.dialects.ag_ui.lint import AgUiLinter
from streamkit.events import Aside, ReasoningDelta
from streamkit.framing.sse import SSEParser
from streamkit.resume import MemoryStore
from streamkit.translation.bodies import decode_request, drop_unreadable, encode_request
from streamkit.web import setup
from streamkit.web.resume import Resuming, add_resuming
from tests import npm
from tests.corpora import requests
from tests.gateway.running import upstream_at
from tests.laws.running import OURS, Stream, read, recorded, translate
from tests.sampling import drawn
from tests.web.evil import EvilUpstream, Script, Until
from tests.web.faults import good
from tests.web.serving import eventually, serving

FOLDER: Final = Path(__file__).parent / "ag_ui"
VERSIONS: Final = ("1.0.0", "0.0.59")
#: Below the time that a test has.
INSTALL_S: Final = 90
RUN_S: Final = 900


@frozen
class Case:
    """A stream as it is written, and what a client is to make of it."""

    name: str
    written: bytes
    clean: bool
    text: str
    reasoning: str
    #: The calls that are written, and those of them that are complete: name and arguments, as JavaScript reads them.
    names: tuple[str, ...]
    complete: tuple[Any, ...]


def case_of(stream: Stream, body: bytes, what: str, *, passing: bool = False) -> Case:
    """What is expected comes from another encoder: that of Chat, which has a place for calls of every kind."""
    written, report = translate(stream.dialect, "ag-ui", [body], passing=passing)
    said = read("openai-chat", [translate(stream.dialect, "openai-chat", [body], passing=False)[0]])
    events = read(stream.dialect, [body]).events
    first = next((event.choice for event in events if hasattr(event, "choice") and not isinstance(event, Aside)), 0)
    calls = [call for call in said.calls if call.choice == first]
    good = [call for call in calls if call.verdict.kind in {"complete", "empty"} and call.ended]
    return Case(
        f"{stream.dialect}: {stream.name}, {what}",
        written,
        bool(report.clean),
        text_of(said, first, stream.body) + refusal_of(said, first),
        "".join(event.text for event in events if isinstance(event, ReasoningDelta) and event.choice == first),
        tuple({call.name: None for call in calls}),
        tuple((call.name, arguments_of(call)) for call in good),
    )


def text_of(said: Any, choice: int, body: bytes) -> str:
    """The text of a stream, without the blank line that Chat has between messages of two phases."""
    text: str = said.text(choice=choice)
    return text.replace("\n\n", "") if b'"phase"' in body else text


def refusal_of(said: Any, choice: int) -> str:
    return "".join(
        event.text for event in said.events if type(event).__name__ == "RefusalDelta" and event.choice == choice
    )


def arguments_of(call: Any) -> Any:
    if call.kind == "custom":
        return {"input": call.arguments}
    return in_javascript(json.loads(call.arguments or "{}"))


def in_javascript(value: Any) -> Any:
    """A value of JSON as JavaScript has it: every number is a double, and one that no double holds is null again."""
    if isinstance(value, dict):
        return {name: in_javascript(member) for name, member in value.items()}
    if isinstance(value, list):
        return [in_javascript(member) for member in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value) + 0.0
        except OverflowError:
            return None
        return number if abs(number) != float("inf") else None
    return value


def cases_of(streams: Iterable[Stream]) -> list[Case]:
    """Each stream whole, and cut at two thirds."""
    found = []
    for stream in streams:
        if asks_the_user(stream.body):
            continue
        torso = stream.body[: len(stream.body) * 2 // 3]
        found += [case_of(stream, stream.body, "whole"), case_of(stream, torso, "cut")]
        if stream.dialect == "ag-ui" and conforms(stream.body):  # frames that pass byte for byte
            found.append(case_of(stream, stream.body, "passing", passing=True))
            found.append(case_of(stream, torso, "cut and passing", passing=True))
    return found


def asks_the_user(body: bytes) -> bool:
    """Whether a call waits for the user's approval: Chat has no form for that (``test_approvals_of_clients.py`` judges it)."""
    return b'"tool-approval-request"' in body or b'"interrupts"' in body


def conforms(body: bytes) -> bool:
    parser, linter = SSEParser(), AgUiLinter()
    found = [*linter.feed(parser.feed(body)), *linter.feed(parser.finish()), *linter.finish()]
    faults = {violation.rule for violation in found} - {"truncated", "unanswered"}
    return not faults and b"\r" not in body


def judged(lines: Iterable[bytes], what: str) -> list[Any]:
    """What the readers say of each line."""
    npm.installed(FOLDER, "AG-UI's clients", within_s=INSTALL_S)
    command = ["node", str(FOLDER / "readers.mjs"), what]
    done = subprocess.run(command, input=b"\n".join(lines), capture_output=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def readings(cases: Sequence[Case]) -> list[Any]:
    """What the readers make of each stream, which comes in reads of 40 bytes or at once, by turns."""
    lines = []
    for number, case in enumerate(cases):
        size = 40 if number % 2 and len(case.written) < 20_000 else max(1, len(case.written))
        pieces = [case.written[at : at + size] for at in range(0, len(case.written), size)]
        told = {
            "name": case.name,
            "pieces": [base64.b64encode(piece).decode() for piece in pieces],
            "tools": case.names,
        }
        lines.append(orjson.dumps(told))
    return judged(lines, "streams")


def unlike(case: Case, found: Any) -> list[str]:
    """What the readers make of a stream otherwise than they should."""
    ran = [(call["name"], in_javascript(call["given"])) for call in found["copilotkit"]["ran"]]
    wrong = [f"{version}: refused, {found[version]['failed']}" for version in VERSIONS if found[version]["failed"]]
    if not case.clean:
        wrong += [f"{version}: no error is shown" for version in VERSIONS if not found[version]["runError"]]
        wrong += [] if found["copilotkit"]["errors"] else ["CopilotKit shows no error"]
        wrong += [f"a tool is run: {ran}"] if ran else []
        return wrong + (["it is asked again"] if found["copilotkit"]["posts"] > 1 else [])
    for version in VERSIONS:
        seen = found[version]
        if not seen["finished"] or seen["runError"]:
            wrong.append(f"{version}: not finished, {seen['runError']}")
        if (seen["text"], seen["reasoning"]) != (case.text, case.reasoning):
            wrong.append(f"{version}: {(seen['text'], seen['reasoning'])!r:.200}")
    if ran != [*case.complete]:
        wrong.append(f"{ran!r:.300} is run, and not {case.complete!r:.300}")
    wrong += [f"CopilotKit: {error}" for error in found["copilotkit"]["errors"]]
    return wrong


def check(streams: Iterable[Stream]) -> list[Case]:
    cases = cases_of(streams)
    wrong = [
        f"{case.name}: {what}"
        for case, found in zip(cases, readings(cases), strict=True)
        for what in unlike(case, found)
    ]
    assert not wrong, "\n".join(wrong[:20])
    return cases


def dialect_of(stream: Stream) -> str:
    return stream.dialect


@pytest.mark.timeout(240)
def test_readers_accept_what_is_clean_and_run_nothing_of_what_is_not():
    cases = check([*drawn(OURS, 4, "ag-ui readers"), *drawn(recorded(), 1, "ag-ui readers", dialect_of)])
    assert sum(case.clean for case in cases) > 30
    assert sum(not case.clean for case in cases) > 40
    assert sum(bool(case.complete) for case in cases) > 10


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_so_it_is_with_every_vector():
    check(OURS)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_so_it_is_with_every_recording():
    check(recorded())


CALLING: Final = (
    "calls",
    "a call that is cut",
    "two calls that are cut",
    "an error and a call",
    "a call that ended before the cut",
)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("left_out", "shown"), [("TOOL_CALL_RESULT", "a tool is run"), ("RUN_ERROR", "no error is shown")]
)
def test_an_encoder_that_leaves_one_of_them_out_is_seen(left_out, shown, monkeypatch):
    """No result before RUN_ERROR, and no RUN_ERROR."""
    write = AgUiEncoder._event

    def written(encoder, kind, members):
        if kind != left_out:
            write(encoder, kind, members)

    monkeypatch.setattr(AgUiEncoder, "_event", written)
    cases = [case for case in cases_of(s for s in OURS if s.dialect == "ag-ui" and s.name in CALLING) if not case.clean]
    found = [" ".join(unlike(case, seen)) for case, seen in zip(cases, readings(cases), strict=True)]
    assert sum(shown in wrong for wrong in found) >= 3


# -- a run that is gone on with ----------------------------------------------------------------------------------------


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_run_that_was_left_is_read_again_as_it_is(version):
    """The client's own ``connect`` asks nothing: one of three lines reads the stream that ``Location`` named."""
    go, steps = asyncio.Event(), good("openai-chat").steps
    app, store = web.Application(), MemoryStore()
    async with EvilUpstream(Script((*steps[:6], Until(go), *steps[6:]))) as evil:
        setup(app, upstream_at(evil, "openai-chat"), clients=["ag-ui"])
        add_resuming(app, Resuming(store=store))
        async with serving(app) as port:
            line = {"url": f"http://127.0.0.1:{port}/v1/ag-ui/m", "version": version, "text": "How cold is it?"}
            asking = asyncio.create_task(asyncio.to_thread(judged, [orjson.dumps(line)], "resumes"))
            await eventually(lambda: any(log.readers for log in store._logs.values()), within_s=30)
            go.set()
            (seen,) = await asking
    assert (seen["unasked"], seen["requests"]) == (0, 2)
    assert (seen["finished"], seen["failed"]) == (True, None)
    assert "I shall look up how cold." not in str(seen["before"])
    question, answer = seen["messages"]
    assert (question["role"], answer["content"]) == ("user", "It is cold in Oslo. I shall look up how cold.")
    assert len(answer["toolCalls"]) == 1


# -- requests ----------------------------------------------------------------------------------------------------------


@cache
def requests_in(dialect: str) -> list[bytes]:
    """The recorded requests of five dialects, written in this one."""
    found = []
    for source in ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini"):
        recordings = [decode_request(orjson.dumps(recording.body), source) for recording in requests(source)]
        assert recordings, source
        recordings = [drop_unreadable(r, dialect) for r in recordings]
        found += [encode_request(r, dialect, repair=True, emulate=True, linked_media="drop") for r in recordings]
    return found


@pytest.mark.timeout(240)
def test_schemas_of_both_versions_take_every_request():
    bodies = requests_in("ag-ui")
    assert [fault for fault in judged(bodies, "requests") if fault != [None, None]] == []
