"""The neutral conversation to Mistral's requests: Chat's, with other names and words.

The server holds messages to an order: behind a result come results or the assistant, the system speaks in front or behind the
user, the assistant says something each time, and last only in words to be continued (``prefix``). A request of another
dialect is brought into that order; one of this dialect is written as it came.

Thinking is taken back in the content, with Mistral's own signatures and no other vendor's. Results have media and the tool's
name. A stream ends with token counts in any case. A choice of some of the tools is one of all that are offered.

Source: dialects.md §6.3, §7.3, §7.4; the order: mistral-common, ``protocol/instruct/validator.py``, code 3230; the request
types of mistralai 3.7.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import data_uri
from streamkit.dialects.lowering import (
    Capabilities,
    Lowering,
    Place,
    asked_effort,
    chosen_of,
    of_parts,
    of_tools,
    results_named,
    told_by,
)
from streamkit.dialects.mistral.encode import Chunks
from streamkit.dialects.mistral.wire import OPTIONS, SERVICE_TIERS, TOOLS, VENDOR
from streamkit.dialects.openai_chat import request_out as chat
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import COMMON
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.identifiers import NINE

#: The assistant's text between results and a text of the user, where the server demands one.
BRIDGE: Final = "OK."
#: The schema of a function that takes nothing.
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """An image, a sound or a file of the user's or of a result, in the request or at a URL of the web."""
    here = media.data is not None or (media.url or "").startswith(("data:", "http:", "https:"))
    if place not in {"user", "result"} or media.kind == "video" or not here:
        to.lose("media", media.kind)
        return None
    if media.kind == "audio":
        return media if media.data is None else evolve(media, media_type=None)
    return evolve(media, detail=to.closeness(media.detail)) if media.kind == "image" else media


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Media that the request has or names, but for films."""
    here = media.data is not None or media.url is not None or (media.kind == "file" and media.file_id is not None)
    if media.native is not None or (here and media.kind != "video"):
        return media
    to.lose("media", media.kind)
    return None


def choice_of_offered(request: Request, _to: Lowering) -> None:
    """A choice of one tool by its name, or of all that are offered."""
    choice = request.tool_choice
    if choice is None or (choice.mode == "required" and len(choice.names) == 1):
        return
    request.tools = [*chosen_of(request.tools, choice)]
    request.tool_choice = evolve(choice, names=())


@of_parts
def saying(part: Part, _place: Place, _to: Lowering) -> Part | None:
    """No empty texts, nor thinking without text and signature."""
    silent = isinstance(part, Text | Reasoning) and not part.text and part.signature is None
    return None if silent else part


def in_order(request: Request, to: Lowering) -> None:
    """The system in front or behind the user, and the assistant between results and the user's words."""
    front, placed = list[Turn](), list[Turn]()  # what the system says, and the others
    for turn in request.turns:
        answered = bool(placed) and _has(placed[-1], ToolResult)
        if turn.role == "system" and (not placed or answered or placed[-1].role == "assistant"):
            if placed:
                to.lose("system_place")
            front.append(evolve(turn, native_role=None))
            continue
        if turn.role == "user" and answered and not _has(turn, ToolResult):
            to.report.repair("turn_added")
            placed.append(Turn("assistant", [Text(BRIDGE)]))
        placed.append(evolve(turn, native_role=None))
    if placed and placed[-1].role == "assistant" and not _has(placed[-1], ToolCall):
        placed[-1] = evolve(placed[-1], extras={"prefix": True})
    request.turns = [*front, *placed]


def _has(turn: Turn, kind: type[Part]) -> bool:
    return any(isinstance(part, kind) for part in turn.parts)


@of_tools
def schemas_given(tool: Tool, _to: Lowering) -> Tool:
    """Functions with a schema, which the server demands."""
    is_bare = tool.kind == "function" and tool.parameters is None
    return evolve(tool, parameters=dict(NO_PARAMETERS)) if is_bare else tool


def effort_said(request: Request, to: Lowering) -> None:
    """How much to think, as an effort: ``high`` or ``none`` where only whether to think was asked."""
    thinking = request.options.thinking
    if thinking is not None:
        to.lose_thinking(thinking, "budget_tokens", "summary")
        effort = asked_effort(thinking)
        if effort is None and thinking.enabled is not None:
            effort = "high" if thinking.enabled else "none"
        thinking = Thinking(to.fit_effort(effort), native="reasoning_effort")
    request.options.thinking = thinking
    request.stream_usage = None


FOREIGN: Final = Capabilities(
    dialect="mistral",
    vendor=VENDOR,
    title="Mistral",
    model=evolve(UNKNOWN, efforts=("none", *COMMON)),
    ids=NINE,
    names=TOOLS.names,
    result_errors=False,
    signs_reasoning=VENDOR,
    takes_opaque=lambda _blob: False,
    unsigned_reasoning=True,
    strips_signatures=True,
    media=fit_media,
    empty_turns=True,
    results="behind calls",
    some_tools=True,
    needs_properties=True,
    form_with_tools=True,
    options=frozenset({*OPTIONS, "max_tokens", "top_k", "thinking", "output", "service_tier"}),
    service_tiers=frozenset(SERVICE_TIERS),
    first=(chat.tools_unmarked, choice_of_offered),
    said=(results_named, saying, chat.answers_said),
    arranged=(in_order,),
    last=(schemas_given, effort_said),
)
#: Of requests of the dialect itself.
OWN: Final = evolve(
    FOREIGN,
    model=UNKNOWN,
    ids=None,
    names=None,
    turn_names=True,
    media=own_media,
    results="apart",
    service_tiers=None,
    said=(),
    arranged=(),
)
capabilities: Final = told_by(OWN, FOREIGN)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """The body of a request that has nothing but what the dialect can say, as JSON values."""
    body = chat.write_body(request, MistralMessages(report), OPTIONS)
    if body.get("tool_choice") == "required":
        body["tool_choice"] = "any"
    return body


class MistralMessages(chat.Messages):
    """Writes the messages of one request."""

    def media(self, media: Media) -> dict[str, Any]:
        url = data_uri(media) if media.data is not None else media.url
        match media.kind:
            case "image":
                return {"type": "image_url", "image_url": without_none(url=url, detail=media.detail)}
            case "audio":
                bare = media.data is not None and media.media_type is None
                return {"type": "input_audio", "input_audio": media.data if bare else url}
        if url is None:
            return {"type": "file", "file_id": media.file_id}
        return without_none(type="document_url", document_url=url, document_name=media.name)

    def assistant(self, turn: Turn) -> dict[str, Any]:
        """A message of the assistant, with its thinking in the content."""
        chunks, calls, members = Chunks(), list[dict[str, Any]](), dict[str, Any]()
        for each in turn.parts:
            part = each.native or each if isinstance(each, Media) else each
            match part:
                case ToolCall():
                    calls.append(chat.write_call(part))
                case Aside() if part.type.startswith("delta."):
                    members[part.type.removeprefix("delta.")] = part.raw
                case Aside():
                    if not chunks.aside(part):
                        self.report.lose(part.kind, what=part.type)
                case Reasoning():
                    chunks.think(part.text, None if part.signature is None else part.signature.blob, part.extras)
                case _:
                    chunks.add(self.part(part))
            if calls and not isinstance(part, ToolCall | Aside):
                self.report.lose("block_order")
        message = {"role": "assistant", "content": chunks.content or (None if calls else ""), **members}
        return chat.named(message | without_none(tool_calls=calls or None), turn)
