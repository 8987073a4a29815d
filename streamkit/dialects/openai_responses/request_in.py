"""Read Responses requests: input items, options and the tool choice.

``instructions`` becomes a system turn before the input. A system message among the items remembers its role, so that each is
written back to its place. Members without a neutral form stay in the extras.

A message of the user or the system becomes one turn. Neighbouring messages, reasoning and calls of the assistant become one
turn, and so do neighbouring outputs. Members of an item (``id``, ``phase``, a status other than completed) are kept as
``item`` in the extras of its first part, and the id in those of all its parts, so that the parts can be joined again. Items
that only this vendor understands become asides. So does an output whose call only the server has, since it can't be paired
here.

Source: dialects.md §2.2, §2.3, §7.3, §7.4, §8.12, quirks.md R14 (opaque data must survive).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import orjson
from attrs import evolve

from streamkit.conversation.messages import (
    Compaction,
    Extras,
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
    Fields,
    RequestReader,
    is_data_uri,
    media_of,
    read_options,
    unknown_part,
    without_none,
)
from streamkit.dialects.members.values import objects_in
from streamkit.dialects.openai_responses import wire
from streamkit.dialects.openai_responses.asides import IMAGE_ITEM, is_made, read_image
from streamkit.dialects.openai_responses.client_items import ANSWERS, answered, call_id_of, call_of, result_of
from streamkit.dialects.openai_responses.items import SERVED_CUSTOM, SETTINGS, aside_kind
from streamkit.dialects.openai_responses.tools import LOADING, ToolNames, ToolReader, function_of
from streamkit.dialects.streams.client_calls import is_clients
from streamkit.dialects.streams.compactions import COMPACTION, SUMMARY, block_in
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, unseal
from streamkit.events import Aside, AsideKind, Opaque, QualifiedName
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: Items that the client writes, in addition to messages.
PROGRAMS: Final = frozenset(
    {"additional_tools", "configuration_update", wire.TRIGGER, *(ANSWERS.keys() - LOADING), *wire.OUTPUTS.values()}
)
#: For error messages: the client settings with which a client does not rely on stored data.
STATELESS: Final = "AI SDK: providerOptions.openai.store = false; openai-agents: ModelSettings(store=False)"
#: For error messages: what a client must send instead of each reference to stored data.
WHOLE: Final = f"send the whole input with each request, and store: false ({STATELESS})"
ITEM: Final = Unreadable(
    "an item by its id", f"send the item itself, and store: false ({STATELESS})", of_conversation=True
)
_CONTAINER: Final = Unreadable("a container by its id", "send the contents of its files as input")
_COMPUTER: Final = {
    "": _CONTAINER,
    "container_id": _CONTAINER,
    "file_ids": Unreadable("files by their ids", "send their contents as input"),
    "skills": [{"skill_id": Unreadable("a skill by its id", "send the text of the skill as instructions")}],
}
_IMAGE: Final = Unreadable("an image by its id", "send its bytes")
_TOOLS: Final = [
    {
        "vector_store_ids": openai.VECTOR_STORE,
        "container": _COMPUTER,
        "environment": {name: stored for name, stored in _COMPUTER.items() if name},  # a string is a kind of computer
        "input_image_mask": {"file_id": _IMAGE},
    }
]
#: What only OpenAI's servers can read.
STORES: Final[Mapping[str, Any]] = {
    "previous_response_id": Unreadable(
        "an earlier response by its id", f"{WHOLE}, without the id of a response", of_conversation=True
    ),
    "conversation": Unreadable("a conversation by its id", f"{WHOLE}, without a conversation", of_conversation=True),
    "prompt": Unreadable("a prompt by its id", "send the text of the prompt as instructions or input"),
    "tools": _TOOLS,
    "input": [{"tools": _TOOLS}],
}
NAMED: Final = frozenset({"function", "custom"})  #: types of ``tool_choice`` that name a tool of the client


class ResponsesRequestReader(RequestReader):
    """Reads one request."""

    dialect = "openai-responses"
    stores = STORES

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self.names = ToolNames()
        self._tools = ToolReader(self.names)
        self._defined: list[Tool] = []  # the tools in the request's ``tools``
        self._labels = 0  # the number of text blocks so far
        self.stored = False  #: whether the server stores a part of the conversation that the request lacks
        self.trigger: dict[str, Any] | None = None  #: the last item, if it requests only a compaction
        self._answers: Turn | None = None  # the turn to which the next output is added
        self._calls: set[str] = set()
        self._call_count = 0  # the number of calls in the current assistant turn
        self._answered: set[str] = set()  # ids of items and custom calls that have an output in the input
        self._text: Text | None = None  # the last text of the assistant
        self._signature: Opaque | None = None  # signature of the next call, from the item before that call
        self._updates: dict[str, Any] = {}  # options that items of the input changed

    def read_turns(self, fields: Fields) -> None:
        """Read the tools of the request, which its items may name, then the instructions and the input."""
        self.stored = any(each.of_conversation for each in self.unreadable)
        self._defined = self._tools.tools(fields)
        if instructions := fields.string("instructions"):
            self.turns.append(Turn("system", [Text(instructions)]))
        self.read_input(fields)

    def tools(self, _fields: Fields) -> list[Tool]:
        """Return the tools of the request, and the tools that its input items loaded."""
        return self._defined + self._tools.loaded

    # -- options ---------------------------------------------------------------------------------------------------

    def request(self, fields: Fields) -> Request:
        request = super().request(fields)
        if self._updates:
            asked, update = request.options.thinking, self._updates.get("thinking")
            if asked is not None and update is not None:
                self._updates["thinking"] = evolve(asked, effort=update.effort)
            request.updates = self._updates
        return request

    def options(self, fields: Fields) -> Options:
        names = {**wire.OPTIONS, "max_tokens": "max_output_tokens", "service_tier": "service_tier"}
        thinking, compaction, output = self._thinking(fields), self._compaction(fields), self._format(fields)
        options = read_options(fields, names, thinking=thinking, compaction=compaction, output=output)
        include = fields.strings("include")
        if wire.LOGPROBS in include:
            options.logprobs = True
        fields.replace("include", [name for name in include if name != wire.LOGPROBS] or None)
        return options

    def _compaction(self, fields: Fields) -> Compaction | None:
        """Read the compaction that the last input item (a trigger) and ``context_management`` request, if any."""
        entries = fields.peek(wire.MANAGEMENT)
        entry = next(filter(_compacts, entries), None) if isinstance(entries, list) else None
        if self.trigger is None and entry is None:
            return None
        native: dict[str, Any] = {} if self.trigger is None else {"input": self.trigger}
        if entry is None:
            return Compaction(now=True, native=native)
        rest = [other for other in entries if other is not entry]
        rest += [{**entry, wire.THRESHOLD: None}] if entry.keys() - {"type", wire.THRESHOLD} else []
        fields.replace(wire.MANAGEMENT, rest or None)
        return Compaction(
            self.trigger is not None, entry.get(wire.THRESHOLD), native={**native, wire.MANAGEMENT: entries}
        )

    def _thinking(self, fields: Fields) -> Thinking | None:
        reasoning = fields.fields("reasoning")
        if reasoning is None:
            return None
        effort, summary = reasoning.string("effort"), reasoning.string("summary")
        return None if effort is None and summary is None else Thinking(effort, summary=summary)

    def _format(self, fields: Fields) -> OutputFormat | None:
        text = fields.fields("text")
        form = text.fields_of_type("format", openai.OUTPUT_KINDS) if text is not None else None
        if form is None:
            return None
        kind = openai.OUTPUT_KINDS[form.needed("type")]
        if kind != "schema":
            return OutputFormat(kind)
        schema = form.mapping("schema")
        if schema is None:
            raise form.wrong("is missing; must be a JSON schema", "schema")
        return OutputFormat(kind, schema, form.needed("name"), form.string("description"), form.boolean("strict"))

    # -- the choice among the tools --------------------------------------------------------------------------------

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        parallel = fields.boolean("parallel_tool_calls")
        return openai.with_parallel(self._choice(fields), parallel)

    def _choice(self, fields: Fields) -> ToolChoice | None:
        raw = fields.peek("tool_choice")
        if isinstance(raw, str):
            return openai.mode_of_choice(fields.needed("tool_choice"), "tool_choice")
        choice = fields.fields("tool_choice")
        if choice is None:
            return None
        kind = choice.needed("type")
        if kind != "allowed_tools":
            found = ToolChoice("required", (*self._allowed(choice, kind),))
        else:
            found = openai.mode_of_choice(choice.needed("mode"), choice.at("mode"))
            found.names = self._all_allowed(choice.needed_each("tools"))
        if not _is_plain(raw, found.names):
            choice.rest()
            found.native = raw
        return found

    def _all_allowed(self, tools: Iterable[Fields]) -> tuple[str, ...]:
        """Return the names of the tools in a list of choices. A namespace that is listed twice counts once."""
        names: list[str] = []
        opened: set[str] = set()
        for tool in tools:
            kind, name = tool.string("type"), str(tool.peek("name"))
            if kind != "namespace" or name not in opened:
                names += self._allowed(tool, kind)
            if kind == "namespace":
                opened.add(name)
        return tuple(names)

    def _allowed(self, tool: Fields, kind: str | None) -> Sequence[str]:
        """Return the names that a choice means: a client's tool, all tools of a namespace, or a tool of the provider."""
        if kind == "namespace":
            return self.names.within(tool.needed("name"))
        if kind is None or kind in NAMED:
            return (self.names.chosen(tool.string("namespace"), tool.needed("name")),)
        return (function_of(kind),)

    def read_input(self, fields: Fields) -> None:
        if isinstance(fields.peek("input"), str):
            text = fields.needed("input")
            self.turns.append(Turn("user", [Text(text)] if text else []))
            return
        self._answered = answered(fields.peek("input"))
        items = list(fields.each("input"))
        if items and items[-1].peek("type") == wire.TRIGGER:  # the server accepts a trigger only as the last item
            self.trigger = items.pop().rest()
        for item in items:
            self._item(item)
        self._close()

    def _item(self, item: Fields) -> None:
        kind = item.string("type") or _untyped(item)
        match kind:
            case "message" if _is_known(item):
                self._message(item)
            case "reasoning" if _kinds(item, "summary") <= {"summary_text"} and _kinds(item, "content") <= {
                "reasoning_text"
            }:
                self._reasoning(item)
            case "custom_tool_call" if self._is_served(item):
                self._aside(SERVED_CUSTOM, {"type": kind, **item.rest()})
            case "function_call" | "custom_tool_call":
                self._call(item, kind)
            case "function_call_output" | "custom_tool_call_output" if self._is_paired(item):
                self._result(item, kind)
            case "compaction" if (block := block_in(item.peek("encrypted_content"))) is not None:
                self._assistants().append(Text(block["content"], item=block))
            case _ if is_clients(kind, item.peek_all()) and call_id_of(item.peek_all()) in self._answered:
                parts = self._assistants()
                self._add_call(call_of(item, kind, self._call_count), parts)
            case _ if kind in ANSWERS and call_id_of({"type": kind, **item.peek_all()}) in self._calls:
                raw = {"type": kind, **item.rest()}
                result = result_of(item, raw)
                if kind in LOADING:
                    found = self._tools.load(Fields(raw, item.path, item.body))
                    tools = [without_none(name=tool.name, description=tool.description) for tool in found]
                    result.parts = [Text(orjson.dumps(tools).decode())]
                self._programs().append(result)
            case _:
                if kind in {"compaction", "compaction_summary", "context_compaction"}:
                    self.unreadable.append(evolve(SUMMARY, path=item.place, reader=self.dialect))
                if kind == "item_reference":
                    self.stored = True
                    self.unreadable.append(evolve(ITEM, path=item.place, reader=self.dialect))
                if kind == IMAGE_ITEM and item.names == ["id"]:  # one that failed has no result either
                    self.unreadable.append(evolve(_IMAGE, path=item.place, reader=self.dialect))
                raw = {"type": kind, **item.rest()}
                if kind in LOADING:
                    self._tools.load(Fields(raw, item.path, item.body))
                if kind == "configuration_update":
                    self._update(Fields(raw, item.path, item.body))
                self._aside(kind, raw)

    def _is_served(self, item: Fields) -> bool:
        """Return whether the provider itself ran a call of a custom tool: the client has no such tool, and no output."""
        name, customs = item.peek("name"), self._tools.customs
        is_other = customs is not None and isinstance(name, str) and name not in customs
        return is_other and call_id_of(item.peek_all()) not in self._answered

    def _update(self, item: Fields) -> None:
        """Read the options that an item changes for all later responses. Each stays until a later item changes it."""
        thinking, output = self._thinking(item), self._format(item)
        self._updates |= without_none(thinking=thinking, output=output)

    # -- turns -----------------------------------------------------------------------------------------------------

    def _message(self, item: Fields) -> None:
        role = item.needed("role")
        if role == "assistant":
            self._message_item(item)
            return
        self._close()
        if role not in {"user", "system", "developer"}:
            raise item.wrong(f"must be 'user', 'assistant', 'system' or 'developer', not {quoted(role)}", "role")
        turn = Turn("user") if role == "user" else Turn("system", native_role=role)
        turn.parts, turn.extras = self.content(item), members(item)
        self.turns.append(turn)

    def _close(self) -> None:
        """End the last turn, so that no more parts or results are added to it."""
        if self._signature is not None:  # no call followed the signature
            self._assistants().append(RedactedReasoning(self._signature))
        self._signature = self._text = self._answers = None

    def _assistants(self) -> list[Part]:
        """Return the parts of the current assistant turn. Begin an assistant turn if there is none."""
        self._answers = None
        if not self.turns or self.turns[-1].role != "assistant":
            self.turns.append(Turn("assistant"))
            self._call_count = 0
        return self.turns[-1].parts

    def _programs(self) -> list[Part]:
        """Return the parts of the turn to which tool outputs are added. Begin one if there is none."""
        if self._answers is None:
            self._close()
            self._answers = Turn("user")
            self.turns.append(self._answers)
        return self._answers.parts

    def _aside(self, kind: str, raw: dict[str, Any]) -> None:
        vendor = MADE if is_made(raw) else wire.VENDOR
        what: AsideKind = "metadata" if kind in SETTINGS else aside_kind(kind, raw)
        aside = Aside(vendor, what, f"{wire.ITEM}{raw['type']}", raw)
        image = read_image(raw, aside)
        if kind not in PROGRAMS:
            parts = self._assistants()
        elif self.turns and self.turns[-1].role == "user":
            parts = self.turns[-1].parts
        else:
            parts = self._programs()
        parts.append(aside if image is None else part_of(image))

    # -- the assistant's items -------------------------------------------------------------------------------------

    def _message_item(self, item: Fields) -> None:
        parts = self.content(item) or [Text("")]
        of_item = members(item)
        for number, part in enumerate(part for part in parts if isinstance(part, Text | Refusal)):
            part.extras = _with_item(part.extras, of_item, first=number == 0)
            self._text = part if isinstance(part, Text) else self._text
        self._assistants().extend(parts)

    def _reasoning(self, item: Fields) -> None:
        blob = item.string("encrypted_content")
        parts: list[Reasoning] = []
        for name, kind in ("summary", "summary"), ("content", "raw"):
            for part in item.each(name):
                part.take("type")
                parts.append(Reasoning(part.needed("text"), cast("Any", kind), extras=part.rest() or None))
        of_item = members(item)
        sealed = unseal(blob) if blob else None
        if sealed is not None:
            self._sealed(sealed.kind, sealed.opaque, parts)
            return
        last = next((part for part in reversed(parts) if part.text), None)
        opaque = Opaque(wire.OPAQUE_VENDOR, blob) if blob else None
        if opaque is not None and last is None:
            self._assistants().append(RedactedReasoning(opaque, _with_item(None, of_item, first=True)))
            return
        if last is not None:
            last.signature = opaque
        for number, thought in enumerate(parts or [Reasoning("", "summary")]):
            thought.extras = _with_item(thought.extras, of_item, first=number == 0)
            self._assistants().append(thought)

    def _sealed(self, kind: str, opaque: Opaque, parts: list[Reasoning]) -> None:
        """Restore another vendor's signature or opaque data, which was sealed (base64 with the vendor's name) in an item."""
        if kind == "call":
            self._signature = opaque
        elif kind == "text" and self._text is not None:
            self._text.signature = opaque
        elif kind == "opaque":
            self._assistants().append(RedactedReasoning(opaque))
        elif kind == "reasoning":
            parts = parts or [Reasoning("", "summary")]
            parts[-1].signature = opaque
            self._assistants().extend(parts)
        else:
            self._assistants().append(Text("", opaque))

    def _call(self, item: Fields, kind: str) -> None:
        parts = self._assistants()
        call_id, name, namespace = item.string("call_id") or "", item.needed("name"), item.string("namespace")
        call = ToolCall(self._call_count, call_id, name, item.string(wire.CALL_INPUTS[kind]) or "", place=item.place)
        if namespace is not None:
            call.qualified = QualifiedName(namespace, name)
            call.name = self.names.flat(call.qualified)
        call.kind = "custom" if kind == "custom_tool_call" else "function"
        call.signature, self._signature = self._signature, None
        call.extras = members(item)
        self._add_call(call, parts)

    def _add_call(self, call: ToolCall, parts: list[Part]) -> None:
        self._call_count += 1
        self._calls.add(call.id)
        parts.append(call)

    # -- outputs ---------------------------------------------------------------------------------------------------

    def _is_paired(self, item: Fields) -> bool:
        """Return whether an output can be read as a result: its call is in the request, or no call is stored elsewhere."""
        call_id = item.peek("call_id")
        return not self.stored or (isinstance(call_id, str) and call_id in self._calls)

    def _result(self, item: Fields, kind: str) -> None:
        result = ToolResult(item.string("call_id") or "", name=item.string("name"), place=item.place)
        result.kind = "custom" if kind == wire.OUTPUTS["custom"] else "function"
        result.parts = openai.only_of_tools(self.content(item, "output"), item, "output")
        result.extras = members(item)
        self._programs().append(result)

    def content(self, item: Fields, name: str = "content") -> list[Part]:
        content = item.text_or_each(name)
        if isinstance(content, str):
            return [Text(content)] if content else []
        return [read for part in content for read in self._part(part)]

    def _part(self, part: Fields) -> list[Part]:
        """Read a part. Return it and the asides for its annotations."""
        match part.needed("type"):
            case "input_text":
                return [Text(part.needed("text"), cache=openai.read_cache_mark(part), extras=part.rest() or None)]
            case "output_text":
                return self._output_text(part)
            case "refusal":
                return [Refusal(part.needed("refusal"), part.rest() or None)]
            case "input_image":
                return [_image(part)]
            case "input_file":
                return [_file(part)]
            case "input_audio":
                return [openai.finished_media(openai.read_audio(part), part)]
            case kind:
                return [unknown_part(wire.VENDOR, kind, part)]

    def _output_text(self, part: Fields) -> list[Part]:
        self._labels = label = self._labels + 1
        text = part.needed("text")
        asides = [Aside(wire.VENDOR, "citation", "annotation", raw, block=label) for raw in part.listed("annotations")]
        if logprobs := part.listed("logprobs"):
            asides.append(Aside(wire.VENDOR, "logprobs", "logprobs", logprobs, block=label))
        return [Text(text, block=label, extras=part.rest() or None), *asides]


