"""``check_dialect`` over the built-in dialects, and over dialects that break one law each."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS
from streamkit.dialects.ollama.decode import OllamaDecoder
from streamkit.dialects.ollama.encode import OllamaEncoder, OllamaResponseWriter
from streamkit.dialects.ollama.quirks import QUIRKS
from streamkit.dialects.ollama.requests import OllamaRequestReader
from streamkit.events import StopReasonSeen, TerminatorSeen
from streamkit.testing import check_dialect
from tests.sampling import few, name_of
from tests.vectors import VECTORS

OLLAMA = DIALECTS["ollama"]
CALL = b'{"model":"m","created_at":"2025-01-01T00:00:00Z","message":{"role":"assistant","content":"Hi","tool_calls":[{"function":{"name":"f","arguments":{"x":1.0}}}]},"done":false}\n'
TEXT = b'{"model":"m","created_at":"2025-01-01T00:00:00Z","message":{"role":"assistant","content":"Ho"},"done":false}\n'
DONE = b'{"model":"m","created_at":"2025-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
BODIES = {"a call": TEXT + CALL + DONE}
#: Streams that are not to be judged so, and why.
BESIDE = {
    "openai-chat two stop reasons": "a later reason is read as well",
    "openai-responses log probabilities and an annotation": "said again by an event that is not compared",
    "openai-responses a tool of the server's": "an item that came whole before",
    "openai-responses an image that the model made": "an item that came whole before",
    "openai-responses an item of an unknown type that the provider answered": "an item that came whole before",
    "openai-responses a shell that the client runs": "an item that came whole before",
    "openai-responses an error, and the response that failed": "an event told of the same failure before",
    "ollama a number beyond doubles": "the model's own number is written as it is, and counted by each reader",
    "ai-sdk a number beyond doubles": "the model's own number is written as it is, and counted by each reader",
    "ag-ui members of the start": "the client's own request, said again",
    "gemini-interactions steps that the end says again": "steps that had events before",
    "anthropic a block whose type is a list": "an odd block is written again as it came, and repaired again",
    "gemini the reason in every chunk": "text behind a reason",
    "gemini reasons that differ": "a later reason is read as well",
}
#: Bedrock's frames around the model's own bytes have no other members.
SOUND = [v for v in VECTORS if f"{v.dialect} {v.name}" not in BESIDE and not v.name.startswith("native")]
#: A stream of each dialect that is a success, since one at least must be.
WHOLE = {v.dialect: v.body for v in reversed(SOUND) if v.clean and not v.repairs and not v.fault}


@pytest.mark.parametrize("vector", few(SOUND, 1, "check dialect", name=name_of))
def test_each_dialect_keeps_the_laws(vector):
    success = {} if vector.clean and not vector.fault else {"whole": WHOLE[vector.dialect]}
    check_dialect(evolve(DIALECTS[vector.dialect], quirks={}), {vector.name: vector.body, **success})


class TellsReads(OllamaDecoder):
    """Says how much was read when a frame was."""

    def decode(self, document: dict[str, Any]) -> None:
        before = len(self.out)
        super().decode(document)
        for event in self.out[before:]:
            if hasattr(event, "text"):
                event.text += str(self.report.bytes_in)


class EndsEarly(OllamaDecoder):
    """Takes each line for the last one."""

    def decode(self, document: dict[str, Any]) -> None:
        super().decode(document)
        self.out += [StopReasonSeen("stop", "stop"), TerminatorSeen()]


class KeepsNothing(OllamaDecoder):
    """Passes over what it does not know."""

    def keep_others(self, *_args: Any, **_how: Any) -> None:
        """It is lost."""


class EndsAlways(OllamaEncoder):
    """Writes the last line of a success behind an error."""

    def error(self, event: Any) -> None:
        super().error(event)
        self.terminate()


class NamesNoCall(OllamaEncoder):
    """Writes calls as nobody reads them without a repair."""

    def write_call(self, start: Any, call: Any, arguments: bytes) -> None:
        super().write_call(start, call, b'"' + arguments.replace(b'"', b'\\"') + b'"')


class DropsText(OllamaEncoder):
    """Loses text and says nothing."""

    def write_text(self, text: str) -> None:
        """It is lost."""


class DropsUsage(OllamaEncoder):
    """Writes no token counts and says nothing."""

    def usage_reported(self, _event: Any) -> None:
        """It is lost."""


class FinishesWell(OllamaEncoder):
    """Writes every end as the model's own."""

    def finished(self, event: Any) -> None:
        super().finished(evolve(event, reason="stop", native=None))


class EndsOnlyStops(OllamaEncoder):
    """Writes the last line only of a natural stop."""

    def terminate(self) -> None:
        if self.stop is not None and self.stop.reason in {"stop", "tool_calls"}:
            super().terminate()


class AnswersWithoutUsage(OllamaResponseWriter):
    """Writes no token counts in whole responses."""

    def answer(self) -> dict[str, Any]:
        return {name: value for name, value in super().answer().items() if not name.endswith("_count")}


