"""Rewrite blocks that only one dialect has, and that contain text, as plain text for other dialects.

These are Anthropic's ``search_result`` (what a client's search found), ``document`` given as text blocks, and
``tool_reference`` (the tools that a search among tools found); Bedrock's ``searchResult``, ``document`` in blocks and
``guardContent``, which may be all that the user says; and plain text files for dialects that take none. Without them the
model would answer as if nothing had been said.

Source: dialects.md §3.2, §6.1; Anthropic, "Search results", "Tool search tool"; Bedrock, "GuardrailConverseContentBlock".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamkit.conversation.messages import Media, Text
from streamkit.dialects.bodies.media_types import decoded_text
from streamkit.dialects.bodies.request_reader import CONTENT
from streamkit.dialects.members.values import text_of
from streamkit.events import Aside


def text_of_block(aside: Aside) -> Text | None:
    """Return the text in a block; None for other blocks and for a block without text."""
    kind, block = aside.type.removeprefix(CONTENT), aside.raw
    if kind == aside.type or not isinstance(block, dict):
        return None
    match kind:
        case "searchResult" | "guardContent" | "document" if isinstance(block.get(kind), dict):
            said = list(_in_member(kind, block[kind]))
        case "search_result":
            heads = [text_of(block.get("title")), text_of(block.get("source"))]
            said = ["\n".join(filter(None, heads)), *_texts(block.get("content"))]
        case "document":
            source = block.get("source")
            inside = source.get("content") if isinstance(source, dict) else None
            said = [text_of(block.get("title")) or "", *_texts(inside)]
        case "tool_reference":
            name = text_of(block.get("tool_name"))
            said = [] if name is None else [f"Found the tool {name}."]
        case _:
            return None
    written = "\n\n".join(filter(None, said))
    return Text(written, block=aside.block) if written else None


def _in_member(kind: str, block: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the texts of a Bedrock block, which are in a member with the name of its kind and have no type."""
    if kind == "guardContent":
        guarded = block.get("text")
        yield text_of(guarded.get("text")) if isinstance(guarded, dict) else None
        return
    source = block.get("source")
    yield "\n".join(filter(None, (text_of(block.get("title" if kind == "searchResult" else "name")), text_of(source))))
    holder = block if kind == "searchResult" else source
    inside = holder.get("content") if isinstance(holder, dict) else None
    for inner in inside if isinstance(inside, list) else ():
        yield text_of(inner.get("text")) if isinstance(inner, dict) else None


def text_of_file(media: Media) -> Text | None:
    """Return the name and the text of a plain text file as one text; None for any other file."""
    if media.kind != "file" or media.data is None or not (media.media_type or "").startswith("text/"):
        return None
    said = decoded_text(media.data)
    return None if said is None else Text(f"{media.name}\n\n{said}" if media.name else said, cache=media.cache)


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of content, which is a string or a list of blocks."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and (text := text_of(block.get("text"))) is not None:
            yield text
