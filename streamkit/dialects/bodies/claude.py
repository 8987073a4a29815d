"""The parts of requests that all providers of Claude accept alike: blocks, thinking, tools, schemas and the output format.

These dialects have no signatures on calls or texts. A signature of another vendor is written as a separate sealed block, and
the reader of a later request puts it back on its call or text.

The member ``thinking`` says how to think, and another member says with which effort. For Claude an effort alone does not turn
on, while in other dialects it does: for those, ``adaptive`` is written with the effort. Claude takes ``adaptive`` since
4.6 and a token budget up to 4.6 (``vocabulary/model_table.py``), so an effort becomes a budget for older models, and a budget
an effort for newer models. For an unknown model, thinking is written as the request has it.

Claude answers 400 to schemas with unsupported keywords (structured output, strict tools), so schemas are rewritten. Objects
must be closed; arrays may only have ``minItems`` 0 or 1; strings may only have a known format. ``oneOf`` becomes ``anyOf``,
and a list of types becomes one ``anyOf`` schema for each. No keyword may be next to ``$ref``, and no type next to ``enum``.
Dropped keywords are appended to the description, where the model can read them, and each is counted with its path.

Source: dialects.md §3.2, §3.3, §6.1, §7.4; quirks.md R14; AWS and Anthropic, "Adaptive thinking", "Extended thinking",
"Structured outputs"; anthropic 2.12, ``lib/_parse/_transform.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, cast

import orjson
from attrs import evolve, frozen

from streamkit.conversation.messages import (
    CacheMark,
    Extras,
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
    Unreadable,
)
from streamkit.dialects.lowering import Lowering, Place, model_for, of_tools
from streamkit.dialects.members.fields import Fields, kind_of, without_none
from streamkit.dialects.members.values import DEPTH
from streamkit.dialects.profiles import Provider
from streamkit.dialects.vocabulary.models import BUDGETS, COMMON, UNKNOWN, ModelInfo, below, budget_of, effort_of
from streamkit.dialects.vocabulary.sealed_reasoning import unseal, unsealed
from streamkit.errors import BadRequest
from streamkit.events import Opaque
from streamkit.text.quoting import STEP_CHARS, quoted, shortened

#: String formats that Claude takes.
FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
#: Keywords whose value is a list of schemas. Of several in one schema, only the first in this order is kept.
UNIONS: Final = ("anyOf", "oneOf", "allOf")
#: Keywords that concern one type. If a list of types is split into schemas, each schema gets the keywords of its type.
OF_TYPE: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"),
    "array": ("items", "minItems", "maxItems", "uniqueItems", "prefixItems", "contains"),
    "string": ("format", "minLength", "maxLength", "pattern"),
}
#: Keywords that do not restrict a value. They are dropped, and not counted as lost.
NAMES: Final = ("$schema", "$id", "$comment")
#: The deepest nesting of schemas. Each schema inside another adds up to four levels of JSON.
SCHEMAS_DEEP: Final = DEPTH // 4
_PRIMITIVE: Final = (str, int, float, bool, type(None))


@frozen
class ClaudeSchemas:
    """Rewrites schemas. Calls ``lose`` with the path of each dropped keyword, and ``closed`` for each closed object."""

    lose: Callable[[str], None]
    closed: Callable[[], None]

    def write(self, schema: Any, path: str, depth: int = 1) -> Any:
        """Return the schema at ``path`` as Claude takes it. Raises BadRequest for a schema that is nested too deep."""
        if depth > SCHEMAS_DEEP:
            raise BadRequest(path, f"a schema nested deeper than {SCHEMAS_DEEP}")
        if not isinstance(schema, Mapping):
            return schema
        left = {keyword: value for keyword, value in schema.items() if keyword not in NAMES}
        kept: dict[str, Any] = {}

        def inner(value: Any, step: str) -> Any:
            return self.write(value, f"{path}.{shortened(step, STEP_CHARS)}", depth + 1)

        for keyword in ("$defs", "definitions"):
            if isinstance(left.get(keyword), Mapping):
                kept[keyword] = {name: inner(value, f"{keyword}.{name}") for name, value in left.pop(keyword).items()}
        if "$ref" in left:
            kept["$ref"] = left.pop("$ref")
            self._lose(path, left)
            return kept
        kind = _type_of(left)
        union = next((keyword for keyword in UNIONS if isinstance(left.get(keyword), list)), None)
        kept |= _literals(left)
        if kept.keys() & {"enum", "const"}:
            kind = None
        elif union is not None:
            several = [inner(value, f"{union}[{number}]") for number, value in enumerate(left.pop(union))]
            kept["allOf" if union == "allOf" else "anyOf"] = several
            if union == "oneOf":
                self._lose(path, [union])
        elif isinstance(kind, list):
            kept["anyOf"] = [inner({"type": each, **_taken(left, OF_TYPE.get(each, ()))}, each) for each in kind]
        elif kind is not None:
            kept["type"] = kind
        kept |= _taken(left, ("description", "title"))
        if kind == "object":
            kept |= self._object(left, path, inner)
        elif kind == "array":
            if isinstance(left.get("items"), Mapping) or left.get("items") is True:  # no list: one schema for all items
                kept["items"] = inner(left.pop("items"), "items")
            kept |= _taken(left, ("minItems",) if left.get("minItems") in (0, 1) else ())
        elif kind == "string" and left.get("format") in FORMATS:
            kept |= _taken(left, ("format",))
        return self._described(kept, left, path)

    def _object(self, left: dict[str, Any], path: str, inner: Callable[[Any, str], Any]) -> dict[str, Any]:
        """Return the keywords of a closed object: its properties, and which are required."""
        named = left.pop("properties", None)
        if not isinstance(named, Mapping):
            named = {}
        properties = {name: inner(value, f"properties.{name}") for name, value in named.items()}
        more = left.pop("additionalProperties", None)
        if more is None:
            self.closed()
        elif more is not False:
            self._lose(path, ["additionalProperties"])
        return {"properties": properties, "additionalProperties": False, **_taken(left, ("required",))}

    def _described(self, kept: dict[str, Any], left: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the schema ``kept``, with the refused keywords in ``left`` written at the end of its description."""
        if left:
            self._lose(path, left)
            refused = ", ".join(f"{keyword}: {_shown(value)}" for keyword, value in left.items())
            before = kept.get("description")
            kept["description"] = f"{before}\n\n{{{refused}}}" if before else f"{{{refused}}}"
        return kept

    def _lose(self, path: str, keywords: Iterable[str]) -> None:
        for keyword in keywords:
            self.lose(f"{path}.{shortened(keyword, STEP_CHARS)}")