def _compacts(entry: Any) -> bool:
    """Return whether an entry of ``context_management`` is a request for a compaction that we can express."""
    if not isinstance(entry, dict) or entry.get("type") != COMPACTION:
        return False
    return entry.get(wire.THRESHOLD) is None or type(entry[wire.THRESHOLD]) is int


def _is_plain(choice: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Return whether a choice names only tools of the client that are in no namespace."""
    named = choice["tools"] if choice["type"] == "allowed_tools" else [choice]
    ours = all(tool.get("type", "function") in NAMED and tool.get("namespace") is None for tool in named)
    return ours and [tool["name"] for tool in named] == [*names]


def members(item: Fields) -> dict[str, Any] | None:
    """Return the unread members of an item, without the status ``completed``, which is the default."""
    return {name: value for name, value in item.rest().items() if (name, value) != ("status", "completed")} or None


def _with_item(extras: Extras | None, of_item: dict[str, Any] | None, *, first: bool) -> Extras | None:
    """Return the extras of a part, and in them the extras of its item; for later parts of the item only the id."""
    if of_item is not None and not first and "id" in of_item:
        of_item = {"id": of_item["id"]}
    return {**(extras or {}), **without_none(item=of_item)} or None


def _untyped(item: Fields) -> str:
    """Return the type of an item that does not state its type: a message if it has a role, otherwise a reference."""
    if "role" in item:
        return "message"
    if item.names == ["id"]:
        return "item_reference"
    raise item.wrong("is missing; must be the type of the item", "type")


def _is_known(item: Fields) -> bool:
    """Return whether other dialects can express a message: if not, it is the assistant's and has only unknown parts."""
    kinds = _kinds(item, "content")
    return (
        item.peek("role") != "assistant" or not kinds or not kinds.isdisjoint({"output_text", "input_text", "refusal"})
    )


def _kinds(item: Fields, name: str) -> set[str]:
    return {kind for part in objects_in(item.peek(name)) if isinstance(kind := part.get("type"), str)}


def _image(part: Fields) -> Media:
    url, file_id, detail = part.string("image_url"), part.string("file_id"), part.string("detail")
    if url is None and file_id is None:
        raise part.wrong("must have image_url or file_id")
    media = Media("image", url=url, file_id=file_id, detail=detail, place=part.place)
    if url is not None and is_data_uri(url):
        media.media_type, media.data = media_of(url, part.at("image_url"))
        media.url = None
    return openai.finished_media(media, part)


def _file(part: Fields) -> Media:
    data = part.string("file_data")
    media = Media("file", data=data, url=part.string("file_url"), file_id=part.string("file_id"), place=part.place)
    if data is None and media.url is None and media.file_id is None:
        raise part.wrong("must have file_data, file_url or file_id")
    if data is not None and is_data_uri(data):
        media.media_type, media.data = media_of(data, part.at("file_data"))
    media.name, media.detail = part.string("filename"), part.string("detail")
    return openai.finished_media(media, part)
