"""Content of messages and outputs to parts: the same list for both, with parts of the user and of the assistant alike.

Source: dialects.md §2.3, §7.4, §8.12.
"""

from __future__ import annotations

from streamkit.conversation.messages import CacheMark, Media, Part, Refusal, Text
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.dialects.openai_responses.wire import AUDIO_TYPES, CACHE_SPANS, CONTENT, VENDOR
from streamkit.events import Aside
from streamkit.text.quoting import quoted


class ContentReader:
    """The part of the reader of requests that reads content."""

    def __init__(self) -> None:
        self._labels = 0

    def content(self, item: Fields, name: str = "content") -> list[Part]:
        content = item.text_or_each(name)
        if isinstance(content, str):
            return [Text(content)] if content else []
        return [read for part in content for read in self._part(part)]

    def _part(self, part: Fields) -> list[Part]:
        """A part, and what stands beside it."""
        match part.needed("type"):
            case "input_text":
                return [Text(part.needed("text"), cache=_cache_mark(part), extras=part.rest() or None)]
            case "output_text":
                return self._output_text(part)
            case "refusal":
                return [Refusal(part.needed("refusal"), part.rest() or None)]
            case "input_image":
                return [_image(part)]
            case "input_file":
                return [_file(part)]
            case "input_audio":
                return [_audio(part)]
            case kind:
                return [Aside(VENDOR, "unknown_event", f"{CONTENT}{kind}", {"type": kind, **part.rest()})]

    def _output_text(self, part: Fields) -> list[Part]:
        self._labels += 1
        label = self._labels
        text = Text(part.needed("text"), block=label)
        beside = [Aside(VENDOR, "citation", "annotation", raw, block=label) for raw in part.listed("annotations")]
        if logprobs := part.listed("logprobs"):
            beside.append(Aside(VENDOR, "logprobs", "logprobs", logprobs, block=label))
        text.extras = part.rest() or None
        return [text, *beside]


def _image(part: Fields) -> Media:
    media = Media(
        "image",
        url=part.string("image_url"),
        file_id=part.string("file_id"),
        detail=part.string("detail"),
        place=part.place,
    )
    if media.url is None and media.file_id is None:
        raise part.wrong("an image needs image_url or file_id")
    if media.url is not None and is_data_uri(media.url):
        media.media_type, media.data = media_of(media.url, part.at("image_url"))
        media.url = None
    return _finished(media, part)


def _file(part: Fields) -> Media:
    data = part.string("file_data")
    media = Media("file", data=data, url=part.string("file_url"), file_id=part.string("file_id"), place=part.place)
    if data is None and media.url is None and media.file_id is None:
        raise part.wrong("a file needs file_data, file_url or file_id")
    if data is not None and is_data_uri(data):
        media.media_type, media.data = media_of(data, part.at("file_data"))
    media.name, media.detail = part.string("filename"), part.string("detail")
    return _finished(media, part)


def _audio(part: Fields) -> Media:
    audio = part.needed_fields("input_audio")
    kind = audio.needed("format")
    return _finished(Media("audio", AUDIO_TYPES.get(kind, f"audio/{kind}"), audio.needed("data")), part)


def _finished(media: Media, part: Fields) -> Media:
    media.cache = _cache_mark(part)
    media.extras = part.rest() or None
    return media


def _cache_mark(part: Fields) -> CacheMark | None:
    mark = part.fields("prompt_cache_breakpoint")
    if mark is None:
        return None
    mode, ttl = mark.string("mode"), mark.string("ttl")
    if mode != "explicit":
        raise mark.wrong(f"'explicit' is needed, not {quoted(mode)}", "mode")
    if ttl not in CACHE_SPANS:
        raise mark.wrong(f"'30m' or '12h' is needed, not {quoted(ttl)}", "ttl")
    return CACHE_SPANS[ttl]
