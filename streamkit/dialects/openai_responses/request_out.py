"""The neutral conversation to Responses requests: turns to items of the input, options, tools and the choice among them.

A turn of the user or the system is a message, and each result in it an item at its place. The only text of the system in
front of all is ``instructions``, if no item said it. Content of one plain text is a string (seeds.md S2).

Each text of the assistant's is a message, since several parts of one share an id, and only the server gives ids. Reasoning
goes back if this vendor encrypted it, with its own id or none: the encrypted text is bound to it. Without that, an item goes
back only where it came from.

``strict`` of a function is always written: left out it means another thing here than in Chat. Unsaid it is false in a request
of another dialect, and null, the server's choice, in one of this. There is one choice, and neither stop texts nor a seed. A
bound below the server's least is raised, and counted.

Source: dialects.md §2.2, §2.3, §7.3, §7.4, §8.12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from streamkit.conversation.messages import (
    CacheMark,
    Compaction,
    Extras,
    Media,
    Namespace,
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
from streamkit.dialects.bodies.claude_requests import MOST_MARKS
from streamkit.dialects.bodies.json_members import add_missing, plain_or_list, without_none
from streamkit.dialects.bodies.media_types import data_uri
from streamkit.dialects.bodies.openai_requests import OpenAIRequestWriter
from streamkit.dialects.bodies.request_writer import NO_PROPERTIES, as_error
from streamkit.dialects.openai_responses.client_items import items_again
from streamkit.dialects.openai_responses.output import Item, OutputList, call_item, of_item, reasoning_item, thoughts
from streamkit.dialects.openai_responses.wire import (
    CONTENT,
    LEAST_TOKENS,
    LOGPROBS,
    MANAGEMENT,
    OPAQUE_VENDOR,
    OPTIONS,
    OUTPUTS,
    SERVICE_TIERS,
    TRIGGER,
    VENDOR,
)
from streamkit.dialects.streams.compactions import COMPACTION, OPENAIS
from streamkit.dialects.vocabulary.openai import AUDIO_FORMATS, write_cache_mark
from streamkit.dialects.vocabulary.web_search import location_out
from streamkit.events import Aside

#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"choices", "compaction", "logprobs", "max_tokens", "output", "service_tier", "thinking"})
#: The search of the web, and the entry of ``include`` that asks for the pages that it found.
SEARCH: Final = "web_search"
SOURCES: Final = "web_search_call.action.sources"
#: What other dialects take for it; the server demands a schema.
NOTHING: Final[tuple[Any, ...]] = (None, {})


class RequestBodyWriter(OpenAIRequestWriter):
    """Writes one request."""

    search_options = frozenset({"allowed_domains", "location", "context"})
    _again: Mapping[str, tuple[Item, Item | None]]  #: calls that were items of this dialect: see ``client_items.py``
    dialect = "openai-responses"
    relatives = frozenset({"openai-chat", "openai-responses"})
    verbosity_in_text = True
    vendor = VENDOR

    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        self.one_choice("Responses")
        instructions, items = self.conversation()
        items += self._trigger(options.compaction)
        tools = self._tools()
        body = without_none(
            model=request.model,
            instructions=instructions,
            input=items if items or not self.own else None,
            tools=tools or None,
            **self._tool_choice(request.tool_choice),
            max_output_tokens=self._max_tokens(options.max_tokens),
            reasoning=self._thinking(options.thinking),
            text=without_none(format=self.form(options.output, nested=False)) or None,
            service_tier=self.service_tier(options.service_tier, SERVICE_TIERS),
            stream=request.stream,
        )
        body |= self._compacting(options.compaction) | self.options(OPTIONS, BESIDE)
        extras = dict(self.request_extras() if self.own else self.extras_of_openai())
        include = [*extras.pop("include", ()), *([LOGPROBS] if options.logprobs else ())]
        if self.search is not None:
            include.append(SOURCES)
        return add_missing(body, extras | without_none(include=include or None))

    # -- options ---------------------------------------------------------------------------------------------------

    def _trigger(self, compaction: Compaction | None) -> list[Item]:
        """The item at the end that asks for nothing but a compaction."""
        if compaction is None or not compaction.now:
            return []
        came = (compaction.native or {}).get("input") if self.own else None
        return [came or {"type": TRIGGER}]

    def _compacting(self, compaction: Compaction | None) -> dict[str, Any]:
        """The member that asks for compaction where the conversation is long."""
        if compaction is None:
            return {}
        if self.own and compaction.native is not None:
            return {name: value for name, value in compaction.native.items() if name == MANAGEMENT}
        for name in ("pause", "instructions"):
            if getattr(compaction, name):
                self.lose("parameter", f"compaction.{name}")
        if compaction.now and compaction.threshold is None:
            return {}
        return {MANAGEMENT: [without_none(type=COMPACTION, compact_threshold=compaction.threshold)]}

    def _max_tokens(self, bound: int | None) -> int | None:
        if bound is None or self.own or not 0 < bound < LEAST_TOKENS:
            return bound
        self.lose("parameter", "max_tokens")
        return LEAST_TOKENS

    def _thinking(self, thinking: Thinking | None) -> dict[str, Any] | None:
        if thinking is None:
            return None
        summary = None if thinking.summary == "none" else thinking.summary
        return without_none(effort=self.effort(thinking, "budget_tokens"), summary=summary) or None

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tools(self) -> list[dict[str, Any]]:
        """The definitions. Within the dialect, neighbours of one namespace stand in it again."""
        written: list[dict[str, Any]] = []
        last: Namespace | None = None
        for tool in self.request.tools:
            if tool.loaded and self.own:
                continue  # the item that brought it says so
            definition = self._tool(tool)
            if definition is None:
                continue
            namespace = tool.namespace
            if namespace is None or not self.own:
                written.append(definition)
            elif namespace == last:
                written[-1]["tools"].append(definition)
            else:
                head = without_none(type="namespace", name=namespace.name, description=namespace.description)
                written.append({**head, **(namespace.extras or {}), "tools": [definition]})
            last = namespace
        return written

    def _tool(self, tool: Tool) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""
        if self.own and tool.raw is not None and tool.kind == "function":
            return dict(tool.raw)
        self.lose_cache(tool.cache, tool.name)
        match tool.kind:
            case "function":
                nothing = not self.own and tool.parameters in NOTHING
                written = {
                    **without_none(type="function", name=self._defined_name(tool), description=tool.description),
                    "parameters": dict(NO_PROPERTIES) if nothing else self.with_properties(tool.parameters),
                    "strict": tool.strict if self.own else bool(tool.strict),
                }
            case "custom":
                name, form = self._defined_name(tool), tool.format
                written = without_none(type="custom", name=name, description=tool.description, format=form)
            case "server":
                return self.hosted(tool)
        return add_missing(written, self.extras(tool.extras))

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        return without_none(
            type=SEARCH,
            filters={"allowed_domains": [*search.allowed_domains]} if search.allowed_domains else None,
            user_location=location_out(search),
            search_context_size=search.context,
        )

    def _defined_name(self, tool: Tool) -> str:
        return tool.qualified.name if self.own and tool.qualified is not None else self.tool_name(tool.name)

    def _tool_choice(self, choice: ToolChoice | None) -> dict[str, Any]:
        """Which tools may or must be called. ``auto``, the default, is not said where only ``parallel`` is."""
        if choice is None:
            return {}
        self.extras(choice.extras, "tool_choice")
        body = without_none(parallel_tool_calls=choice.parallel)
        if self.own and choice.native is not None:
            return {**body, "tool_choice": choice.native}
        if choice.mode == "required" and len(choice.names) == 1 and not self.is_search(choice.names[0]):
            body["tool_choice"] = self._named_tool(choice.names[0])
        elif choice.mode == "required" and choice.names and sum(map(self.defines, self.request.tools)) == 1:
            body["tool_choice"] = "required"
        elif choice.names and choice.mode != "none":
            tools = [self._named_tool(name) for name in choice.names]
            body["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
        elif choice.mode != "auto" or choice.parallel is None:
            body["tool_choice"] = choice.mode
        return body

    def _named_tool(self, name: str) -> dict[str, Any]:
        if self.is_search(name):
            return {"type": SEARCH}
        return {"type": "custom" if name in self.custom else "function", "name": self.tool_name(name)}

    def conversation(self) -> tuple[str | None, list[Item]]:
        """The instructions, and the items of the input."""
        turns = self.request.turns
        self._again = {} if self.own else items_again(turns)
        instructions = self._instructions(turns)
        items = [item for turn in turns[instructions is not None :] for item in self._items(turn)]
        return instructions, items if self.own else self._followed(items)

    def _followed(self, items: Sequence[Item]) -> list[Item]:
        """Leave out reasoning that nothing of the assistant's follows: the API refuses it."""
        kept: list[Item] = []
        for item in reversed(items):
            if item.get("type") == "reasoning" and not (kept and _is_of_model(kept[-1])):
                self.lose("reasoning_history", "reasoning")
            else:
                kept.append(item)
        return kept[::-1]

    def _instructions(self, turns: Sequence[Turn]) -> str | None:
        """What the system says in front, if it is one plain text and nothing but a place in the request would be lost."""
        leading = len(list(takewhile(lambda turn: turn.role == "system", turns)))
        if leading == 0 or turns[0].name is not None or turns[0].extras or len(turns[0].parts) != 1:
            return None
        if turns[0].native_role is not None if self.own else leading > 1:
            return None
        text = turns[0].parts[0]
        plain = isinstance(text, Text) and text.cache is None and text.signature is None and not text.extras
        return text.text if isinstance(text, Text) and plain else None

    def _items(self, turn: Turn) -> Iterator[Item]:
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        extras = dict(self.extras(turn.extras))
        if turn.role == "assistant":
            yield from self._assistant(turn)
        else:
            role = "developer" if turn.native_role == "developer" else turn.role
            yield from self._messages_of(turn.parts, role, extras)
        for name in extras:  # of no message
            self.lose("metadata", name)

    def _messages_of(self, parts: Sequence[Part], role: str, extras: dict[str, Any]) -> Iterator[Item]:
        """What the user, the system or a tool says: messages, and items between them."""
        content: list[Part] = []
        for part in parts:
            if isinstance(part, ToolResult) or (isinstance(part, Aside) and not part.type.startswith(CONTENT)):
                if content:
                    yield self._message(content, role, extras)
                    content = []
                if isinstance(part, ToolResult):
                    yield self._result(part)
                elif self.aside(part):
                    output = OutputList(self.report, _begun)
                    output.aside(part)
                    yield from output.finish()
            else:
                content.append(part)
        if content or not parts:
            yield self._message(content, role, extras)

    def _message(self, parts: Sequence[Part], role: str, extras: dict[str, Any]) -> Item:
        """A message; the first of a turn has what the turn says of itself."""
        message = add_missing({"role": role, "content": self.content(parts)}, extras)
        extras.clear()
        return message

    def _result(self, result: ToolResult) -> Item:
        if self.own and result.item is not None:
            return dict(result.item)
        _, output = self._again.get(result.call_id, (None, None))
        if output is not None:
            return output
        parts: Sequence[Part] = result.parts
        if result.is_error:
            self.lose("result_error", result.call_id)
            parts = as_error(parts)
        self.lose_cache(result.cache)
        call_id = self.call_id(result.call_id)
        item = {"type": OUTPUTS[result.kind], "call_id": call_id, "output": self.content(parts)}
        if result.name is not None and self.own:  # elsewhere the call says it
            item["name"] = result.name
        return add_missing(item, self.extras(result.extras))

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _assistant(self, turn: Turn) -> list[Item]:
        output = OutputList(self.report, _begun)
        for part in thoughts(turn.parts):
            match part:
                case list():
                    self._thought(part, output)
                case RedactedReasoning():
                    self._redacted(part, output)
                case Text() | Refusal():
                    self._text_part(part, output)
                case ToolCall():
                    output.add(self._call(part))
                case Media():
                    self.lose("media", part.kind)
                case Aside():
                    if self.aside(part):
                        output.aside(part)
                case _:
                    raise TypeError(f"an assistant's turn has no {type(part).__name__}")
        if not turn.parts:
            self.report.repair("turn_empty")
        return [_plain(item) for item in output.finish()]

    def _text_part(self, part: Text | Refusal, output: OutputList) -> None:
        if isinstance(part, Refusal):
            written: Item = {"type": "refusal", "refusal": part.text}
        else:
            written = {"type": "output_text", "text": part.text, "annotations": []}
            self.lose_marks(part)
            if not part.text and (part.signature is not None or not self.own):
                if part.signature is None:
                    self.report.repair("turn_empty")
                return
        members, item = self._split(part.extras)
        output.add_part(add_missing(written, members), part.block, item, apart=True)

    def _split(self, extras: Extras | None) -> tuple[Item, Extras | None]:
        """The members of a part, and those of its item.

        In Chat's ``reasoning_details`` the id of an encrypted one is that of the item that it was here.
        """
        if self.related and not self.own and extras and str(extras.get("id")).startswith("rs_"):
            return {}, {"id": extras["id"]}
        kept = dict(self.extras(extras))
        return kept, kept.pop("item", None)

    def _thought(self, run: list[Reasoning], output: OutputList) -> None:
        """The reasoning of one item: what this vendor encrypted, or what came so without."""
        signature = run[-1].signature
        encrypted = signature.blob if signature is not None and signature.vendor == OPAQUE_VENDOR else None
        item = of_item(run[0])
        is_readable = item is not None or any(part.kind == "raw" and part.text for part in run)
        if encrypted is None and (signature is not None or not (self.own and is_readable)):
            self.lose_signature(signature)
            for part in run:
                if part.text:
                    self.lose("reasoning_history")
            return
        for part in run:
            self.extras(part.extras)
        body = reasoning_item(run if self.own else [Reasoning(part.text, part.kind) for part in run])
        kept = item if self.own else None
        output.add({**body, **(kept or {}), **without_none(encrypted_content=encrypted)}, [part.block for part in run])

    def _redacted(self, part: RedactedReasoning, output: OutputList) -> None:
        if part.opaque.vendor == OPENAIS:
            output.add({"type": COMPACTION, "encrypted_content": part.opaque.blob})
            return
        if part.opaque.vendor != OPAQUE_VENDOR:
            self.lose("reasoning_opaque", part.opaque.vendor)
            return
        _, item = self._split(part.extras)
        output.add(
            {"type": "reasoning", **(item or {}), "summary": [], "encrypted_content": part.opaque.blob}, [part.block]
        )

    def _call(self, call: ToolCall) -> Item:
        if self.own and call.item is not None:
            return dict(call.item)
        self.lose_marks(call)
        if (again := self._again.get(call.id)) is not None:
            return again[0]
        item = call_item(call, self.call_id(call.id), self.tool_name(call.name))
        return add_missing(item, self.extras(call.extras))

    def content(self, parts: Sequence[Part]) -> str | list[Item]:
        """A string for one plain text, else a list of parts."""
        return plain_or_list([content for part in parts if (content := self.part(part)) is not None])

    def part(self, part: Part) -> Item | None:
        """One part as content; None for what can't be."""
        match part:
            case Text():
                self.lose_signature(part.signature)
                written: Item = {"type": "input_text", "text": part.text}
            case Refusal():
                self.lose("refusal_as_text")
                return add_missing({"type": "input_text", "text": part.text}, self.extras(part.extras))
            case Media():
                media = self._media(part)
                if media is None:
                    self.lose("media", part.kind)
                    return None
                written = media
            case Aside():
                return dict(part.raw) if self.aside(part) else None
            case _:
                raise TypeError(f"content has no {type(part).__name__}")
        return add_missing(written | self._cache_mark(part.cache), self.extras(part.extras))

    def _media(self, media: Media) -> Item | None:
        """Media as content; None for what has no form here."""
        file_id = media.file_id if self.related else None
        url = media.url if self.own or (media.url or "").startswith(("http:", "https:")) else None
        match media.kind:
            case "image" if media.data is not None or url is not None or file_id is not None:
                shown = url if media.data is None else data_uri(media)
                return without_none(type="input_image", image_url=shown, file_id=file_id, detail=media.detail or "auto")
            case "file" if media.data is not None or url is not None or file_id is not None:
                bare = media.data is None or (self.own and media.media_type is None)
                data = media.data if bare else data_uri(media)
                members = without_none(
                    file_data=data,
                    file_url=url,
                    file_id=file_id,
                    filename=self.file_name(media),
                    detail=self.closeness(media),
                )
                return {"type": "input_file", **members}
            case "audio" if self.own and media.data is not None:  # the server takes none in a message (§7.4)
                kind = media.media_type or ""
                form = AUDIO_FORMATS.get(kind, kind.removeprefix("audio/"))
                return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
        return None

    def most_marks(self) -> int | None:
        return MOST_MARKS if self.takes_marks else 0

    def _cache_mark(self, cache: CacheMark | None) -> Item:
        if cache is None:
            return {}
        if not self.related:
            self.lose("cache_mark", cache)
        return write_cache_mark(cache)


def _begun(members: Extras) -> Item:
    """The beginning of a message of the assistant's."""
    return {"type": "message", "role": "assistant", **members, "content": []}


def _is_of_model(item: Item) -> bool:
    """Whether the assistant said or did what an item holds."""
    return bool(item["role"] == "assistant" if "role" in item else not item["type"].endswith("_output"))


def _plain(item: Item) -> Item:
    """A message of one plain text in its short form, unless the server knows it by an id: then it must say its status."""
    if item.get("type") != "message" or "content" not in item:
        return item
    if "id" in item:
        return {"status": "completed", **item}
    content = item["content"]
    if len(content) == 1 and content[0].get("type") == "output_text":
        text = {name: value for name, value in content[0].items() if (name, value) != ("annotations", [])}
        if text.keys() == {"type", "text"}:
            return {**{name: value for name, value in item.items() if name != "type"}, "content": text["text"]}
    return item
