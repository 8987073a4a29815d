"""Convert generated media between a part of a response and an event."""

from __future__ import annotations

from streamkit.conversation.messages import Media
from streamkit.events import MediaGenerated


def part_of(event: MediaGenerated) -> Media:
    """Return an event as a part of its choice."""
    media = Media(event.kind, event.media_type, event.data, event.url, event.file_id, event.name)
    media.extras, media.block, media.native = event.extras, event.block, event.native
    return media


def event_of(media: Media, choice: int) -> MediaGenerated:
    """Return a part of a choice as an event."""
    return MediaGenerated(
        media.kind,
        media.media_type,
        media.data,
        media.url,
        media.file_id,
        media.name,
        choice,
        media.block,
        media.extras,
        media.native,
    )
