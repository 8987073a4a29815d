"""The shared readers of request bodies: the order in which members are read, and parts that dialects have in common.

A member that is read is removed from its object (``members/fields.py``); what is left at the end is kept as extras. Where a
tool result is a separate message (role ``tool``), neighbouring results become one user turn (``TurnReader``).

In some dialects calls need no ids. The reader then makes an id from the position of the call. A result without an id, or with
an id that no call has, belongs to the first waiting call of its tool's name, or else to the first waiting call (``Waiting``).

Source: dialects.md §7.3, §7.4; quirks.md 35 (calls without ids).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from streamkit.conversation.messages import (
    Media,
    Options,
    Part,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

P = TypeVar("P", bound=Part)
CONTENT: Final = "content."  #: The beginning of the aside type for content blocks that a reader does not know.
_ANY: Final = ""  #: the key in ``Waiting`` for all waiting calls, whatever their names
#: How the value of each option is read, by our name of the option. Only options that are a single member.
READERS: Final[Mapping[str, Callable[[Fields, str], Any]]] = {
    **dict.fromkeys(("max_tokens", "top_k", "seed", "choices", "top_logprobs"), Fields.integer),
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), Fields.number),
    **dict.fromkeys(("service_tier", "user"), Fields.string),
    "logprobs": Fields.boolean,
    "stop": Fields.strings,
}


class RequestReader:
    """Reads one request, member by member. A dialect's subclass reads the content of each member."""

    dialect: ClassVar[str]  #: the dialect's name

    #: Members that identify the exchange, or are part of the conversation for the client. The response repeats them.
    exchange: ClassVar[tuple[str, ...]] = ()

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.turns: list[Turn] = []
        self.references: list[tuple[str, str]] = []  #: references to data that the server keeps: see ``Request.stored``
        self.unreadable: list[tuple[str, str, str]] = []  #: see ``Request.unreadable``

    @classmethod
    def decode_request(cls, fields: Fields, report: StreamReport) -> Request:
        """Read a request body. Raises BadRequest."""
        return cls(report).request(fields)

    def begun(self, fields: Fields) -> Request:
        """Read the model, and whether to stream. Subclasses override this if these are not members of the body."""
        return Request(self.dialect, fields.string("model"), stream=fields.boolean("stream"))

    def read_turns(self, fields: Fields) -> None:
        """Read the conversation into ``turns``."""
        raise NotImplementedError

    def tools(self, fields: Fields) -> list[Tool]:
        return [self.tool(tool) for tool in fields.each("tools")]

    def tool(self, tool: Fields) -> Tool:
        raise NotImplementedError

    def tool_choice(self, fields: Fields) -> ToolChoice | None:  # noqa: ARG002 - for those that override it
        """Return the tool choice. Returns None by default, for dialects without one."""
        return None

    def options(self, fields: Fields) -> Options:
        raise NotImplementedError

    def stream_usage(self, fields: Fields, stream: bool | None) -> bool | None:  # noqa: ARG002 - for those that override it
        """Return whether a stream must contain token counts. By default every stream does; None if not requested."""
        return stream or None

    def request(self, fields: Fields) -> Request:
        """Read the whole request. Raises BadRequest."""
        request = self.begun(fields)
        request.exchange = {name: fields.peek(name) for name in self.exchange if fields.peek(name) is not None}
        self.read_turns(fields)
        request.turns = self.turns
        request.tools = self.tools(fields)
        request.tool_choice = self.tool_choice(fields)
        request.options = self.options(fields)
        request.stream_usage = self.stream_usage(fields, request.stream)
        request.extras = fields.rest()
        for name in self.exchange:
            request.extras.pop(name, None)
        request.stored, request.unreadable = self.references, self.unreadable
        return request


class TurnReader(RequestReader):
    """Reads the messages of a request into ``turns``. Subclasses read the content of each message."""

    _results: Turn | None = None  #: the turn to which further results are added

    def content(self, message: Fields, /) -> Sequence[Part]:
        """Return the parts of a system or user message."""
        raise NotImplementedError

    def assistant(self, message: Fields, /) -> Turn:
        raise NotImplementedError

    def result(self, message: Fields, /) -> ToolResult:
        """Read a message of role ``tool``."""
        raise NotImplementedError

    def role(self, message: Fields) -> str:
        """Return the role of a message. Subclasses override this if their server accepts several spellings."""
        return message.needed("role")

    def read_turns(self, fields: Fields) -> None:
        """Read the messages. Raises BadRequest."""
        for message in fields.needed_each("messages"):
            role = self.role(message)
            if (result := self.answer(message, role)) is not None:
                result.extras = message.rest() or None
                self.join(result)
                continue
            self._results = None
            turn = self.turn(message, role)
            turn.extras = message.rest() or None
            self.turns.append(turn)

    def answer(self, message: Fields, role: str) -> ToolResult | None:
        """Read a message that is a tool result; return None for other messages."""
        return self.result(message) if role == "tool" else None

    def join(self, result: ToolResult) -> None:
        """Add a result to the turn of the results directly before it. If there is none, begin a turn."""
        if self._results is None:
            self._results = Turn("user")
            self.turns.append(self._results)
        self._results.parts.append(result)

    def turn(self, message: Fields, role: str) -> Turn:
        """Read a message as a turn. Raises BadRequest for an unknown role."""
        match role:
            case "system" | "user":
                return Turn(role, [*self.content(message)])
            case "assistant":
                return self.assistant(message)
        raise message.wrong(f"unknown role {quoted(role)}", "role")


