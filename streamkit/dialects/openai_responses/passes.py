"""Requests to OpenAI, as far as Chat and Responses lower and write them alike: effort, files, the form of an answer.

Source: dialects.md §1.3, §2.3, §7.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import Extras, Media, OutputFormat, Thinking
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.lowering import Lowering, asked_effort
from streamkit.dialects.vocabulary.models import UNKNOWN, Model
from streamkit.dialects.vocabulary.openai import SCHEMA_NAME

#: Dialects of this vendor, whose ids of files and cache marks mean the same.
RELATIVES: Final = frozenset({"openai-chat", "openai-responses"})
#: Ids of calls and names of users that the servers take.
IDS: Final = re.compile(r"(?s).{1,64}")
USERS: Final = re.compile(r"[ -~]{1,64}")
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
#: How closely a file can be looked at.
CLOSENESS: Final = frozenset({"auto", "low", "high"})
#: Members of a request that both of OpenAI's dialects have, by one name.
SHARED: Final = ("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "store", "metadata")


def takes_marks(model: Model, source: str) -> bool:
    """Whether the model takes marks on the prompt. An unknown model takes those of OpenAI's own clients."""
    return bool(model.cache_marks) or (source in RELATIVES and model is UNKNOWN)


def extras_of_openai(extras: Extras) -> tuple[Extras, Extras]:
    """Of a Chat request's own members those that Responses has, too, and the rest."""
    rest = {name: value for name, value in extras.items() if name not in SHARED}
    written = {name: extras[name] for name in SHARED if extras.get(name) is not None}
    if rest.get("verbosity") is not None:
        written["text"] = {"verbosity": rest.pop("verbosity")}
    return written, rest


def effort(thinking: Thinking, to: Lowering, *lost: str) -> str | None:
    """How much to think, as an effort that the model knows. Members that are ``lost`` are counted."""
    to.lose_thinking(thinking, *lost)
    if to.own or thinking.enabled is not False:
        to.lose_thinking(thinking, "enabled")
        asked = asked_effort(thinking)
        return asked if to.own else to.fit_effort(asked)
    fit = to.takes.model.fit("none")
    if fit != "none":  # which says that it is off
        to.lose("parameter", "thinking.enabled")
    return fit


def file_name(media: Media, to: Lowering) -> str | None:
    """The name of a file, which the server demands with its content: one of its media type where it has none."""
    if media.name is not None or media.data is None:
        return media.name
    to.report.repair("file_named")
    kind = media_type_of(media)
    ending = ENDINGS.get(kind) or kind.partition("/")[2]
    return f"file.{ending}" if ending.isalnum() else "file"


def closeness(media: Media, to: Lowering) -> str | None:
    """How closely to look at a file, in a word that the server knows."""
    if media.detail is None or media.detail in CLOSENESS:
        return media.detail
    to.lose("metadata", "detail")
    return None


def form(output: OutputFormat | None) -> dict[str, Any] | None:
    """The form of the answer; None where none is asked for."""
    if output is None:
        return None
    if output.kind != "schema":
        return {"type": "json_object" if output.kind == "json" else "text"}
    name = output.name or SCHEMA_NAME
    return without_none(
        type="json_schema", name=name, description=output.description, schema=output.schema, strict=output.strict
    )
