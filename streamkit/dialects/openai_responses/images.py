"""Images that a model made: items of its tool for them, which have the image when they are done.

One that another vendor's model made is such an item, too, with an id that says so.

Source: dialects.md §2.1, §2.4, §7.4; the types of openai.
"""

from __future__ import annotations

from typing import Any, Final

from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.members.values import others_of
from streamkit.dialects.openai_responses.asides import ADDED, DONE, IMAGE_PREFIX
from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.events import Aside, MediaGenerated, WireEvent
from streamkit.text.identifiers import hashed

ITEM: Final = "image_generation_call"
#: What is read of an item.
READ: Final = frozenset({"id", "type", "status", "result", "output_format"})
#: How the API makes an image that nobody asked to have otherwise.
FORMAT: Final = "png"


def read_image(item: Any, native: Aside) -> MediaGenerated | None:
    """The image of an item that is done, which ``native`` says, too; None for what has none."""
    if not isinstance(item, dict) or item.get("type") != ITEM:
        return None
    data, form = item.get("result"), item.get("output_format") or FORMAT
    if not isinstance(data, str) or not data or not isinstance(form, str):
        return None
    media = MediaGenerated("image", f"image/{form}", data, choice=native.choice, block=native.block, native=native)
    media.extras = others_of(item, READ) or None
    return media


def as_it_came(event: WireEvent) -> WireEvent:
    """An event, or the aside that is all of it as it came."""
    native = event.native if isinstance(event, MediaGenerated) else None
    return event if native is None else native


def write_image(media: MediaGenerated) -> list[Aside]:
    """The item that is another vendor's image, as it begins and as it is done; none for what it has no place for."""
    if media.kind != "image" or media.data is None:
        return []
    kind = media_type_of(media)
    item = {"id": f"{IMAGE_PREFIX}_{hashed(f'{media.block} {media.data}', 17)}", "type": ITEM}
    done = {"status": "completed", "result": media.data, "output_format": kind.removeprefix("image/")}
    return [
        Aside(VENDOR, "server_tool", name, {"type": name, "item": {**item, **members}}, media.choice, media.block)
        for name, members in ((ADDED, {"status": "in_progress", "result": None}), (DONE, done))
    ]