def _literals(left: dict[str, Any]) -> dict[str, Any]:
    """Remove ``enum`` and ``const`` from ``left`` and return them, unless they have objects or lists, which Claude refuses."""
    enum = left.get("enum")
    takes_enum = isinstance(enum, list) and enum and all(isinstance(value, _PRIMITIVE) for value in enum)
    literals = {"enum": left.pop("enum")} if takes_enum else {}
    if "const" in left and isinstance(left["const"], _PRIMITIVE):
        literals["const"] = left.pop("const")
    return literals


def _type_of(left: dict[str, Any]) -> Any:
    """Remove the type from ``left`` and return it. Without a type, return the type that the other keywords imply."""
    kind = left.pop("type", None)
    if isinstance(kind, list):
        if odd := [each for each in kind if not isinstance(each, str)]:
            left["type"] = odd
        kind = [each for each in kind if isinstance(each, str)]
        return kind[0] if len(kind) == 1 else kind or None
    if kind is not None or any(isinstance(left.get(keyword), list) for keyword in UNIONS):
        return kind
    return "object" if isinstance(left.get("properties"), Mapping) else "array" if "items" in left else None


def _taken(left: dict[str, Any], keywords: tuple[str, ...]) -> dict[str, Any]:
    """Remove these keywords from ``left`` and return those that have a value."""
    return {keyword: left.pop(keyword) for keyword in keywords if left.get(keyword) is not None}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


