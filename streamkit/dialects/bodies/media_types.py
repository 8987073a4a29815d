"""Media types: found by the first bytes if the type is missing (Ollama's images) or wrong; and the text of text files."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from streamkit.conversation.messages import Media
from streamkit.events import MediaGenerated

#: How files of some types begin, in base64.
_BEGINNINGS: Final[Mapping[str, str]] = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
#: How audio files begin, in base64. A RIFF file is audio here, no image (Mistral's audio has no type).
_SOUNDS: Final[Mapping[str, str]] = {
    "UklGR": "audio/wav",
    **dict.fromkeys(("SUQz", "//s", "//M"), "audio/mpeg"),
    "T2dnU": "audio/ogg",
    "ZkxhQ": "audio/flac",
}
#: Other names of image types that some programs write.
_SAME_IMAGES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}


def data_uri(media: Media | MediaGenerated) -> str:
    """Return media as a ``data:`` URI. ``media.data`` must be set."""
    return f"data:{media_type_of(media)};base64,{media.data}"


def media_type_of(media: Media | MediaGenerated) -> str:
    """Return the media type; if it is missing, find it by the first bytes."""
    if media.media_type is not None:
        return media.media_type
    return type_by_beginning(media) or "application/octet-stream"


def type_by_beginning(media: Media | MediaGenerated) -> str | None:
    """Return the media type by the first bytes; None if they are of no known type."""
    known, data = _SOUNDS if media.kind == "audio" else _BEGINNINGS, media.data or ""
    return next((kind for start, kind in known.items() if data.startswith(start)), None)


def image_type(media: Media) -> str | None:
    """Return an image's type by its first bytes; if they are unknown, the usual name of its declared type."""
    found = type_by_beginning(media)
    if found is not None and found.startswith("image/"):
        return found
    return _SAME_IMAGES.get(media.media_type or "", media.media_type)


def decoded_text(data: str) -> str | None:
    """Return the text that base64 data contain; None if it is no valid base64 or UTF-8."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except ValueError:
        return None
