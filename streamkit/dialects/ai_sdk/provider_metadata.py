"""Read and write ``providerMetadata``: data that only a vendor can read, such as signatures and encrypted reasoning.

The members have the names of the SDK's providers; data of other vendors are sealed under our name. Clients send the metadata
back unchanged in the next request. Data belong to the part that they are in.

Source: ui-protocols.md §1.3, §1.4; dialects.md §7.4 (reasoning of other vendors).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from streamkit.dialects.vocabulary.sealed_reasoning import MADE, Kind, seal, unseal
from streamkit.events import Opaque

#: By vendor: the SDK's name of the provider, and its member for signatures. ``REDACTED``: the same for opaque reasoning.
SIGNATURES: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("anthropic", "signature"),
    "bedrock": ("bedrock", "signature"),
    "google": ("google", "thoughtSignature"),
    "openai": ("openai", "reasoningEncryptedContent"),
}
REDACTED: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("anthropic", "redactedData"),
    "bedrock": ("bedrock", "redactedData"),
    "openai": ("openai", "reasoningEncryptedContent"),
}
#: Our member for data of any other vendor.
SEALED: Final = "sealed"


@define
class Read:
    """The content of one ``providerMetadata``."""

    #: Signatures on the part or the call.
    signatures: list[Opaque] = field(factory=list)
    #: Opaque reasoning.
    redacted: list[Opaque] = field(factory=list)
    #: All other members, by provider.
    others: dict[str, Any] = field(factory=dict)


def read_metadata(metadata: Mapping[str, Any], *, is_empty: bool) -> Read:
    """Read the metadata of a part or a call. ``is_empty``: it has no text, only OpenAI's encrypted reasoning."""
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
    """Read a member into ``read``; return False for one with no meaning here, which is kept in ``others``."""
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
    member = provider, name
    if REDACTED.get(provider) == member and (is_empty or SIGNATURES[provider] != member):
        read.redacted.append(Opaque(provider, value))
        return True
    if SIGNATURES.get(provider) == member:
        read.signatures.append(Opaque(provider, value))
        return True
    return False


def write_metadata(kind: Kind, opaque: Opaque | None) -> dict[str, Any]:
    """Return ``providerMetadata`` with data for a part of this kind; empty if there are none."""
    if opaque is None:
        return {}
    known = (REDACTED if kind == "opaque" else SIGNATURES).get(opaque.vendor)
    if known is None:
        return {MADE: {SEALED: seal(kind, opaque.vendor, opaque.blob)}}
    provider, name = known
    return {provider: {name: opaque.blob}}
