"""Media: their types by their first bytes, where they came without one (Ollama's images) or with a wrong one; their text."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from streamkit.conversation.messages import Media
from streamkit.events import MediaGenerated

#: How files of some kinds begin, as base64.
_BEGINNINGS: Final[Mapping[str, str]] = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
#: How sounds begin, as base64; a RIFF file is no picture here (Mistral's sounds have no type).
_SOUNDS: Final[Mapping[str, str]] = {
    "UklGR": "audio/wav",
    **dict.fromkeys(("SUQz", "//s", "//M"), "audio/mpeg"),
    "T2dnU": "audio/ogg",
    "ZkxhQ": "audio/flac",
}
#: Another name of a type of images that some programs write.
_SAME_IMAGES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}


def data_uri(media: Media | MediaGenerated) -> str:
    """Media as a ``data:`` URI. ``media.data`` must be there."""
    return f"data:{media_type_of(media)};base64,{media.data}"


def media_type_of(media: Media | MediaGenerated) -> str:
    """The media type, by the first bytes where nobody said it."""
    if media.media_type is not None:
        return media.media_type
    return type_by_beginning(media) or "application/octet-stream"


def type_by_beginning(media: Media | MediaGenerated) -> str | None:
    """The media type that the first bytes say; None where they say none that is known."""
    known, data = _SOUNDS if media.kind == "audio" else _BEGINNINGS, media.data or ""
    return next((kind for start, kind in known.items() if data.startswith(start)), None)


def image_type(media: Media) -> str | None:
    """The type of an image by its first bytes; where they say none, the usual name of the type that was said."""
    found = type_by_beginning(media)
    if found is not None and found.startswith("image/"):
        return found
    return _SAME_IMAGES.get(media.media_type or "", media.media_type)


def decoded_text(data: str) -> str | None:
    """The text that is in base64; None if it is none."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except ValueError:
        return None
