"""Read and write requests of Google's Interactions API: steps, options, tools and the tool choice.

The input is a string, a content, or a list of contents or of steps. A ``user_input`` becomes one turn, and so do neighbouring
results, which may also be in a ``user_input``, as the AI SDK writes them. Neighbouring outputs, thoughts and calls of the
model become one turn; the texts of one ``model_output`` share a block label. Steps that only Google understands become asides.

streamkit writes another vendor's signature in a marked form ("sealed"). If a client sends this form back, the reader restores
the original with the text that it signs; any other signature is Google's. A result that is an object becomes its JSON text. A
member that names data on the server, such as a previous interaction, becomes a reference. A result whose call only the server
has becomes an aside, since it can't be paired here.

Before a request is written, everything that the servers do not take (``capabilities``) is dropped (``translation/lowering``).
A user's turn is written as a ``user_input``, after one step for each result; the model's texts and media as one
``model_output`` for each block label. All system messages are joined to one ``system_instruction``.

Thoughts and calls are sent back with Google's signature; signatures and thoughts of other vendors are dropped. Arguments are
objects, and so is a result that was read as one. A request of another dialect is written with ``store: false``, since Google
stores each interaction otherwise, and clients of other dialects send the whole conversation each time.

Source: dialects.md §5.5, §7.3, §7.4; seeds.md S2; quirks.md R14; the types of google-genai 3.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.media import KINDS, TYPES, media_type_of
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
    Unreadable,
)
from streamkit.dialects.bodies import google
from streamkit.dialects.bodies.google import FILMS, LEVELS, OWN_URIS, SERVICE_TIERS, is_own_uri, standard_base64
from streamkit.dialects.bodies.google import VENDOR as SIGNER
from streamkit.dialects.gemini_interactions import wire
from streamkit.dialects.gemini_interactions.decode import aside_kind
from streamkit.dialects.lowering import Capabilities, Lowering, Place, of_parts, of_turns, results_named, told_by
from streamkit.dialects.members.fields import (
    PLAIN_TEXT,
    Fields,
    RequestReader,
    add_missing,
    base64_of,
    function_tool,
    is_deferred,
    kind_of,
    members_of,
    plain_or_list,
    read_options,
    server_tool,
    without_none,
)
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.models import UNKNOWN, effort_of
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: What only a server of this dialect can read.
STORES: Final[Mapping[str, Any]] = {
    "previous_interaction_id": Unreadable(
        "an earlier interaction by its id",
        "send all earlier steps in `input` with each request, without an interaction id",
        of_conversation=True,
    ),
    "continuation_token": Unreadable(
        "an earlier request by its token", "send the request again with the whole `input`", of_conversation=True
    ),
    "cached_content": Unreadable("cached contents by their name", "send the cached contents in `input`"),
    "environment": Unreadable("an environment of Google", "send the files in `input`"),
    "tools": [
        {
            "file_search_store_names": google.FILE_STORE,
            "vertex_ai_search_config": google.DATA_STORE,
            "rag_store_config": google.DATA_STORE,
        }
    ],
}
CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    wire.VALIDATED: "auto",
    **{word: ours for ours, word in wire.MODES.items()},
}
SEARCH: Final = "google_search"
FINDER: Final = "tool_search"  #: the search of deferred tools
#: Types of a response format. An object without one of these types is a schema, in the older form.
FORMATS: Final = frozenset({"text", "image", "audio", "video"})
Step: TypeAlias = dict[str, Any]


# -- reading -----------------------------------------------------------------------------------------------------------


class InteractionsRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "gemini-interactions"
    stores = STORES

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._calls = 0  # the number of calls in the current model turn
        self._stored = False  # the server has more of the conversation than the request
        self._called: set[str] = set()
        self._outputs = 0  # the number of outputs among the model's steps
        self._text: Text | None = None  # the last text of the model
        self._signature: Opaque | None = None  # a restored signature of the next call
        self._thoughts = 0  # the number of thoughts among the model's steps
        self._user: Turn | None = None  # the turn that the next result, or the next content outside a step, joins
        self._user_kind = ""  # which of the two

    def read_turns(self, fields: Fields) -> None:
        if instruction := fields.string("system_instruction"):
            self.turns.append(Turn("system", [Text(instruction)]))
        self._stored = any(each.of_conversation for each in self.unreadable)
        given = fields.peek("input")
        if isinstance(given, str):
            text = fields.needed("input")
            self.turns.append(Turn("user", [Text(text)] if text else []))
        elif isinstance(given, dict):
            self._item(fields.needed_fields("input"))
        else:
            for item in fields.each("input"):
                self._item(item)
        self._close()

    def _item(self, item: Fields) -> None:
        """Read a step of the input, a content, which is a part of a user turn, or a turn of the revision before 2026-05-20."""
        if "type" not in item and "role" in item:
            self._turn(item)
            return
        kind = item.needed("type")
        if kind == "text" or kind in KINDS:
            self._user_parts("content").append(self._content(item, kind))
            return
        match kind:
            case "user_input":
                self._input(item)
            case "model_output":
                self._output(item)
            case "thought":
                self._thought(item)
            case "function_call":
                self._call(item)
            case "function_result":
                self._user_parts("result").append(self._of_result(item))
            case _:
                raw = {"type": kind, **item.rest()}
                self._assistants().append(Aside(wire.VENDOR, aside_kind(kind), wire.STEP, raw))

    def _turn(self, turn: Fields) -> None:
        """Read a turn: a role, and a text or contents, of which all but texts and media are steps."""
        role, number = turn.needed("role"), self._outputs
        if role not in {"user", "model"}:
            raise turn.wrong(f"must be 'user' or 'model', not {quoted(role)}", "role")
        self._outputs += 1
        self._close()
        given = turn.text_or_each("content")
        contents = [Fields({"type": "text", "text": given}, turn.path, turn.body)] if isinstance(given, str) else given
        for content in contents:
            kind = content.peek("type")
            if role == "model" and isinstance(kind, str) and (kind == "text" or kind in KINDS):
                said = self._content(content, content.needed("type"))
                said.block = number
                self._text = said if isinstance(said, Text) else self._text
                self._assistants().append(said)
            else:
                self._item(content)

    def _close(self) -> None:
        """End the last turn, so that the next step begins a new one."""
        if self._signature is not None:  # the call that it signed is missing
            self._assistants().append(RedactedReasoning(self._signature))
        self._signature = self._text = self._user = None

    def _user_parts(self, kind: str) -> list[Part]:
        """Return the parts of the user turn that neighbouring results, or neighbouring contents outside a step, join."""
        if self._user is None or self._user_kind != kind:
            self._close()
            self._user, self._user_kind = Turn("user"), kind
            self.turns.append(self._user)
        return self._user.parts

    def _assistants(self) -> list[Part]:
        self._user = None
        if not self.turns or self.turns[-1].role != "assistant":
            self.turns.append(Turn("assistant"))
            self._calls = 0
        return self.turns[-1].parts

    def _input(self, step: Fields) -> None:
        self._close()
        turn = Turn("user")
        for content in step.each("content"):
            kind = content.needed("type")
            turn.parts.append(self._of_result(content) if kind == wire.RESULT else self._content(content, kind))
        turn.extras = step.rest() or None
        self.turns.append(turn)

    def _output(self, step: Fields) -> None:
        parts, number = self._assistants(), self._outputs
        self._outputs += 1
        contents = [self._content(content, content.needed("type")) for content in step.each("content")]
        for content in contents or [Text("")]:
            content.block = number
            if isinstance(content, Text):
                self._text = content
            parts.append(content)
        if extras := step.rest():
            parts.append(Aside(wire.VENDOR, "metadata", wire.OF_STEP, extras, block=number))

    def _content(self, content: Fields, kind: str) -> Text | Media | Aside:
        if kind == "text":
            return Text(content.needed("text"), extras=content.rest() or None)
        if kind not in KINDS:
            return Aside(wire.VENDOR, "unknown_event", "content", {"type": kind, **content.rest()}, place=content.place)
        media = Media(KINDS[kind], content.string("mime_type"), place=content.place)
        data, uri = content.string("data"), content.string("uri")
        if data is not None:
            media.data = base64_of(standard_base64(data), content.at("data"))
        elif uri is None:
            raise content.wrong("must have `data` or `uri`")
        elif uri.startswith(OWN_URIS):
            media.file_id = uri
        else:
            media.url = uri
            media.kind = "video" if uri.startswith(FILMS) else media.kind
        media.extras = content.rest() or None
        return media

    def _thought(self, step: Fields) -> None:
        blob, number = step.string("signature"), self._thoughts
        self._thoughts += 1
        sealed = unseal(standard_base64(blob)) if blob else None
        thoughts: list[Part] = []
        for content in step.each("summary"):
            kind = content.needed("type")
            if kind == "text":
                text = content.needed("text")
                thoughts.append(Reasoning(text, "summary", extras=content.rest() or None, block=number))
            else:
                raw = {"type": kind, **content.rest()}
                thoughts.append(Aside(wire.VENDOR, "metadata", wire.THOUGHT_DELTA, raw, block=number))
        extras = step.rest()
        if sealed is not None:
            self._sealed(sealed, thoughts)
            return
        texts = [thought for thought in thoughts if isinstance(thought, Reasoning)]
        if not texts:
            texts = [Reasoning("", "summary", block=number)]
            thoughts += texts
        texts[-1].signature = Opaque(SIGNER, blob) if blob else None
        if extras:
            thoughts.append(Aside(wire.VENDOR, "metadata", wire.OF_STEP, extras, block=number))
        self._assistants().extend(thoughts)

    def _sealed(self, sealed: Sealed, thoughts: list[Part]) -> None:
        """Restore another vendor's signature or opaque data."""
        opaque, parts = sealed.opaque, self._assistants()
        match sealed.kind:
            case "call":
                self._signature = opaque
            case "text" if self._text is not None:
                self._text.signature = opaque
            case "opaque":
                parts.append(RedactedReasoning(opaque))
            case "reasoning":
                texts = [thought for thought in thoughts if isinstance(thought, Reasoning)]
                signed = texts[-1] if texts else Reasoning("", "summary")
                signed.signature = opaque
                thoughts += [] if texts else [signed]
            case _:
                parts.append(Text("", opaque))
        parts.extend(thoughts)

    def _call(self, step: Fields) -> None:
        parts, blob = self._assistants(), step.string("signature")
        call = ToolCall(self._calls, step.string("id") or "", step.needed("name"), "", place=step.place)
        call.arguments = step.object_text("arguments") or "{}"
        self._calls += 1
        self._called.add(call.id)
        call.signature, self._signature = self._signature, None
        if blob:
            sealed = unseal(standard_base64(blob))
            call.signature = Opaque(SIGNER, blob) if sealed is None else sealed.opaque
        call.extras = step.rest() or None
        parts.append(call)

    def _of_result(self, step: Fields) -> ToolResult | Aside:
        if self._stored and step.peek("call_id") not in self._called:
            return Aside(wire.VENDOR, aside_kind(wire.RESULT), wire.STEP, {"type": wire.RESULT, **step.rest()})
        result = ToolResult(step.needed("call_id"), name=step.string("name"), place=step.place)
        result.is_error = step.boolean("is_error") or False
        value = step.peek("result")
        if isinstance(value, dict):
            result.native = wire.OBJECT
            result.parts = [Text(step.text_of("result"))]
        elif isinstance(value, list):
            result.parts = [self._content(content, content.needed("type")) for content in step.each("result")]
        elif isinstance(value, str | None):
            text = step.string("result")
            result.parts = [Text(text)] if text else []
        else:
            raise step.wrong(f"must be a string, an object or a list, not {kind_of(value)}", "result")
        result.extras = step.rest() or None
        return result

    def options(self, fields: Fields) -> Options:
        options, config = Options(), fields.fields("generation_config")
        if config is not None:
            options = read_options(config, wire.OPTIONS, thinking=self._thinking(config))
        options.service_tier = fields.string("service_tier")
        options.output = self._format(fields)
        return options

    def _thinking(self, config: Fields) -> Thinking | None:
        level, summaries = config.string("thinking_level"), config.string("thinking_summaries")
        if level is not None and level.lower() not in LEVELS:
            raise config.wrong(f"must be one of {', '.join(sorted(LEVELS))}, not {quoted(level)}", "thinking_level")
        read = Thinking(level and level.lower(), summary=summaries)
        return read if read != Thinking() else None

    def _format(self, fields: Fields) -> OutputFormat | None:
        """Read the format of the response's text. Formats of media, and lists of formats, stay in the extras."""
        mime_type = fields.peek("response_mime_type")
        form = fields.peek("response_format")
        if form is None and mime_type in {wire.JSON, wire.PLAIN}:
            fields.take("response_mime_type")
            return OutputFormat("json", root="any") if mime_type == wire.JSON else OutputFormat("text")
        if not isinstance(form, dict):
            return None
        kind = form.get("type")
        if not (isinstance(kind, str) and kind in FORMATS):
            fields.take("response_mime_type") if mime_type == wire.JSON else None
            return OutputFormat("schema", fields.mapping("response_format"), native_schema=form)
        if kind != "text" or form.get("mime_type") not in {wire.JSON, wire.PLAIN, None}:
            return None
        opened = fields.needed_fields("response_format")
        opened.take("type")
        schema, as_json = opened.mapping("schema"), opened.string("mime_type") == wire.JSON
        if schema is not None:
            return OutputFormat("schema", schema)
        return OutputFormat("json", root="any") if as_json else OutputFormat("text")

    def tool(self, tool: Fields) -> Tool:
        kind = tool.needed("type")
        if kind == "function":
            deferred = is_deferred(tool)
            return evolve(function_tool(tool, tool), deferred=deferred)
        read = server_tool(kind, tool)
        read.finds_tools = kind == FINDER
        if kind == SEARCH:
            read.search = read_search({name: value for name, value in (read.raw or {}).items() if name != "type"})
        return read

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        config = fields.peek("generation_config")
        if not isinstance(config, dict) or config.get("tool_choice") is None:
            return None
        opened = fields.needed_fields("generation_config")
        choice = self._choice(opened)
        fields.replace("generation_config", dict(opened.peek_all()) or None)
        return choice

    def _choice(self, config: Fields) -> ToolChoice:
        if isinstance(config.peek("tool_choice"), str):
            return self._of_mode(config, "tool_choice")
        opened = config.needed_fields("tool_choice")
        allowed = opened.needed_fields("allowed_tools")
        choice = self._of_mode(allowed, "mode")
        choice.names = allowed.strings("tools")
        left = opened.rest()
        if left:
            choice.extras = {**(choice.extras or {}), **left}
        return choice

    def _of_mode(self, fields: Fields, name: str) -> ToolChoice:
        mode = fields.string(name) or "auto"
        if mode not in CHOICES:
            raise fields.wrong(f"must be one of {', '.join(CHOICES)}, not {quoted(mode)}", name)
        return ToolChoice(CHOICES[mode], extras={"mode": wire.VALIDATED} if mode == wire.VALIDATED else None)


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media of a type that Google takes, with bytes or a URI; None, and a loss, for others and for system media."""
    uri = media.url or media.file_id or ""
    kind = media.media_type if media.data is None else media_type_of(media)
    there = media.data is not None or is_own_uri(uri) or uri.startswith("http")  # ids of other providers are unknown
    if place != "system":
        to.lose_look(media, "name")
        if there and (kind is None or kind in wire.MEDIA_TYPES[media.kind]):
            return evolve(media, media_type=kind, name=None)
        if media.cache is not None:
            to.lose("cache_mark", media.cache)
    to.lose("media", media.media_type or media.kind)
    return None


@of_turns
def steps_apart(turn: Turn, _to: Lowering) -> Turn:
    """Label parts so that neighbouring texts and media become one step, and each thought a separate step.

    The signature of a call moves to a thought before it, since the client's types have no signature in a call.
    """
    made: list[Part] = []
    for number, part in enumerate(turn.parts):
        match part:
            case Text() | Media():
                made.append(evolve(part, block=0))
            case Reasoning():
                made.append(evolve(part, block=number))
            case ToolCall(signature=signature) if signature is not None:
                made += [Reasoning("", signature=signature, block=number), evolve(part, signature=None)]
            case _:
                made.append(part)
    return evolve(turn, parts=made)


def instruction_joined(request: Request, _to: Lowering) -> None:
    """Join the system's texts to one if there are no other turns."""
    if any(turn.role != "system" for turn in request.turns):
        return
    text = _instruction(request)
    request.turns = [Turn("system", [Text(text)])] if text else []


