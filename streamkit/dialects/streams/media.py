"""Media that a model made, as asides of the target dialect: media of its vendor unchanged, others in the dialect's form.

Source: dialects.md §7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from attrs import evolve

from streamkit.conversation.messages import Choice, Media, Part
from streamkit.conversation.replay import event_of
from streamkit.events import Aside, MediaGenerated
from streamkit.report import StreamReport

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
