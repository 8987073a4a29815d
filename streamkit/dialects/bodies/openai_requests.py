"""The parts of requests that Chat and Responses accept alike: ids, effort, files, members, and the output format.

Source: dialects.md §1.3, §2.3, §7.4 (requests of both).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Extras, Media, OutputFormat, Thinking
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.lowering import Lowering, asked_effort
from streamkit.dialects.vocabulary.models import UNKNOWN, Model
from streamkit.dialects.vocabulary.openai import SCHEMA_NAME

#: Allowed ids of calls, and allowed ids of users.
IDS: Final = re.compile(r"(?s).{1,64}")
USERS: Final = re.compile(r"[ -~]{1,64}")
#: Members of a request that both dialects have, with the same name.
SHARED: Final = ("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "store", "metadata")
#: File endings by media type, where they differ from the subtype (``application/pdf`` ends in ``pdf``).
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


def takes_marks(model: Model, *, related: bool) -> bool:
    """Return whether a model takes cache marks. An unknown model gets those that a ``related`` (OpenAI) dialect had."""
    return bool(model.cache_marks) or (related and model is UNKNOWN)


def shared_members(extras: Extras, *, verbosity_in_text: bool) -> tuple[dict[str, Any], Extras]:
    """Split extras into the members that both OpenAI dialects have, in the form of the target, and the rest."""
    written = {name: extras[name] for name in SHARED if extras.get(name) is not None}
    rest = {name: value for name, value in extras.items() if name not in SHARED}
    text = rest.get("text")
    if verbosity_in_text and rest.get("verbosity") is not None:
        written["text"] = {"verbosity": rest.pop("verbosity")}
    elif not verbosity_in_text and isinstance(text, Mapping) and text.get("verbosity") is not None:
        written["verbosity"] = text["verbosity"]
        rest["text"] = {name: value for name, value in text.items() if name != "verbosity"}
    return written, rest


def effort_alone(thinking: Thinking, to: Lowering, *lost: str) -> str | None:
    """Return the amount of thinking as an effort that the model knows. Count as lost the members ``lost``."""
    to.lose_thinking(thinking, *lost)
    if to.own or thinking.enabled is not False:
        to.lose_thinking(thinking, "enabled")
        return to.fit_effort(asked_effort(thinking))
    effort = to.takes.model.fit("none")
    if effort != "none":  # only the effort ``none`` turns thinking off
        to.lose("parameter", "thinking.enabled")
    return effort


def named_file(media: Media, to: Lowering) -> Media:
    """Give a name to a file with content, because the server requires one. Its ending fits the media type."""
    if media.name is not None or media.data is None:
        return media
    to.report.repair("file_named")
    kind = media_type_of(media)
    ending = ENDINGS.get(kind) or kind.partition("/")[2]
    return evolve(media, name=f"file.{ending}" if ending.isalnum() else "file")


def write_form(output: OutputFormat | None, *, nested: bool) -> dict[str, Any] | None:
    """Return the output format; None if none is requested. ``nested``: Chat puts the schema into an inner object."""
    if output is None:
        return None
    if output.kind != "schema":
        return {"type": "json_object" if output.kind == "json" else "text"}
    schema = without_none(
        name=output.name or SCHEMA_NAME, description=output.description, schema=output.schema, strict=output.strict
    )
    return {"type": "json_schema", "json_schema": schema} if nested else {"type": "json_schema", **schema}
