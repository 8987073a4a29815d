"""Opaque reasoning on its way through a client of another vendor's dialect, and back.

A signature or an encrypted thought means something to its own vendor alone, and to that one every byte of it counts. A
dialect that has a place for such a text carries another vendor's *sealed*: with the vendor's name and what it belongs to,
as base64, since strict clients decode it. Whoever reads the dialect again unseals it, so that it goes back to its vendor as
it was, and to no other.

Source: dialects.md §2.4, §3.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, Literal, TypeAlias, cast, get_args

from attrs import frozen

from streamkit.events import Opaque

#: What a sealed text belongs to: a block of reasoning, the block of text in front, a part without text, the next tool call;
#: or it is a block of its own.
Kind: TypeAlias = Literal["reasoning", "text", "part", "call", "opaque"]
KINDS = frozenset(get_args(Kind))
#: Nine bytes are twelve characters of base64, whatever follows.
MARK = b"streamkit"
#: What stands in an id that was made for something which another provider ran.
MADE = MARK.decode()
START = base64.b64encode(MARK).decode()

#: Who made what older versions sealed under another vendor's name, by that name. Dialects add theirs in ``wire.py``.
MAKERS: Final[dict[str, str]] = {}


@frozen
class Sealed:
    """What a sealed text holds."""

    kind: Kind
    vendor: str
    blob: str

    @property
    def opaque(self) -> Opaque:
        """The text and the vendor that made it."""
        return Opaque(self.vendor, self.blob)


def seal(kind: Kind, vendor: str, blob: str) -> str:
    """``blob`` of ``vendor`` as base64 text that another vendor's dialect can carry."""
    return base64.b64encode(b"%b:%b:%b:%b" % (MARK, kind.encode(), vendor.encode(), blob.encode())).decode()


def unseal(text: str) -> Sealed | None:
    """What ``seal`` was given; None for a text that is not sealed."""
    if not text.startswith(START):
        return None
    try:
        mark, kind, vendor, blob = base64.b64decode(text, validate=True).decode().split(":", 3)
    except (binascii.Error, ValueError):
        return None
    if mark != MADE or kind not in KINDS:
        return None
    return Sealed(cast("Kind", kind), MAKERS.get(vendor, vendor), blob)


def unsealed(text: str, vendor: str) -> Opaque:
    """What a text of ``vendor``'s dialect means: another vendor's that was sealed, or the vendor's own."""
    sealed = unseal(text)
    return Opaque(vendor, text) if sealed is None else sealed.opaque


def signature_text(signature: Opaque | None, vendor: str) -> str | None:
    """A signature of reasoning in ``vendor``'s dialect: the vendor's own as it is, another's sealed. ``unsealed`` reads it."""
    if signature is None or signature.vendor == vendor:
        return None if signature is None else signature.blob
    return seal("reasoning", signature.vendor, signature.blob)
