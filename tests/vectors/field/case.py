"""What an entry of the catalogue of field failures is: a case with its streams, or where else it is settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

from streamkit.conversation.messages import Tool
from streamkit.dialects.profiles import DEFAULT_PROFILE, Profile
from streamkit.policy import TOLERANT, Policy
from tests.vectors.vector import Vector


@frozen
class Text:
    text: str


@frozen
class Thinking:
    text: str
    signature: str = ""


@frozen
class Use:
    """A call as a client of the output sees it; ``arguments`` is the text as written."""

    id: str | None
    name: str
    arguments: str


@frozen
class Block:
    """A content block that only its vendor understands, by its type."""

    kind: str


Said: TypeAlias = Text | Thinking | Use | Block


@frozen(kw_only=True)
class Output:
    """What must stand in the translation, exactly. ``stop`` is the dialect's own word; None: no success terminator."""

    said: tuple[Said, ...] = ()
    stop: str | None = None
    error: str | None = None  #: the message of the error that ends it
    losses: Mapping[str, int] = field(factory=dict)
    withheld: tuple[str, ...] = ()  #: argument texts that are in the report instead
    usage: Mapping[str, object] | None = None  #: None: not looked at
    body: bytes | None = None  #: all of it, where it is short
    holds: tuple[bytes, ...] = ()
    lacks: tuple[bytes, ...] = ()
    profile: Profile = DEFAULT_PROFILE


@frozen(kw_only=True)
class Form(Vector):
    """One form of a case on the wire. ``to`` names dialects; the stream's own means decoded and written anew."""

    to: Mapping[str, Output]
    provider: str = ""  #: who sent it, where reading depends on that
    policy: Policy = TOLERANT
    offered: tuple[Tool, ...] = ()  #: the tools of the request, where reading depends on them
    open: str | None = None  #: why streamkit does not do this yet; the test insists that it fails


@frozen(kw_only=True)
class Case:
    """A case that streams show. ``beside`` is the ``file::test`` that shows what of it no stream can."""

    number: int
    refs: str
    cause: str
    does: str
    forms: tuple[Form, ...]
    beside: str | None = None

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(form.open for form in self.forms if form.open is not None)

    @property
    def repairs(self) -> tuple[str, ...]:
        return tuple(sorted({kind for form in self.forms if form.open is None for kind in form.repairs}))


WAITS = "waits for: "
WAITS_DIALECT = "waits for dialect: "
OUTSIDE = "outside: "


@frozen(kw_only=True)
class Elsewhere:
    """A case without a stream. ``covered_by`` is ``file::test``, or what it waits for, or why it is no matter of ours."""

    number: int
    refs: str
    cause: str
    does: str
    covered_by: str

    @property
    def covered(self) -> bool:
        return not self.covered_by.startswith((WAITS, WAITS_DIALECT, OUTSIDE))