def not_stored(request: Request, _to: Lowering) -> None:
    """Tell Google not to store the interaction."""
    request.exchange = {"store": False}


def thinking_fits(request: Request, to: Lowering) -> None:
    """Set the amount of thinking as a level; a token budget becomes the nearest level."""
    thinking = request.options.thinking
    if thinking is None:
        return
    level = thinking.effort
    if level == "none" or (thinking.enabled is False and level is None):  # there is no level for no thinking
        to.lose("parameter", "thinking.enabled")
        level = next(iter(to.takes.model.efforts), None)
    elif thinking.budget_tokens is not None:
        to.lose("parameter", "thinking.budget_tokens")
        level = effort_of(thinking.budget_tokens) if level is None else level
    fits = Thinking(to.fit_effort(level), summary=thinking.summary)
    request.options.thinking = fits


def summary_fits(request: Request, to: Lowering) -> None:
    """Replace the kind of a thought summary with ``auto``, the only kind that Google has."""
    thinking = request.options.thinking
    if thinking is None or thinking.summary in {None, "none", "auto"}:
        return
    to.lose("parameter", "thinking.summary")
    request.options.thinking = evolve(thinking, summary="auto")


FOREIGN: Final = Capabilities(
    dialect="gemini-interactions",
    vendor=wire.VENDOR,
    title="Gemini Interactions",
    model=evolve(UNKNOWN, form_with_tools=False, media_in_results=False),
    names=wire.TOOLS.names,
    signs_reasoning=SIGNER,
    takes_opaque=lambda _blob: False,
    signs_calls=SIGNER,
    arguments="object",
    media=fit_media,
    system="front",
    results="anywhere",
    needs_user="input",
    needs_word="step",
    parallel=True,
    some_tools=True,
    choice_extras="tool_choice",
    options=frozenset({*wire.OPTIONS, "thinking", "output", "service_tier"}),
    most_stops=5,
    service_tiers=frozenset(SERVICE_TIERS),
    first=(google.schemas_anew, results_named, partial(google.media_behind_results, kinds=True)),
    said=(of_parts(google.telling_text), steps_apart, instruction_joined),
    last=(
        partial(google.choice_fits, validated=wire.VALIDATED),
        thinking_fits,
        summary_fits,
        google.form_counted,
        google.tier_named,
        not_stored,
    ),
)
#: What the servers take from clients of the Interactions API.
OWN: Final = evolve(
    FOREIGN,
    model=evolve(UNKNOWN, efforts=tuple(LEVELS)),
    names=None,
    unsigned_reasoning=True,
    empty_turns=True,
    media=google.own_media,
    service_tiers=None,
    first=(results_named,),
    said=(),
    last=(partial(google.choice_fits, validated=wire.VALIDATED), thinking_fits, google.form_counted),
)
capabilities: Final = told_by(OWN, FOREIGN, frozenset(LEVELS))


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, _report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    turns = [turn for turn in request.turns if turn.role != "system"]
    steps = [step for turn in turns for step in (_of_user(turn) if turn.role == "user" else _of_model(turn))]
    body = without_none(
        model=request.model,
        input=_short(steps) if steps else None,
        system_instruction=_instruction(request) or None,
        tools=[*map(write_tool, request.tools)] or None,
        generation_config=_generation_config(request.options, request.tool_choice) or None,
        service_tier=request.options.service_tier,
        store=request.exchange.get("store"),
        stream=request.stream,
        **_format(request.options.output),
    )
    return add_missing(body, request.extras)


