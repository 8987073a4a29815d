"""Images that a model made, in ``images`` of a delta or message. OpenRouter and LiteLLM have this member, OpenAI does not.

Source: dialects.md §1.7, §7.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamkit.dialects.bodies.media_types import data_uri
from streamkit.dialects.members.fields import is_data_uri
from streamkit.dialects.members.values import details_of, others_of
from streamkit.events import Aside, MediaGenerated

IMAGES: Final = "images"
#: The type of an aside with images.
DELTA_IMAGES: Final = f"delta.{IMAGES}"
IMAGE: Final = "image_url"
#: Members that are read of an image (``READ``), and of the object in it (``LINK``).
READ: Final = frozenset({"type", "index", IMAGE})
LINK: Final = frozenset({"url"})
URLS: Final = ("data:", "http:", "https:")


def read_images(images: Any, vendor: str, choice: int) -> list[MediaGenerated]:
    """Return the images of a list; empty if one of them is invalid, so that the list is kept unchanged."""
    read = [
        read_image(image, Aside(vendor, "metadata", DELTA_IMAGES, [image], choice))
        for image in (images if isinstance(images, list) else ())
    ]
    return [image for image in read if image is not None] if None not in read else []


def read_image(image: Any, native: Aside) -> MediaGenerated | None:
    """Return an image of the response as media; None if the value is no image. ``native`` is the aside for the image."""
    if not isinstance(image, dict) or image.get("type", IMAGE) != IMAGE:
        return None
    link = image.get(IMAGE)
    link = {"url": link} if isinstance(link, str) else details_of(image, IMAGE)
    url = link.get("url")
    if not isinstance(url, str) or not url:
        return None
    media = MediaGenerated("image", choice=native.choice, native=native)
    if is_data_uri(url):
        head, _, data = url.partition(",")
        kind, *parameters = head[len("data:") :].split(";")
        if "base64" not in parameters or not data:
            return None
        media.media_type, media.data = kind.strip().lower() or None, data
    else:
        media.url = url
    beside = others_of(image, READ)
    if inner := others_of(link, LINK):
        beside[IMAGE] = inner
    media.extras = beside or None
    return media


def url_of(media: MediaGenerated) -> str | None:
    """Return the URL of an image, which may contain the image; None if it is not an image, or cannot be fetched by others."""
    url = data_uri(media) if media.data is not None else media.url
    return url if media.kind == "image" and url is not None and url.startswith(URLS) else None


def write_images(media: MediaGenerated, vendor: str) -> Sequence[Aside]:
    """Return the aside for another vendor's image; empty if it is not an image, or cannot be fetched by others."""
    url = url_of(media)
    raw = [{"type": IMAGE, IMAGE: {"url": url}}]
    return [] if url is None else [Aside(vendor, "metadata", DELTA_IMAGES, raw, media.choice)]
