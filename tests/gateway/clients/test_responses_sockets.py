"""openai-python's WebSocket client over the running gateway: what it makes of every vector and recording, whole and cut.

A program of a few lines reads the events of many answers on one connection. An answer that is clean is accepted, and exactly
the calls that are complete are run; one that is not is shown as an error, no tool is run, and nothing is asked again. What is
expected comes from another encoder, Chat's.

Source: ui-protocols.md §3, §4.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from attrs import define, field, frozen

from streamkit.events import Aside
from tests.clients.recipes import Recording, conforms
from tests.gateway.clients.in_thread import CLIENT_KEY, GatewayThread
from tests.gateway.clients.recorded import Stream as Played
from tests.gateway.clients.recorded import reads_of, script
from tests.laws.running import OURS, Stream, read, recorded, translate
from tests.sampling import drawn
from tests.web import official

#: The last event of an answer.
ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
RUNNABLE: Final = {"function_call": "arguments", "custom_tool_call": "input"}
#: Vectors of which Chat's encoder does not say what the program makes of them, and why.
UNLIKE_CHAT: Final = {
    "a call that goes on after a complete object": "a brace behind the call's end is a counted loss here, and none in Chat",
    "a shell that the client runs": "an item of this dialect, and a call in Chat",
    "nothing but done events": "the program reads deltas",
}
PATIENCE_S: Final = 30.0


@frozen
class Case:
    """A stream, and what a client is to make of it."""

    stream: Stream
    body: bytes
    clean: bool
    text: str
    ran: list[tuple[str, Any]]  #: the calls that are complete, names and what they are given
    #: Whether what is to be seen is known: of frames that pass as they came, where they conform.
    judged: bool


@define
class Turn:
    """What the program made of an answer."""

    text: str = ""
    ran: list[tuple[str, Any]] = field(factory=list)
    error: str = ""
    end: str = ""


def case_of(stream: Stream, body: bytes) -> Case:
    _, report = translate(stream.dialect, "openai-responses", [body], passing=False)
    said = read("openai-chat", [translate(stream.dialect, "openai-chat", [body], passing=False)[0]])
    events = read(stream.dialect, [body]).events
    first = next((event.choice for event in events if hasattr(event, "choice") and not isinstance(event, Aside)), 0)
    refused = (event for event in said.events if type(event).__name__ == "RefusalDelta" and event.choice == first)
    good = [call for call in said.calls if call.choice == first and call.ended]
    ran = [(call.name, given(call.kind, call.arguments)) for call in good if call.verdict.kind in {"complete", "empty"}]
    text = said.text(choice=first) + "".join(event.text for event in refused)
    passes = stream.dialect == "openai-responses"
    as_it_came = passes and not conforms(Recording(stream.name, stream.dialect, stream.body))
    judged = stream.name not in UNLIKE_CHAT and not as_it_came
    return Case(stream, body, bool(report.clean), text, ran, judged)


def given(kind: str, text: str) -> Any:
    """What a tool is given; None for what is no object, with which no tool is run."""
    if kind in {"custom", "custom_tool_call"}:
        return {"input": text}
    try:
        value = json.loads(text or "{}")
    except (TypeError, ValueError):  # a server wrote an object
        return None
    return value if isinstance(value, dict) else None


@contextmanager
def connected(served: GatewayThread) -> Iterator[Any]:
    options = {"legacy": True}  # openai 3.57 opens a connection in a way of which websockets 17.1 and later warn
    with (
        official.openai(served.url, CLIENT_KEY) as client,
        client.responses.connect(websocket_connection_options=options) as connection,
    ):
        yield connection


def turn(connection: Any, model: str) -> Turn:
    """Ask, and do what the answer says."""
    connection.response.create(model=model, input="?")
    seen, calls = Turn(), list[tuple[str, Any]]()
    while seen.end not in ENDS:
        event = connection.parse_event(connection._connection.recv(timeout=PATIENCE_S, decode=False))
        seen.end = event.type
        if event.type in {"response.output_text.delta", "response.refusal.delta"}:
            seen.text += event.delta
        elif event.type == "response.output_item.done" and event.item.type in RUNNABLE:
            calls.append((event.item.name, given(event.item.type, getattr(event.item, RUNNABLE[event.item.type]))))
        elif event.type == "error":
            seen.error = event.error.message
        elif event.type == "response.failed":
            seen.error = event.response.error.message
        elif event.type in ENDS:
            seen.ran = [call for call in calls if call[1] is not None]
    return seen


def unlike(case: Case, seen: Turn) -> list[str]:
    """What is otherwise than it should be."""
    if not case.clean:
        return [*([] if seen.error else ["no error is shown"]), *([f"a tool is run: {seen.ran}"] if seen.ran else [])]
    wrong = [f"{seen.end}: {seen.error}"] if seen.error else []
    if not case.judged:
        return wrong
    wrong += [f"{seen.text!r:.200}, and not {case.text!r:.200}"] if seen.text != case.text else []
    return wrong + ([f"{seen.ran!r:.300} is run, and not {case.ran!r:.300}"] if seen.ran != case.ran else [])


def check(streams: Iterable[Stream], served: GatewayThread) -> list[Case]:
    """Each stream whole, and cut at two thirds, on one connection."""
    cases = [case_of(each, body) for each in streams for body in (each.body, each.body[: len(each.body) * 2 // 3])]
    wrong = []
    with connected(served) as connection:
        for case in cases:
            played = Played(case.stream.name, case.stream.dialect, reads_of(case.stream.name, (case.body,)))
            model = served.register(case.stream.dialect, script(played))
            name = f"{case.stream.dialect}: {case.stream.name}, {len(case.body)} bytes"
            wrong += [f"{name}: {what}" for what in unlike(case, turn(connection, model))]
            if len(served.asked(model)) != 1:
                wrong.append(f"{name}: asked {len(served.asked(model))} times")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:40])
    return cases


def test_what_is_clean_is_accepted_and_nothing_is_run_of_what_is_not(served: GatewayThread):
    cases = check([*drawn(OURS, 4, "sockets"), *drawn(recorded(), 1, "sockets")], served)
    assert sum(case.clean for case in cases) > 40
    assert sum(not case.clean for case in cases) > 60
    assert sum(bool(case.ran) for case in cases) > 10


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_so_it_is_with_every_vector(served: GatewayThread):
    check(OURS, served)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_so_it_is_with_every_recording(served: GatewayThread):
    check(recorded(), served)