def _instruction(request: Request) -> str:
    parts = [part for turn in request.turns if turn.role == "system" for part in turn.parts]
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def _of_user(turn: Turn) -> list[Step]:
    """Return a step for each result of a turn, and one for the user's contents."""
    steps: list[Step] = []
    content: list[dict[str, Any]] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            steps.append(_result(part))
        elif isinstance(part, Aside) and part.type == wire.STEP:
            steps.append(dict(part.raw))
        else:
            content += _contents([part])
    if content or turn.extras or not steps:
        steps.append(add_missing(without_none(type=wire.INPUT, content=content or None), turn.extras))
    return steps


def _of_model(turn: Turn) -> list[Step]:
    """Return the steps of a model turn, in order: outputs, thoughts, calls and others."""
    steps: list[Step] = []
    last: tuple[str, int] | None = None  # the kind and label of the last step, which the next part may join
    for part in turn.parts:
        kind = _kind_of(part)
        label = (kind, getattr(part, "block", 0))
        match part:
            case Aside() if part.type == wire.OF_STEP and steps:
                add_missing(steps[-1], part.raw)
                continue
            case ToolCall():
                steps.append(_call(part))
            case _ if kind == wire.TEXT:
                if label != last:
                    steps.append({"type": wire.TEXT})
                if contents := _contents([part]):
                    steps[-1].setdefault("content", []).extend(contents)
            case Reasoning() | Aside() if kind == wire.THOUGHT:
                _think(part, steps, goes_on=label == last)
            case Aside():
                steps.append(dict(part.raw))
        last = label if kind else None
    return steps


