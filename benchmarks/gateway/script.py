"""What the upstream says, so that whoever reads it can tell whether all of it came, and how late.

Each delta's text is a mark and some prose: ``@17:123456789@ten words …``. The mark is the delta's number and the moment at
which it was due, in nanoseconds of CLOCK_MONOTONIC, which all processes of a machine have in common. Lateness is counted from
there, so that an upstream that is held up stops nobody's clock.

A client chooses the script by the name of the model that it asks for: there is nothing else that passes every gateway.
"""

from __future__ import annotations

import random
import re
from typing import Any, Final

import orjson
from attrs import asdict, fields, frozen

MARK: Final = re.compile(r"@(\d+):(\d+)@")
MARK_BYTES: Final = re.compile(rb"@(\d+):(\d+)@")
#: Prose begins at another place for each delta, and comes back after so many.
PERIOD: Final = 997
LONGEST: Final = 64 * 1024


@frozen(kw_only=True)
class Script:
    """One answer. Its name as a model is ``str`` of it."""

    id: str = "0"
    events: int = 1  #: deltas of text
    gap_us: int = 0  #: between two of them
    chars: int = 20  #: of prose in each

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in asdict(self).items())

    @classmethod
    def named(cls, model: str) -> Script:
        """The script of that name. What stands before a slash is a peer's own word for who is asked."""
        values: dict[str, Any] = dict(part.split("=", 1) for part in model.rpartition("/")[2].split(","))
        whole = {field.name for field in fields(cls) if field.type == "int"}
        return cls(**{name: int(value) if name in whole else value for name, value in values.items()})

    def prose(self, number: int) -> str:
        """The text of a delta behind its mark."""
        start = number % PERIOD
        return PROSE[start : start + self.chars]

    @property
    def text(self) -> str:
        """All of it, without marks."""
        return "".join(map(self.prose, range(self.events)))


def _prose(seed: int = 6) -> str:
    letters = random.Random(seed)  # noqa: S311 - no secret
    words = ["".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=letters.randint(2, 9))) for _ in range(500)]
    return " ".join(letters.choices(words, k=(PERIOD + LONGEST) // 4))[: PERIOD + LONGEST]


PROSE: Final = _prose()


def fault_in(body: bytes, dialect: str, script: Script) -> str:
    """Return what is wrong with an answer that should have the text of ``script``; empty if nothing is."""
    try:
        text, ended = _said(body, dialect)
    except (orjson.JSONDecodeError, LookupError, TypeError) as error:
        return f"not to be read as {dialect}: {error!r}"
    numbers = [int(number) for number, _ in MARK.findall(text)]
    if numbers != list(range(script.events)):
        return f"{len(numbers)} deltas of {script.events}, or in another order"
    if MARK.sub("", text) != script.text:
        return "another text"
    return "" if ended else "the text, and no end"


def _said(body: bytes, dialect: str) -> tuple[str, bool]:
    """The text of a stream or of one body, and whether its end came."""
    if body.startswith(b"{"):
        answer = orjson.loads(body)
        if dialect == "anthropic":
            return "".join(block["text"] for block in answer["content"]), answer["stop_reason"] == "end_turn"
        choice = answer["choices"][0]
        return choice["message"]["content"], choice["finish_reason"] == "stop"
    text: list[str] = []
    ended = False
    for line in body.split(b"\n"):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            ended = True
            continue
        event = orjson.loads(data)
        if dialect == "anthropic":
            ended = ended or event["type"] == "message_stop"
            if event["type"] == "content_block_delta":
                text.append(event["delta"].get("text", ""))
        else:
            text += [choice["delta"].get("content") or "" for choice in event["choices"]]
    return "".join(text), ended
