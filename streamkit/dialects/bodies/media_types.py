"""Media types: found by a file's first bytes if the type is missing (Ollama's images) or wrong. Also reads text files."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, cast

from streamkit.conversation.messages import Media
from streamkit.events import MediaGenerated, MediaKind

#: The types of parts with media in several dialects, and the kinds of media.
KINDS: Final[Mapping[str, MediaKind]] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
TYPES: Final[Mapping[str, str]] = {kind: name for name, kind in KINDS.items()}
#: The first characters of images and documents in base64, and their media types.
_BEGINNINGS: Final[Mapping[str, str]] = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
#: The first characters of audio files in base64. RIFF counts as audio, for Mistral, whose audio has no media type.
_SOUNDS: Final[Mapping[str, str]] = {
    "UklGR": "audio/wav",
    **dict.fromkeys(("SUQz", "//s", "//M"), "audio/mpeg"),
    "T2dnU": "audio/ogg",
    "ZkxhQ": "audio/flac",
}
#: Unofficial names of image types that some programs write, and the official names.
_SAME_IMAGES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}


def data_uri(media: Media | MediaGenerated) -> str:
    """Return media as a ``data:`` URI. ``media.data`` must be set."""
    return f"data:{media_type_of(media)};base64,{media.data}"


def kind_of_type(media_type: str | None) -> MediaKind:
    """Return the kind of media of a media type, or of the first half of a type (``image``)."""
    first = (media_type or "").partition("/")[0].lower()
    return cast("MediaKind", first) if first in {"image", "audio", "video"} else "file"


def media_type_of(media: Media | MediaGenerated) -> str:
    """Return the media type; if there is none, the type that the first bytes show."""
    if media.media_type is not None:
        return media.media_type
    return type_by_beginning(media) or "application/octet-stream"


def type_by_beginning(media: Media | MediaGenerated) -> str | None:
    """Return the media type that the first bytes show; None if they are unknown."""
    known, data = _SOUNDS if media.kind == "audio" else _BEGINNINGS, media.data or ""
    return next((kind for start, kind in known.items() if data.startswith(start)), None)


def image_type(media: Media) -> str | None:
    """Return the image type that the first bytes show; if they are unknown, the official name of the declared type."""
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