#: The values of ``thinking.display``, with the neutral word for each.
DISPLAYS: Final[Mapping[str, str]] = {"summarized": "auto", "omitted": "none"}
SHOWN: Final[Mapping[str, str]] = {ours: word for word, ours in DISPLAYS.items()}
#: The ``ttl`` of a ``cache_control`` or ``cachePoint``, with the neutral word. Without a ``ttl``, the cache lasts 5 minutes.
CACHE_SPANS: Final[Mapping[str | None, CacheMark]] = {None: "short", "5m": "short", "1h": "long"}
CACHE_CONTROLS: Final[Mapping[CacheMark, Mapping[str, str]]] = {
    "short": {"type": "ephemeral"},
    "long": {"type": "ephemeral", "ttl": "1h"},
}
#: The types of a tool choice, with the neutral word for each. ``tool`` names the tool.
CHOICES: Final[Mapping[str, Literal["auto", "required", "none"]]] = {
    "auto": "auto",
    "any": "required",
    "tool": "required",
    "none": "none",
}
#: The efforts that Claude knows; ``none`` is written as ``thinking`` of the type ``disabled``.
EFFORTS: Final = frozenset({"none", "low", "medium", "high", "xhigh", "max"})
#: The types of ``thinking`` that have a neutral form.
THINKING: Final = frozenset({"enabled", "adaptive", "disabled"})
LEAST_BUDGET: Final = 1024  #: the smallest ``budget_tokens`` that the server takes
#: The types that turn thinking on. While Claude thinks, a request must not require a tool call.
THINKS: Final = frozenset({"enabled", "adaptive"})
NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object"}  #: the schema of a function without parameters
MOST_MARKS: Final = 4  #: the most cache marks in a request


# -- reading -----------------------------------------------------------------------------------------------------------


def role_of(message: Fields) -> Literal["system", "user", "assistant"]:
    """Return the role of a message. Raises BadRequest for an unknown role."""
    role = message.needed("role")
    if role not in {"system", "user", "assistant"}:
        raise message.wrong(f"unknown role {quoted(role)}; must be 'system', 'user' or 'assistant'", "role")
    return cast("Literal['system', 'user', 'assistant']", role)


def call_of(use: Fields, id_member: str) -> ToolCall:
    """Read a tool call. Raises BadRequest if its input is no object."""
    call_id, name = use.needed(id_member), use.needed("name")
    if not isinstance(use.peek("input"), dict):
        raise use.wrong(f"must be an object, not {kind_of(use.peek('input'))}", "input")
    return ToolCall(0, call_id, name, use.text_of("input"), place=use.place)


def document_extras(part: Part, extras: Extras) -> tuple[Extras, Extras]:
    """Split off the members of a document that Anthropic and Bedrock have in common: the context, and whether it is cited."""
    if not isinstance(part, Media):
        return {}, extras
    cited = extras.get("citations")
    fits = isinstance(cited, dict) and cited.keys() == {"enabled"} and isinstance(cited["enabled"], bool)
    names = {"context", "citations"} if fits else {"context"}
    kept = {name: value for name, value in extras.items() if name in names}
    return kept, {name: value for name, value in extras.items() if name not in kept}


class BlockParts:
    """Reads the blocks of one content as parts; each is labelled with the number of its block."""

    signer: ClassVar[str]  #: the dialect's own vendor

    def __init__(self, place: Place) -> None:
        self.place = place
        self.parts: list[Part] = []
        self.last_text: Text | None = None
        self.unreadable: list[Unreadable] = []  #: see ``Request.unreadable``
        self._calls = 0
        self._signature: Opaque | None = None  # signature of the next call, from a sealed block

    def block(self, block: Fields, number: int) -> None:
        """Read one block. Raises BadRequest."""
        raise NotImplementedError

    def read(self, content: str | list[Fields]) -> list[Part]:
        """Return the parts of content that is a string or a list of blocks. Raises BadRequest."""
        if isinstance(content, str):
            return [Text(content)] if content else []
        for number, block in enumerate(content):
            self.block(block, number)
        if self._signature is not None:  # no call followed the signature
            self.parts.append(RedactedReasoning(self._signature))
        return self.parts

    def signature(self, blob: str | None) -> Opaque | None:
        """Return the signature of a reasoning block: the dialect's own, or another vendor's, which is sealed in the text."""
        return unsealed(blob, self.signer) if blob else None

    def redacted(self, data: str, number: int, extras: Extras | None = None) -> None:
        """Add an opaque block: the dialect's own redacted reasoning, or what another vendor's sealed block contains."""
        sealed = unseal(data)
        if sealed is None:
            self.parts.append(RedactedReasoning(Opaque(self.signer, data), extras, block=number))
            return
        opaque = sealed.opaque
        if sealed.kind == "call":
            self._signature = opaque
        elif sealed.kind == "opaque":
            self.parts.append(RedactedReasoning(opaque, block=number))
        elif sealed.kind == "reasoning":
            self.parts.append(Reasoning("", signature=opaque, block=number))
        elif sealed.kind == "text" and self.last_text is not None:
            self.last_text.signature = opaque
        else:
            self.parts.append(Text("", opaque, block=number))

    def call(self, call: ToolCall) -> None:
        """Add a call, with its number and with the signature from the sealed block before it."""
        call.index = self._calls
        self._calls += 1
        call.signature, self._signature = self._signature, None
        self.parts.append(call)