class InventsAnswers(OllamaResponseWriter):
    """Writes a whole response as a success, whatever became of it."""

    def error(self, failure: Any) -> dict[str, Any]:
        return self.answer()


class AnswersInText(OllamaResponseWriter):
    """Writes arguments of whole responses as text."""

    def _call(self, call: Any) -> dict[str, Any]:
        return {"function": {"name": call.name, "arguments": call.arguments}}


class AnswersNothing(OllamaResponseWriter):
    """Writes whole responses without their text."""

    def answer(self) -> dict[str, Any]:
        body = super().answer()
        return {**body, "message": {**body["message"], "content": ""}}


class ForgetsMembers(OllamaRequestReader):
    """Leaves out what it does not know of a request."""

    def request(self, fields: Any) -> Any:
        return evolve(super().request(fields), extras={})


class ForgetsResults(OllamaRequestReader):
    """Reads no text of a result."""

    def result(self, message: Any) -> Any:
        return evolve(super().result(message), parts=[])


def bodies(**changed: Any) -> dict[str, Any]:
    return {"bodies": evolve(OLLAMA.bodies, **changed)}


def rewritten(request: Any, target: Any, report: Any) -> Any:
    """A body in which each message is said again, once it was read in this dialect."""
    body = OLLAMA.bodies.encode_request(request, target, report)
    return {**body, "messages": body["messages"] * (2 if request.dialect else 1)}


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"decoder": TellsReads}, "L1, chunk invariance"),
        ({"decoder": EndsEarly}, "L3, success is never invented"),
        ({"decoder": KeepsNothing}, "L5, nothing is silent"),
        ({"encoder": EndsAlways}, "L3, success is never invented"),
        ({"encoder": NamesNoCall}, "L4, a conforming stream is not repaired"),
        ({"encoder": DropsText}, "L5, nothing is silent"),
    ],
    ids=lambda value: next(iter(value.values())).__name__ if isinstance(value, dict) else value[:2],
)
def test_a_dialect_that_breaks_a_law_is_told_which(change, law):
    with pytest.raises(AssertionError, match=f"^{law}.*'a call'"):
        check_dialect(evolve(OLLAMA, **change), BODIES)


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (bodies(encode_response=InventsAnswers.encode_response), "L3, success is never invented: stream 'cut'"),
        (
            bodies(encode_response=AnswersInText.encode_response),
            "L4, a conforming response is not repaired: .*'a call'",
        ),
        (bodies(encode_response=lambda *_: {"odd": 1}), "L4, a conforming response .* can't be read"),
        (bodies(encode_response=AnswersNothing.encode_response), "L5, nothing is silent: .*'a call'"),
        (
            bodies(decode_request=ForgetsMembers.decode_request),
            "L5, nothing is silent: an unknown member, added to the body",
        ),
        (
            bodies(decode_request=ForgetsResults.decode_request),
            "L5, nothing is silent: the sample request 'calls' .*has",
        ),
        (bodies(encode_request=rewritten), "L5, nothing is silent: the sample request 'text' in ollama is"),
        ({"quirks": {"arguments_not_object": QUIRKS["boolean_invalid"]}}, "L10, a quirk needs only its own repair"),
        ({"quirks": {"payload_no_object": lambda frames: frames[:-1]}}, "L10, a quirk .*clean: False"),
    ],
)
def test_bodies_and_quirks_that_break_a_law_are_told_which(change, law):
    streams = {"cut": CALL, **BODIES} if "'cut'" in law else BODIES
    with pytest.raises(AssertionError, match=f"(?s)^{law}"):
        check_dialect(evolve(OLLAMA, **{"quirks": {}, **change}), streams)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"encoder": DropsUsage}, "'usage' has.* as a stream"),
        ({"encoder": FinishesWell}, "'stop reason .*' has.* as a stream"),
        ({"encoder": EndsOnlyStops}, "'stop reason .*' has.* as a stream"),
        (bodies(encode_response=AnswersWithoutUsage.encode_response), "'usage' has.* as a whole response"),
    ],
    ids=["usage", "stop reason", "no terminator", "usage of a whole response"],
)
def test_what_other_dialects_can_express_is_written_or_counted(change, lost):
    with pytest.raises(AssertionError, match=f"(?s)^L5, nothing is silent: the sample response {lost}"):
        check_dialect(evolve(OLLAMA, quirks={}, **change), BODIES)


def test_a_quirk_that_changes_no_stream_is_refused():
    with pytest.raises(ValueError, match="no stream has what the quirk 'thinking_in_text' of ollama changes"):
        check_dialect(evolve(OLLAMA, quirks={"thinking_in_text": QUIRKS["thinking_in_text"]}), BODIES)


def test_as_it_is_it_breaks_none():
    kinds = "arguments_not_object", "boolean_invalid", "call_nameless"
    check_dialect(evolve(OLLAMA, quirks={kind: QUIRKS[kind] for kind in kinds}), {**BODIES, "cut": CALL})


def test_streams_that_prove_nothing_are_refused():
    with pytest.raises(ValueError, match="at least one stream that is a success"):
        check_dialect(OLLAMA, {"cut": CALL})