def _kind_of(part: Part) -> str:
    """Return the type of the step that a part of the model belongs to; ``""`` for a part that is a separate step."""
    match part:
        case Text() | Media():
            return wire.TEXT
        case Reasoning():
            return wire.THOUGHT
        case Aside() if part.type == wire.THOUGHT_DELTA:
            return wire.THOUGHT
        case Aside() if part.type not in {wire.STEP, wire.OF_STEP}:
            return wire.TEXT
    return ""


def _think(part: Reasoning | Aside, steps: list[Step], *, goes_on: bool) -> None:
    """Write a part of a thought into the last step if the thought ``goes_on``, else into a new step."""
    summary, signature = None, None
    if isinstance(part, Aside):
        summary = [dict(part.raw)]
    else:
        signature = part.signature and part.signature.blob
        if part.text or part.extras:
            summary = [add_missing({"type": "text", "text": part.text}, part.extras)]
    written = without_none(type=wire.THOUGHT, summary=summary, signature=signature)
    if goes_on and summary is not None:
        steps[-1].setdefault("summary", []).extend(summary)
        add_missing(steps[-1], written)
    else:
        steps.append(written)


def _contents(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return parts as contents of a step; leave out empty texts."""
    contents: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text() if part.text or part.extras:
                contents.append(add_missing({"type": "text", "text": part.text}, part.extras))
            case Media(native=native) if native is not None and native.vendor == wire.VENDOR:
                contents.append(dict(native.raw))
            case Media():
                uri = None if part.data is not None else part.url or part.file_id
                written = without_none(type=TYPES[part.kind], mime_type=part.media_type, data=part.data, uri=uri)
                contents.append(add_missing(written, part.extras))
            case Aside():
                contents.append(dict(part.raw))
    return contents


def _call(call: ToolCall) -> Step:
    written = without_none(
        type=wire.CALL,
        id=call.id,
        name=call.name,
        arguments=orjson.Fragment(call.arguments),
        signature=call.signature and call.signature.blob,
    )
    return add_missing(written, call.extras)


def _result(result: ToolResult) -> Step:
    written = without_none(
        type=wire.RESULT,
        call_id=result.call_id,
        name=result.name,
        result=_output(result),
        is_error=result.is_error or None,
    )
    return add_missing(written, result.extras)


def _output(result: ToolResult) -> Any:
    """Return a tool's output: an object if it was read as one, else a string or a list of contents."""
    only = result.parts[0] if len(result.parts) == 1 else None
    if result.native == wire.OBJECT and isinstance(only, Text):
        return orjson.Fragment(only.text)
    return plain_or_list(_contents(result.parts))


def _short(steps: list[Step]) -> str | list[Step]:
    """Return an input of one plain text as a string."""
    if len(steps) == 1 and steps[0].keys() == {"type", "content"} and steps[0]["type"] == wire.INPUT:
        content = steps[0]["content"]
        if len(content) == 1 and content[0].keys() == PLAIN_TEXT:
            return str(content[0]["text"])
    return steps


def _generation_config(options: Options, choice: ToolChoice | None) -> dict[str, Any]:
    thinking = options.thinking or Thinking()
    return members_of(options, wire.OPTIONS) | without_none(
        thinking_level=thinking.effort, thinking_summaries=thinking.summary, tool_choice=_choice(choice)
    )


def _choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    left = dict(choice.extras or {})
    mode = left.pop("mode", wire.MODES[choice.mode])
    if not choice.names:
        return mode
    return add_missing({"allowed_tools": {"mode": mode, "tools": [*choice.names]}}, left)


def _format(output: OutputFormat | None) -> dict[str, Any]:
    if output is None:
        return {}
    if output.kind != "schema":
        mime_type = wire.JSON if output.kind == "json" else wire.PLAIN
        return {"response_format": {"type": "text", "mime_type": mime_type}}
    if output.native_schema is not None and output.native_schema == output.schema:
        return {"response_format": output.native_schema, "response_mime_type": wire.JSON}
    return {"response_format": {"type": "text", "mime_type": wire.JSON, "schema": output.schema}}


def write_tool(tool: Tool) -> dict[str, Any]:
    """Return the definition of a tool."""
    if tool.kind == "server":
        return dict(tool.raw or {})
    function = without_none(type="function", name=tool.name, description=tool.description, parameters=tool.parameters)
    if tool.deferred:
        function["defer_loading"] = True
    return add_missing(function, tool.extras)
