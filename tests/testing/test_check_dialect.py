"""``check_dialect`` over the built-in dialects, and over dialects that break one law each."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS
from streamkit.dialects.ollama.decode import OllamaDecoder
from streamkit.dialects.ollama.encode import OllamaEncoder
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
    "openai-responses a shell that the client runs": "an item that came whole before",
    "openai-responses an error, and the response that failed": "an event told of the same failure before",
    "ollama a number beyond doubles": "the model's own number is written as it is, and counted by each reader",
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
    check_dialect(DIALECTS[vector.dialect], {vector.name: vector.body, **success})


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


def test_as_it_is_it_breaks_none():
    check_dialect(OLLAMA, BODIES)


def test_streams_that_prove_nothing_are_refused():
    with pytest.raises(ValueError, match="at least one stream that is a success"):
        check_dialect(OLLAMA, {"cut": CALL})
