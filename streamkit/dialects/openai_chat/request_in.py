"""Read Chat requests: messages, options, tools and the tool choice.

Each message becomes one turn, but neighbouring ``tool`` messages become one user turn. The older ``function_call`` and role
``function`` are read as a tool call and its result, paired by name, with an id made from the number of the message;
``functions`` are read as tools. Several members may contain reasoning, two limit the response's tokens and two request
thinking (OpenRouter's ``reasoning`` is an object). The name of the member is remembered, so that it is written back there.

Source: dialects.md §1.3, §1.6, §7.3, §7.4 (requests of Chat and its providers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Options,
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
    Unreadable,
)
from streamkit.conversation.response_events import part_of
from streamkit.dialects.bodies import openai
from streamkit.dialects.members.fields import (
    CONTENT,
    Fields,
    TurnReader,
    content_of,
    function_tool,
    image_of,
    is_data_uri,
    media_at,
    media_of,
    read_options,
    server_tool,
    unknown_part,
    without_none,
)
from streamkit.dialects.members.values import others_of, text_of
from streamkit.dialects.openai_chat import wire
from streamkit.dialects.vocabulary.sealed_reasoning import unsealed
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import Aside, Opaque, ToolKind
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string
from streamkit.text.quoting import quoted

#: Beginnings of URLs. Some clients write a URL where OpenAI has content or an id.
ADDRESSES = ("http:", "https:", "gs:", "s3:")
CHOICES = frozenset({"function", "custom", "allowed_tools"})  #: types of ``tool_choice`` that name tools of the client
#: What only a server of OpenAI can read.
STORES: Final[Mapping[str, Any]] = {
    "data_sources": Unreadable("a data source of Azure", "send the texts that matter in the messages"),
    "tools": [{"vector_store_ids": openai.VECTOR_STORE}],
}
SPEECH: Final = Unreadable("speech by its id", "send its transcript as the content of the message")


class ChatRequestReader(TurnReader):
    """Reads one request."""

    dialect = "openai-chat"
    stores = STORES
    vendor: ClassVar[str] = wire.VENDOR

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._answered: set[str] = set()  #: the calls that the current run of results has answered
        self._custom: set[str] = set()  #: ids of calls of custom tools
        self._functions: dict[str, str] = {}  #: ids of calls in ``function_call`` without a result yet, by name
        self._model: str | None = None
        self._twins: set[str] = set()  #: ids of calls that were in both ``tool_calls`` and ``function_call``

    def begun(self, fields: Fields) -> Request:
        begun = super().begun(fields)
        self._model = begun.model
        return begun

    def stream_usage(self, fields: Fields, _stream: bool | None, /) -> bool | None:
        options = fields.fields("stream_options")
        return None if options is None else options.boolean("include_usage")

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, fields: Fields) -> Options:
        options = self.plain_options(fields, {**wire.OPTIONS, "top_k": "top_k"})
        bound = next((name for name in ("max_completion_tokens", "max_tokens") if name in fields), None)
        if bound is not None:
            options.max_tokens, options.native_max_tokens = fields.integer(bound), bound
        return options

    def plain_options(self, fields: Fields, names: Mapping[str, str]) -> Options:
        """Read the options in ``names`` (our name: the dialect's), the stop sequences, the thinking and the output format."""
        is_one = isinstance(fields.peek("stop"), str)
        stop = (fields.needed("stop"),) if is_one else fields.strings("stop")
        thinking, output = self.thinking(fields), self.output(fields)
        return read_options(fields, names, stop=stop, thinking=thinking, output=output)

    def thinking(self, fields: Fields) -> Thinking | None:
        """Read ``reasoning_effort``, or the object ``reasoning`` (OpenRouter)."""
        if reasoning := fields.fields("reasoning"):
            effort, budget = reasoning.string("effort"), reasoning.integer("max_tokens")
            excluded = reasoning.boolean("exclude")
            shown = None if excluded is None else "none" if excluded else "auto"
            return Thinking(effort, budget, reasoning.boolean("enabled"), shown, native="reasoning")
        effort = fields.string("reasoning_effort")
        return None if effort is None else Thinking(effort, native="reasoning_effort")

    def output(self, fields: Fields) -> OutputFormat | None:
        read = fields.fields_of_type("response_format", openai.OUTPUT_KINDS)
        if read is None:
            return None
        kind = openai.OUTPUT_KINDS[read.needed("type")]
        if kind != "schema":
            return OutputFormat(kind)
        schema = read.needed_fields("json_schema")
        name, description, strict = schema.string("name"), schema.string("description"), schema.boolean("strict")
        return OutputFormat(kind, schema.take("schema"), name, description, strict)

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        """Read the tools, including the older ``functions`` and ``web_search_options``."""
        tools = super().tools(fields)
        tools += [self.function(function, function) for function in fields.each("functions")]
        if (options := fields.mapping("web_search_options")) is not None:
            tools.append(Tool("web_search", kind="server", raw={"web_search_options": options}))
            tools[-1].search = read_search(options)
        return tools

    def tool(self, tool: Fields) -> Tool:
        """Read one tool. Tools that are neither functions nor custom tools are run by the provider."""
        match tool.needed("type"):
            case "function":
                return self.function(tool.needed_fields("function"), tool)
            case "custom":
                custom = tool.needed_fields("custom")
                name, description = custom.needed("name"), custom.string("description")
                return Tool(name, description, kind="custom", format=self._grammar(custom), extras=tool.rest() or None)
            case kind:
                return server_tool(kind, tool)

    def function(self, function: Fields, tool: Fields) -> Tool:
        """Read a function. ``tool`` is the object whose unread members are kept; for the older ``functions``, the same."""
        strict = function.boolean("strict")
        return evolve(function_tool(function, tool), strict=strict)

    def _grammar(self, custom: Fields) -> dict[str, Any] | None:
        """Read the format of a custom tool's input. Chat has the grammar in an inner object, which is left out."""
        form = custom.fields("format")
        if form is None:
            return None
        kind = form.needed("type")
        if kind != "grammar":
            return {"type": kind, **form.rest()}
        grammar = form.needed_fields("grammar")
        return {"type": kind, "syntax": grammar.needed("syntax"), "definition": grammar.needed("definition")}

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        parallel = fields.boolean("parallel_tool_calls")
        return openai.with_parallel(
            self.choice(fields, "tool_choice") or self.choice(fields, "function_call"), parallel
        )

    def choice(self, fields: Fields, name: str) -> ToolChoice | None:
        if isinstance(fields.peek(name), str):
            return self.mode(fields.needed(name), fields.at(name))
        raw = fields.peek(name)
        choice = fields.fields_of_type(name, CHOICES)
        if choice is None:
            return self.choice_of_hosted(fields, name)
        if name == "function_call":
            return ToolChoice("required", (choice.needed("name"),))
        kind = choice.needed("type")
        if kind != "allowed_tools":
            return ToolChoice("required", (choice.needed_fields(kind).needed("name"),))
        allowed = choice.needed_fields("allowed_tools")
        found = self.mode(allowed.needed("mode"), allowed.at("mode"))
        tools = list(allowed.needed_each("tools"))
        kinds = [tool.peek("type") for tool in tools]
        found.names = tuple(self._allowed(tool) for tool in tools)
        found.native = None if all(kind in CHOICES for kind in kinds) else raw
        return found

    def choice_of_hosted(self, fields: Fields, name: str) -> ToolChoice | None:
        """Read a choice of a tool that the provider runs: the tool is named by its type."""
        raw = fields.mapping(name)
        return None if raw is None else ToolChoice("required", (raw["type"],), native=raw)

    mode = staticmethod(openai.mode_of_choice)

    def _allowed(self, tool: Fields) -> str:
        kind = tool.needed("type")
        return tool.needed_fields(kind).needed("name") if kind in wire.INPUTS else tool.string("name") or kind

    def turn(self, message: Fields, role: str) -> Turn:
        """Read a message as a turn, with the name of its speaker. Raises BadRequest for an unknown role."""
        turn = super().turn(message, "system" if role == "developer" else role)
        turn.native_role = role if role == "developer" else None
        turn.name = message.string("name")
        return turn

    def answer(self, message: Fields, role: str) -> ToolResult | None:
        if role != "function":
            return super().answer(message, role)
        name = message.needed("name")
        return self._result(message, self._functions.pop(name, ""), name)

    def join(self, result: ToolResult) -> None:
        """Add a result to its run of results. A client that wrote a call in both members may also repeat its result."""
        if self._results is None:
            self._answered.clear()
        if result.call_id in self._twins and result.call_id in self._answered:
            self.report.repair("said_twice")
            return
        self._answered.add(result.call_id)
        super().join(result)

    # -- content ---------------------------------------------------------------------------------------------------

    def content(self, message: Fields) -> list[Part]:
        return content_of(message, self.part)

    def part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), cache=openai.read_cache_mark(part), extras=part.rest() or None)
            case "refusal":
                return Refusal(part.needed("refusal"), part.rest() or None)
            case "image_url":
                return openai.finished_media(evolve(image_of(part), place=part.place), part)
            case "input_audio" | "video_url" | "audio_url" | "file" as kind:
                whole = {"type": kind, **part.peek_all()}
                media = self._file(part) if kind == "file" else self._film_or_sound(part, kind)
                media.native = Aside(self.vendor, "metadata", f"{CONTENT}{kind}", whole)
                return openai.finished_media(media, part)
            case kind:
                return unknown_part(self.vendor, kind, part)

    def _film_or_sound(self, part: Fields, kind: str) -> Media:
        """Read a video or audio: ``input_audio``, which is a URL for some servers, or a member that other providers added."""
        if kind != "input_audio":
            return media_at(kind.removesuffix("_url"), part.needed_fields(kind), "url")
        media = openai.read_audio(part)
        data = media.data or ""
        if data.startswith(ADDRESSES):
            media.url, media.data = data, None
        elif is_data_uri(data):
            _, media.data = media_of(data, f"{part.at('input_audio')}.data")
        return evolve(media, place=part.place)

    def _file(self, part: Fields) -> Media:
        """Read a file. Its content or id may be a URL (OpenRouter, LiteLLM)."""
        file = part.needed_fields("file")
        data, file_id = file.string("file_data"), file.string("file_id")
        media = Media("file", data=data, file_id=file_id, name=file.string("filename"), place=part.place)
        address = data or file_id
        if data is not None and is_data_uri(data):
            media.media_type, media.data = media_of(data, file.at("file_data"))
        elif address is not None and address.startswith(ADDRESSES):
            media.data = media.file_id = None
            media.url = address
        return media

    # -- the assistant ---------------------------------------------------------------------------------------------

    def assistant(self, message: Fields) -> Turn:
        turn = Turn("assistant")
        reasoning = self._reasoning(message, turn)
        content = content_of(message, self._answer_part)
        thoughts = [part for part in content if isinstance(part, Reasoning)]
        if thoughts:
            content = [part for part in content if not isinstance(part, Reasoning)]
            reasoning += thoughts
            turn.native_reasoning = turn.native_reasoning or wire.PARTS
        if refusal := message.string("refusal"):
            content.append(Refusal(refusal))
        calls = self.calls(message)
        asides = [Aside(self.vendor, "citation", "annotation", raw) for raw in message.listed("annotations")]
        if (audio := message.peek("audio")) is not None:
            if not content and isinstance(audio, dict) and audio.get("id") and not audio.get("transcript"):
                self.unreadable.append(evolve(SPEECH, path=message.at("audio"), reader=self.dialect))
            message.take("audio")
            asides.append(Aside(self.vendor, "audio", "audio", audio))
        images = [part_of(image) for image in wire.read_images(message.peek(wire.IMAGES), self.vendor, 0)]
        if images:
            message.take(wire.IMAGES)
            content += images
        turn.parts = [*_signing(reasoning, calls), *content, *calls, *asides]
        signature = wire.signature_in(message.peek("extra_content"))
        last = next((part for part in reversed(content) if isinstance(part, Text)), None)
        if signature is not None and last is not None:
            message.take("extra_content")
            last.signature = signature
        return turn

    def _reasoning(self, message: Fields, turn: Turn) -> list[Part]:
        """Read the reasoning of a message: its details or blocks, else the first member with plain text."""
        parts = [self._detail(detail, number) for number, detail in enumerate(message.each("reasoning_details"))]
        if parts:
            turn.native_reasoning = "reasoning_details"
        elif blocks := wire.thinking_blocks(message.peek_all()):
            parts = [self._block(block) for block in blocks]
            turn.native_reasoning = wire.BLOCKS
        held = message.mapping(wire.HOLDER)
        message.take(wire.BLOCKS)
        if held and (rest := others_of(held, {wire.BLOCKS})):
            message.replace(wire.HOLDER, rest)
        texts = [part.text for part in parts if isinstance(part, Reasoning)]
        text = "".join(texts)
        for name in wire.PLAIN_REASONING:
            plain = message.peek(name)
            if plain and plain in {text, one_string(texts)}:  # the member repeats the text of the details
                message.take(name)
            elif plain and not text:
                text = message.needed(name)
                signed = [part for part in parts if isinstance(part, Reasoning) and part.signature is not None]
                # the message was built from a stream, in which text and signature were separate
                if len(signed) == 1 and not signed[0].extras:
                    signed[0].text = text
                else:
                    parts.insert(0, Reasoning(text))
                turn.native_reasoning = turn.native_reasoning or name
                opaque = wire.PLAIN_REASONING[name]
                if opaque and (blob := message.string(opaque)):
                    found = unsealed(blob, wire.OPAQUE_MEMBERS[opaque] or wire.maker_of(self._model))
                    parts[0] = Reasoning(text, signature=found)
        return parts

    def _block(self, block: dict[str, Any]) -> Reasoning | RedactedReasoning:
        """Read one of Anthropic's blocks in LiteLLM's form, or a part with the same members."""
        text, signature, data = (block.get(name) for name in ("thinking", "signature", "data"))
        maker = wire.maker_of(self._model)
        if isinstance(data, str) and data:
            return RedactedReasoning(unsealed(data, maker))
        signed = unsealed(signature, maker) if isinstance(signature, str) and signature else None
        return Reasoning(text if isinstance(text, str) else "", signature=signed)

    def _answer_part(self, part: Fields) -> Part:
        """Read a part of an assistant's content, which may be reasoning (Databricks)."""
        if part.peek("type") != "reasoning":
            return self.part(part)
        part.take("type")
        summaries = [dict(summary.peek_all()) for summary in part.each("summary")]
        texts = [text for summary in summaries if isinstance(text := summary.get("text"), str)]
        signature = next((each["signature"] for each in reversed(summaries) if each.get("signature")), None)
        found = self._block({"thinking": one_string(texts), "signature": signature})
        found.extras = part.rest() or None
        return found

    def _detail(self, detail: Fields, number: int) -> Part:
        """Read one of OpenRouter's details. Its index and format are kept if the writer would not write the same ones."""
        kind, form = detail.string("type"), detail.string("format")
        vendor = wire.vendor_in(text_of(form) or "openrouter")
        part: Part
        match kind:
            case "reasoning.text" | "reasoning.summary":
                name = kind.removeprefix("reasoning.")
                text, signature = detail.string(name) or "", detail.string("signature")
                part = Reasoning(text, "summary" if name == "summary" else "raw")
                part.signature = Opaque(vendor, signature) if signature else None
            case "reasoning.encrypted":
                part = RedactedReasoning(Opaque(vendor, detail.needed("data")))
                signature = vendor
            case _:
                raw = without_none(type=kind, format=form) | detail.rest()
                return Aside(self.vendor, "unknown_event", f"reasoning_details.{kind}", raw)
        if detail.peek("index") == number:
            detail.take("index")
        if signature and form == wire.format_of(vendor):
            form = None
        part.extras = (without_none(format=form) | detail.rest()) or None
        return part

    # -- calls and results -----------------------------------------------------------------------------------------

    def calls(self, message: Fields) -> list[ToolCall]:
        """Read the calls of a message; ``function_call`` only if the list lacks it (llama-cpp-python writes both)."""
        calls = [self.call(call, number) for number, call in enumerate(message.each("tool_calls"))]
        if function := message.fields("function_call"):
            name, arguments = function.needed("name"), function.string("arguments") or ""
            twin = next((call for call in calls if call.name == name), None)
            call_id = self._functions[name] = f"function_call_{message.path[-1]}" if twin is None else twin.id
            if twin is None:
                calls.append(ToolCall(len(calls), call_id, name, arguments, place=function.place))
            else:
                self.report.repair("said_twice")
                self._twins.add(call_id)
        return calls

    def call(self, call: Fields, number: int) -> ToolCall:
        kind = call.string("type") or "function"
        if kind not in wire.INPUTS:
            raise call.wrong(f"must be 'function' or 'custom', not {quoted(kind)}", "type")
        called = call.needed_fields(kind)
        read = ToolCall(
            number,
            call.string("id") or "",
            called.needed("name"),
            called.string(wire.INPUTS[kind]) or "",
            place=call.place,
        )
        read.kind = cast("ToolKind", kind)
        if read.kind == "custom":
            self._custom.add(read.id)
        read.signature = wire.signature_in(call.peek("extra_content"))
        if read.signature is not None:
            call.take("extra_content")
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        call_id = message.string("tool_call_id") or ""
        result = self._result(message, call_id, message.string("name"))
        result.kind = "custom" if call_id in self._custom else "function"
        return result

    def _result(self, message: Fields, call_id: str, name: str | None) -> ToolResult:
        parts = openai.only_of_tools(self.content(message), message, "content")
        return ToolResult(call_id, parts, name, place=message.place)


def _signing(reasoning: list[Part], calls: list[ToolCall]) -> list[Part]:
    """Move signatures of calls to the calls: encrypted details with a call's id (Gemini at OpenRouter). Return the others."""
    by_id = {call.id: call for call in calls if call.signature is None}
    kept: list[Part] = []
    for part in reasoning:
        match part:
            case RedactedReasoning(extras={"id": str(signed), **others}) if signed in by_id and not others:
                by_id.pop(signed).signature = part.opaque
            case _:
                kept.append(part)
    return kept
