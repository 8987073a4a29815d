"""Which media Ollama takes: images and sounds, in the request itself. Source: dialects.md §4.1."""

from __future__ import annotations

from typing import Final

from streamkit.conversation.messages import Media

#: What the slot for images takes: sounds too, for models that hear (dialects.md §7.4).
IMAGES: Final = frozenset({"image", "audio"})


def wants_bytes(media: Media, _given: bool) -> bool:
    return media.kind in IMAGES
