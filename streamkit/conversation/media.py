"""Media: their types, found by a file's first bytes if the type is missing (Ollama's images) or wrong, and their forms.

Media that a model made become asides of the target dialect: media of its vendor unchanged, others in the dialect's form.

Source: dialects.md §7.4.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from attrs import evolve

from streamkit.conversation.messages import Choice, Media, Part
from streamkit.conversation.response_events import event_of
from streamkit.events import Aside, MediaGenerated, MediaKind
from streamkit.report import StreamReport

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


#: Returns the asides for media in a dialect; empty if the dialect cannot express the media.
MediaForm: TypeAlias = Callable[[MediaGenerated], Sequence[Aside]]


def own_media(media: MediaGenerated, vendor: str, form: MediaForm, report: StreamReport) -> Sequence[Aside]:
    """Return the asides of ``vendor`` for media that a model made. If the dialect has no form for them, count the loss."""
    if media.native is not None and media.native.vendor == vendor:
        return [media.native]
    asides = form(media)
    if not asides:
        report.lose("media_output", what=media.media_type or media.kind)
        return ()
    for name in media.extras or ():
        report.lose("metadata", what=name)
    return asides


def with_own_media(choice: Choice, vendor: str, form: MediaForm, report: StreamReport) -> Choice:
    """Return a choice of a whole response with asides of ``vendor`` in place of its media."""
    if not any(isinstance(part, Media) for part in choice.parts):
        return choice
    parts: list[Part] = []
    for part in choice.parts:
        if isinstance(part, Media):
            parts += own_media(event_of(part, choice.index), vendor, form, report)
        else:
            parts.append(part)
    return evolve(choice, parts=parts)
