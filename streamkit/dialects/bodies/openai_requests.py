"""Requests to OpenAI, as far as Chat and Responses write them alike: ids and names, effort, the form of an answer.

Source: dialects.md §1.3, §2.3, §7.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from streamkit.conversation.messages import Media, OutputFormat, Thinking
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.request_writer import RequestWriter, asked_effort
from streamkit.dialects.vocabulary.openai import SCHEMA_NAME, TOOLS

#: How names of files end, by their media types, where it is another word than the type's own (``application/pdf``).
ENDINGS: Final[Mapping[str, str]] = {
    "text/plain": "txt",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/octet-stream": "bin",
}
#: Members of a request that both of OpenAI's dialects have, by one name.
SHARED: Final = ("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "store", "metadata")


class OpenAIRequestWriter(RequestWriter):
    """What the writers of requests to OpenAI share."""

    ids = re.compile(r"(?s).{1,64}")
    names = TOOLS.names
    users: ClassVar[re.Pattern[str] | None] = re.compile(r"[ -~]{1,64}")
    #: Dialects of the same vendor, whose ids of files and cache marks mean the same.
    relatives: ClassVar[frozenset[str]]
    #: Whether ``verbosity`` stands in ``text``.
    verbosity_in_text: ClassVar[bool] = False

    @property
    def related(self) -> bool:
        """Whether the request came in a dialect of the same vendor."""
        return self.request.dialect in self.relatives

    @property
    def takes_marks(self) -> bool:
        """Return whether the model takes marks on the prompt. An unknown model takes those of OpenAI's own clients."""
        return bool(self.model.cache_marks) or (self.related and self.model is self.unknown)

    def extras_of_openai(self) -> Mapping[str, Any]:
        """The members of the request itself to write again: between OpenAI's two dialects those that both have."""
        extras = self.request.extras
        if not self.related:
            return self.extras(extras, "parameter")
        rest = {name: value for name, value in extras.items() if name not in SHARED}
        written = {name: extras[name] for name in SHARED if extras.get(name) is not None}
        text = rest.get("text")
        if self.verbosity_in_text and rest.get("verbosity") is not None:
            written["text"] = {"verbosity": rest.pop("verbosity")}
        elif not self.verbosity_in_text and isinstance(text, Mapping) and text.get("verbosity") is not None:
            written["verbosity"] = text["verbosity"]
            rest["text"] = {name: value for name, value in text.items() if name != "verbosity"}
        return {**written, **self.extras(rest, "parameter")}

    def effort(self, thinking: Thinking, *lost: str) -> str | None:
        """Return how much to think, as an effort that the model knows. Members that are ``lost`` are counted."""
        self.lose_thinking(thinking, *lost)
        if self.own or thinking.enabled is not False:
            self.lose_thinking(thinking, "enabled")
            return self.fit_effort(asked_effort(thinking))
        effort = self.model.fit("none")
        if effort != "none":  # which says that it is off
            self.lose("parameter", "thinking.enabled")
        return effort

    def file_name(self, media: Media) -> str | None:
        """Return the name of a file, which the server demands with its content: one of its media type where it has none."""
        if media.name is not None or media.data is None or self.own:
            return media.name
        self.report.repair("file_named")
        kind = media_type_of(media)
        ending = ENDINGS.get(kind) or kind.partition("/")[2]
        return f"file.{ending}" if ending.isalnum() else "file"

    def form(self, output: OutputFormat | None, *, nested: bool) -> dict[str, Any] | None:
        """The form of the answer; None where none is asked for. ``nested``: whether a schema has an object of its own."""
        if output is None:
            return None
        if output.kind != "schema":
            return {"type": "json_object" if output.kind == "json" else "text"}
        schema = without_none(
            name=output.name or SCHEMA_NAME, description=output.description, schema=output.schema, strict=output.strict
        )
        return {"type": "json_schema", "json_schema": schema} if nested else {"type": "json_schema", **schema}
