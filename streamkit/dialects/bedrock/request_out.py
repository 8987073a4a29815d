"""The neutral conversation to Bedrock's Converse requests: messages, options, tools, the choice among them.

Messages. Roles must alternate, so neighbours of one role are joined, and the results of calls come first in the one message
behind them. A system's message in the middle goes to the top, unless the request was read in this dialect. Blank texts, which
the server refuses, are left out. Most models want the user to speak first. Documents must have names, each its own, of few
characters. Media at a URL are taken from S3 alone.

Reasoning goes back if Claude signed it, here or elsewhere, and the model may be Claude. Most models refuse any other: it is
left out, unless the request was read in this dialect and nobody signed it.

What only Claude takes (how to think, no parallel calls) stands in ``additionalModelRequestFields`` where the model's id says
Claude, and is a loss for other models. The model and whether to stream are in the URL.

A choice that this dialect lacks (some of the tools) is refused, or imitated if the target says so. For ``none`` no tools are
offered, except those that the history calls: the server demands their definitions.

Source: dialects.md §6.1, §7.3, §7.4; seeds.md S2; botocore's model of ``DocumentBlock``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, Final, TypeAlias

import orjson
from attrs import define, field

from streamkit.conversation.messages import (
    CacheMark,
    Extras,
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
)
from streamkit.dialects.bedrock.asides import BedrockBlocks, text_block
from streamkit.dialects.bedrock.wire import (
    CACHE_POINTS,
    FORMATS,
    INFERENCE,
    MEMBERS,
    SAME_TYPES,
    SERVICE_TIERS,
    SIGNER,
    TOOLS,
    VENDOR,
)
from streamkit.dialects.bodies.claude_requests import NO_PARAMETERS, ClaudeRequestWriter
from streamkit.dialects.bodies.request_writer import add_missing, asked_effort, media_type_of, without_none
from streamkit.dialects.members.values import is_base64
from streamkit.dialects.profiles import Target
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport

Block: TypeAlias = dict[str, Any]
#: Media that may stand in a tool's result.
IN_RESULTS: Final = frozenset({"image", "document", "video"})
#: What a document's name may not have, and how long it may be.
UNFIT: Final = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
NAME_CHARS: Final = 200
#: Room in a name for a number that makes it unique: `` (100000)``.
NUMBER_CHARS: Final = 10
#: What the id of a resource has that may be any model.
NAMELESS: Final = re.compile(
    r":(?:application-inference-profile|provisioned-model|default-prompt-router|prompt-router)/"
)
#: An address that the server takes.
IN_S3: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?")
EXTENSION: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")
#: The text of the user where a document is alone: the server demands a text next to it.
ATTACHED: Final = "(A document is attached.)"
#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "output", "service_tier", "thinking", "top_k"})


@define
class Message:
    """A message whose blocks can still be moved: results stand in front."""

    role: str
    results: list[Block] = field(factory=list)
    content: list[Block] = field(factory=list)
    extras: Extras = field(factory=dict)

    def body(self) -> dict[str, Any]:
        return add_missing({"role": self.role, "content": self.results + self.content}, self.extras)


class BedrockRequestWriter(ClaudeRequestWriter):
    """Writes one request of Converse."""

    dialect = "bedrock"
    title = "Bedrock"
    vendor = VENDOR
    ids = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
    names = TOOLS.names
    #: Dialects whose marks are for the same two spans.
    same_spans = frozenset({"bedrock", "anthropic"})

    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        model = request.model
        #: Whether the model's own fields are Claude's, or those that the client wrote.
        self.claude = self.own or (model is not None and ("anthropic" in model or "claude" in model))
        self._documents: set[str] = set()  #: names that are taken
        self._numbers: dict[str, int] = {}  #: the last number behind each beginning of a name
        #: Whether the model takes what Claude signed: that of its own client, Claude, or one whose id does not say what it is.
        self.signs = self.claude or model is None or NAMELESS.search(model) is not None

    def most_marks(self) -> int | None:
        """Return 0 for a model that is not known, unless its id is an address that may be any model's."""
        model = self.request.model
        named = model is not None and NAMELESS.search(model) is None
        return 0 if named and self.model is self.unknown else super().most_marks()

    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        self.one_choice(self.title)
        system, messages = self._conversation()
        if not messages and not self.own:
            self.system_speaks("messages", "Bedrock needs a message", words=bool(system))
            system, messages = [], [Message("user", content=system)]
        choice = request.tool_choice
        thinking = self._claudes_thinking(options.thinking, choice, messages)
        choice = self.with_thinking(choice, thinking)
        tools, choice = self._tools(choice)
        tier = self.service_tier(options.service_tier, SERVICE_TIERS)
        if options.top_k is not None and not self.claude:
            self.lose("parameter", "top_k")
        model = without_none(
            thinking=thinking,
            top_k=options.top_k if self.claude else None,
            tool_choice=self._parallel(choice) if tools else None,
        )
        body = without_none(
            messages=[message.body() for message in messages],
            system=system or None,
            inferenceConfig=self.options(self._inference(), BESIDE) or None,
            toolConfig=without_none(tools=tools, toolChoice=self._choice(choice, model)) if tools else None,
            additionalModelRequestFields=model or None,
            outputConfig=without_none(effort=self._effort(options.thinking), textFormat=self._format_of(options.output))
            or None,
            serviceTier=tier and {"type": tier},
        )
        return add_missing(body, self.request_extras())

    # -- messages --------------------------------------------------------------------------------------------------

    def _conversation(self) -> tuple[list[Block], list[Message]]:
        turns = [self._message(turn) for turn in self.request.turns]
        written = [message for message in turns if message.results or message.content]
        leading = len(list(takewhile(lambda message: message.role == "system", written)))
        system = [block for message in written[:leading] for block in message.content]
        messages = written[leading:]
        if not self.own:
            for message in messages:
                if message.role == "system":
                    self.lose("system_place")
                    system += message.content
            messages = [message for message in messages if message.role != "system"]
        runs = groupby(messages, key=lambda message: message.role)
        joined = [self._joined(run) for _, run in runs]
        for message in () if self.own else joined:
            is_alone = not any("text" in block or "guardContent" in block for block in message.content)
            if is_alone and any("document" in block for block in message.content):  # else the server refuses it
                message.content.append({"text": ATTACHED})
                self.report.repair("text_added")
        if (text := self.opening(joined[0].role if joined else None, "messages")) is not None:
            joined.insert(0, Message("user", content=[{"text": text}]))
        return system, joined

    def _joined(self, run: Iterator[Message]) -> Message:
        """Neighbours of one role as one. Results and what follows them are two turns in some dialects, which is no repair."""
        whole = next(run)
        extras = dict(whole.extras)
        for message in run:
            if whole.content and message.content:
                self.report.repair("turns_joined")
            for block in message.results:
                if whole.content and "toolResult" in block:
                    self.report.repair("result_moved")
            whole.results += message.results
            whole.content += message.content
            for name, value in message.extras.items():
                extras.setdefault(name, value)
        whole.extras = extras
        return whole

    def _message(self, turn: Turn) -> Message:
        self.count_turn(turn)
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        in_front = len(list(takewhile(lambda part: isinstance(part, ToolResult), turn.parts)))
        for _ in results[in_front:]:
            self.report.repair("result_moved")
        others = [part for part in turn.parts if not isinstance(part, ToolResult)]
        return Message(
            turn.role, self._blocks(results, turn.role), self._blocks(others, turn.role), self.extras(turn.extras)
        )

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _blocks(self, parts: Iterable[Part], place: str) -> list[Block]:
        blocks = BedrockBlocks(self.report)
        for part in parts:
            if isinstance(part, Text | Refusal):
                written = self._text(part, blocks, place)
            elif isinstance(part, Aside):
                written = self.aside(part)
                if written:
                    blocks.aside(part)
            else:
                block = self._block(part, place)
                written = block is not None
                if block is not None:
                    blocks.add(block)
            if isinstance(part, Text | Media | ToolCall | ToolResult) and part.cache is not None:
                if written and place != "toolResult":  # there is none within a tool's result
                    blocks.add(self._cache_point(part.cache, part.cache))
                else:
                    self.lose("cache_mark", part.cache)
        return blocks.finish()

    def _cache_point(self, mark: CacheMark, what: str) -> Block:
        """The block that marks ``what``, behind it. A mark that is for another span of time is a loss."""
        shorter = mark == "long" and self.model.cache_marks == "short" and not self.own
        if shorter or self.request.dialect not in self.same_spans:
            self.lose("cache_mark", what)
        mark = "short" if shorter else mark
        return {"cachePoint": dict(CACHE_POINTS[mark])}

    def _text(self, part: Text | Refusal, blocks: BedrockBlocks, place: str) -> bool:
        """Add a text; False for a blank one, which is left out."""
        signature = part.signature if isinstance(part, Text) else None
        self.lose_signature(signature)
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        if not part.text.strip():
            if signature is None:
                self.report.repair("turn_empty")
            return False
        extras = dict(self.extras(part.extras))
        if extras.pop("json", False) and place == "toolResult" and _is_json(part.text):
            blocks.add({"json": orjson.Fragment(part.text)})
        else:
            blocks.add_text(text_block(part.text, extras), part.block)
        return True

    def _block(self, part: Part, place: str) -> Block | None:
        """A part as a block; None for what the dialect can't carry there."""
        match part:
            case Media():
                return self._media(part, place)
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case Reasoning():
                return self._reasoning(part)
            case RedactedReasoning():
                if part.opaque.vendor == SIGNER and self.signs and is_base64(part.opaque.blob):
                    return {"reasoningContent": {"redactedContent": part.opaque.blob}}
                self.lose("reasoning_opaque", part.opaque.vendor)
                return None
        raise TypeError(f"a message has no {type(part).__name__}")

    def _reasoning(self, part: Reasoning) -> Block | None:
        vendor = part.signature.vendor if part.signature is not None else None
        if (vendor == SIGNER and self.signs) or (vendor is None and self.own):
            thought = without_none(text=part.text, signature=part.signature.blob if part.signature else None)
            return {"reasoningContent": {"reasoningText": add_missing(thought, self.extras(part.extras))}}
        self.lose_reasoning(part)
        return None

    def _call(self, call: ToolCall) -> Block:
        self.lose_signature(call.signature)
        use = {
            "toolUseId": self.call_id(call.id),
            "name": self.tool_name(call.name),
            "input": self.object_arguments(call),
        }
        return {"toolUse": add_missing(use, self.extras(call.extras))}

    def _result(self, result: ToolResult) -> Block:
        written = without_none(
            toolUseId=self.call_id(result.call_id),
            content=self._blocks(result.parts, "toolResult"),
            status="error" if result.is_error else None,
        )
        return {"toolResult": add_missing(written, self.extras(result.extras))}

    # -- media -----------------------------------------------------------------------------------------------------

    def _media(self, media: Media, place: str) -> Block | None:
        member = MEMBERS[media.kind]
        allowed = self.own or place == "user" or (place == "toolResult" and member in IN_RESULTS)
        source = self._source(media) if allowed else None
        form = self._format(media, member)
        if source is None or (form is None and not (self.own and member == "document")):
            self.lose("media", media.media_type or media.kind)
            return None
        self.lose_of_media(media, name=member != "document")
        name = self._document_name(media.name) if member == "document" else None
        return {member: add_missing(without_none(format=form, name=name, source=source), self.extras(media.extras))}

    def _source(self, media: Media) -> dict[str, Any] | None:
        if media.data is not None:
            return {"bytes": media.data}
        if media.url is not None and (IN_S3.fullmatch(media.url) or (self.own and media.url.startswith("s3://"))):
            return {"s3Location": {"uri": media.url}}
        return None

    def _format(self, media: Media, member: str) -> str | None:
        """Return the format of media: by its type, or by the end of its address where it has none."""
        if media.media_type is None and media.url is not None and not self.own:
            ending = media.url.rpartition(".")[2].lower()
            return ending if ending in FORMATS[member].values() else {"jpg": "jpeg"}.get(ending)
        kind = media.media_type if self.own and member == "document" else media_type_of(media)
        if kind is None:
            return None
        kind = kind.partition(";")[0].strip().lower()
        form = FORMATS[member].get(SAME_TYPES.get(kind, kind))
        return kind.partition("/")[2] if form is None and self.own else form

    def _document_name(self, name: str | None) -> str:
        """A name as the server takes it, and that no other document of the request has: the same at every request."""
        if self.own and name is not None:
            return name
        plain = EXTENSION.sub("", name or "")
        kept = " ".join(UNFIT.sub(" ", plain).split())[:NAME_CHARS].strip()
        if kept != plain:
            self.lose("metadata", f"name {name}")
        kept = kept or "document"
        fit, beginning = kept, kept[: NAME_CHARS - NUMBER_CHARS]
        while fit in self._documents:
            number = self._numbers[beginning] = self._numbers.get(beginning, 1) + 1
            ordinal = f" ({number})"
            fit = kept[: NAME_CHARS - len(ordinal)] + ordinal
        self._documents.add(fit)
        return fit

    # -- options ---------------------------------------------------------------------------------------------------

    def _inference(self) -> Mapping[str, str]:
        """The options that stand in ``inferenceConfig``; a temperature must be in the dialect's range, 0 to 1."""
        temperature = self.request.options.temperature
        if self.own or temperature is None or temperature <= 1:
            return INFERENCE
        return {name: word for name, word in INFERENCE.items() if name != "temperature"}

    def _claudes_thinking(
        self, thinking: Thinking | None, choice: ToolChoice | None, messages: Sequence[Message]
    ) -> dict[str, Any] | None:
        if self.claude or thinking is None:
            return self.thinking(thinking, choice, unsigned=_continues_unsigned(messages))
        self.lose_thinking(thinking, "budget_tokens", "enabled", "summary")
        return None

    def _effort(self, thinking: Thinking | None) -> str | None:
        if self.claude:
            return self.effort(thinking)
        effort = self.fit_effort(asked_effort(thinking))
        if effort != "none":
            return effort
        self.lose("parameter", "thinking.effort")  # the server has no word for it
        return None

    def _format_of(self, output: OutputFormat | None) -> dict[str, Any] | None:
        form = self.schema_form(output)
        if form is None:
            return None
        definition = without_none(
            schema=orjson.dumps(form.schema).decode(), name=form.name, description=form.description
        )
        return {"type": "json_schema", "structure": {"jsonSchema": definition}}

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tools(self, choice: ToolChoice | None) -> tuple[list[Block], ToolChoice | None]:
        offered: Sequence[Tool] = self.request.tools
        if choice is not None:
            self.extras(choice.extras, "tool_choice")
        if choice is not None and choice.mode == "none":
            if offered:
                self.lose("tool_choice", "none")
            offered, choice = (), None
        else:
            offered, choice = self.narrowed(choice)
        written = [block for tool in offered for block in self._tool(tool)]
        if choice is not None and choice.mode == "required" and not written:
            raise BadRequest("tool_choice", "a tool must be called, and there is none")
        nothing = {"json": dict(NO_PARAMETERS)}
        return written or [{"toolSpec": {"name": name, "inputSchema": nothing}} for name in self.called_tools()], choice

    def _tool(self, tool: Tool) -> list[Block]:
        """A definition, and its mark; nothing for a tool that another dialect's provider runs itself."""
        if tool.kind == "server":
            hosted = self.hosted(tool)
            return [] if hosted is None else self._marked(hosted, tool)
        tool = self.function(tool)
        spec = without_none(
            name=self.tool_name(tool.name),
            description=tool.description or None,
            inputSchema={"json": tool.parameters},
            strict=tool.strict,
        )
        return self._marked({"toolSpec": add_missing(spec, self.extras(tool.extras))}, tool)

    def _marked(self, written: Block, tool: Tool) -> list[Block]:
        return [written] if tool.cache is None else [written, self._cache_point(tool.cache, tool.name)]

    def _choice(self, choice: ToolChoice | None, model: Mapping[str, Any]) -> dict[str, Any] | None:
        """``toolChoice``; ``auto``, the default, is left out where Claude's own ``tool_choice`` has it."""
        if choice is None:
            return None
        if choice.mode == "required":
            return {"tool": {"name": self.tool_name(choice.names[0])}} if choice.names else {"any": {}}
        return None if "tool_choice" in model else {"auto": {}}

    def _parallel(self, choice: ToolChoice | None) -> dict[str, Any] | None:
        """Claude's own ``tool_choice``, which has its type only where ``toolChoice`` does not say it: else it is refused."""
        if choice is None or choice.parallel is None or (choice.parallel and not self.own):
            return None
        if not self.claude:
            self.lose("tool_choice", "parallel")
            return None
        kind = "auto" if choice.mode == "auto" else None
        return without_none(type=kind, disable_parallel_tool_use=not choice.parallel)


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _continues_unsigned(messages: Sequence[Message]) -> bool:
    """Whether the answer goes on with a turn that called tools and does not begin with thinking."""
    if not messages or not messages[-1].results:
        return False
    before = next((message for message in reversed(messages) if message.role == "assistant"), None)
    return before is not None and "reasoningContent" not in before.content[0]
