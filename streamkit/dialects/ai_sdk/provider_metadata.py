"""What only a vendor can read, in ``providerMetadata``: under the names of the SDK's own providers, or sealed under ours.

Clients send it back in the parts of the next request as it is. The part that has it says what it belongs to.

Source: ui-protocols.md §1.3, §1.4; dialects.md §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from streamkit.dialects.vocabulary.sealed_reasoning import MADE, Kind, seal, unseal
from streamkit.events import Opaque

#: The member for a signature, and that for reasoning that nobody else can read, by vendor: the provider's name, and its own.
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
#: The member of ours, for every other vendor.
SEALED: Final = "sealed"


@define
class Read:
    """What stands in one ``providerMetadata``."""

    #: What its vendor bound to the part or the call.
    signatures: list[Opaque] = field(factory=list)
    #: Reasoning of its own.
    redacted: list[Opaque] = field(factory=list)
    #: The rest, by provider.
    others: dict[str, Any] = field(factory=dict)


def read_metadata(metadata: Mapping[str, Any], *, is_empty: bool) -> Read:
    """What a part or a call has; ``is_empty`` where it has no text, so that OpenAI's encrypted reasoning is all there is."""
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
    """Whether a member is one that has a meaning here, or says nothing."""
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
    """The value of ``providerMetadata`` for what belongs to a part of that kind; empty where there is nothing."""
    if opaque is None:
        return {}
    known = (REDACTED if kind == "opaque" else SIGNATURES).get(opaque.vendor)
    if known is None:
        return {MADE: {SEALED: seal(kind, opaque.vendor, opaque.blob)}}
    provider, name = known
    return {provider: {name: opaque.blob}}
