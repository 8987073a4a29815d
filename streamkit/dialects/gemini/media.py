"""Images, videos and files that a model made: parts of a candidate with their content or a URI, read and written.

Source: dialects.md §5.2, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.members.values import has_value
from streamkit.dialects.vocabulary.google import OWN_URIS, VENDOR, standard_base64
from streamkit.events import Aside, MediaGenerated

#: For each kind of media part: the members of its object that are read.
MEDIA: Final[Mapping[str, frozenset[str]]] = {
    "inlineData": frozenset({"mimeType", "data", "displayName"}),
    "fileData": frozenset({"mimeType", "fileUri", "displayName"}),
}


def read_media(name: str, data: Mapping[str, Any], part: Aside) -> MediaGenerated | None:
    """Return the media in a ``part`` whose member is ``data``; None if the part has neither content nor a URI."""
    content = data.get("data" if name == "inlineData" else "fileUri")
    kind, title = data.get("mimeType"), data.get("displayName")
    if not (isinstance(content, str) and content and isinstance(kind, str | None) and isinstance(title, str | None)):
        return None
    media = MediaGenerated("file", kind, name=title, choice=part.choice, block=part.block, native=part)
    match (kind or "").partition("/")[0].lower():
        case "image" | "audio" | "video" as known:
            media.kind = known
    if name == "inlineData":
        media.data = standard_base64(content)
    elif content.startswith(OWN_URIS):
        media.file_id = content
    else:
        media.url = content
    beside = {member: value for member, value in part.raw.items() if member != name and has_value(value)}
    if inner := {member: value for member, value in data.items() if member not in MEDIA[name] and has_value(value)}:
        beside[name] = inner
    media.extras = beside or None
    return media


def write_media(media: MediaGenerated) -> list[Aside]:
    """Return a part, as an aside, for media from another vendor's model; empty if Gemini can't name or fetch these media."""
    if media.data is not None:
        raw = {"inlineData": {"mimeType": media_type_of(media), "data": media.data}}
    elif media.url is not None and media.url.startswith(("http:", "https:")):
        raw = {"fileData": without_none(mimeType=media.media_type, fileUri=media.url)}
    else:
        return []
    return [Aside(VENDOR, "metadata", "part", raw, media.choice, media.block)]
