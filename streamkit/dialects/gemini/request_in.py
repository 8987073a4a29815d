"""Gemini's requests to the neutral conversation: contents, options, tools, the choice among them.

A content is one turn, but neighbours of the model are one turn: the official client keeps each chunk of a stream as a content
of its own. Ids are optional; a call without one is given one made of its place. An empty text says nothing and is no part.
What only Google understands is an aside, whole, as in its streams (``decode.py``).

A response of a function is an object. Where its one member is text that a tool gave, that is the result, and the member is
remembered; any other object is a result of JSON text.

Google's client writes base64 in the alphabet for URLs: media are read into the other one, and signatures stay as they are.
What another vendor signed and was carried here sealed is that vendor's again (``vocabulary/sealed_reasoning.py``), with
all the text that it signs.

The wire takes each member by two names, its own (``functionCall``) and the protocol's (``function_call``), and so does the
reader. The model, and whether the answer streams, stand in the URL. A schema has two forms, and the older one (``parameters``,
``responseSchema``) is read as the JSON schema that it means and kept beside it.

Source: dialects.md §5.1-§5.3, §7.3, §7.4; quirks.md R14, 35.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Final, Literal

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
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
    WebSearch,
)
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.bodies.request_reader import RequestReader, Waiting, read_options
from streamkit.dialects.gemini.decode import ASIDE_PARTS, TEXT_FIELDS
from streamkit.dialects.gemini.schemas import json_schema
from streamkit.dialects.gemini.wire import DYNAMIC, JSON, MODES, OPTIONS, PLAIN, VALIDATED, camel_case
from streamkit.dialects.members.fields import Fields, base64_of, kind_of
from streamkit.dialects.members.values import has_value
from streamkit.dialects.vocabulary.google import FILMS, LEVELS, OWN_URIS, VENDOR, standard_base64
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: What a part can be: one of these.
KINDS: Final = frozenset({"text", "functionCall", *ASIDE_PARTS})
#: Roles, and ours. The third is an older name, which the server does not take any more.
ROLES: Final[Mapping[str, Literal["user", "assistant"]]] = {"user": "user", "model": "assistant", "function": "user"}
#: Members of a response that hold a tool's output where they are its only one.
OUTPUTS: Final = frozenset({"output", "result", "error"})
#: ``mode``, and ours.
CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    "MODE_UNSPECIFIED": "auto",
    VALIDATED: "auto",
    **{word: ours for ours, word in MODES.items()},
}
#: Members of a tool that let the model search the web, the older one last.
SEARCHES: Final = frozenset({"googleSearch", "googleSearchRetrieval"})
NO_LEVEL: Final = "thinking_level_unspecified"


class GeminiRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "gemini"

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._calls = 0  #: of the model's turn
        self._waiting = Waiting()
        self._signature: Opaque | None = None  #: of the next call
        self._extras: dict[str, Any] = {}  #: of the turn that is being read

    @classmethod
    def decode_request(cls, fields: Fields, report: StreamReport) -> Request:
        return super().decode_request(fields.spelled(camel_case), report)

    def begun(self, fields: Fields) -> Request:
        if "cachedContent" in fields:
            self.references.append(("cachedContent", "send the contents themselves"))
        return Request(self.dialect, fields.string("model"))

    # -- contents ------------------------------------------------------------------------------------------------------

    def read_turns(self, fields: Fields) -> None:
        """The instruction of the system, whose role says nothing, and the contents."""
        instruction = fields.fields("systemInstruction")
        if instruction is not None:
            turn = Turn("system", native_role=instruction.string("role"))
            for part in instruction.each("parts"):
                self._part(part, turn)
            self.turns.append(turn)
        for content in fields.needed_each("contents"):
            self._content(content)
        self._end_turn()

    def _content(self, content: Fields) -> None:
        role = content.string("role") or "user"
        if role not in ROLES:
            raise content.wrong(f"'user' or 'model' is needed, not {quoted(role)}", "role")
        turn = self._turn(ROLES[role])
        for part in content.each("parts"):
            self._part(part, turn)
        self._extras |= content.rest()
        turn.extras = self._extras or None

    def _end_turn(self) -> None:
        """No more parts of the model's turn come."""
        if self._signature is not None:  # the call that it signed is gone
            self.turns[-1].parts.append(RedactedReasoning(self._signature))
            self._signature = None

    def _turn(self, role: Literal["user", "assistant"]) -> Turn:
        """The turn that a content of the role belongs to."""
        if self.turns and role == "assistant" == self.turns[-1].role:
            return self.turns[-1]
        self._end_turn()
        if role == "assistant":
            self._calls, self._waiting = 0, Waiting()
        self._extras = {}
        turn = Turn(role)
        self.turns.append(turn)
        return turn

    # -- parts -----------------------------------------------------------------------------------------------------

    def _part(self, part: Fields, turn: Turn) -> None:
        kind = _kind(part)
        speaks = turn.role == "assistant"
        match kind:
            case "text" if speaks:
                self._spoken(part, turn.parts)
            case "text":
                self._text(part, turn)
            case "inlineData" | "fileData":
                turn.parts.append(_media_of(part))
            case "functionCall" if speaks:
                self._call(part, turn.parts)
            case "functionCall":
                raise part.wrong("a call may only stand in a content of the model", "functionCall")
            case "functionResponse" if turn.role == "user":
                self._result(part, turn.parts)
            case _:
                aside = ASIDE_PARTS.get(kind, "unknown_event")
                turn.parts.append(Aside(VENDOR, aside, "part", part.rest(), place=part.place))

    def _text(self, part: Fields, turn: Turn) -> None:
        """Text that is not the model's: a signature of it means nothing."""
        if part.boolean("thought"):
            raise part.wrong("a thought may only stand in a content of the model", "thought")
        text = Text(part.string("text") or "")
        text.extras = part.rest() or None
        if text.text or text.extras:
            turn.parts.append(text)

    def _spoken(self, part: Fields, parts: list[Part]) -> None:
        """Text or a thought of the model."""
        text, thought, blob = part.string("text") or "", part.boolean("thought"), part.string("thoughtSignature")
        new: Text | Reasoning = Reasoning(text, "summary") if thought else Text(text)
        new.extras = part.rest() or None
        sealed = _unsealed(blob)
        if blob and sealed is None:
            new.signature = Opaque(VENDOR, blob)
        if text or new.signature or new.extras:
            parts.append(new)
        if sealed is not None:
            self._foreign(sealed, parts)

    def _foreign(self, sealed: Sealed, parts: list[Part]) -> None:
        """What another vendor signed or encrypted. A signature is of all the text of its kind in front of it."""
        opaque = sealed.opaque
        match sealed.kind:
            case "call":
                self._signature = opaque
            case "opaque":
                parts.append(RedactedReasoning(opaque))
            case "part":
                parts.append(Text("", opaque))
            case kind:
                signed: Text | Reasoning = Reasoning("", "summary") if kind == "reasoning" else Text("")
                run = [*takewhile(lambda part: _may_be_signed(part, type(signed)), reversed(parts))]
                del parts[len(parts) - len(run) :]
                signed.text = "".join(part.text for part in reversed(run) if isinstance(part, Text | Reasoning))
                signed.signature = opaque
                parts.append(signed)

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, part: Fields, parts: list[Part]) -> None:
        call, blob = part.needed_fields("functionCall"), part.string("thoughtSignature")
        text = call.object_text("args") or "{}"
        read = ToolCall(self._calls, call.string("id") or "", call.needed("name"), text, place=call.place)
        self._calls += 1
        if not read.id:
            _, content, _, number = part.path
            read.id, read.id_made = f"call_{content}_{number}", True
        self._waiting.add(read)
        read.extras = call.rest() or None
        if blob:
            sealed = _unsealed(blob)
            read.signature = Opaque(VENDOR, blob) if sealed is None else sealed.opaque
        else:
            read.signature, self._signature = self._signature, None
        parts.append(read)
        _beside(part, parts)

    def _result(self, part: Fields, parts: list[Part]) -> None:
        response = part.needed_fields("functionResponse")
        call_id, name = response.string("id") or "", response.needed("name")
        result = ToolResult(self._waiting.answer(call_id, name), name=name, place=response.place)
        self._response(response, result)
        for inner in response.each("parts"):
            kind = _kind(inner)
            media = kind in {"inlineData", "fileData"}
            result.parts.append(_media_of(inner) if media else Aside(VENDOR, "unknown_event", "part", inner.rest()))
        result.extras = response.rest() or None
        parts.append(result)
        _beside(part, parts)

    def _response(self, response: Fields, result: ToolResult) -> None:
        """The text of a response, which may be a list of several, or all of the object."""
        members = response.peek("response")
        if not isinstance(members, dict | None):
            raise response.wrong(f"an object is needed, not {kind_of(members)}", "response")
        if not members:
            response.take("response")
            return
        name, value = next(iter(members.items()))
        only = len(members) == 1 and name in OUTPUTS
        result.is_error = only and name == "error"
        texts = value if isinstance(value, list) and len(value) > 1 else [value]
        if only and all(isinstance(text, str) for text in texts):
            response.take("response")
            result.native = name
            result.parts += [Text(text) for text in texts if text or len(texts) > 1]
        else:
            result.parts.append(Text(response.text_of("response")))

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, fields: Fields) -> Options:
        options, config = Options(), fields.fields("generationConfig")
        if config is not None:
            options = read_options(config, OPTIONS, thinking=self._thinking(config), output=self._output(config))
        options.service_tier = fields.string("serviceTier")
        return options

    def _thinking(self, config: Fields) -> Thinking | None:
        thinking = config.fields("thinkingConfig")
        if thinking is None:
            return None
        word, budget = thinking.string("thinkingLevel") or "", thinking.integer("thinkingBudget")
        level = word.lower()
        if level not in {*LEVELS, "", NO_LEVEL}:
            raise thinking.wrong(
                f"one of {', '.join(sorted(LEVELS)).upper()} is needed, not {quoted(word)}", "thinkingLevel"
            )
        shown = thinking.boolean("includeThoughts")
        read = Thinking(level if level in LEVELS else None)
        if budget is not None and budget <= 0:
            read.enabled = budget == DYNAMIC
        else:
            read.budget_tokens = budget
        read.summary = None if shown is None else "auto" if shown else "none"
        return read if read != Thinking() else None

    def _output(self, config: Fields) -> OutputFormat | None:
        """How the answer is to be written. One of another type, an enumeration as bare text, is the dialect's own."""
        kind = config.peek("responseMimeType")
        if not isinstance(kind, str | None):
            kind = config.string("responseMimeType")  # which says what is wrong
        older, newer = "responseSchema" in config, "responseJsonSchema" in config
        if kind not in {None, JSON, PLAIN} or not (kind or older or newer):
            return None
        if kind == PLAIN and (older or newer):
            return None
        config.take("responseMimeType")
        if newer:
            return OutputFormat("schema", config.take("responseJsonSchema"))
        if older:
            schema = config.mapping("responseSchema")
            return OutputFormat("schema", json_schema(schema), native_schema=schema)
        return OutputFormat("json" if kind == JSON else "text")

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        return [tool for each in fields.each("tools") for tool in self._tools(each)]

    def _tools(self, tool: Fields) -> Iterator[Tool]:
        """The functions of one ``tool``, and the tools of Google's beside them."""
        for declaration in tool.each("functionDeclarations"):
            yield self._function(declaration)
        for name, value in tool.rest().items():
            search = _search(value) if name in SEARCHES else None
            yield Tool(name, kind="server", raw={name: value}, search=search)

    def _function(self, declaration: Fields) -> Tool:
        tool = Tool(declaration.needed("name"), declaration.string("description"))
        if (older := declaration.mapping("parameters")) is not None:
            tool.parameters, tool.native_parameters = json_schema(older), older
        else:
            tool.parameters = declaration.mapping("parametersJsonSchema")
        tool.extras = declaration.rest() or None
        return tool

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        config = fields.fields("toolConfig")
        calling = config.fields("functionCallingConfig") if config else None
        if calling is None:
            return None
        mode, names = calling.string("mode"), calling.strings("allowedFunctionNames")
        if mode is None and not names:
            return None
        if mode is not None and mode not in CHOICES:
            raise calling.wrong(f"one of {', '.join(CHOICES)} is needed, not {quoted(mode)}", "mode")
        extras = {"mode": VALIDATED} if mode == VALIDATED else None
        return ToolChoice(CHOICES[mode or "AUTO"], names, extras=extras)


