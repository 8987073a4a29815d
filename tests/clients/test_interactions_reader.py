"""google-genai's interactions over what our encoder writes: of vectors and recordings in every dialect, whole and cut.

A clean stream is accepted, and a program that runs calls once the interaction is completed runs exactly those that are complete.
One that is not clean is shown as an error, and no tool is run. The client also takes every request that we write, by its types.

Source: ui-protocols.md §4; dialects.md §5.5.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest
from attrs import frozen

from streamkit.dialects.gemini_interactions.encode import InteractionsEncoder
from streamkit.dialects.gemini_interactions.lint import InteractionsLinter
from streamkit.events import Aside
from streamkit.framing.sse import SSEParser
from streamkit.translation.bodies import decode_request, drop_unreadable, encode_request
from tests.clients.read_interactions import fold
from tests.clients.replay import ReplayServer
from tests.clients.test_ag_ui_readers import text_of
from tests.clients.test_official_clients import raised_by
from tests.corpora import requests
from tests.laws.running import OURS, Stream, read, recorded, translate
from tests.sampling import drawn

PACKAGE = "google.genai.interactions"
DIALECT = "gemini-interactions"
Clients = Callable[[str], Any]


@frozen
class Case:
    """A stream as it is written, and what a client is to make of it."""

    name: str
    written: bytes
    clean: bool
    text: str
    #: The calls that are complete: name and arguments.
    complete: list[tuple[str, Any]]


def case_of(stream: Stream, body: bytes, what: str, *, passing: bool = False) -> Case:
    """What is expected comes from another encoder: that of Chat, which has a place for calls of every kind."""
    written, report = translate(stream.dialect, DIALECT, [body], passing=passing)
    said = read("openai-chat", [translate(stream.dialect, "openai-chat", [body], passing=False)[0]])
    if report.losses["late_arguments"]:  # what came behind the end of a step is lost, and counted, which Chat need not
        said = read(DIALECT, [written])
    events = read(stream.dialect, [body]).events
    first = next((event.choice for event in events if hasattr(event, "choice") and not isinstance(event, Aside)), 0)
    good = [
        call
        for call in said.calls
        if call.choice == first and call.verdict.kind in {"complete", "empty"} and call.ended
    ]
    refused = "".join(
        event.text for event in said.events if type(event).__name__ == "RefusalDelta" and event.choice == first
    )
    return Case(
        f"{stream.dialect}: {stream.name}, {what}",
        written,
        bool(report.clean),
        text_of(said, first, stream.body) + refused,
        [(call.name, arguments_of(call)) for call in good],
    )


def arguments_of(call: Any) -> Any:
    return {"input": call.arguments} if call.kind == "custom" else json.loads(call.arguments or "{}")


def cases_of(streams: Iterable[Stream]) -> list[Case]:
    """Each stream whole, and cut at two thirds."""
    found = []
    for stream in streams:
        torso = stream.body[: len(stream.body) * 2 // 3]
        found += [case_of(stream, stream.body, "whole"), case_of(stream, torso, "cut")]
        if stream.dialect == DIALECT and conforms(stream.body):  # frames that pass byte for byte
            found.append(case_of(stream, stream.body, "passing", passing=True))
            found.append(case_of(stream, torso, "cut and passing", passing=True))
    return found


def conforms(body: bytes) -> bool:
    parser, linter = SSEParser(), InteractionsLinter()
    found = [*linter.feed(parser.feed(body)), *linter.feed(parser.finish()), *linter.finish()]
    return not {violation.rule for violation in found} - {"truncated"}


def unlike(case: Case, replay: ReplayServer, client: Any) -> list[str]:
    """What the client makes of a stream otherwise than it should."""
    try:
        seen = fold(client, replay.register(case.written)).choices[0]
    except raised_by(PACKAGE) as error:
        return [f"an error is shown: {error}"] if case.clean else []
    except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
        return [f"the client raised {type(error).__name__}: {error}"]
    ran = [(call.name, call.arguments) for call in seen.calls if isinstance(call.arguments, dict)]
    if not case.clean:
        failed = seen.stop in {"failed", "cancelled"}  # the provider's own words, passed on
        return [] if failed else [f"no error is shown, and run are {ran!r:.200}"]
    wrong = [] if repr(ran) == repr(case.complete) else [f"run are {ran!r:.300} and not {case.complete!r:.300}"]
    return wrong + ([] if seen.text == case.text else [f"the text is {seen.text!r:.200}, not {case.text!r:.200}"])


def check(streams: Iterable[Stream], replay: ReplayServer, client: Clients) -> list[Case]:
    cases, reader = cases_of(streams), client(PACKAGE)
    wrong = [f"{case.name}: {what}" for case in cases for what in unlike(case, replay, reader)]
    assert not wrong, "\n".join(wrong[:20])
    return cases


@pytest.mark.timeout(240)
def test_the_client_accepts_what_is_clean_and_runs_nothing_of_what_is_not(replay: ReplayServer, client: Clients):
    streams = [
        *drawn(OURS, 2, "interactions reader"),
        *drawn(recorded(), 1, "interactions reader", lambda stream: stream.dialect),
    ]
    cases = check(streams, replay, client)
    assert sum(case.clean for case in cases) > 20
    assert sum(not case.clean for case in cases) > 30
    assert sum(case.clean and bool(case.complete) for case in cases) > 5


@pytest.mark.timeout(240)
def test_so_it_is_with_vectors_of_the_dialect(replay: ReplayServer, client: Clients):
    check(drawn([stream for stream in OURS if stream.dialect == DIALECT], 12, "its own"), replay, client)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_so_it_is_with_every_vector(replay: ReplayServer, client: Clients):
    check(OURS, replay, client)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_so_it_is_with_every_recording(replay: ReplayServer, client: Clients):
    check(recorded(), replay, client)


CUT = ("text that is cut", "a call that is cut", "a call that ended before the cut", "an error and a call")


@pytest.mark.parametrize(
    ("method", "instead", "shown"),
    [
        ("error", lambda *_args: None, "EOFError"),
        ("error", lambda encoder, _event: encoder.terminate(), "no error is shown, and run are [('f', {"),
    ],
)
def test_an_encoder_that_says_success_or_nothing_is_seen(
    method: str, instead: Any, shown: str, replay: ReplayServer, client: Clients, monkeypatch: Any
):
    monkeypatch.setattr(InteractionsEncoder, method, instead)
    cases = cases_of(stream for stream in OURS if stream.dialect == DIALECT and stream.name in CUT)
    found = [" ".join(unlike(case, replay, client(PACKAGE))) for case in cases if not case.clean]
    assert sum(shown in wrong for wrong in found) >= 2


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(240)
@pytest.mark.parametrize("source", ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"])
def test_the_types_of_the_client_take_every_request(source: str):
    types = pytest.importorskip("google.genai.interactions")
    taken = 0
    for recording in requests(source):
        request = decode_request(orjson.dumps(recording.body), source)
        request.model = request.model or "m"
        request = drop_unreadable(request, DIALECT)
        body = orjson.loads(encode_request(request, DIALECT, repair=True, emulate=True, linked_media="drop"))
        checked = types.CreateModelInteraction.model_validate(body)
        steps = body["input"] if isinstance(body["input"], list) else []
        for step, read_step in zip(steps, checked.input if steps else [], strict=True):
            assert type(read_step).__name__ == NAMES[step["type"]], (recording.name, step)
            for content in step.get("content", ()):
                assert content["type"] in {"text", "image", "audio", "video", "document"}
        for tool, read_tool in zip(body.get("tools", ()), checked.tools or [], strict=True):
            assert type(read_tool).__name__ in {"Function", "GoogleSearch"}, (recording.name, tool)
        taken += 1
    assert taken


NAMES = {
    "user_input": "UserInputStep",
    "model_output": "ModelOutputStep",
    "thought": "ThoughtStep",
    "function_call": "FunctionCallStep",
    "function_result": "FunctionResultStep",
}
