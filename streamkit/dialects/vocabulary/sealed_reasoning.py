"""Carry opaque reasoning through a client of another vendor's dialect and back.

Only its vendor can use a signature or encrypted reasoning, and every byte of it matters. A dialect with a place for such a
text carries another vendor's *sealed*: encoded as base64 (strict clients decode it) together with the vendor's name and what
kind of part it belongs to. When a later request in that dialect is read, the text is unsealed. It returns unchanged to its
vendor, and is never sent to another vendor in readable form.

Source: dialects.md §2.4, §3.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, Literal, TypeAlias, cast, get_args

from attrs import frozen

from streamkit.events import Opaque

#: What a sealed text is: the signature of reasoning, of the text block before it, of a part without text, or of the next tool
#: call; or ("opaque") opaque reasoning.
Kind: TypeAlias = Literal["reasoning", "text", "part", "call", "opaque"]
KINDS = frozenset(get_args(Kind))
#: The first bytes of the sealed data. Nine bytes always become the same twelve characters of base64 (``START``).
MARK = b"streamkit"
#: Marks ids that streamkit made for items which another provider ran.
MADE = MARK.decode()
START = base64.b64encode(MARK).decode()

#: Older versions sealed some texts under another vendor's name. This maps the name to the real vendor; see ``wire.py`` files.
MAKERS: Final[dict[str, str]] = {}


@frozen
class Sealed:
    """The content of a sealed text."""

    kind: Kind
    vendor: str
    blob: str

    @property
    def opaque(self) -> Opaque:
        """The text together with its vendor."""
        return Opaque(self.vendor, self.blob)


def seal(kind: Kind, vendor: str, blob: str) -> str:
    """Return ``blob`` of ``vendor`` as base64 text that another vendor's dialect can carry."""
    return base64.b64encode(b"%b:%b:%b:%b" % (MARK, kind.encode(), vendor.encode(), blob.encode())).decode()


def unseal(text: str) -> Sealed | None:
    """Return what ``seal`` encoded in this text; None for a text that is not sealed."""
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
    """Return the opaque text and its vendor: a sealed text is another vendor's, any other is ``vendor``'s own."""
    sealed = unseal(text)
    return Opaque(vendor, text) if sealed is None else sealed.opaque


def signature_text(signature: Opaque | None, vendor: str, kind: Kind = "reasoning") -> str | None:
    """Return an opaque text for ``vendor``'s dialect: unchanged if it is ``vendor``'s, otherwise sealed."""
    if signature is None or signature.vendor == vendor:
        return None if signature is None else signature.blob
    return seal(kind, signature.vendor, signature.blob)
