"""Media that a model made, as the asides that say them in a dialect: its own as they came, another's in its form.

Source: dialects.md §7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from attrs import evolve

from streamkit.conversation.generated_media import event_of
from streamkit.conversation.messages import Choice, Media, Part
from streamkit.events import Aside, MediaGenerated
from streamkit.report import StreamReport

#: What says media in a dialect; nothing for media that it has no place for.
MediaForm: TypeAlias = Callable[[MediaGenerated], Sequence[Aside]]


def own_media(media: MediaGenerated, vendor: str, form: MediaForm, report: StreamReport) -> Sequence[Aside]:
    """The asides of ``vendor`` that say what a model made; none, and a counted loss, where its dialect has no place for it."""
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
    """A choice of a whole response with asides of ``vendor`` in the place of its media."""
    if not any(isinstance(part, Media) for part in choice.parts):
        return choice
    parts: list[Part] = []
    for part in choice.parts:
        if isinstance(part, Media):
            parts += own_media(event_of(part, choice.index), vendor, form, report)
        else:
            parts.append(part)
    return evolve(choice, parts=parts)
