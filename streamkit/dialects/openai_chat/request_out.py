"""The neutral conversation to Chat requests: turns to messages, options, tools and the choice among them.

A turn is one message, and each result in it a ``tool`` message right behind the calls: in requests of other dialects, what
the user or the system said between them stands behind the results. A tool's answer is text only, so its media go into a
message of the user behind all answers.

Reasoning goes back where the provider takes it, or where it came from if the request was Chat's and no provider is named; a
signature goes to the vendor who made it. What the dialect has two fields for is written by the same rule. Custom tools stay
custom.

Source: dialects.md §1.3, §1.6, §7.3, §7.4; seeds.md S2, S3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from attrs import evolve

from streamkit.conversation.messages import (
    CacheMark,
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
    WebSearch,
)
from streamkit.dialects.bodies.claude_requests import CACHE_CONTROLS, MOST_MARKS
from streamkit.dialects.bodies.json_members import add_missing, plain_or_list, without_none
from streamkit.dialects.bodies.media_types import data_uri
from streamkit.dialects.bodies.message_writer import BLANK_LINE, MessageWriter
from streamkit.dialects.bodies.openai_requests import OpenAIRequestWriter
from streamkit.dialects.bodies.request_writer import as_error
from streamkit.dialects.openai_chat.images import DELTA_IMAGES, IMAGES
from streamkit.dialects.openai_chat.providers import PLAIN, UNNAMED, ChatProvider
from streamkit.dialects.openai_chat.reasoning_names import BLOCKS, PARTS, opaque_member
from streamkit.dialects.openai_chat.wire import (
    AUDIO_FORMATS,
    FORMATS,
    OPTIONS,
    SERVICE_TIERS,
    VENDOR,
    encrypted,
    extra_content,
    reasoning_detail,
    tool_call,
)
from streamkit.dialects.streams.event_encoder import wrapped_input
from streamkit.dialects.vocabulary.openai import write_cache_mark
from streamkit.dialects.vocabulary.reasoning_effort import NO_SIGNATURE
from streamkit.events import Aside, Opaque
from streamkit.text.one_string import one_string

#: Options that are written by methods of their own.
BESIDE = frozenset({"max_tokens", "thinking", "output", "service_tier", "top_k"})
#: The member that lets a model search the web, and the models that take it.
SEARCH = "web_search_options"
SEARCH_MODELS = re.compile(r"-search-(?:preview|api)")
#: A part of reasoning, or one of OpenRouter's details that says something else.
Thought: TypeAlias = Reasoning | RedactedReasoning | Aside
DETAILS: Final = "reasoning_details"
#: Dialects whose marks on a prompt are for Anthropic's two spans.
ANTHROPIC_SPANS: Final = frozenset({"anthropic", "bedrock"})


class ChatRequestWriter(MessageWriter, OpenAIRequestWriter):
    """Writes one request."""

    #: Options that are one field each, by our names, and those that are not.
    option_names: ClassVar[Mapping[str, str]] = OPTIONS
    beside: ClassVar[frozenset[str]] = BESIDE
    tiers: ClassVar[frozenset[str]] = SERVICE_TIERS
    search_options: ClassVar[frozenset[str] | None] = frozenset({"location", "context"})
    #: A tool that is a member of the request: the search of the web.
    _beside_tools: Mapping[str, Any] = {}
    dialect = "openai-chat"
    relatives: ClassVar[frozenset[str]] = frozenset({"openai-chat", "openai-responses"})
    most_stops: ClassVar[int | None] = 4
    vendor = VENDOR
    text_files: ClassVar[bool] = False
    #: What a server wants of which no more is known than its dialect.
    unnamed: ClassVar[ChatProvider] = UNNAMED
    #: Whether a ``tool`` message may have media.
    media_in_results: ClassVar[bool] = False

    def request_body(self) -> dict[str, Any]:
        request = self.request
        body = without_none(model=request.model)
        body["messages"] = list(self.messages())
        tools = [written for tool in self.offered() if (written := self.tool(tool)) is not None]
        if tools:
            body["tools"] = tools
        body |= self._beside_tools
        if tools or self.own:
            body |= self.tool_choice(request.tool_choice)
        body |= self.options(self.option_names, self.beside)
        body |= self.max_tokens()
        body |= without_none(service_tier=self.service_tier(request.options.service_tier, self.tiers))
        body |= self.thinking(request.options.thinking)
        body |= without_none(response_format=self.form(request.options.output, nested=True), stream=request.stream)
        if request.options.top_k is not None:
            body |= self.top_k(request.options.top_k)
        body |= self.stream_usage()
        return add_missing(body, self.request_extras())

    def stream_usage(self) -> dict[str, Any]:
        """The member that asks for token counts at the end of a stream."""
        usage = self.request.stream_usage
        return {} if usage is None else {"stream_options": {"include_usage": usage}}

    @property
    def provider(self) -> ChatProvider:
        provider = self.target.provider
        return self.unnamed if provider is None else provider if isinstance(provider, ChatProvider) else PLAIN

    # -- options ---------------------------------------------------------------------------------------------------

    def request_extras(self) -> Mapping[str, Any]:
        """The members of the request itself to write again; those that Responses has too, for OpenAI's own servers only.

        All others refuse members that they do not know.
        """
        openai = self.target.provider is not None and self.provider.cache_marks == "openai"
        return super().request_extras() if self.own or not openai else self.extras_of_openai()

    def max_tokens(self) -> dict[str, Any]:
        """The bound of the answer, in the field that the provider takes."""
        options, name = self.request.options, self.provider.max_tokens_field
        if self.as_it_came and options.native_max_tokens is not None:
            name = options.native_max_tokens
        return without_none(**{name: options.max_tokens})

    def top_k(self, top_k: int) -> dict[str, Any]:
        """OpenAI has no such field, many of the others do: it is written where the client speaks to one of them."""
        if self.own:
            return {"top_k": top_k}
        self.lose("parameter", "top_k")
        return {}

    def thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        """How much to think, in the field that the provider takes."""
        if thinking is None:
            return {}
        field = self.provider.thinking_field
        if self.as_it_came and thinking.native is not None:
            field = thinking.native
        if field == "reasoning_effort":
            return without_none(reasoning_effort=self.effort(thinking, "budget_tokens", "summary"))
        if thinking.summary not in {None, "none", "auto"}:
            self.lose_thinking(thinking, "summary")
        exclude = None if thinking.summary is None else thinking.summary == "none"
        effort, budget = self.fit_effort(thinking.effort), thinking.budget_tokens
        if effort is not None and budget is not None and not self.own:  # one of them may be given
            self.lose_thinking(thinking, "effort")
            effort = None
        return {field: without_none(effort=effort, max_tokens=budget, enabled=thinking.enabled, exclude=exclude)}

    # -- tools -----------------------------------------------------------------------------------------------------

    def offered(self) -> Sequence[Tool]:
        return self.request.tools

    def tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        self.lose_cache(tool.cache, tool.name)
        if tool.kind == "custom" and self.functions_only:
            self.extras(tool.extras)
            tool = self.as_function(tool)
        match tool.kind:
            case "function":
                function = without_none(
                    name=self.tool_name(tool.name),
                    description=tool.description,
                    parameters=self.with_properties(tool.parameters),
                    strict=tool.strict,
                )
                written: dict[str, Any] = {"type": "function", "function": function}
            case "custom":
                custom = without_none(
                    name=self.tool_name(tool.name), description=tool.description, format=_format(tool.format)
                )
                written = {"type": "custom", "custom": custom}
            case "server":
                hosted = self.hosted(tool)
                if hosted is not None and SEARCH in hosted:
                    self._beside_tools = hosted
                    return None
                return hosted
        return add_missing(written, self.extras(tool.extras))

    def tool_choice(self, choice: ToolChoice | None) -> dict[str, Any]:
        """Which tools may or must be called. ``auto``, the default, is not said where only ``parallel`` is."""
        if choice is None:
            return {}
        self.extras(choice.extras)
        if choice.names and not self.own:
            choice = self._without_search(choice)
        body = without_none(parallel_tool_calls=choice.parallel)
        if self.own and choice.native is not None:
            return {**body, "tool_choice": choice.native}
        if choice.mode == "required" and len(choice.names) == 1:
            body["tool_choice"] = self.named_tool(choice.names[0])
        elif choice.names and choice.mode != "none":
            allowed = {"mode": choice.mode, "tools": [self.named_tool(name) for name in choice.names]}
            body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
        elif choice.mode != "auto" or choice.parallel is None:
            body["tool_choice"] = choice.mode
        return body

    def _without_search(self, choice: ToolChoice) -> ToolChoice:
        """A choice among functions: the search is none, and a model that has it uses it in any case."""
        names = tuple(name for name in choice.names if not self.is_search(name))
        if names == choice.names:
            return choice
        self.lose("tool_choice", "names")
        return evolve(choice, names=names, mode=choice.mode if names else "auto")

    def can_search(self, tool: Tool) -> bool:
        """Whether the model is one of those that search, and always do."""
        choice = self.request.tool_choice
        searches = SEARCH_MODELS.search(self.request.model or "") is not None
        return super().can_search(tool) and searches and (choice is None or choice.mode != "none")

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        location = None if search.location is None else {"type": "approximate", "approximate": dict(search.location)}
        return {SEARCH: without_none(user_location=location, search_context_size=search.context)}

    def named_tool(self, name: str) -> dict[str, Any]:
        """A tool of the program as a choice names it."""
        kind = "custom" if name in self.custom and not self.functions_only else "function"
        return {"type": kind, kind: {"name": self.tool_name(name)}}

    @property
    def form_with_tools(self) -> bool:
        """Return whether the provider takes tools next to a response in JSON; Google's models do from version 3 on."""
        if self.provider.signatures == "google":
            return self.model.signatures
        return self.provider.form_with_tools

    @property
    def as_it_came(self) -> bool:
        """Whether what only a provider understands goes back to wherever it came from."""
        return self.own and self.target.provider is None

    @property
    def functions_only(self) -> bool:
        """Whether the provider is one of those that know no custom tools, which OpenAI alone has in Chat."""
        return not self.own and self.provider.cache_marks != "openai"

    def message_of(self, turn: Turn, parts: Sequence[Part]) -> dict[str, Any]:
        role = "developer" if turn.native_role == "developer" else turn.role
        if turn.role == "system" and not self.own:  # only the user may show anything
            for part in parts:
                if isinstance(part, Media):
                    self.lose("media", part.kind)
            parts = [part for part in parts if not isinstance(part, Media)]
        return self.named({"role": role, "content": self.content(parts)}, turn)

    def named(self, message: dict[str, Any], turn: Turn) -> dict[str, Any]:
        if turn.name is not None:
            message["name"] = turn.name
        return add_missing(message, self.extras(turn.extras))

    # -- content ---------------------------------------------------------------------------------------------------

    def content(self, parts: Sequence[Part], joint: str = BLANK_LINE) -> str | list[dict[str, Any]]:
        """A string for one plain text, else a list of parts; for a provider that takes none, texts with ``joint`` between."""
        written = [content for part in parts if (content := self.part(part)) is not None]
        return self._one_text(written, joint) if self.provider.text_only else plain_or_list(written)

    def _one_text(self, parts: Sequence[dict[str, Any]], joint: str) -> str:
        """The texts of parts as one; what is no text is a loss."""
        texts: list[str] = []
        for part in parts:
            kind = part["type"]
            if kind in {"text", "refusal"}:
                texts.append(part[kind])
            else:
                self.lose("media", f"{kind}, which this provider does not take")
            for name in part.keys() - {"type", kind}:
                self.lose("metadata", name)
        if len(texts) > 1:
            self.report.lose("block_boundary", len(texts) - 1)
        return joint.join(texts)

    def part(self, part: Part) -> dict[str, Any] | None:
        """One part as content; None for what can't be."""
        match part:
            case Text():
                written = {"type": "text", "text": part.text}
            case Refusal():
                return add_missing({"type": "refusal", "refusal": part.text}, self.extras(part.extras))
            case Media(native=Aside(raw=whole)) if self.own:
                return dict(whole)
            case Media():
                media = self.media(part)
                if media is None:
                    self.lose("media", part.kind)
                    return None
                written = media
            case Aside():
                return part.raw if self.aside(part) else None
            case _:
                raise TypeError(f"content has no {type(part).__name__}")
        if part.cache is not None:
            written |= self.cache_mark(part.cache)
        return add_missing(written, self.extras(part.extras))

    def media(self, media: Media) -> dict[str, Any] | None:
        """Media as content; None for what has no form in Chat."""
        match media.kind:
            case "image":
                url = data_uri(media) if media.data is not None else media.url
                if url is not None and (self.own or url.startswith(("data:", "http:", "https:"))):
                    return {"type": "image_url", "image_url": without_none(url=url, detail=media.detail)}
            case "audio" if media.data is not None:
                form = AUDIO_FORMATS.get(media.media_type or "")
                if form is None and self.own and media.media_type is not None:
                    form = media.media_type.removeprefix("audio/")
                audio = {"data": media.data, "format": form}
                return None if form is None else {"type": "input_audio", "input_audio": audio}
            case "file" if media.data is not None or (media.file_id is not None and self.related):
                bare = media.data is None or (self.own and media.media_type is None)
                data = media.data if bare else data_uri(media)
                file = without_none(file_data=data, file_id=media.file_id, filename=self.file_name(media))
                return {"type": "file", "file": file}
        return None

    def most_marks(self) -> int | None:
        words = self.provider.cache_marks
        return None if not words else MOST_MARKS if words == "anthropic" or self.takes_marks else 0

    def cache_mark(self, cache: CacheMark) -> dict[str, Any]:
        """The mark of a part, in the provider's words. The spans of OpenAI are not those of Anthropic."""
        words = self.provider.cache_marks
        if words == "anthropic":
            if self.request.dialect not in ANTHROPIC_SPANS:
                self.lose("cache_mark", cache)
            return {"cache_control": dict(CACHE_CONTROLS[cache])}
        if not (self.own and words):
            self.lose("cache_mark", cache)
        return write_cache_mark(cache) if words else {}

    # -- what the assistant said -----------------------------------------------------------------------------------

    def assistant(self, turn: Turn) -> dict[str, Any]:
        content: list[Part] = []
        thought: list[Thought] = []
        calls: list[ToolCall] = []
        beside: dict[str, Any] = {}
        refused: list[str] = []
        late = False  # whether reasoning came behind anything else
        for part in turn.parts:
            match part:
                case Reasoning() | RedactedReasoning():
                    late = late or bool(content or calls)
                    thought.append(part)
                case ToolCall():
                    calls.append(part)
                case Aside():
                    self._beside(part, content, thought, beside)
                case Media():
                    self.lose("media", part.kind)
                case Text() | Refusal():
                    if calls:
                        self.lose("block_order")
                    if isinstance(part, Text) or part.extras is not None:
                        content.append(part)
                    else:
                        beside.setdefault("refusal", "")
                        refused.append(part.text)
                case _:
                    raise TypeError(f"an assistant's turn has no {type(part).__name__}")
        if refused:
            beside["refusal"] = "".join(refused)
        empty = None if calls or beside else ""
        message = {"role": "assistant", "content": self.content(content, "") if content else empty, **beside}
        reasoning = self.reasoning(turn, thought, calls)
        if late and reasoning:
            self.lose("block_order")
        written = [self.call(call, reasoning.get(DETAILS)) for call in calls]
        if (parts := reasoning.pop(PARTS, None)) is not None:
            text = message["content"]
            reasoning["content"] = [
                *parts,
                *([{"type": "text", "text": text}] if isinstance(text, str) else text or []),
            ]
        message |= reasoning
        self._sign(message, content)
        if written:
            self._vouch(written[0])
            message["tool_calls"] = written
        return self.named(message, turn)

    def _vouch(self, first: dict[str, Any]) -> None:
        """Say of the first call of a turn that it has no signature, where Google demands one behind this dialect."""
        google = self.provider.signatures == "google" and self.model.signatures
        if google and not self.own and "extra_content" not in first:
            first["extra_content"] = extra_content(Opaque("google", NO_SIGNATURE))
            self.report.repair("signature_excused")

    def _beside(self, part: Aside, content: list[Part], thought: list[Thought], beside: dict[str, Any]) -> None:
        """What only this dialect knows: a part of the content, of the reasoning, or a member of the message."""
        if part.type.startswith("content."):
            content.append(part)
        elif part.type.startswith(f"{DETAILS}."):
            thought.append(part)
        elif not self.own or part.vendor != self.vendor or part.kind == "logprobs":
            self.lose(part.kind, part.type)
        elif part.kind == "citation":
            beside.setdefault("annotations", []).append(part.raw)
        elif part.kind == "audio" and isinstance(part.raw, dict) and "id" in part.raw:
            beside["audio"] = {"id": part.raw["id"]}  # what was heard is not sent back (dialects.md §1.3)
        elif part.type == DELTA_IMAGES and isinstance(part.raw, list):
            beside.setdefault(IMAGES, []).extend(part.raw)
        elif part.type.startswith("delta."):
            beside[part.type.removeprefix("delta.")] = part.raw
        else:
            self.lose(part.kind, part.type)

    def _sign(self, message: dict[str, Any], content: list[Part]) -> None:
        """The signature of the text, which a message can have one of."""
        signed = [part.signature for part in content if isinstance(part, Text) and part.signature is not None]
        for signature in signed:
            if self.goes_back(signature) and signature is signed[-1]:
                message["extra_content"] = extra_content(signature)
            else:
                self.lose("reasoning_signature", signature.vendor)

    def goes_back(self, signature: Opaque) -> bool:
        """Whether ``extra_content`` takes a signature."""
        return self.as_it_came or self.provider.signatures == signature.vendor

    # -- reasoning -------------------------------------------------------------------------------------------------

    def reasoning(self, turn: Turn, parts: list[Thought], calls: list[ToolCall]) -> dict[str, Any]:
        """The reasoning of a turn, in the field that takes it back."""
        field = self.provider.reasoning_history
        if self.as_it_came:
            opaque = any(isinstance(part, RedactedReasoning) or getattr(part, "signature", None) for part in parts)
            field = turn.native_reasoning or (DETAILS if opaque else "reasoning_content")
        if field == DETAILS:
            return self._details(parts, calls)
        if field in {BLOCKS, PARTS}:
            return {field: [written for part in parts if (written := self._block(part, field))]}
        visible = [part for part in parts if isinstance(part, Reasoning)]
        beside = opaque_member(field, visible)
        for part in parts:  # count what plain text, or no field at all, does not carry
            match part:
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                case Reasoning():
                    if not (beside and part is visible[-1]):
                        self.lose_signature(part.signature)
                    if part.text and not field:
                        self.lose("reasoning_history")
                case Aside():
                    self.lose(part.kind, part.type)
        texts = [part.text for part in visible if part.text]
        needed = self.provider.reasoning_history_needed and bool(calls)
        if not field or not (texts or needed):
            return beside
        return {field: self.joined(texts, one_string), **beside}

    def _block(self, part: Thought, field: str) -> dict[str, Any] | None:
        """Return a block of Anthropic's for LiteLLM, or a part of the content for Databricks; None for a counted loss."""
        if isinstance(part, Aside):
            self.lose(part.kind, part.type)
            return None
        if isinstance(part, RedactedReasoning):
            return {"type": "redacted_thinking", "data": part.opaque.blob}
        signed = {} if part.signature is None else {"signature": part.signature.blob}
        if field == BLOCKS:
            return {"type": "thinking", "thinking": part.text, **signed}
        summary = [{"type": "summary_text", "text": part.text, **signed}]
        return {"type": "reasoning", "summary": summary, **self.extras(part.extras)}

    def _details(self, parts: list[Thought], calls: list[ToolCall]) -> dict[str, Any]:
        """OpenRouter's details; empty ones where only calls are signed, whose signatures join them."""
        details = [written for part in parts if (written := self._detail(part)) is not None]
        for number, detail in enumerate(details):
            detail.setdefault("index", number)
        signed = any(call.signature is not None and self._is_known(call.signature) for call in calls)
        return {DETAILS: details} if details or signed else {}

    def _detail(self, part: Thought) -> dict[str, Any] | None:
        """One detail; None for what only a vendor can read whom OpenRouter does not know."""
        match part:
            case Aside():
                return dict(part.raw) if self.aside(part) else None
            case RedactedReasoning() if not self._is_known(part.opaque):
                self.lose("reasoning_opaque", part.opaque.vendor)
                return None
            case Reasoning() if part.signature is not None and not self._is_known(part.signature):
                self.lose("reasoning_signature", part.signature.vendor)
                part = evolve(part, signature=None)
        detail = reasoning_detail(part)
        return {**detail, **self.extras(part.extras)} if detail else None

    def _is_known(self, opaque: Opaque) -> bool:
        return self.own or opaque.vendor in FORMATS

    # -- calls and results -----------------------------------------------------------------------------------------

    def call(self, call: ToolCall, details: list[dict[str, Any]] | None) -> dict[str, Any]:
        """One call. Its signature stands in it, or among the ``details`` of the message's reasoning if it has any."""
        name, call_id = self.tool_name(call.name), self.call_id(call.id)
        if call.kind == "custom" and self.functions_only:
            self.lose("custom_tool_wrapped", call.name)
            call = evolve(call, kind="function", arguments=wrapped_input(call.arguments))
        written = tool_call(call, call_id, name)
        self.lose_cache(call.cache)
        signature = call.signature
        if signature is not None and details is not None and self._is_known(signature):
            details.append({**encrypted(signature), "id": call_id, "index": len(details)})
        elif signature is not None and self.goes_back(signature):
            written["extra_content"] = extra_content(signature)
        else:
            self.lose_signature(signature)
        return add_missing(written, self.extras(call.extras))

    def result(self, result: ToolResult, moved: list[Media]) -> dict[str, Any]:
        stay = self.as_it_came or self.media_in_results
        parts: list[Part] = []
        for part in result.parts:
            if isinstance(part, Media) and not stay and self.media(part) is not None:
                self.lose("media", f"{part.kind}, moved behind the result {result.call_id}")
                moved.append(part)
            else:
                parts.append(part)
        if result.is_error:
            self.lose("result_error", result.call_id)
            parts = as_error(parts)
        if result.cache is not None:
            parts = self._marked(parts, result.cache)
        message = {"role": "tool", "tool_call_id": self.call_id(result.call_id), "content": self.content(parts)}
        if result.name is not None and self.own and result.place:  # as it came; of other results the call says it
            message["name"] = result.name
        return add_missing(message, self.extras(result.extras))

    def _marked(self, parts: list[Part], cache: CacheMark) -> list[Part]:
        """What a tool said, with the result's mark on the text at its end for a provider who takes one there."""
        last = parts[-1] if parts else None
        if self.provider.cache_marks != "anthropic" or not isinstance(last, Text):
            self.lose("cache_mark", cache)
            return parts
        return [*parts[:-1], evolve(last, cache=cache)]


def _format(form: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The format of a custom tool's input, with the object around the grammar."""
    if form is None or form.get("type") != "grammar":
        return None if form is None else dict(form)
    grammar = {name: value for name, value in form.items() if name != "type"}
    return {"type": "grammar", "grammar": grammar}
