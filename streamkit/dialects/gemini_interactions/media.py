"""Images, audio, videos and documents as contents of Gemini Interactions, read and written.

A content has its type, and its media as base64 (``data``) or at a URI. Only Google can read its own URIs.

Source: dialects.md §5.5, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.gemini_interactions.wire import CONTENTS, DELTA, MEDIA, VENDOR
from streamkit.dialects.members.values import others_of
from streamkit.dialects.vocabulary.google import OWN_URIS, standard_base64
from streamkit.events import Aside, MediaGenerated

#: The members of a content that ``read_media`` understands.
READ: Final = frozenset({"type", "mime_type", "data", "uri"})


def read_media(content: Mapping[str, Any], choice: int, block: int) -> MediaGenerated | None:
    """Return the media in a content; None if it is not media, or has neither data nor a URI."""
    kind, data, uri, mime_type = (content.get(name) for name in ("type", "data", "uri", "mime_type"))
    if not isinstance(kind, str) or kind not in MEDIA or not isinstance(mime_type, str | None):
        return None
    native = Aside(VENDOR, "metadata", DELTA, dict(content), choice, block)
    media = MediaGenerated(MEDIA[kind], mime_type, choice=choice, block=block, native=native)
    if isinstance(data, str) and data:
        media.data = standard_base64(data)
    elif not isinstance(uri, str) or not uri:
        return None
    elif uri.startswith(OWN_URIS):
        media.file_id = uri
    else:
        media.url = uri
    media.extras = others_of(content, READ - {"uri"} if media.data is not None else READ) or None
    return media


def write_media(media: MediaGenerated) -> list[Aside]:
    """Return the content for media from another vendor's model; empty if this dialect cannot name or fetch them."""
    content: dict[str, Any]
    if media.data is not None:
        content = {"mime_type": media_type_of(media), "data": media.data}
    elif media.url is not None and media.url.startswith(("http:", "https:")):
        content = without_none(mime_type=media.media_type, uri=media.url)
    else:
        return []
    kind = CONTENTS[media.kind]
    return [Aside(VENDOR, "metadata", DELTA, {"type": kind, **content}, media.choice, media.block)]
