"""Read request bodies: members by type, and the order and parts that all dialects have in common.

A request comes from a program that can be corrected, so a member of the wrong type raises ``BadRequest`` with its path, and
is never guessed. A member that is read is removed from its object; what is left at the end is kept as ``rest``, so nothing is
lost within the dialect. Where a tool result is a separate message (role ``tool``), neighbouring results become one user turn
(``TurnReader``).

In some dialects calls need no ids. The reader then makes an id from the position of the call. A result without an id, or with
an id that no call has, belongs to the first waiting call of its tool's name, or else to the first waiting call (``Waiting``).

Source: dialects.md §7.3, §7.4; quirks.md 35 (calls without ids).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, get_origin

import orjson
from attrs import evolve

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
    Unreadable,
)
from streamkit.dialects.members.values import CONTAINERS, DEPTH, has_value, is_deep
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import STEP_CHARS, quoted, shortened, steps
from streamkit.tool_calls.value_text import ValueTexts, plain_text

T = TypeVar("T")
Spelling: TypeAlias = Callable[[str], str]  #: returns the name by which a member is read
#: A number that parsing may change: it has more digits than a double, or an exponent.
_LONG_NUMBER: Final = re.compile(rb"\d{16}|\d\.?\d*[eE]")
#: An escape in JSON text. The group ``half`` is half of a surrogate pair without its other half; it is replaced.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_REPLACED: Final = rb"\ufffd"
_NAMES: Final = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    list: "a list",
    dict: "an object",
}


class Body:
    """The JSON text of a request or response, for values whose exact text matters."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._texts: ValueTexts | None = None
        self._exact: bool | None = None

    def text_of(self, value: Any, path: tuple[str | int, ...]) -> str:
        """Return the JSON text of the value at ``path``, with plain escapes: the original if rewriting could change a number.

        The result does not depend on the rest of the body. So a history has the same text in each request, and providers find
        it in their caches.
        """
        if self._exact is None:
            self._exact = _LONG_NUMBER.search(self.text) is not None
        if self._exact:
            if self._texts is None:
                self._texts = ValueTexts(self.text)
            own = self.text[self._texts.span(*path)]
            if _LONG_NUMBER.search(own) is not None:
                return plain_text(own.decode())
        return orjson.dumps(value).decode()


def _of_type(kind: type[T]) -> Callable[[Fields, str], T | None]:
    exact = get_origin(kind) or kind

    def taken(self: Fields, name: str) -> T | None:
        value = self._members.pop(name, None)
        if value is None or type(value) is exact:
            return value
        raise self._wrong(name, value, exact)

    return taken


