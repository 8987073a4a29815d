"""Parts as content of messages and of outputs: the same list for both.

Content of one plain text is a string (seeds.md S2). Source: dialects.md §2.3, §7.3, §7.4, §8.12.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from streamkit.conversation.messages import CacheMark, Media, Part, Refusal, Text
from streamkit.dialects.bodies.request_writer import RequestWriter, data_uri, given, merged
from streamkit.dialects.openai_responses.output import Item
from streamkit.dialects.openai_responses.wire import AUDIO_FORMATS, CACHE_TTLS, VENDOR
from streamkit.events import Aside


class ContentWriter(RequestWriter):
    """The part of the writer of requests that writes content."""

    dialect = "openai-responses"
    vendor = VENDOR
    ids = re.compile(r"(?s).{1,64}")
    names = re.compile(r"[A-Za-z0-9_-]{1,64}")
    users = re.compile(r"[ -~]{1,64}")
    #: Dialects of the same vendor, whose ids of files and cache marks mean the same.
    relatives: ClassVar[frozenset[str]] = frozenset({"openai-chat", "openai-responses"})

    @property
    def related(self) -> bool:
        return self.request.dialect in self.relatives

    def content(self, parts: Sequence[Part]) -> str | list[Item]:
        """A string for one plain text, else a list of parts."""
        written = [content for part in parts if (content := self.part(part)) is not None]
        if not written:
            return ""
        if len(written) == 1 and written[0].keys() == {"type", "text"}:
            return str(written[0]["text"])
        return written

    def part(self, part: Part) -> Item | None:
        """One part as content; None for what can't be."""
        match part:
            case Text():
                if part.signature is not None:
                    self.lose("reasoning_signature", part.signature.vendor)
                written: Item = {"type": "input_text", "text": part.text}
            case Refusal():
                self.lose("refusal_as_text")
                return merged({"type": "input_text", "text": part.text}, self.extras(part.extras))
            case Media():
                media = self._media(part)
                if media is None:
                    self.lose("media", part.kind)
                    return None
                written = media
            case Aside():
                return dict(part.raw) if self.aside(part) else None
            case _:
                raise TypeError(f"content has no {type(part).__name__}")
        return merged(written | self._cache_mark(part.cache), self.extras(part.extras))

    def _media(self, media: Media) -> Item | None:
        """Media as content; None for what has no form here."""
        file_id = media.file_id if self.related else None
        url = media.url if self.own or (media.url or "").startswith(("http:", "https:")) else None
        match media.kind:
            case "image" if media.data is not None or url is not None or file_id is not None:
                shown = url if media.data is None else data_uri(media)
                return given(type="input_image", image_url=shown, file_id=file_id, detail=media.detail or "auto")
            case "file" if media.data is not None or url is not None or file_id is not None:
                bare = media.data is None or (self.own and media.media_type is None)
                data = media.data if bare else data_uri(media)
                told = given(file_data=data, file_url=url, file_id=file_id, filename=media.name, detail=media.detail)
                return {"type": "input_file", **told}
            case "audio" if self.own and media.data is not None:  # the server takes none in a message (§7.4)
                kind = media.media_type or ""
                form = AUDIO_FORMATS.get(kind, kind.removeprefix("audio/"))
                return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
        return None

    def _cache_mark(self, cache: CacheMark | None) -> Item:
        if cache is None:
            return {}
        if not self.related:
            self.lose("cache_mark", cache)
        return {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": CACHE_TTLS[cache]}}
