"""Images that a model made: blocks that start with their format and have the image in a delta.

Source: dialects.md §6.1, §7.4; botocore's model of ``ImageBlock``.
"""

from __future__ import annotations

from typing import Any, Final

from streamkit.dialects.bedrock.wire import FORMATS, MEDIA_TYPES, PADDING, VENDOR
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.members.values import details_of, others_of
from streamkit.events import Aside, MediaGenerated

IMAGE: Final = "image"


def read_image(document: dict[str, Any], form: str | None, native: Aside) -> MediaGenerated | None:
    """Return the image in a delta, or None. ``form`` is the format in the block's start, ``native`` the delta's aside."""
    delta = details_of(document, "delta")
    image = details_of(delta, IMAGE)
    source = details_of(image, "source")
    data = source.get("bytes")
    if not isinstance(data, str) or not data:
        return None
    kind = None if form is None else MEDIA_TYPES[IMAGE].get(form, f"image/{form}")
    media = MediaGenerated(IMAGE, kind, data, block=native.block, native=native)
    beside = {
        **others_of(document, {"contentBlockIndex", "delta", PADDING}),
        **others_of(delta, {IMAGE}),
        **others_of(image, {"source"}),
        **others_of(source, {"bytes"}),
    }
    media.extras = beside or None
    return media


def write_image(media: MediaGenerated) -> list[Aside]:
    """Return the messages of a block with another vendor's image, as asides; empty if Bedrock can't express the image."""
    form = FORMATS[IMAGE].get(media_type_of(media)) if media.kind == "image" else None
    if form is None or media.data is None:
        return []
    return [
        Aside(VENDOR, "unknown_event", event, {"contentBlockIndex": media.block, **members}, block=media.block)
        for event, members in (
            ("contentBlockStart", {"start": {IMAGE: {"format": form}}}),
            ("contentBlockDelta", {"delta": {IMAGE: {"source": {"bytes": media.data}}}}),
            ("contentBlockStop", {}),
        )
    ]