def read_thinking(fields: Fields | None, effort: str | None) -> Thinking | None:
    """Read the member ``thinking`` of ``fields``, and combine it with ``effort``. Raises BadRequest."""
    thinking = fields.fields_of_type("thinking", THINKING) if fields else None
    if thinking is None:
        return Thinking(effort) if effort else None
    kind = thinking.needed("type")
    read = Thinking(effort, enabled=kind != "disabled")
    if kind == "enabled":
        read.budget_tokens = thinking.integer("budget_tokens")
        if read.budget_tokens is None:
            raise thinking.wrong("is missing; must be an integer", "budget_tokens")
    display = thinking.peek("display")
    if isinstance(display, str) and display in DISPLAYS:
        read.summary = DISPLAYS[thinking.needed("display")]
    return read


UNKNOWN_CLAUDE: Final = evolve(UNKNOWN, efforts=("none", *COMMON), cache_marks="long")
#: For a request of the same dialect only one fact of the model matters: this one accepts required calls while it thinks.
FORCEABLE: Final = evolve(UNKNOWN, forced_calls="always")


def own_model(name: str | None, provider: Provider | None) -> ModelInfo:
    """Return what is known of the model that a request of the same dialect names."""
    return FORCEABLE if model_for(name, provider).forced_calls == "always" else UNKNOWN


def write_thinking(thinking: Thinking | None) -> dict[str, Any] | None:
    """Return the member ``thinking``; None if the request says nothing about it."""
    if thinking is None or (thinking.enabled is None and thinking.budget_tokens is None):
        return None
    if thinking.enabled is False:
        return {"type": thinking.native or "disabled"}
    kind = "adaptive" if thinking.budget_tokens is None else "enabled"
    display = None if thinking.summary is None else SHOWN.get(thinking.summary, "summarized")
    return without_none(type=kind, budget_tokens=thinking.budget_tokens, display=display)


# -- passes ------------------------------------------------------------------------------------------------------------


def thinking_fits(request: Request, to: Lowering) -> None:
    """Adapt the amount of thinking to what this Claude model accepts. What it does not accept is counted as lost."""
    thinking = request.options.thinking
    if thinking is None:
        return
    choice = request.tool_choice
    forced = choice is not None and choice.mode == "required"
    shown = _thinks(thinking, request, to, forced=forced)
    if shown.summary in {"concise", "detailed"}:
        to.lose("parameter", "thinking.summary")
    request.options.thinking = evolve(shown, effort=_effort(thinking, to))


def _thinks(thinking: Thinking, request: Request, to: Lowering, *, forced: bool) -> Thinking:
    """Return the thinking to write: whether the model thinks, with which token budget, and whether the thinking is shown."""
    model, enabled, budget, effort = to.takes.model, thinking.enabled, thinking.budget_tokens, thinking.effort
    lost = ""
    if enabled is None and budget is None and effort is None:
        lost = "" if thinking.summary is None else "thinking.summary"
    elif enabled is False or effort == "none":
        if "none" in model.efforts:
            return Thinking(enabled=False, native=model.off)
        lost = "thinking.enabled" if model.efforts else ""
    elif enabled is None and budget is None and forced and model.forced_calls == "unthinking":
        lost = "thinking"  # the effort is written; the forced tool matters more than thinking
    elif not model.efforts:
        lost = "thinking"
    else:
        return _thinks_for(budget, thinking, request, to)
    if lost:
        to.lose("parameter", lost)
    return Thinking()


def _thinks_for(budget: int | None, thinking: Thinking, request: Request, to: Lowering) -> Thinking:
    """Return thinking with a token budget; without one if the model accepts no budget or the request has none."""
    model, effort = to.takes.model, thinking.effort
    if budget is not None and model.budget is None:
        to.lose("parameter", "thinking.budget_tokens")
        budget = None
    elif budget is None and not model.words:
        to.lose("parameter", "thinking.effort" if effort else "thinking.enabled")
        budget = budget_of(effort) or BUDGETS["medium"]
    if budget is None:
        return Thinking(enabled=True, summary=thinking.summary)
    unsigned = _continues_unsigned(request.turns)
    bound = model.output if request.options.max_tokens is None else request.options.max_tokens
    fits = None if unsigned else below(max(budget, LEAST_BUDGET), bound, LEAST_BUDGET)
    if fits is None:
        to.lose("parameter", "thinking")
        return Thinking()
    if fits != budget and thinking.budget_tokens is not None:
        to.lose("parameter", "thinking.budget_tokens")
    return Thinking(budget_tokens=fits, enabled=True, summary=thinking.summary)