def _media_of(part: Fields) -> Media:
    """``inlineData`` or ``fileData``."""
    if "inlineData" in part:
        data = part.needed_fields("inlineData")
        media = _media(data)
        media.data = base64_of(standard_base64(data.needed("data")), data.at("data"))
    else:
        data = part.needed_fields("fileData")
        media, uri = _media(data), data.needed("fileUri")
        if uri.startswith(OWN_URIS):
            media.file_id = uri
        else:
            media.url = uri
        if uri.startswith(FILMS):
            media.kind = "video"
    media.extras = part.rest() or None
    return media


def _media(data: Fields) -> Media:
    kind = data.string("mimeType")
    media = Media("file", kind, name=data.string("displayName"), place=data.place)
    match (kind or "").partition("/")[0].lower():
        case "image" | "audio" | "video" as known:
            media.kind = known
    return media


def _kind(part: Fields) -> str:
    """What a part is; "" for one of an unknown kind."""
    kinds = [name for name in part.names if name in KINDS]
    if len(kinds) > 1:
        raise part.wrong(f"a part is one thing, and here are {' and '.join(kinds)}")
    if kinds:
        return kinds[0]
    return "text" if TEXT_FIELDS.issuperset(part.names) else ""


def _beside(part: Fields, parts: list[Part]) -> None:
    """What stands in a part beside its call or result: asides, as in a stream."""
    for name, value in part.rest().items():
        if has_value(value):
            parts.append(Aside(VENDOR, "metadata", f"part.{name}", value))


def _unsealed(blob: str | None) -> Sealed | None:
    return unseal(standard_base64(blob)) if blob else None


def _may_be_signed(part: Any, kind: type[Text | Reasoning]) -> bool:
    """Whether a part can be a piece of a signed text: the streams of this dialect bring it in pieces, and its end behind."""
    return type(part) is kind and part.signature is None and part.extras is None


def _search(options: Any) -> WebSearch:
    """Google's search, whose options are its own."""
    options = dict(options) if isinstance(options, Mapping) else {}
    excluded = options.pop("excludeDomains", None)
    return read_search(options | without_none(blocked_domains=excluded))
