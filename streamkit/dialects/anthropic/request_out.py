"""The neutral conversation to Anthropic's requests: messages, options, tools, the choice among them.

Messages. Turns become blocks, and are arranged then: results come first in the one message behind their calls. Empty texts
(quirks.md 81), and white space that is all of a message, are refused by the server and left out. Requests read in this
dialect keep their messages. Of other dialects, neighbours of one role are joined, since servers that imitate this one want
roles to alternate, and a system's message in the middle stays only behind the user's last word, in front of the assistant's
or at the end; elsewhere it goes to the top. Thinking goes back if Anthropic signed it, and is left out otherwise.

Options. The bound on the answer, which is demanded, is the target's where the request has none. Sampling parameters are
refused since API version 2026-10-21: those of another dialect's request are written only for a provider that says it is
older. A choice that this dialect lacks is refused, or imitated if the target says so. How much to think stands in an effort
and in ``thinking`` (``bodies/claude_requests.py``).

Compaction. The edit ``compact_20260112`` summarises once the input is long; a request with ``compaction`` is answered by the
summary alone, and refuses what only shapes a reply, other edits included. Each is a beta of its own, and so is a block of
such a summary in the history.

Source: dialects.md §3.0, §3.2, §7.3, §7.4; seeds.md S2; anthropic 2.12, ``BetaCompact20260112EditParam`` and its tool runner;
Anthropic, "Compaction", for the least trigger and the models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import (
    CacheMark,
    Compaction,
    Media,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    WebSearch,
)
from streamkit.dialects.anthropic.asides import AnthropicBlocks
from streamkit.dialects.anthropic.wire import (
    EDIT,
    IMAGE_TYPES,
    SAMPLING,
    SERVICE_TIERS,
    SUMMARIZE,
    TOOLS,
    VENDOR,
    WEB_SEARCH,
    WITHOUT_SAMPLING,
    AnthropicProvider,
    version_of,
)
from streamkit.dialects.bodies.blocks_as_text import decoded_text
from streamkit.dialects.bodies.claude_requests import CACHE_CONTROLS, NO_PARAMETERS, ClaudeRequestWriter
from streamkit.dialects.bodies.message_order import Block, Message, joined, results_first
from streamkit.dialects.bodies.request_writer import add_missing, is_blank, media_type_of, plain_or_list, without_none
from streamkit.dialects.vocabulary.web_search import location_out
from streamkit.events import Aside

#: The search of the web that every version of the server has.
SEARCH_TYPE: Final = f"{WEB_SEARCH}20250305"
SEARCH_NAME: Final = "web_search"
#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "compaction", "max_tokens", "output", "service_tier", "stop", "thinking", "user"})
#: The values of ``anthropic-beta`` without which the server refuses an edit, and a summary alone.
EDIT_BETA, SUMMARY_BETA = "compact-2026-01-12", "compact-2026-09-04"
#: A trigger may not be less.
LEAST_TRIGGER: Final = 50_000


def features_of(request: Request) -> dict[str, str]:
    """The headers without which the server refuses what a request of another dialect becomes."""
    compaction = request.options.compaction
    betas = [] if compaction is None else [SUMMARY_BETA if compaction.now else EDIT_BETA]
    parts = [part for turn in request.turns for part in turn.parts]
    summaries = [part.item for part in parts if isinstance(part, Text) and part.item is not None]
    betas += [SUMMARY_BETA if summary.get("signature") else EDIT_BETA for summary in summaries]
    return {"anthropic-beta": ",".join(dict.fromkeys(betas))} if betas else {}


class AnthropicRequestWriter(ClaudeRequestWriter):
    """Writes one request: the messages first, since their blocks decide about thinking and tools."""

    dialect = "anthropic"
    title = "Anthropic"
    vendor = VENDOR
    ids = re.compile(r"[A-Za-z0-9_-]+")
    names = TOOLS.names
    users = re.compile(r"[^@]{1,256}")  # addresses are refused
    search_options = frozenset({"max_uses", "allowed_domains", "blocked_domains", "location"})

    @property
    def checks_ids(self) -> bool:
        """Of Claude's too: a client that changed its model has the ids of the one before (``Bash:0``), by a gateway."""
        return not self.own or "claude" in (self.request.model or "").lower()

    def request_body(self) -> dict[str, Any]:
        compaction = self._compacting()
        request, options = self.request, self.request.options
        self.one_choice(self.title)
        system, messages = self._conversation()
        if not messages and not self.own:
            self.system_speaks("messages", "Anthropic needs a message", words=bool(system))
            system, messages = [], [Message("user", system)]
        offered, choice = self.narrowed(request.tool_choice)
        thinking = self.thinking(options.thinking, choice, unsigned=_continues_unsigned(messages))
        choice = self.with_thinking(choice, thinking)
        tools = [written for tool in offered if (written := self._tool(tool)) is not None]
        if not tools and not self.own and (called := self.called_tools()):
            tools = [{"name": name, "input_schema": dict(NO_PARAMETERS)} for name in called]
            choice = ToolChoice("none")
        body = without_none(
            model=request.model,
            max_tokens=self._max_tokens(thinking),
            system=plain_or_list(system) or None,
            messages=[
                add_missing({"role": message.role, "content": plain_or_list(message.blocks)}, message.extras)
                for message in messages
            ],
            tools=tools or None,
            tool_choice=self._choice(choice, tools),
            thinking=thinking,
            output_config=self._output_config(options.thinking, options.output),
            stop_sequences=list(options.stop) or None,
            metadata=None if options.user is None else {"user_id": options.user},
            service_tier=self.service_tier(options.service_tier, SERVICE_TIERS),
            stream=request.stream,
        )
        body |= compaction | self.options({name: name for name in self._sampling()}, BESIDE)
        body = add_missing(body, self.request_extras())
        provider = self.target.provider
        if isinstance(provider, AnthropicProvider) and provider.model_in_path:
            body.pop("model", None)
            body["anthropic_version"] = provider.api_version
        return body

    # -- messages --------------------------------------------------------------------------------------------------

    def _conversation(self) -> tuple[list[Block], list[Message]]:
        """The system's blocks, and the messages."""
        written = [message for turn in self.request.turns if (message := self._message(turn)).blocks]
        leading = len(list(takewhile(lambda message: message.role == "system", written)))
        system = [block for message in written[:leading] for block in message.blocks]
        if self.own:
            messages = written[leading:]
        else:
            placed = [message for run in _runs(written[leading:]) for message in self._placed(run, system)]
            runs = groupby(placed, key=lambda message: message.role)
            messages = [joined(list(same), _is_result, self.report) for _, same in runs]
        return system, [message for run in _runs(messages) for message in results_first(run, _is_result, self.report)]

    def _message(self, turn: Turn) -> Message:
        self.count_turn(turn)
        return Message(turn.role, self._blocks(turn.parts, turn.role), self.extras(turn.extras))

    # -- the order of messages -------------------------------------------------------------------------------------

    def _placed(self, run: Sequence[Message], system: list[Block]) -> list[Message]:
        """The messages between two of the assistant, the user's before the system's; the rest goes to the top."""
        users = [message for message in run if message.role != "system"]
        behind = list(takewhile(lambda message: message.role == "system", reversed(run)))[::-1] if users else []
        for message in run[: len(run) - len(behind)]:
            if message.role == "system":
                self.lose("system_place")
                system += message.blocks
        return [*users, *behind]

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _blocks(self, parts: Iterable[Part], role: str) -> list[Block]:
        blocks = AnthropicBlocks(self.report)
        parts = list(parts)
        alone = all(map(is_blank, parts))
        for part in parts:
            match part:
                case Text(item=item) if item is not None:  # a compaction, whoever sent it back
                    blocks.add(dict(item))
                case Text() | Refusal():
                    self._text(part, blocks, alone=alone)
                case Aside():
                    if self.aside(part):
                        blocks.aside(part)
                case _:
                    if (block := self._block(part, role)) is not None:
                        cache = self._cache(getattr(part, "cache", None))
                        blocks.add(add_missing(block | cache, self.extras(part.extras)))
        return blocks.finish()

    def _block(self, part: Reasoning | RedactedReasoning | Media | ToolCall | ToolResult, role: str) -> Block | None:
        match part:
            case Media():
                return self._media(part, role)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case _:
                return self._thought(part)

    def _text(self, part: Text | Refusal, blocks: AnthropicBlocks, *, alone: bool) -> None:
        """Add a text; ``alone``: whether there is nothing but white space in the message."""
        block = {"type": "text", "text": part.text}
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        else:
            self.lose_signature(part.signature)
        if part.text and not alone:
            cache = self._cache(part.cache) if isinstance(part, Text) else {}
            blocks.add_text(add_missing(block | cache, self.extras(part.extras)), part.block)
            return
        self.lose_cache(getattr(part, "cache", None))
        if isinstance(part, Refusal) or part.signature is None:
            self.report.repair("turn_empty")

    def _thought(self, part: Reasoning | RedactedReasoning) -> Block | None:
        """Reasoning that Anthropic made; None for any other, which its server refuses."""
        if isinstance(part, RedactedReasoning):
            if part.opaque.vendor == VENDOR:
                return {"type": "redacted_thinking", "data": part.opaque.blob}
            self.lose("reasoning_opaque", part.opaque.vendor)
            return None
        if part.signature is not None and part.signature.vendor == VENDOR:
            return {"type": "thinking", "thinking": part.text, "signature": part.signature.blob}
        self.lose_reasoning(part)
        return None

    def _call(self, call: ToolCall) -> Block:
        self.lose_signature(call.signature)
        return {
            "type": "tool_use",
            "id": self.call_id(call.id),
            "name": self.tool_name(call.name),
            "input": self.object_arguments(call),
        }

    def _result(self, result: ToolResult) -> Block:
        blocks = self._blocks(result.parts, "tool_result")
        return without_none(
            type="tool_result",
            tool_use_id=self.call_id(result.call_id),
            content=plain_or_list(blocks) if blocks else None,
            is_error=result.is_error or None,
        )

    def _cache(self, mark: CacheMark | None) -> dict[str, Any]:
        """The mark of a part or tool; the spans of other vendors are not the same."""
        if mark is None:
            return {}
        if not self.own:
            self.lose("cache_mark", mark)
        return {"cache_control": dict(CACHE_CONTROLS[mark])}

    # -- media -----------------------------------------------------------------------------------------------------

    def _media(self, media: Media, role: str) -> Block | None:
        """An image or a document; None for what the dialect can't carry there."""
        allowed = self.own or role in {"user", "tool_result"}  # none of the assistant's (dialects.md §3.0)
        source = self._source(media) if allowed else None
        if source is None:
            self.lose("media", media.media_type or media.kind)
            return None
        self.lose_of_media(media, name=media.kind == "image")
        if media.kind == "file":
            return without_none(type="document", source=source, title=media.name)
        return {"type": "image", "source": source}

    def _source(self, media: Media) -> dict[str, Any] | None:
        if media.kind not in {"image", "file"}:
            return None
        if media.data is not None:
            return self._data(media, media.data)
        if media.url is not None:
            known = media.kind == "image" or media.media_type in {None, "application/pdf"}
            return {"type": "url", "url": media.url} if known else None
        if media.file_id is not None and self.own:  # another provider's ids mean nothing here
            return {"type": "file", "file_id": media.file_id}
        return None

    def _data(self, media: Media, data: str) -> dict[str, Any] | None:
        kind = media_type_of(media)
        known = kind in IMAGE_TYPES if media.kind == "image" else kind == "application/pdf"
        if known or (self.own and kind != "text/plain"):
            return {"type": "base64", "media_type": kind, "data": data}
        text = decoded_text(data) if media.kind == "file" and kind.startswith("text/") else None
        if text is None:
            return None
        if kind != "text/plain":
            self.lose("metadata", kind)
        return {"type": "text", "media_type": "text/plain", "data": text}

    # -- options ---------------------------------------------------------------------------------------------------

    def _compacting(self) -> dict[str, Any]:
        """The members that ask for a summary in place of the conversation, where the model makes any."""
        compaction = self.request.options.compaction
        if compaction is None or self.own:
            return {} if compaction is None else dict(compaction.native or _compaction_members(compaction))
        if not self.model.compacts:
            self.lose("parameter", "compaction")
            return {}
        if compaction.now:
            self._without_reply(compaction)
        elif compaction.threshold is not None and compaction.threshold < LEAST_TRIGGER:
            self.lose("parameter", "compaction.threshold")
        return _compaction_members(compaction)

    def _without_reply(self, compaction: Compaction) -> None:
        """Leave out what only shapes a reply: beside a request for nothing but a summary the server refuses it."""
        request, options = self.request, self.request.options
        shaping = {
            "compaction.threshold": compaction.threshold is not None,
            "stop": bool(options.stop),
            "output": options.output is not None and options.output.kind != "text",
        }
        for name in (name for name, is_asked in shaping.items() if is_asked):
            self.lose("parameter", name)
        forced = request.tool_choice is not None and request.tool_choice.mode == "required"
        if forced:
            self.lose("tool_choice", "required")
        options = evolve(options, stop=(), output=None)
        self.request = evolve(request, options=options, tool_choice=None if forced else request.tool_choice)

    def _max_tokens(self, thinking: Mapping[str, Any] | None) -> int:
        """The bound; the target's is one on the answer, so what may be thought comes on top."""
        bound = self.request.options.max_tokens
        if bound is not None:
            return bound
        return self.target.max_tokens + ((thinking or {}).get("budget_tokens") or 0)

    def _sampling(self) -> Sequence[str]:
        """The sampling parameters that are written; a temperature must be in this vendor's range."""
        if self.own:
            return SAMPLING
        if version_of(self.target.provider) >= WITHOUT_SAMPLING:
            return ()
        temperature = self.request.options.temperature
        return SAMPLING if temperature is None or temperature <= 1 else SAMPLING[1:]

    def _output_config(self, thinking: Thinking | None, output: OutputFormat | None) -> dict[str, Any] | None:
        effort, form = self.effort(thinking), self.schema_form(output, "name", "description")
        return without_none(effort=effort, format=form and {"type": "json_schema", "schema": form.schema}) or None

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if tool.kind == "server":
            return self.hosted(tool)
        tool = self.function(tool)
        written = without_none(
            name=self.tool_name(tool.name),
            description=tool.description,
            input_schema=tool.parameters,
            strict=tool.strict,
        )
        return add_missing(written | self._cache(tool.cache), self.extras(tool.extras))

    def can_search(self, tool: Tool) -> bool:
        """Whether a tool is a search; no other tool may have its name."""
        return super().can_search(tool) and SEARCH_NAME not in self.functions

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        allowed, blocked = list(search.allowed_domains), list(search.blocked_domains)
        if allowed and blocked:  # the server takes one of them, and what is allowed is narrower
            self.lose("parameter", "web_search.blocked_domains")
            blocked = []
        return without_none(
            type=SEARCH_TYPE,
            name=SEARCH_NAME,
            max_uses=search.max_uses,
            allowed_domains=allowed or None,
            blocked_domains=blocked or None,
            user_location=location_out(search),
        )

    def _choice(self, choice: ToolChoice | None, tools: Sequence[Any]) -> dict[str, Any] | None:
        if choice is None:
            return None
        self.extras(choice.extras, "tool_choice")
        if not tools and not self.own and choice.mode != "required":
            return None  # a choice without tools is refused, and this one changes nothing
        parallel = choice.parallel if self.own or choice.parallel is False else None
        serial = None if parallel is None or (choice.mode == "none" and not self.own) else not parallel
        name = None
        kind = {"required": "any"}.get(choice.mode, choice.mode)
        if choice.mode == "required" and choice.names:
            kind, chosen = "tool", choice.names[0]
            name = SEARCH_NAME if self.is_search(chosen) else self.tool_name(chosen)
        return without_none(type=kind, name=name, disable_parallel_tool_use=serial)


def _runs(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """The messages of the assistant, and those between, in turn."""
    for _, run in groupby(messages, key=lambda message: message.role == "assistant"):
        yield list(run)


def _is_result(block: Block) -> bool:
    return block.get("type") == "tool_result"


def _continues_unsigned(messages: Sequence[Message]) -> bool:
    """Whether the answer goes on with a turn that called tools and does not begin with thinking."""
    if len(messages) < 2 or messages[-1].role != "user":
        return False
    if not any(block["type"] == "tool_result" for block in messages[-1].blocks):
        return False
    before = next((message for message in reversed(messages) if message.role == "assistant"), None)
    return before is not None and before.blocks[0]["type"] not in {"thinking", "redacted_thinking"}


def _compaction_members(compaction: Compaction) -> dict[str, Any]:
    if compaction.now:
        return {"compaction": without_none(type=SUMMARIZE, instructions=compaction.instructions)}
    tokens = compaction.threshold
    edit = without_none(
        type=EDIT,
        trigger=None if tokens is None else {"type": "input_tokens", "value": max(tokens, LEAST_TRIGGER)},
        pause_after_compaction=compaction.pause or None,
        instructions=compaction.instructions,
    )
    return {"context_management": {"edits": [edit]}}
