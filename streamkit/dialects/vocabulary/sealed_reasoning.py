"""Carry opaque reasoning through a client of another vendor's dialect and back.

Only its vendor can use a signature or encrypted reasoning, and every byte of it matters. A dialect with a place for such a
text carries another vendor's *sealed*: encoded as base64 (strict clients decode it) together with the vendor's name and what
it belongs to. A later request of that dialect is unsealed, so the text returns unchanged to its vendor, and to no other
vendor.

Source: dialects.md §2.4, §3.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, Literal, TypeAlias, cast, get_args

from attrs import frozen

from streamkit.events import Opaque

#: What a sealed text belongs to: a block of reasoning, the block of text before it, a part without text, or the next tool
#: call. "opaque": it is a block itself.
Kind: TypeAlias = Literal["reasoning", "text", "part", "call", "opaque"]
KINDS = frozenset(get_args(Kind))
#: The first nine bytes. They always encode to the same twelve characters of base64.
MARK = b"streamkit"
#: Part of each id that was made for something which another provider ran.
MADE = MARK.decode()
START = base64.b64encode(MARK).decode()

#: The real vendor of texts that older versions sealed under another vendor's name. Dialects add theirs in ``wire.py``.
MAKERS: Final[dict[str, str]] = {}


@frozen
class Sealed:
    """The content of a sealed text."""

    kind: Kind
    vendor: str
    blob: str

    @property
    def opaque(self) -> Opaque:
        """The text and its vendor."""
        return Opaque(self.vendor, self.blob)


def seal(kind: Kind, vendor: str, blob: str) -> str:
    """Return ``blob`` of ``vendor`` as base64 text that another vendor's dialect can carry."""
    return base64.b64encode(b"%b:%b:%b:%b" % (MARK, kind.encode(), vendor.encode(), blob.encode())).decode()


def unseal(text: str) -> Sealed | None:
    """Return the arguments of ``seal`` for this text; None for a text that is not sealed."""
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
    """Return the meaning of a text in ``vendor``'s dialect: another vendor's sealed text, or the vendor's own text."""
    sealed = unseal(text)
    return Opaque(vendor, text) if sealed is None else sealed.opaque


def signature_text(signature: Opaque | None, vendor: str) -> str | None:
    """Return a reasoning signature for ``vendor``'s dialect: its own unchanged, another vendor's sealed. See ``unsealed``."""
    if signature is None or signature.vendor == vendor:
        return None if signature is None else signature.blob
    return seal("reasoning", signature.vendor, signature.blob)
