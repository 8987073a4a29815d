"""Opaque values of vendors in ``providerMetadata``: as the SDK's own providers write them, or in streamkit's entry.

Clients return them unchanged in the parts of the next request. A value belongs to the part that contains it.

Source: ui-protocols.md §1.3, §1.4; dialects.md §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from streamkit.dialects.vocabulary.sealed_reasoning import MADE, Kind, seal, unseal
from streamkit.events import Opaque

#: For each provider, which has its vendor's name: its member for a signature, or for encrypted reasoning.
SIGNATURES: Final[Mapping[str, str]] = {
    "anthropic": "signature",
    "bedrock": "signature",
    "google": "thoughtSignature",
    "openai": "reasoningEncryptedContent",
}
REDACTED: Final[Mapping[str, str]] = {
    "anthropic": "redactedData",
    "bedrock": "redactedData",
    "openai": "reasoningEncryptedContent",
}
SEALED: Final = "sealed"  # the member of streamkit's entry, for vendors without an SDK provider


@define
class Read:
    """The contents of one ``providerMetadata``."""

    signatures: list[Opaque] = field(factory=list)  # values that a vendor bound to the part or the call
    redacted: list[Opaque] = field(factory=list)  # encrypted reasoning that is a part itself
    others: dict[str, Any] = field(factory=dict)  # other members, by provider


def read_metadata(metadata: Mapping[str, Any], *, is_empty: bool) -> Read:
    """Return the metadata of a part or call. ``is_empty``: it has no text, only OpenAI's encrypted reasoning."""
    read = Read()
    for provider, members in metadata.items():
        if not isinstance(members, dict):
            read.others[provider] = members
            continue
        left = {name: value for name, value in members.items() if not _take(read, provider, name, value, is_empty)}
        if left:
            read.others[provider] = left
    return read


def _take(read: Read, provider: str, name: str, value: Any, is_empty: bool) -> bool:
    """Add a member with a known meaning to ``read``. Return False if the member must be kept among the others."""
    if value is None:
        return True
    if not isinstance(value, str) or not value:
        return False
    if provider == MADE and name == SEALED:
        sealed = unseal(value)
        if sealed is None:
            return False
        (read.redacted if sealed.kind == "opaque" else read.signatures).append(sealed.opaque)
        return True
    if REDACTED.get(provider) == name and (is_empty or SIGNATURES[provider] != name):
        read.redacted.append(Opaque(provider, value))
        return True
    if SIGNATURES.get(provider) == name:
        read.signatures.append(Opaque(provider, value))
        return True
    return False


def metadata_of(kind: Kind, opaque: Opaque | None, name: str = "providerMetadata") -> dict[str, Any]:
    """Return the member called ``name`` with the opaque value of a part of that kind; an empty object if there is none."""
    if opaque is None:
        return {}
    member = (REDACTED if kind == "opaque" else SIGNATURES).get(opaque.vendor)
    if member is None:
        return {name: {MADE: {SEALED: seal(kind, opaque.vendor, opaque.blob)}}}
    return {name: {opaque.vendor: {member: opaque.blob}}}
