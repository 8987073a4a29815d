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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.media_types import data_uri
from streamkit.dialects.bodies.request_writer import NO_PROPERTIES, asked_effort
from streamkit.dialects.bodies.tool_choice import chosen_of
from streamkit.dialects.mistral.encode import Chunks
from streamkit.dialects.mistral.wire import OPTIONS, SERVICE_TIERS, VENDOR
from streamkit.dialects.openai_chat.providers import PLAIN, ChatProvider
from streamkit.dialects.openai_chat.request_out import ChatRequestWriter
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import COMMON
from streamkit.events import Aside, Opaque
from streamkit.text.identifiers import NINE

#: The assistant's text between results and a text of the user, where the server demands one.
BRIDGE: Final = "OK."


class MistralRequestWriter(ChatRequestWriter):
    """Writes one request."""

    dialect = "mistral"
    unknown = evolve(UNKNOWN, efforts=("none", *COMMON))
    vendor = VENDOR
    ids = NINE
    users = None  # there is no such member
    models = ""
    most_stops = None
    text_files: ClassVar[bool] = True
    relatives: ClassVar[frozenset[str]] = frozenset({"mistral"})
    unnamed: ClassVar[ChatProvider] = PLAIN
    media_in_results: ClassVar[bool] = True
    option_names: ClassVar[Mapping[str, str]] = OPTIONS
    tiers: ClassVar[frozenset[str]] = frozenset(SERVICE_TIERS)
    search_options: ClassVar[frozenset[str] | None] = None

    def stream_usage(self) -> dict[str, Any]:
        """Nothing: no member asks for token counts."""
        return {}

    # -- options ---------------------------------------------------------------------------------------------------

    def top_k(self, top_k: int) -> dict[str, Any]:
        return {"top_k": top_k}

    def thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        """How much to think, as an effort: ``high`` or ``none`` where only whether to think was asked."""
        if thinking is None:
            return {}
        self.lose_thinking(thinking, "budget_tokens", "summary")
        effort = asked_effort(thinking)
        if effort is None and thinking.enabled is not None:
            effort = "high" if thinking.enabled else "none"
        return without_none(reasoning_effort=self.fit_effort(effort))

    # -- tools -----------------------------------------------------------------------------------------------------

    def offered(self) -> Sequence[Tool]:
        """The tools that may be called, of which a named one is chosen by its name."""
        tools, choice = self.request.tools, self.request.tool_choice
        is_named = choice is not None and _is_named(choice)
        return tools if is_named else chosen_of(tools, choice)

    def tool(self, tool: Tool) -> dict[str, Any] | None:
        if tool.kind == "function" and tool.parameters is None:
            tool = evolve(tool, parameters=dict(NO_PROPERTIES))
        return super().tool(tool)

    def tool_choice(self, choice: ToolChoice | None) -> dict[str, Any]:
        """Which tools may or must be called: one by its name, or ``any`` of those that are offered."""
        if choice is not None and not _is_named(choice):
            choice = evolve(choice, names=())
        body = super().tool_choice(choice)
        return {**body, "tool_choice": "any"} if body.get("tool_choice") == "required" else body

    @property
    def functions_only(self) -> bool:
        """Whether the server knows no custom tools: always."""
        return True

    # -- the order of messages -------------------------------------------------------------------------------------

    def messages(self) -> Iterable[dict[str, Any]]:
        """The messages, those of a request of another dialect in the order that the server wants."""
        messages = super().messages()
        return messages if self.own else self._in_order(messages)

    def _in_order(self, messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        front: list[dict[str, Any]] = []  # what the system says
        placed: list[dict[str, Any]] = []
        for message in messages:
            before = placed[-1]["role"] if placed else ""
            match message["role"]:
                case "system" if not placed:
                    front.append(message)
                    continue
                case "system" if before in {"assistant", "tool"}:
                    self.lose("system_place")
                    front.append(message)
                    continue
                case "user" if before == "tool":
                    self.report.repair("turn_added")
                    placed.append({"role": "assistant", "content": BRIDGE})
            placed.append(message)
        if placed and placed[-1]["role"] == "assistant" and "tool_calls" not in placed[-1]:
            placed[-1]["prefix"] = True
        yield from front
        yield from placed

    def message_of(self, turn: Turn, parts: Sequence[Part]) -> dict[str, Any]:
        return {**super().message_of(turn, parts), "role": turn.role}

    def named(self, message: dict[str, Any], turn: Turn) -> dict[str, Any]:
        """A message with the name and the extras of its turn; names of another dialect's turns have no place."""
        if turn.name is not None and not self.own:
            self.lose("turn_name", turn.name)
            turn = evolve(turn, name=None)
        return super().named(message, turn)

    # -- content ---------------------------------------------------------------------------------------------------

    def part(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
            part = Text(part.text, extras=part.extras)
        if isinstance(part, Text):
            self.lose_signature(part.signature)
            if not part.text and not self.own:
                return None
        return super().part(part)

    def media(self, media: Media) -> dict[str, Any] | None:
        url = data_uri(media) if media.data is not None else media.url
        if not self.own and url is not None and not url.startswith(("data:", "http:", "https:")):
            return None
        match media.kind:
            case "image" if url is not None:
                return {"type": "image_url", "image_url": without_none(url=url, detail=self.closeness(media))}
            case "audio" if url is not None:
                bare = media.data is not None and (media.media_type is None or not self.own)
                return {"type": "input_audio", "input_audio": media.data if bare else url}
            case "file" if url is not None:
                return without_none(type="document_url", document_url=url, document_name=media.name)
            case "file" if media.file_id is not None and self.own:
                return {"type": "file", "file_id": media.file_id}
        return None

    # -- the assistant's messages ----------------------------------------------------------------------------------

    def assistant(self, turn: Turn) -> dict[str, Any]:
        chunks = Chunks()
        calls: list[dict[str, Any]] = []
        members: dict[str, Any] = {}
        for part in turn.parts:
            is_written = False  # into the content
            match part:
                case ToolCall():
                    calls.append(self.call(part, None))
                case Aside():
                    self._aside(part, chunks, members)
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                case Reasoning():
                    is_written = self._think(part, chunks)
                case Media() if not self.own:
                    self.lose("media", part.kind)
                case _:
                    written = self.part(part)
                    is_written = written is not None
                    if written is not None:
                        chunks.add(written)
            if is_written and calls:
                self.lose("block_order")
        message = {"role": "assistant", "content": chunks.content or (None if calls else ""), **members}
        if calls:
            message["tool_calls"] = calls
        return self.named(message, turn)

    def _think(self, part: Reasoning, chunks: Chunks) -> bool:
        """Write reasoning; False where nothing is left of it."""
        signature = part.signature
        if signature is not None and signature.vendor != VENDOR:
            self.lose_signature(signature)
            signature = None
        members = self.extras(part.extras)
        if not part.text and signature is None and not self.own:
            return False
        chunks.think(part.text, None if signature is None else signature.blob, members)
        return True

    def _aside(self, part: Aside, chunks: Chunks, members: dict[str, Any]) -> None:
        """Write what only this dialect knows: a part of the content or of a thinking, or a member of the message."""
        if not self.own or part.vendor != VENDOR:
            self.lose(part.kind, part.type)
        elif part.type.startswith("delta."):
            members[part.type.removeprefix("delta.")] = part.raw
        elif not chunks.aside(part):
            self.lose(part.kind, part.type)

    def goes_back(self, _signature: Opaque) -> bool:
        """Whether the signature of a call or a text is written: never."""
        return False

    # -- calls and results -----------------------------------------------------------------------------------------

    def result(self, result: ToolResult, moved: list[Media]) -> dict[str, Any]:
        message = super().result(result, moved)
        name = result.name if self.own else self.called.get(result.call_id, result.name)
        return message if name is None else {**message, "name": self.tool_name(name)}


def _is_named(choice: ToolChoice) -> bool:
    return choice.mode == "required" and len(choice.names) == 1
