"""The AI SDK's own readers as judges of what is written for ``useChat``: versions 7 and 6, by the ``Chat`` of ``@ai-sdk/react``.

Every vector and recording of every dialect is written as a UI message stream, whole and cut at two thirds. A clean one is to be
accepted with exactly its complete calls run; any other is to be shown as an error, with no tool run and nothing asked again.

Source: ui-protocols.md §1.6, §3.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

from streamkit.dialects.ai_sdk.encode import AISDKEncoder
from streamkit.dialects.ai_sdk.lint import AISDKLinter
from streamkit.events import Aside, ReasoningDelta
from streamkit.framing.sse import SSEParser
from tests import npm
from tests.clients.test_ag_ui_readers import arguments_of, asks_the_user, in_javascript, refusal_of, requests_in
from tests.laws.running import OURS, read, recorded, translate
from tests.sampling import drawn

FOLDER: Final = Path(__file__).parent / "ai_sdk_ui"
INSTALL_S: Final = 90
RUN_S: Final = 240
#: What ends a stream, of which nothing is needed.
LAST: Final = b"data: [DONE]\n\n"
#: Verdicts of calls that are run.
RUN: Final = frozenset({"complete", "empty"})


def judged(version: int, streams: Sequence[bytes]) -> list[dict[str, Any]]:
    """What a user and a server see of each stream."""
    return asked(version, [base64.b64encode(stream) for stream in streams])


def asked(version: int, lines: Sequence[bytes], *what: str) -> list[Any]:
    """What the judge says of each line."""
    modules = npm.installed(FOLDER, "the judge of UI message streams", within_s=INSTALL_S, building=("node",))
    command = [str(modules / ".bin" / "node"), str(FOLDER / "read.mjs"), str(version), *what]
    done = subprocess.run(command, input=b"\n".join(lines), capture_output=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    return found


@frozen
class Case:
    """A stream as it is written, and what a client is to make of it."""

    name: str
    written: bytes
    clean: bool
    text: str
    reasoning: str
    #: The inputs of the calls that are complete, as JavaScript reads them.
    inputs: tuple[Any, ...]


def case_of(stream: Any, body: bytes, what: str, *, passing: bool = False) -> Case:
    """What is expected comes from another encoder: that of Chat, which has a place for calls of every kind.

    The reasoning comes from the source: Chat has one string for it, with a blank line between blocks.
    """
    written, report = translate(stream.dialect, "ai-sdk", [body], passing=passing)
    said = read("openai-chat", [translate(stream.dialect, "openai-chat", [body], passing=False)[0]])
    source = read(stream.dialect, [body])
    events, custom = source.events, {call.id for call in source.calls if call.kind == "custom"}
    first = next((event.choice for event in events if hasattr(event, "choice") and not isinstance(event, Aside)), 0)
    texts = (
        source if b'"phase"' in stream.body else said
    )  # Chat separates the text of two phases, and this dialect has parts
    good = [call for call in said.calls if call.choice == first and call.ended and call.verdict.kind in RUN]
    return Case(
        f"{stream.dialect}: {stream.name}, {what}",
        written,
        bool(report.clean),
        texts.text(choice=first) + refusal_of(said, first),
        "".join(event.text for event in events if isinstance(event, ReasoningDelta) and event.choice == first),
        tuple(arguments_of(call)["input"] if call.id in custom else arguments_of(call) for call in good),
    )


def cases_of(streams: Sequence[Any]) -> list[Case]:
    """Each stream whole, and cut at two thirds; conforming ones of the dialect itself pass byte for byte, too."""
    found = []
    for stream in streams:
        if asks_the_user(stream.body):
            continue
        torso = stream.body[: len(stream.body) * 2 // 3]
        found += [case_of(stream, stream.body, "whole"), case_of(stream, torso, "cut")]
        if stream.dialect == "ai-sdk" and conforms(stream.body):
            found.append(case_of(stream, stream.body, "passing", passing=True))
            found += [
                case_of(stream, stream.body[:at], f"cut at {at} and passing", passing=True)
                for at in (len(torso), len(stream.body) - len(LAST) - 5)
            ]
    return found


def conforms(body: bytes) -> bool:
    """Whether a stream breaks no rule. A client is told of calls that the server ran, too, and its application knows them."""
    parser, linter = SSEParser(), AISDKLinter()
    return b"tool-output" not in body and not [
        *linter.feed(parser.feed(body)),
        *linter.feed(parser.finish()),
        *linter.finish(),
    ]


def unlike(case: Case, seen: dict[str, Any]) -> list[str]:
    """What a client makes of a stream otherwise than it should."""
    if not case.clean:
        shown = seen["status"] == "error" and seen["failure"] and not seen["ran"] and seen["requests"] == 1
        return [] if shown else [f"{case.name}, unclean: {seen}"]
    wrong = []
    if seen["failure"] is not None or seen["status"] != "ready" or not seen["valid"]:
        wrong.append(f"refused, {seen}")
    if (seen["text"], seen["reasoning"]) != (case.text, case.reasoning):
        wrong.append(f"{(seen['text'], seen['reasoning'])!r:.300} and not {(case.text, case.reasoning)!r:.300}")
    if [in_javascript(call["input"]) for call in seen["ran"]] != [*case.inputs]:
        wrong.append(f"{seen['ran']!r:.300} is run, and not {case.inputs!r:.300}")
    if seen["requests"] > 2:
        wrong.append(f"asked {seen['requests']} times")
    return [f"{case.name}: {what}" for what in wrong]


def complaints(version: int, streams: Sequence[Any]) -> list[str]:
    cases = cases_of(streams)
    found = judged(version, [case.written for case in cases])
    return [what for case, seen in zip(cases, found, strict=True) for what in unlike(case, seen)]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("version", [7, 6])
def test_clean_answers_are_accepted_and_all_others_are_shown_as_errors(version):
    assert complaints(version, drawn([*OURS, *recorded()], 1, f"useChat {version}")) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [7, 6])
def test_so_it_is_with_every_stream(version):
    assert complaints(version, [*OURS, *recorded()]) == []


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", [7, 6])
def test_frames_that_pass_wait_with_a_call_for_the_clean_end(version):
    """Of each stream of the dialect itself: otherwise eleven that are cut behind an input would have a tool run."""
    assert complaints(version, [stream for stream in OURS if stream.dialect == "ai-sdk"]) == []


CALLING = [stream for stream in OURS if "call" in stream.name][::4]


def test_the_judge_sees_calls_that_are_available_too_early(monkeypatch):
    """A client runs them, and asks again although the answer failed."""

    def early(self, event):
        call = self._calls.get(event.call)
        if call is not None:
            self._end_call(call, event)

    monkeypatch.setattr(AISDKEncoder, "_handlers", {**AISDKEncoder._handlers, **_handled(early)})
    assert any("unclean" in what for what in complaints(7, CALLING))


def test_the_judge_sees_a_failure_that_is_not_told(monkeypatch):
    monkeypatch.setattr(AISDKEncoder, "error", lambda _self, _event: None)
    assert any("'failure': None" in what for what in complaints(7, CALLING))


def _handled(method: Any) -> dict[type, Any]:
    return {kind: method for kind, handler in AISDKEncoder._handlers.items() if handler.__name__ == "call_finished"}


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", [7, 6])
def test_the_messages_of_every_request_are_valid(version):
    """Those of all dialects in one process: to start it takes longer than to judge them."""
    bodies = requests_in("ai-sdk")
    assert [fault for fault in asked(version, bodies, "messages") if fault is not None] == []
