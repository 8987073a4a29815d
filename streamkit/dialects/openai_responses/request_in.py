"""Responses requests to the neutral conversation: options, tools, the choice among them; the input in ``messages_in.py``.

``instructions`` is a turn of the system in front of the input. A message of the system among the items remembers its role,
so that each goes back to where it came from. What has no word of ours in ``reasoning``, ``text`` and ``include`` stays among
the members that only this dialect knows, and so does a choice of tools that the provider runs.

Source: dialects.md §2.3, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

from streamkit.conversation.messages import Compaction, Options, OutputFormat, Request, Text, Thinking, ToolChoice, Turn
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.openai_responses.messages_in import SETTINGS, MessageReader
from streamkit.dialects.openai_responses.wire import LOGPROBS, MANAGEMENT, THRESHOLD
from streamkit.dialects.streams.compactions import COMPACTION
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: Kinds of ``text.format``, and ours.
OUTPUT_KINDS: Final[Mapping[str, Literal["text", "json", "schema"]]] = {
    "text": "text",
    "json_object": "json",
    "json_schema": "schema",
}
#: Members that stand for a part of the conversation.
STORED: Final = ("previous_response_id", "conversation")
#: What to send instead of a reference to what the server keeps.
WHOLE: Final = f"send the whole input with each request, and store: false ({SETTINGS})"
INSTEAD: Final = {
    "previous_response_id": f"{WHOLE}, without the id of a response",
    "conversation": f"{WHOLE}, without a conversation",
    "prompt": "send the text of the prompt as instructions or input",
}
#: Tools of the program, in ``tool_choice``.
NAMED: Final = frozenset({"function", "custom"})


def decode_request(fields: Fields, _report: StreamReport) -> Request:
    """Read a request body. Raises BadRequest."""
    return RequestReader().request(fields)


class RequestReader(MessageReader):
    dialect: ClassVar[str] = "openai-responses"

    def request(self, fields: Fields) -> Request:
        request = Request(self.dialect, fields.string("model"), stream=fields.boolean("stream"))
        self.stored = any(name in fields for name in STORED)
        self.references += [(name, INSTEAD[name]) for name in INSTEAD if name in fields]
        tools = self.tools(fields)
        if instructions := fields.string("instructions"):
            self.turns.append(Turn("system", [Text(instructions)]))
        self.read_input(fields)
        request.turns = self.turns
        request.tools = tools + self.loaded
        request.tool_choice = self._tool_choice(fields)
        request.options, include = self._options(fields)
        request.stream_usage = request.stream or None  # a stream always says it here
        request.extras = fields.rest() | include
        request.stored = self.references
        request.unreadable = self.unreadable
        return request

    # -- options ---------------------------------------------------------------------------------------------------

    def _options(self, fields: Fields) -> tuple[Options, dict[str, Any]]:
        """The options, and what ``include`` asks for beside them."""
        options = Options(
            max_tokens=fields.integer("max_output_tokens"),
            temperature=fields.number("temperature"),
            top_p=fields.number("top_p"),
            top_logprobs=fields.integer("top_logprobs"),
            thinking=self._thinking(fields),
            compaction=self._compaction(fields),
            output=self._format(fields),
            service_tier=fields.string("service_tier"),
            user=fields.string("user"),
        )
        include = list(fields.strings("include"))
        if LOGPROBS in include:
            options.logprobs = True
        others = [name for name in include if name != LOGPROBS]
        return options, {"include": others} if others else {}

    def _compaction(self, fields: Fields) -> Compaction | None:
        """What the trigger at the end of the input, and ``context_management``, ask for. Entries of other kinds stay there."""
        entries = fields.peek(MANAGEMENT)
        entry = next(filter(_compacts, entries), None) if isinstance(entries, list) else None
        native: dict[str, Any] = {} if self.trigger is None else {"input": self.trigger}
        if entry is not None:
            native[MANAGEMENT] = entries
            rest = [other for other in entries if other is not entry]
            rest += [{**entry, THRESHOLD: None}] if entry.keys() - {"type", THRESHOLD} else []
            fields.replace(MANAGEMENT, rest or None)
        if not native:
            return None
        return Compaction(self.trigger is not None, None if entry is None else entry.get(THRESHOLD), native=native)

    def _thinking(self, fields: Fields) -> Thinking | None:
        reasoning = fields.fields("reasoning")
        if reasoning is None:
            return None
        effort, summary = reasoning.string("effort"), reasoning.string("summary")
        return None if effort is None and summary is None else Thinking(effort, summary=summary)

    def _format(self, fields: Fields) -> OutputFormat | None:
        text = fields.fields("text")
        form = text.fields_of_type("format", OUTPUT_KINDS) if text is not None else None
        if form is None:
            return None
        kind = OUTPUT_KINDS[form.needed("type")]
        if kind != "schema":
            return OutputFormat(kind)
        schema = form.mapping("schema")
        if schema is None:
            raise form.wrong("a schema is needed, and there is none", "schema")
        return OutputFormat(kind, schema, form.needed("name"), form.string("description"), form.boolean("strict"))

    # -- the choice among the tools --------------------------------------------------------------------------------

    def _tool_choice(self, fields: Fields) -> ToolChoice | None:
        parallel = fields.boolean("parallel_tool_calls")
        choice = self._choice(fields)
        if choice is None and parallel is not None:
            choice = ToolChoice()
        if choice is not None:
            choice.parallel = parallel
        return choice

    def _choice(self, fields: Fields) -> ToolChoice | None:
        given = fields.peek("tool_choice")
        if isinstance(given, str):
            return self._mode(fields.needed("tool_choice"), "tool_choice")
        choice = fields.fields("tool_choice")
        if choice is None:
            return None
        kind = choice.needed("type")
        if kind != "allowed_tools":
            found = ToolChoice("required", (*self._allowed(choice, kind),))
        else:
            found = self._mode(choice.needed("mode"), choice.at("mode"))
            found.names = self._all_allowed(choice.needed_each("tools"))
        if not _says(given, found.names):
            choice.rest()
            found.native = given
        return found

    def _mode(self, mode: str, path: str) -> ToolChoice:
        match mode:
            case "auto" | "none" | "required":
                return ToolChoice(mode)
            case _:
                raise BadRequest(path, f"'auto', 'none' or 'required' is needed, not {quoted(mode)}")

    def _all_allowed(self, tools: Iterable[Fields]) -> tuple[str, ...]:
        """The tools that a list of choices names. A namespace that stands there again adds nothing."""
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
        """The tools that a choice names: one of the program's, all of a namespace, or one that the provider runs."""
        if kind == "namespace":
            return self.names.within(tool.needed("name"))
        if kind is None or kind in NAMED:
            return (self.names.chosen(tool.string("namespace"), tool.needed("name")),)
        return (kind,)


def _compacts(entry: Any) -> bool:
    """Whether an entry of ``context_management`` asks for compaction in words that are known."""
    if not isinstance(entry, dict) or entry.get("type") != COMPACTION:
        return False
    return entry.get(THRESHOLD) is None or type(entry[THRESHOLD]) is int


def _says(choice: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether a choice names tools of the program alone, each by the name that it has here."""
    named = choice["tools"] if choice["type"] == "allowed_tools" else [choice]
    ours = all(tool.get("type", "function") in NAMED and tool.get("namespace") is None for tool in named)
    return ours and [tool["name"] for tool in named] == [*names]
