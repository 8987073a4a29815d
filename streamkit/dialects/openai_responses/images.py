"""Images that a model made. Each is an output item of the image tool, which contains the image when it is done.

An image of another vendor's model is written as such an item, too, with an id that marks it as streamkit's.

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
#: Members of an item that are read here.
READ: Final = frozenset({"id", "type", "status", "result", "output_format"})
#: The image format that the API uses if the item names none.
FORMAT: Final = "png"


def read_image(item: Any, native: Aside) -> MediaGenerated | None:
    """Return the image of an item; None if the item is no image or not done. ``native`` is the aside for the item."""
    if not isinstance(item, dict) or item.get("type") != ITEM:
        return None
    data, form = item.get("result"), item.get("output_format") or FORMAT
    if not isinstance(data, str) or not data or not isinstance(form, str):
        return None
    media = MediaGenerated("image", f"image/{form}", data, choice=native.choice, block=native.block, native=native)
    media.extras = others_of(item, READ) or None
    return media


def as_it_came(event: WireEvent) -> WireEvent:
    """Return the event itself, or the aside of this dialect from which media were read."""
    native = event.native if isinstance(event, MediaGenerated) else None
    return event if native is None else native


def write_image(media: MediaGenerated) -> list[Aside]:
    """Return the asides that start and finish an item for another vendor's image; empty if the item cannot contain it."""
    if media.kind != "image" or media.data is None:
        return []
    kind = media_type_of(media)
    item = {"id": f"{IMAGE_PREFIX}_{hashed(f'{media.block} {media.data}', 17)}", "type": ITEM}
    done = {"status": "completed", "result": media.data, "output_format": kind.removeprefix("image/")}
    return [
        Aside(VENDOR, "server_tool", name, {"type": name, "item": {**item, **members}}, media.choice, media.block)
        for name, members in ((ADDED, {"status": "in_progress", "result": None}), (DONE, done))
    ]
