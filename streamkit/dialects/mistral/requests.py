"""Read and write Mistral's requests: OpenAI Chat's, with other names, values and kinds of parts.

The assistant's content contains its thinking parts. They are read as in streams: their texts become reasoning, other things in
them asides. Another vendor's signature is unsealed; those of calls are given to the calls of the message in order. In other
messages a thinking part is an example (the system shows how to think), and is kept for this dialect only.

The server demands an order of messages: after a result come results or the assistant; the system is first or after the user;
the assistant says something in each message, and is last only with text to be continued (``prefix``). A request of another
dialect is put into that order; a request of this dialect is not changed.

Thinking is sent back in the content, with Mistral's signatures but no other vendor's. Results have media and the tool's name.
Streams always end with token counts. For a choice among some tools, only those are offered.

Source: dialects.md §6.3, §7.3, §7.4; errors of Mistral's server, above all for ids; the order: mistral-common,
``protocol/instruct/validator.py``, code 3230; the request types of mistralai 3.7.0, which also have ``top_k`` and log
probabilities.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.conversation.media import data_uri
from streamkit.conversation.messages import (
    Media,
    Options,
    Part,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.openai import VECTOR_STORE
from streamkit.dialects.lowering import (
    Capabilities,
    Lowering,
    Place,
    asked_effort,
    chosen_of,
    of_parts,
    of_tools,
    results_named,
    told_by,
)
from streamkit.dialects.members.fields import (
    Fields,
    RequestReader,
    image_of,
    is_data_uri,
    media_at,
    media_of,
    server_tool,
    without_none,
)
from streamkit.dialects.members.values import text_of
from streamkit.dialects.mistral.encode import Chunks
from streamkit.dialects.mistral.wire import ASIDES, CONTENT, OPTIONS, SERVICE_TIERS, THINKING, TOOLS, VENDOR
from streamkit.dialects.openai_chat import request_out as chat
from streamkit.dialects.openai_chat.request_in import ChatRequestReader
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.models import COMMON, UNKNOWN
from streamkit.dialects.vocabulary.sealed_reasoning import unseal, unsealed
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import NINE
from streamkit.text.quoting import quoted

#: What only Mistral's servers can read.
STORES: Final = {"tools": [{"library_ids": evolve(VECTOR_STORE, what="a document library by its id")}]}

# -- reading -----------------------------------------------------------------------------------------------------------


class MistralRequestReader(ChatRequestReader):
    """Reads one request."""

    dialect = "mistral"
    stores = STORES
    vendor: ClassVar[str] = VENDOR

    stream_usage = RequestReader.stream_usage  # every stream ends with token counts, unasked

    def options(self, fields: Fields) -> Options:
        names = {**OPTIONS, "max_tokens": "max_tokens", "top_k": "top_k", "service_tier": "service_tier"}
        return self.plain_options(fields, names)

    def thinking(self, fields: Fields) -> Thinking | None:
        effort = fields.string("reasoning_effort")
        return None if effort is None else Thinking(effort)

    tools = RequestReader.tools  # Chat's older members for tools do not exist here

    def tool(self, tool: Fields) -> Tool:
        """Read a function, or a tool that Mistral runs. A function may lack its type."""
        kind = tool.string("type") or "function"
        if kind == "function":
            return self.function(tool.needed_fields("function"), tool)
        return server_tool(kind, tool, kind)

    def choice(self, fields: Fields, name: str) -> ToolChoice | None:
        """Read the tool choice; the older member ``function_call`` is not one here."""
        if name != "tool_choice":
            return None
        if not isinstance(fields.peek(name), dict):
            return super().choice(fields, name)
        choice = fields.fields_of_type(name, {"function"})
        if choice is None:
            return self.choice_of_hosted(fields, name)
        choice.take("type")
        return ToolChoice("required", (choice.needed_fields("function").needed("name"),))

    def mode(self, mode: str, path: str) -> ToolChoice:
        return super().mode("required" if mode == "any" else mode, path)

    def role(self, message: Fields) -> str:
        """Return the role of a message. Raises BadRequest for a role that only Chat has."""
        role = super().role(message)
        if role in {"developer", "function"}:
            raise message.wrong(f"must be 'system', 'user', 'assistant' or 'tool', not {quoted(role)}", "role")
        return role

    def part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), extras=part.rest() or None)
            case "image_url":
                is_object = isinstance(part.peek("image_url"), dict)
                media = image_of(part) if is_object else media_at("image", part, "image_url")
            case "document_url":
                media = media_at("file", part, "document_url")
                media.name = part.string("document_name")
            case "input_audio":
                media = self._input_audio(part)
            case "file":
                media = Media("file", file_id=part.needed("file_id"), place=part.place)
            case kind:
                return _aside(CONTENT, kind, part)
        media.extras = part.rest() or None
        return media

    def _input_audio(self, part: Fields) -> Media:
        """Read audio: a URL, or base64 in a ``data:`` URI or bare."""
        audio = part.needed("input_audio")
        if audio.startswith(("http:", "https:")):
            return Media("audio", url=audio, place=part.place)
        if is_data_uri(audio):
            return Media("audio", *media_of(audio, part.at("input_audio")))
        return Media("audio", data=audio)

    def assistant(self, message: Fields) -> Turn:
        parts, signatures = self._content_and_signatures(message)
        for read in self.calls(message):
            read.signature = signatures.popleft() if signatures else None
            parts.append(read)
        parts += [RedactedReasoning(signature) for signature in signatures]  # signatures without a call
        if message.peek("prefix") is False:  # the client always writes this default
            message.take("prefix")
        return Turn("assistant", parts)

    def _content_and_signatures(self, message: Fields) -> tuple[list[Part], deque[Opaque]]:
        """Read the parts of the content, and the signatures of calls."""
        content = message.text_or_each("content")
        signatures: deque[Opaque] = deque()
        if isinstance(content, str):
            return [Text(content)] if content else [], signatures
        parts: list[Part] = []
        text: Text | None = None  # the last text
        for part in content:
            before = len(parts)
            if part.peek("type") == "thinking":
                self._thinking(part, parts, signatures, text)
            else:
                parts.append(self.part(part))
            text = next((new for new in reversed(parts[before:]) if isinstance(new, Text)), text)
        return parts, signatures

    def _thinking(self, chunk: Fields, parts: list[Part], signatures: deque[Opaque], before: Text | None) -> None:
        """Read a thinking part. Give its signature to what it belongs to: the thinking, the text ``before`` it, or a call."""
        chunk.take("type")
        thoughts = _thoughts(chunk)
        blob = chunk.string("signature")
        sealed = unseal(blob) if blob else None
        if blob and (sealed is None or sealed.kind == "reasoning"):
            _last(thoughts).signature = unsealed(blob, VENDOR)
        if members := chunk.rest():
            _last(thoughts).extras = members
        parts += thoughts
        if sealed is None:
            return
        opaque = sealed.opaque
        if sealed.kind == "call":
            signatures.append(opaque)
        elif sealed.kind == "opaque":
            parts.append(RedactedReasoning(opaque))
        elif sealed.kind == "text" and before is not None:
            before.signature = opaque
        elif sealed.kind in {"text", "part"}:
            parts.append(Text("", opaque))

    def call(self, call: Fields, number: int) -> ToolCall:
        """Read a call, whose arguments may be an object. The client writes ``"null"`` for a missing id."""
        if call.peek("type") == "function":
            call.take("type")
        function = call.needed_fields("function")
        is_object = isinstance(function.peek("arguments"), dict)
        arguments = function.text_of("arguments") if is_object else function.string("arguments") or ""
        read = ToolCall(number, text_of(call.string("id")) or "", function.needed("name"), arguments, place=call.place)
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """Read a result. The client writes ``"null"`` for a missing id."""
        result = super().result(message)
        result.call_id = text_of(result.call_id) or ""
        return result


def _aside(where: str, kind: str, part: Fields) -> Aside:
    raw = {"type": kind, **part.rest()}
    return Aside(VENDOR, ASIDES.get(kind, "unknown_event"), f"{where}{kind}", raw, place=part.place)


def _thoughts(chunk: Fields) -> list[Reasoning | Aside]:
    """Read the content of a thinking part. Adjacent texts are joined; asides between texts keep their place."""
    thoughts: list[Reasoning | Aside] = []
    texts: list[str] = []  # of the last text

    def close() -> None:
        if texts:
            thoughts.append(Reasoning("".join(texts)))
            texts.clear()

    for thought in chunk.needed_each("thinking"):
        kind = thought.needed("type")
        if kind == "text" and thought.names in ([], ["text"]):
            texts.append(thought.needed("text"))
        else:
            close()
            thoughts.append(_aside(THINKING, kind, thought))
    close()
    return thoughts


def _last(thoughts: list[Reasoning | Aside]) -> Reasoning:
    """Return the last text of a thinking part, which holds its signature and extras; add an empty one if needed."""
    last = thoughts[-1] if thoughts else None
    if not isinstance(last, Reasoning):
        last = Reasoning("")
        thoughts.append(last)
    return last


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return images, audio and files of the user or a result, with bytes or a web URL; None, and a loss, for others."""
    here = media.data is not None or (media.url or "").startswith(("data:", "http:", "https:"))
    if place not in {"user", "result"} or media.kind == "video" or not here:
        to.lose("media", media.kind)
        return None
    if media.kind == "audio":
        return media if media.data is None else evolve(media, media_type=None)
    return evolve(media, detail=to.closeness(media.detail)) if media.kind == "image" else media


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Return media with bytes, a URL or a file id; None, and a loss, for others and for videos."""
    here = media.data is not None or media.url is not None or (media.kind == "file" and media.file_id is not None)
    if media.native is not None or (here and media.kind != "video"):
        return media
    to.lose("media", media.kind)
    return None


def choice_of_offered(request: Request, _to: Lowering) -> None:
    """Offer only the tools that the choice names. A choice of one required tool stays, because Mistral can express it."""
    choice = request.tool_choice
    if choice is None or (choice.mode == "required" and len(choice.names) == 1):
        return
    request.tools = [*chosen_of(request.tools, choice)]
    request.tool_choice = evolve(choice, names=())


@of_parts
def drop_empty_parts(part: Part, _place: Place, _to: Lowering) -> Part | None:
    """Drop empty texts and empty reasoning, unless they have a signature."""
    silent = isinstance(part, Text | Reasoning) and not part.text and part.signature is None
    return None if silent else part


def put_in_order(request: Request, to: Lowering) -> None:
    """Move system turns to the front or after the user, and add an assistant turn between results and user texts."""
    front, placed = list[Turn](), list[Turn]()  # the system turns in front, and all others
    for turn in request.turns:
        answered = bool(placed) and _has(placed[-1], ToolResult)
        if turn.role == "system" and (not placed or answered or placed[-1].role == "assistant"):
            if placed:
                to.lose("system_place")
            front.append(evolve(turn, native_role=None))
            continue
        if turn.role == "user" and answered and not _has(turn, ToolResult):
            to.report.repair("turn_added")
            placed.append(Turn("assistant", [Text("OK.")]))  # any text will do
        placed.append(evolve(turn, native_role=None))
    if placed and placed[-1].role == "assistant" and not _has(placed[-1], ToolCall):
        placed[-1] = evolve(placed[-1], extras={"prefix": True})
    request.turns = [*front, *placed]


def _has(turn: Turn, kind: type[Part]) -> bool:
    return any(isinstance(part, kind) for part in turn.parts)


@of_tools
def add_schemas(tool: Tool, _to: Lowering) -> Tool:
    """Give an empty schema to functions that have none, because the server requires a schema."""
    is_bare = tool.kind == "function" and tool.parameters is None
    return evolve(tool, parameters={"type": "object", "properties": {}}) if is_bare else tool


def set_effort(request: Request, to: Lowering) -> None:
    """Set the amount of thinking as an effort: ``high`` or ``none`` if the request only says whether to think."""
    thinking = request.options.thinking
    request.stream_usage = None
    if thinking is not None:
        to.lose_thinking(thinking, "budget_tokens", "summary")
        effort = asked_effort(thinking)
        if effort is None and thinking.enabled is not None:
            effort = "high" if thinking.enabled else "none"
        request.options.thinking = Thinking(to.fit_effort(effort), native="reasoning_effort")


FOREIGN: Final = Capabilities(
    dialect="mistral",
    vendor=VENDOR,
    title="Mistral",
    model=evolve(UNKNOWN, efforts=("none", *COMMON)),
    ids=NINE,
    names=TOOLS.names,
    result_errors=False,
    signs_reasoning=VENDOR,
    takes_opaque=lambda _blob: False,
    unsigned_reasoning=True,
    strips_signatures=True,
    media=fit_media,
    empty_turns=True,
    results="behind calls",
    parallel=True,
    some_tools=True,
    needs_properties=True,
    form_with_tools=True,
    options=frozenset({*OPTIONS, "max_tokens", "top_k", "thinking", "output", "service_tier"}),
    service_tiers=frozenset(SERVICE_TIERS),
    first=(chat.tools_unmarked, choice_of_offered),
    said=(results_named, drop_empty_parts, chat.drop_empty_turns),
    arranged=(put_in_order,),
    last=(add_schemas, set_effort),
)
#: What the servers accept in a request that was read in this dialect.
OWN: Final = evolve(
    FOREIGN,
    model=UNKNOWN,
    ids=None,
    names=None,
    turn_names=True,
    media=own_media,
    results="apart",
    service_tiers=None,
    said=(),
    arranged=(),
)
capabilities: Final = told_by(OWN, FOREIGN)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    body = chat.write_body(request, MistralMessages(report), OPTIONS)
    if body.get("tool_choice") == "required":
        body["tool_choice"] = "any"
    return body


class MistralMessages(chat.Messages):
    """Writes the messages of one request."""

    def media(self, media: Media) -> dict[str, Any]:
        url = data_uri(media) if media.data is not None else media.url
        match media.kind:
            case "image":
                return {"type": "image_url", "image_url": without_none(url=url, detail=media.detail)}
            case "audio":
                bare = media.data is not None and media.media_type is None
                return {"type": "input_audio", "input_audio": media.data if bare else url}
        if url is None:
            return {"type": "file", "file_id": media.file_id}
        return without_none(type="document_url", document_url=url, document_name=media.name)

    def assistant(self, turn: Turn) -> dict[str, Any]:
        chunks, calls, members = Chunks(), list[dict[str, Any]](), dict[str, Any]()
        for each in turn.parts:
            part = each.native or each if isinstance(each, Media) else each
            match part:
                case ToolCall():
                    calls.append(chat.write_call(part))
                case Aside() if part.type.startswith("delta."):
                    members[part.type.removeprefix("delta.")] = part.raw
                case Aside():
                    if not chunks.aside(part):
                        self.report.lose(part.kind, what=part.type)
                case Reasoning():
                    chunks.think(part.text, None if part.signature is None else part.signature.blob, part.extras)
                case _:
                    chunks.add(self.part(part))
            if calls and not isinstance(part, ToolCall | Aside):
                self.report.lose("block_order")
        message = {"role": "assistant", "content": chunks.content or (None if calls else ""), **members}
        return chat.named(message | without_none(tool_calls=calls or None), turn)