class Fields:
    """The members of one JSON object, and its path in the body. Null counts as absent.

    If a member has several names on the wire, ``spell`` returns the name by which it is read. Paths contain the original
    name.
    """

    def __init__(
        self, members: Mapping[str, Any], path: tuple[str | int, ...], body: Body, spell: Spelling | None = None
    ) -> None:
        self._members = dict(members)
        self._came_as: dict[str, str] = {}
        self._opened: dict[str, Fields] = {}
        self._spell = spell
        self.path = path
        self.body = body
        if spell is not None:
            self._members = {}
            for name, value in members.items():
                known = spell(name)
                if known in self._members:
                    other = shortened(self._came_as[known], STEP_CHARS)
                    raise BadRequest(shown((*path, name)), f"the member is also given as {other}")
                self._members[known], self._came_as[known] = value, name

    def spelled(self, spell: Spelling) -> Fields:
        """Return the same members, and all objects opened from them, under the names that ``spell`` returns."""
        return Fields(self._members, self.path, self.body, spell)

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    @property
    def names(self) -> list[str]:
        """The names of members that are present and were not taken. They show which type of a union this is."""
        return [name for name, value in self._members.items() if value is not None]

    @property
    def place(self) -> str:
        """The path to the object, for messages: ``messages[3]``."""
        return shown(self.path)

    def at(self, name: str) -> str:
        """Return the path to a member, for messages: ``messages[3].content``."""
        return shown(self._path_of(name))

    def peek(self, name: str) -> Any:
        """Return a value without taking it, to find out which type of object this is."""
        return self._members.get(name)

    def peek_all(self) -> Mapping[str, Any]:
        """Return all members that were not taken, without taking them."""
        return dict(self._members)

    def take(self, name: str) -> Any:
        return self._members.pop(name, None)

    #: Take a text, a boolean, or an object as it is.
    string, boolean, mapping = _of_type(str), _of_type(bool), _of_type(dict[str, Any])
    _list = _of_type(list[Any])

    def replace(self, name: str, value: Any) -> None:
        """Put another value in place of a member, such as the unread rest of a value."""
        self._members[name] = value

    def needed(self, name: str) -> str:
        """Take a string. Raises BadRequest if it is missing."""
        value = self.string(name)
        return value if value is not None else self._there(name, value, str)

    def integer(self, name: str) -> int | None:
        value = self.number(name)
        if value is None:
            return None
        if not float(value).is_integer():
            raise BadRequest(self.at(name), f"must be an integer, not {value}")
        if not -(2**63) <= value < 2**64:  # it was read as a float, and cannot be written as an integer
            raise BadRequest(self.at(name), "must be an integer of at most 64 bits")
        return int(value)

    def number(self, name: str) -> float | None:
        value = self._members.pop(name, None)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        raise self._wrong(name, value, float)

    def listed(self, name: str) -> list[Any]:
        return self._list(name) or []

    def strings(self, name: str) -> tuple[str, ...]:
        """Take a list of strings."""
        values = self.listed(name)
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise BadRequest(f"{self.at(name)}[{number}]", f"must be a string, not {kind_of(value)}")
        return tuple(values)

    def fields(self, name: str) -> Fields | None:
        """Take an object to read its members. Members that are not taken from it are in the ``rest`` of this object."""
        value = self._members.pop(name, None)
        if value is None:
            return None
        if type(value) is not dict:
            raise self._wrong(name, value, dict)
        opened = self._opened[name] = Fields(value, self._path_of(name), self.body, self._spell)
        return opened

    def needed_fields(self, name: str) -> Fields:
        """Take an object to read its members. Raises BadRequest if it is missing."""
        return self._there(name, self.fields(name), dict)

    def fields_of_type(self, name: str, types: Container[str]) -> Fields | None:
        """Take an object if its ``type``, if any, is among ``types``. Others belong to the dialect, and stay."""
        value = self._members.get(name)
        if value is None:
            return None
        kind = value.get("type") if isinstance(value, dict) else None
        return None if isinstance(kind, str) and kind not in types else self.fields(name)

    def each(self, name: str) -> list[Fields]:
        """Take the objects of a list."""
        values = self._list(name)
        if not values:
            return []
        opened: list[Fields] = []
        path = self._path_of(name)
        for value in values:
            if type(value) is not dict:
                raise BadRequest(f"{self.at(name)}[{len(opened)}]", f"must be an object, not {kind_of(value)}")
            opened.append(Fields(value, (*path, len(opened)), self.body, self._spell))
        return opened

    def needed_each(self, name: str) -> list[Fields]:
        """Take the objects of a list. Raises BadRequest if it is missing."""
        self._there(name, self._members.get(name), list)
        return self.each(name)

    def text_or_each(self, name: str) -> str | list[Fields]:
        """Take a text, or the objects of a list, for content that may have both forms. ``""`` if it is missing."""
        value = self._members.get(name)
        if type(value) is list:
            return self.each(name)
        if value is None or type(value) is str:
            return self.string(name) or ""
        raise BadRequest(self.at(name), f"must be a string or a list of objects, not {kind_of(value)}")

    def text_of(self, name: str) -> str:
        """Take the JSON text of a member."""
        return self.body.text_of(self.take(name), self._path_of(name))

    def object_text(self, name: str) -> str | None:
        """Take the JSON text of an object."""
        value = self.mapping(name)
        return None if value is None else self.body.text_of(value, self._path_of(name))

    def rest(self) -> dict[str, Any]:
        """Take all members that are left, in this object and in those that were opened with ``fields``."""
        rest, self._members = self._members, {}
        if None in rest.values():
            rest = {name: value for name, value in rest.items() if value is not None}
        for name, opened in self._opened.items():
            if left := opened.rest():
                rest[name] = left
        return rest

    def find(self, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the path and the leaf of ``known`` for each of its leaves that is in this object, without taking anything.

        ``known`` has the shape of the object: a dict for an object, a list of one element for a list, and a leaf for any value
        that is not empty. The leaf at ``""`` in a dict is for a string in place of the object.
        """
        for name, inner in known.items():
            if name in self._members:
                yield from _found(self._members[name], inner, self._path_of(name), self._spell)

    def wrong(self, reason: str, name: str | None = None) -> BadRequest:
        """Return the error for a wrong value of a member, or of the whole object."""
        return BadRequest(shown(self.path) if name is None else self.at(name), reason)

    def _path_of(self, name: str) -> tuple[str | int, ...]:
        return (*self.path, self._came_as.get(name, name))

    def _there(self, name: str, value: T | None, kind: type) -> T:
        if value is None:
            raise BadRequest(self.at(name), f"is missing; must be {_NAMES[kind]}")
        return value

    def _wrong(self, name: str, value: Any, kind: type) -> BadRequest:
        return BadRequest(self.at(name), f"must be {_NAMES[kind]}, not {kind_of(value)}")


def _found(value: Any, known: Any, path: tuple[str | int, ...], spell: Spelling | None) -> Iterator[tuple[str, Any]]:
    if isinstance(known, dict) and isinstance(value, str):
        known = known.get("", known)
    if isinstance(known, list):
        [inner] = known
        for number, each in enumerate(value if isinstance(value, list) else ()):
            if spell is not None or (isinstance(each, dict) and not inner.keys().isdisjoint(each)):  # rarely
                yield from _found(each, inner, (*path, number), spell)
    elif not isinstance(known, dict):
        if has_value(value):
            yield shown(path), known
    elif isinstance(value, dict):
        names = {(name if spell is None else spell(name)): name for name in value}
        for name, inner in known.items():
            if name in names:
                yield from _found(value[names[name]], inner, (*path, names[name]), spell)


def media_of(uri: str, path: str) -> tuple[str, str]:
    """Return the media type and the base64 text of a ``data:`` URI (RFC 2397). Raises BadRequest if it is malformed."""
    head, comma, data = uri.partition(",")
    media_type, *parameters = head[len("data:") :].split(";")
    if not comma or "base64" not in (parameter.strip().lower() for parameter in parameters):
        raise BadRequest(path, "the content of a data: URI must be base64")
    return media_type.strip().lower() or "text/plain", base64_of(data, path)


def base64_of(text: str, path: str) -> str:
    """Return a text unchanged if it is base64. Raises BadRequest if not."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        reason = "must be base64 without a data: prefix" if is_data_uri(text) else f"must be base64: {error}"
        raise BadRequest(path, reason) from error
    return text


def is_data_uri(text: str) -> bool:
    """Return whether a URL contains its content. The scheme may be in capitals (RFC 3986 §3.1)."""
    return text[:5].lower() == "data:"


def fields_of(body: bytes, report: StreamReport | None = None) -> Fields:
    """Return the members of a whole body. Raises BadRequest if it is not a JSON object.

    Half of a surrogate pair becomes U+FFFD. Clients that cut a text inside an emoji leave such halves in every later request,
    and providers refuse the whole body because of them.
    """
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        whole = whole_characters(body)
        if whole == body:
            raise BadRequest("", f"the body is not JSON: {error}") from error
        if report is not None:
            report.repair("lone_surrogate")
        return fields_of(whole)
    if not isinstance(members, dict):
        raise BadRequest("", f"the body must be an object, not {kind_of(members)}")
    if body.count(b"{") + body.count(b"[") > DEPTH:
        _check_depth(members)
    return Fields(members, (), Body(body))


def whole_characters(text: bytes) -> bytes:
    """Return JSON text in which each escaped half of a surrogate pair is an escaped U+FFFD, which has the same length."""
    return _ESCAPE.sub(lambda escape: _REPLACED if escape["half"] else escape[0], text)


def _check_depth(members: Mapping[str, Any]) -> None:
    """Refuse a body that could not be written again: orjson reads 1,024 levels but writes 254."""
    for name, value in members.items():
        if type(value) in CONTAINERS and is_deep(value):
            raise BadRequest(name, f"nested deeper than {DEPTH} levels")


def kind_of(value: Any) -> str:
    """Return the type of a JSON value, in words."""
    return "null" if value is None else _NAMES[type(value)]


def shown(path: tuple[str | int, ...]) -> str:
    """Return a path in the form of error messages, ``messages[0].content``."""
    return steps(path).removeprefix(".")


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

    #: What only a provider of this dialect can read, in the shape of a request: see ``Fields.find``.
    stores: ClassVar[Mapping[str, Any]] = {}

    #: Members that identify the exchange, or are part of the conversation for the client. The response repeats them.
    exchange: ClassVar[tuple[str, ...]] = ()

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.turns: list[Turn] = []
        self.unreadable: list[Unreadable] = []  #: see ``Request.unreadable``

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
        for path, stored in fields.find(self.stores):
            self.unreadable.append(evolve(stored, path=path, reader=self.dialect))
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
        request.unreadable = self.unreadable
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


def is_deferred(tool: Fields) -> bool:
    """Return whether a tool is deferred. The member ``defer_loading`` is read only if it is true."""
    if tool.peek("defer_loading") is not True:
        return False
    tool.take("defer_loading")
    return True


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


BLANK_LINE: Final = "\n\n"  #: The separator between joined texts, unless they are fragments of one text.
PLAIN_TEXT: Final = frozenset({"type", "text"})  #: the members of a text part that has nothing but its text


def add_missing(body: dict[str, Any], extras: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add to ``body`` the members of ``extras`` that ``body`` lacks, also inside nested objects. Return ``body``."""
    for name, value in (extras or {}).items():
        written = body.get(name)
        if isinstance(written, dict) and isinstance(value, Mapping):
            add_missing(written, value)
        elif written is None:
            body[name] = value
    return body


def without_none(**members: Any) -> dict[str, Any]:
    """Return an object of the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def members_of(value: object, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with attributes of ``value``: ``names`` maps an attribute to its member. None and () are left out."""
    said = {theirs: getattr(value, ours) for ours, theirs in names.items()}
    return {name: each for name, each in said.items() if each is not None and each != ()}


def plain_or_list(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return content as a string if it is empty or one text without other members; otherwise as the list of its parts."""
    if len(content) == 1 and content[0].keys() == PLAIN_TEXT:
        return str(content[0]["text"])
    return content or ""
