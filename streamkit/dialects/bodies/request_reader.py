"""Reading request bodies: the order in which each member is taken, and the parts that dialects say alike.

What is read is taken (``members/fields.py``), and what nobody took at the end is the dialect's own.

Source: dialects.md §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar

from streamkit.conversation.messages import Media, Options, Part, Request, Text, Tool, ToolCall, ToolChoice, Turn
from streamkit.dialects.bodies.blocks_as_text import CONTENT
from streamkit.dialects.members.fields import Fields, is_data_uri, media_of
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

P = TypeVar("P", bound=Part)
#: How the value of each option that is one field is read, by our names.
READERS: Final[Mapping[str, Callable[[Fields, str], Any]]] = {
    **dict.fromkeys(("max_tokens", "top_k", "seed", "choices", "top_logprobs"), Fields.integer),
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), Fields.number),
    **dict.fromkeys(("service_tier", "user"), Fields.string),
    "logprobs": Fields.boolean,
    "stop": Fields.strings,
}


class RequestReader:
    """Reads one request, member by member. A dialect's own says what is in each."""

    #: The dialect's name.
    dialect: ClassVar[str]

    #: Members that name the exchange, or are read as a part of the conversation: written again as they came.
    exchange: ClassVar[tuple[str, ...]] = ()

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.turns: list[Turn] = []
        self.references: list[tuple[str, str]] = []  #: to what the server keeps: see ``Request.stored``
        self.unreadable: list[tuple[str, str, str]] = []  #: see ``Request.unreadable``

    @classmethod
    def decode_request(cls, fields: Fields, report: StreamReport) -> Request:
        """Read a request body. Raises BadRequest."""
        return cls(report).request(fields)

    def begun(self, fields: Fields) -> Request:
        """The request as far as its model and whether to stream. Overridden where they stand elsewhere."""
        return Request(self.dialect, fields.string("model"), stream=fields.boolean("stream"))

    def read_turns(self, fields: Fields) -> None:
        """Read the conversation into ``turns``."""
        raise NotImplementedError

    def tools(self, fields: Fields) -> list[Tool]:
        return [self.tool(tool) for tool in fields.each("tools")]

    def tool(self, tool: Fields) -> Tool:
        raise NotImplementedError

    def tool_choice(self, fields: Fields) -> ToolChoice | None:  # noqa: ARG002 - for those that override it
        """The choice among tools; None where the dialect has none."""
        return None

    def options(self, fields: Fields) -> Options:
        raise NotImplementedError

    def stream_usage(self, fields: Fields, stream: bool | None) -> bool | None:  # noqa: ARG002 - for those that override it
        """Whether a stream shall end with token counts, which most dialects bring without being asked."""
        return stream or None

    def request(self, fields: Fields) -> Request:
        """The whole request. Raises BadRequest."""
        request = self.begun(fields)
        request.exchange = {name: fields.peek(name) for name in self.exchange if fields.peek(name) is not None}
        self.read_turns(fields)
        request.turns = self.turns
        request.tools = self.tools(fields)
        request.tool_choice = self.tool_choice(fields)
        request.options = self.options(fields)
        request.stream_usage = self.stream_usage(fields, request.stream)
        request.extras = {name: value for name, value in fields.rest().items() if name not in self.exchange}
        request.stored, request.unreadable = self.references, self.unreadable
        return request


def read_options(fields: Fields, names: Mapping[str, str], **others: Any) -> Options:
    """The options whose names in the dialect are in ``names``, by ours, and ``others``, which are read already.

    Raises BadRequest for a value of another type.
    """
    plain = {name: READERS[name](fields, theirs) for name, theirs in names.items() if name not in others}
    return Options(**plain, **others)


def function_call(call: Fields, number: int) -> ToolCall:
    """A call of a function, in a list of an assistant's message, whose arguments are text. Raises BadRequest."""
    kind = call.string("type") or "function"
    if kind != "function":
        raise call.wrong(f"there is no call of type {quoted(kind)}", "type")
    function = call.needed_fields("function")
    arguments = function.string("arguments") or ""
    return ToolCall(number, call.string("id") or "", function.needed("name"), arguments, place=call.place)


def content_of(message: Fields, read: Callable[[Fields], P]) -> list[P | Text]:
    """The parts of a content that is a text or a list of parts; an empty text is none. Raises BadRequest."""
    content = message.text_or_each("content")
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [read(part) for part in content]


def unknown_part(vendor: str, kind: str, part: Fields, block: int = 0) -> Aside:
    """Return an unknown part, whole: only the same dialect writes it again."""
    raw = {"type": kind, **part.rest()}
    return Aside(vendor, "unknown_event", f"{CONTENT}{kind}", raw, block=block, place=part.place)


def image_of(part: Fields) -> Media:
    """The image of a part whose ``image_url`` is an object, as OpenAI's is. Raises BadRequest."""
    image = part.needed_fields("image_url")
    media = media_at("image", image, "url")
    media.detail = image.string("detail")
    return media


def media_at(kind: Any, fields: Fields, name: str) -> Media:
    """Media at a URL, which may be their content itself. Raises BadRequest."""
    url = fields.needed(name)
    if is_data_uri(url):
        return Media(kind, *media_of(url, fields.at(name)))
    return Media(kind, url=url, place=fields.place)


def server_tool(kind: str, tool: Fields, name: str | None = None) -> Tool:
    """A tool that the provider runs itself, as it came: called ``name``, or what it says, or else what its type is."""
    raw = {"type": kind, **tool.rest()}
    named = raw.get("name") if name is None else name
    return Tool(named if isinstance(named, str) else kind, kind="server", raw=raw)


def function_tool(function: Fields, tool: Fields) -> Tool:
    """A tool that is a function; ``tool`` is the object that says what it is, maybe the same. Raises BadRequest."""
    read = Tool(function.needed("name"), function.string("description"), function.mapping("parameters"))
    read.extras = tool.rest() or None
    return read