def _effort(thinking: Thinking, to: Lowering) -> str | None:
    """Return an effort that the server knows; None if the model accepts no effort, or if the request has none."""
    model, effort = to.takes.model, thinking.effort
    if not model.words or effort == "none":
        return None
    if effort is None and model.budget is None and thinking.enabled is not False:
        return effort_of(thinking.budget_tokens)
    return to.fit_effort(effort)


def _continues_unsigned(turns: Sequence[Turn]) -> bool:
    """Return whether the response continues a turn that called tools and does not begin with thinking.

    With a token budget the server refuses this history, because it requires the thinking before the calls.
    """
    if len(turns) < 2 or turns[-1].role != "user" or not any(isinstance(part, ToolResult) for part in turns[-1].parts):
        return False
    before = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    return before is not None and not isinstance(before.parts[0], Reasoning | RedactedReasoning)


def choice_fits_thinking(request: Request, to: Lowering) -> None:
    """Replace a required tool call by ``auto`` if the model refuses one, or refuses one while it thinks (dialects.md §3.2).

    Raises BadRequest if the target does not emulate what the dialect lacks.
    """
    choice, accepted = request.tool_choice, to.takes.model.forced_calls
    if choice is None or choice.mode != "required" or accepted == "always":
        return
    thinking = write_thinking(request.options.thinking)
    if accepted == "unthinking" and (thinking is None or thinking["type"] not in THINKS):
        return
    if not to.target.emulate:
        when = "" if accepted == "never" else " while thinking is enabled"
        raise BadRequest("tool_choice", f"this model cannot be required to call a tool{when}")
    to.lose("tool_choice", "required")
    request.tool_choice = evolve(choice, mode="auto", names=())


def sampling_fits(request: Request, to: Lowering) -> None:
    """Drop a temperature above 1, because Claude accepts at most 1."""
    temperature = request.options.temperature
    if temperature is None or temperature <= 1:
        return
    to.lose("parameter", "temperature")
    request.options.temperature = None


def parallel_if_forbidden(request: Request, _to: Lowering) -> None:
    """Drop the setting for parallel calls unless it forbids them, because parallel calls are the default."""
    choice = request.tool_choice
    if choice is None or choice.parallel is None or (choice.parallel is False and choice.mode != "none"):
        return
    request.tool_choice = evolve(choice, parallel=None)


def schemas_held(request: Request, to: Lowering) -> None:
    """Rewrite the schemas that the model must follow (of strict tools and of the output format) for Claude."""
    if "schema" not in to.takes.model.forms:
        return
    request.tools = [
        evolve(tool, parameters=_held(tool.parameters or dict(NO_PARAMETERS), f"{tool.name}.parameters", to))
        if tool.strict and tool.kind == "function"
        else tool
        for tool in request.tools
    ]
    output = request.options.output
    if output is not None and output.kind == "schema":
        request.options.output = evolve(output, schema=_held(output.schema, "output.schema", to))


def _held(schema: Any, path: str, to: Lowering) -> Any:
    schemas = ClaudeSchemas(lambda where: to.lose("schema_keyword", where), lambda: to.report.repair("schema_closed"))
    return schemas.write(schema, path)


def form_has_schema(request: Request, to: Lowering) -> None:
    """Drop an output format without a schema, because Claude has none; with a schema, it is always followed."""
    output = request.options.output
    if output is None:
        return
    if output.kind != "schema" or "schema" not in to.takes.model.forms:
        if output.kind != "text":
            to.lose("parameter", "output")
        request.options.output = None
        return
    to.lose_members(output, "output", *(name for name in ("name", "description") if name not in to.takes.form_members))
    if output.strict is False:
        to.lose("parameter", "output.strict")


@of_tools
def schemas_given(tool: Tool, to: Lowering) -> Tool:
    """Give an empty schema to each function that has none, because the server requires a schema."""
    if tool.kind == "server":
        return tool
    empty, strict = tool.parameters is None or (tool.parameters == {} and not to.own), tool.strict
    if strict and "schema" not in to.takes.model.forms:
        to.lose("tool_strict", tool.name)
        strict = None
    return evolve(
        tool, parameters=dict(NO_PARAMETERS) if empty else tool.parameters, strict=strict if to.own else strict or None
    )
