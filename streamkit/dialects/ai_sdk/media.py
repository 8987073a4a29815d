"""Images, videos and files that a model made: read and write the chunk and the part ``file``.

Source: ui-protocols.md §1.2, §1.5, §1.8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from streamkit.dialects.ai_sdk.wire import FILE, VENDOR
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.members.fields import is_data_uri, media_of
from streamkit.dialects.members.values import has_value
from streamkit.errors import BadRequest
from streamkit.events import Aside, MediaGenerated, MediaKind

KINDS: Final[frozenset[str]] = frozenset({"image", "audio", "video"})
#: Members of a chunk ``file`` that are read.
READ: Final = frozenset({"type", "url", "mediaType"})


def kind_of(media_type: str | None) -> MediaKind:
    """Return the kind of media of a type. The SDK also accepts only the first half of a type (``image``)."""
    first = (media_type or "").partition("/")[0].lower()
    return cast("MediaKind", first) if first in KINDS else "file"


def read_file(chunk: Mapping[str, Any]) -> MediaGenerated | None:
    """Return the media in a chunk ``file``; None if its URL is malformed."""
    url, media_type = chunk.get("url"), chunk.get("mediaType")
    if not (isinstance(url, str) and url and isinstance(media_type, str | None)):
        return None
    media = MediaGenerated(kind_of(media_type), media_type, native=Aside(VENDOR, "metadata", FILE, chunk))
    if is_data_uri(url):
        try:
            said, media.data = media_of(url, "url")
        except BadRequest:
            return None
        if media_type is None:
            media.kind, media.media_type = kind_of(said), said
    else:
        media.url = url
    media.extras = {name: value for name, value in chunk.items() if name not in READ and has_value(value)} or None
    return media


def write_file(media: MediaGenerated) -> Sequence[Aside]:
    """Return the chunk for media from another vendor's model; empty if only that vendor can read the media."""
    if media.data is not None:
        url = f"data:{media_type_of(media)};base64,{media.data}"
    elif media.url is not None and media.url.startswith(("http:", "https:")):
        url = media.url
    else:
        return ()
    raw = {"type": FILE, "url": url, "mediaType": media_type_of(media)}
    return [Aside(VENDOR, "metadata", FILE, raw, media.choice, media.block)]