class Waiting:
    """The calls of one turn, and which of them have a result."""

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._waiting: dict[str, deque[ToolCall]] = {}
        self._given: dict[str, int] = {}  #: the numbers of the calls that have an id in the request, by id
        self._answered: set[int] = set()
        for call in calls:
            self.add(call)

    def add(self, call: ToolCall) -> None:
        if not call.id_made:
            self._given[call.id] = call.index
        for key in (call.name, _ANY):
            self._waiting.setdefault(key, deque()).append(call)

    def answer(self, call_id: str, name: str | None) -> str:
        """Return the id of the call to which a result belongs; the result's own id if there is no such call."""
        if call_id in self._given:
            self._answered.add(self._given[call_id])
            return call_id
        waiting = self._waiting.get(name or _ANY, deque())
        while waiting and waiting[0].index in self._answered:
            waiting.popleft()
        if not waiting or (call_id and not waiting[0].id_made):
            return call_id
        call = waiting.popleft()
        self._answered.add(call.index)
        if call_id:  # the client dropped the call's id, but the result has it
            call.id, call.id_made = call_id, False
        return call.id


def read_options(fields: Fields, names: Mapping[str, str], **others: Any) -> Options:
    """Read the options in ``names`` (our name: the dialect's name). ``others`` are options that the caller has already read.

    Raises BadRequest for a value of a wrong type.
    """
    plain = {name: READERS[name](fields, theirs) for name, theirs in names.items() if name not in others}
    return Options(**plain, **others)


def function_call(call: Fields, number: int) -> ToolCall:
    """Read a function call from an assistant message's list; its arguments are text. Raises BadRequest."""
    kind = call.string("type") or "function"
    if kind != "function":
        raise call.wrong(f"must be 'function', not {quoted(kind)}", "type")
    function = call.needed_fields("function")
    arguments = function.string("arguments") or ""
    return ToolCall(number, call.string("id") or "", function.needed("name"), arguments, place=call.place)


def content_of(message: Fields, read: Callable[[Fields], P]) -> list[P | Text]:
    """Return the parts of a content that is a string or a list of parts. An empty string has no parts. Raises BadRequest."""
    content = message.text_or_each("content")
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [read(part) for part in content]


def unknown_part(vendor: str, kind: str, part: Fields, block: int = 0) -> Aside:
    """Return an unknown part as an aside. Only a request in the same dialect writes it again."""
    raw = {"type": kind, **part.rest()}
    return Aside(vendor, "unknown_event", f"{CONTENT}{kind}", raw, block=block, place=part.place)


def image_of(part: Fields) -> Media:
    """Read the image of a part whose ``image_url`` is an object, as in OpenAI's requests. Raises BadRequest."""
    image = part.needed_fields("image_url")
    media = media_at("image", image, "url")
    media.detail = image.string("detail")
    return media


def media_at(kind: Any, fields: Fields, name: str) -> Media:
    """Read media at a URL. A ``data:`` URI contains the media. Raises BadRequest."""
    url = fields.needed(name)
    if is_data_uri(url):
        return Media(kind, *media_of(url, fields.at(name)))
    return Media(kind, url=url, place=fields.place)


def server_tool(kind: str, tool: Fields, name: str | None = None) -> Tool:
    """Return a tool that the provider runs, unchanged. Its name is ``name``, or else its member ``name``, or else its type."""
    raw = {"type": kind, **tool.rest()}
    named = raw.get("name") if name is None else name
    return Tool(named if isinstance(named, str) else kind, kind="server", raw=raw)


def function_tool(function: Fields, tool: Fields) -> Tool:
    """Read a function tool. ``function`` has its name and schema; unread members of ``tool`` are kept. Raises BadRequest."""
    read = Tool(function.needed("name"), function.string("description"), function.mapping("parameters"))
    read.extras = tool.rest() or None
    return read
