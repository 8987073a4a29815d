"""Check a request before it is sent: its history, in which calls and results must pair, and its tool definitions.

An assistant's turn with calls opens a *span*, up to the assistant's next turn. A result belongs to a call of its span: by the
call's id; in dialects without ids by the tool's name, else by order (quirks.md 35). ``repair_pairing`` moves a result to where
every dialect accepts it. Only the calls of the last turn may lack a result. A result that may belong to several calls is
assigned to none, and a missing result is replaced by an error result. The functions take time linear in the history, and
don't change their arguments.

A provider rejects the whole request for one bad tool definition, often without naming the tool, and some drop a keyword
silently. The rules of a dialect are data (``ToolRules``). The provider rejects an ``error``. It accepts a ``note``, which is
probably a mistake or does not reach the model. Only the shape of schemas is checked; ``tool_calls/schema.py`` compiles them.
``$ref`` is not followed. Tools that the provider runs are skipped.

Source: dialects.md §1.3, §3.2 "Pairing rules", §4.1, §5.3, §6.1, §7.3; seeds.md S2, S3.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise, takewhile
from operator import attrgetter, is_
from typing import Any, Final, Literal, TypeAlias

from attrs import define, evolve, field, frozen

from streamkit.conversation.messages import Part, Request, Text, Tool, ToolCall, ToolResult, Turn
from streamkit.errors import BadRequest
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import PORTABLE_NAMES, hashed
from streamkit.text.quoting import STEP_CHARS, quoted, shortened, steps

NO_RESULT: Final = "no result recorded"
_PAIRED: Final = frozenset({ToolCall, ToolResult})
_parts = attrgetter("parts")


# -- checking ----------------------------------------------------------------------------------------------------------


def check_pairing(request: Request) -> None:
    """Raise BadRequest, with the path and the id, for a call or a result that can't be paired.

    That is: a call without a result (unless its turn is the last); a result without a call, before its call or after another
    assistant's turn; two calls with one id; two results for one call; a missing id.
    """
    calls = _calls(request.turns)
    answered: set[str] = set()
    speaker = -1  # the latest turn of the assistant
    for number, turn in enumerate(request.turns):
        speaker = number if turn.role == "assistant" else speaker
        for place, part in enumerate(turn.parts):
            if not isinstance(part, ToolResult):
                continue
            call, name, fault = calls.get(part.call_id), quoted(part.call_id), ""
            if not part.call_id:
                fault = "a tool result without a call id"
            elif call is None:
                fault = f"the tool result {name} has no tool call"
            elif call > (number, place):
                fault = f"the tool result {name} comes before its tool call, {_path(request.turns, *call)}"
            elif call[0] != speaker:
                fault = f"the tool result {name} comes after turns[{speaker}], which is a later assistant turn than its call's"
            elif part.call_id in answered:
                fault = f"the tool call {name} has two results"
            if fault:
                raise BadRequest(_path(request.turns, number, place), fault)
            answered.add(part.call_id)
    for call_id, at in calls.items():
        if call_id not in answered and at[0] != len(request.turns) - 1:
            raise BadRequest(_path(request.turns, *at), f"the tool call {quoted(call_id)} has no result")


def _calls(turns: Sequence[Turn]) -> dict[str, tuple[int, int]]:
    calls: dict[str, tuple[int, int]] = {}
    for number, turn in enumerate(turns):
        _check_roles(turns, number)
        for place, part in enumerate(turn.parts):
            if isinstance(part, ToolCall):
                if not part.id:
                    raise BadRequest(_path(turns, number, place), f"a tool call of {quoted(part.name)} without an id")
                if part.id in calls:
                    fault = (
                        f"the id {quoted(part.id)} is also the id of another tool call, {_path(turns, *calls[part.id])}"
                    )
                    raise BadRequest(_path(turns, number, place), fault)
                calls[part.id] = number, place
    return calls


def _check_roles(turns: Sequence[Turn], number: int) -> None:
    role = turns[number].role
    for place, part in enumerate(turns[number].parts):
        if isinstance(part, ToolCall) and role != "assistant":
            raise BadRequest(
                _path(turns, number, place),
                f"the tool call {quoted(part.id)} is in a turn of the {role}; it must be in an assistant turn",
            )
        if isinstance(part, ToolResult) and role != "user":
            raise BadRequest(
                _path(turns, number, place),
                f"the tool result {quoted(part.call_id)} is in a turn of the {role}; it must be in a user turn",
            )


def _path(turns: Sequence[Turn], turn: int, number: int) -> str:
    """Return the path of a part: in the decoded request if known, else among the turns."""
    part = turns[turn].parts[number]
    place = part.place if isinstance(part, ToolCall | ToolResult) else ""
    return place or f"turns[{turn}].parts[{number}]"


# -- repeated calls and results ----------------------------------------------------------------------------------------


def drop_repeats(request: Request, report: StreamReport) -> Request:
    """Return the request without calls and results that repeat another one (repair ``said_twice``).

    A client that resumes, or that joins snapshots, may send a call twice: with the same id, name and arguments, and at most
    one result. The call before the result is kept, else the last one. Of several results for one call, between two turns of
    the assistant, the last is the latest state. Calls that share an id and have a result each are kept: some providers restart
    their ids.
    """
    calls: dict[str, list[tuple[int, ToolCall]]] = {}
    results: dict[str, list[tuple[int, ToolResult]]] = {}
    speaker = -1
    for number, turn in enumerate(request.turns):
        speaker = number if turn.role == "assistant" else speaker
        for part in turn.parts:
            if isinstance(part, ToolCall) and part.id and not part.id_made:
                calls.setdefault(part.id, []).append((speaker, part))
            elif isinstance(part, ToolResult):
                results.setdefault(part.call_id, []).append((speaker, part))
    repeats: set[int] = set()
    for call_id, same in calls.items():
        found = results.get(call_id, [])
        if len(same) == 1:
            repeats |= {id(part) for (at, part), (later, _) in pairwise(found) if at == later}
        elif len(found) <= 1 and all(
            (call.name, call.arguments) == (same[0][1].name, same[0][1].arguments) for _, call in same
        ):
            answered = [call for at, call in same if found and at == found[0][0]]
            kept = answered[-1] if answered else same[-1][1]
            repeats |= {id(call) for _, call in same if call is not kept}
    if not repeats:
        return request
    for _ in repeats:
        report.repair("said_twice")
    turns = [_with_parts(turn, [part for part in turn.parts if id(part) not in repeats]) for turn in request.turns]
    return evolve(request, turns=turns)


# -- repairing ---------------------------------------------------------------------------------------------------------


def repair_pairing(request: Request, report: StreamReport) -> Request:
    """Return the request with a result for every call: the results of a turn's calls come first in the user's turn after it.

    A result elsewhere is moved (``result_moved``), and a result without a call is dropped (``result_orphaned``). A missing
    result is replaced by an error result (``result_missing``). A repeated id is replaced for the later call and its result
    (``id_duplicate``), and a missing one is made (``id_missing``), always the same for the same request, so that providers'
    prompt caches hold. A turn without parts is dropped (``turn_empty``), and so is a turn whose only parts were moved. Results
    that are already in place keep their order; others take the order of the calls.

    Turns that need no repair are shared with ``request``, not copied. Raise BadRequest for a part in a turn of the wrong role,
    and the errors of ``report`` if it refuses repairs.
    """
    turns = []
    for number, turn in enumerate(request.turns):
        _check_roles(request.turns, number)
        if turn.parts:
            turns.append(turn)
        else:
            report.repair("turn_empty")
    if _PAIRED.isdisjoint(map(type, chain.from_iterable(map(_parts, turns)))):
        return request if len(turns) == len(request.turns) else evolve(request, turns=turns)
    spans = _paired(turns, report)
    _give_ids([pair for pairs in spans.values() for pair in pairs], report)
    return evolve(request, turns=list(_repaired(turns, spans, report)))


@define(eq=False)
class _Pair:
    """A call of the history, the id for the call and its result, and the result once it is found."""

    call: ToolCall
    id: str
    result: ToolResult | None = None


class _Span:
    """The calls of one turn, with an index of those that wait for a result."""

    def __init__(self, turn: Turn) -> None:
        self.pairs = [_Pair(part, part.id) for part in turn.parts if isinstance(part, ToolCall)]
        self._waiting: dict[tuple[str, str], deque[_Pair]] = {}
        for pair in self.pairs:
            for key in (("id", pair.id), ("name", pair.call.name), _ANY):
                self._waiting.setdefault(key, deque()).append(pair)

    def answer(self, result: ToolResult) -> bool:
        """Assign a result to the first call without a result: by id, else by name, else any. Return False if no call fits."""
        key = ("id", result.call_id) if result.call_id else ("name", result.name) if result.name else _ANY
        waiting = self._waiting.get(key, deque())
        while waiting and waiting[0].result is not None:
            waiting.popleft()
        if waiting:
            waiting[0].result = result
        return bool(waiting)


_ANY: Final = ("any", "")


def _paired(turns: list[Turn], report: StreamReport) -> dict[int, list[_Pair]]:
    """Return the calls of each turn with calls, each with its result if there is one."""
    spans: dict[int, list[_Pair]] = {}
    opened: list[tuple[_Span | None, list[ToolResult]]] = [(None, [])]
    for number, turn in enumerate(turns):
        if turn.role == "assistant":
            span = _Span(turn)
            opened.append((span, []))
            if span.pairs:
                spans[number] = span.pairs
        opened[-1][1].extend(_results(turn))
    strays: list[ToolResult] = []
    for each, results in opened:
        # assign results with an id first, then results with a name, then the rest
        results.sort(key=lambda result: 0 if result.call_id else 1 if result.name else 2)
        strays += [result for result in results if each is None or not each.answer(result)]
    _place(strays, [pair for pairs in spans.values() for pair in pairs], report)
    return spans


def _place(strays: list[ToolResult], pairs: list[_Pair], report: StreamReport) -> None:
    """Assign leftover results to the only call with their id, if that call has no result."""
    uses = Counter(pair.id for pair in pairs)
    waiting = {pair.id: pair for pair in pairs if pair.id and uses[pair.id] == 1 and pair.result is None}
    for result in strays:
        pair = waiting.pop(result.call_id, None)
        if pair is None:
            report.repair("result_orphaned")
        else:
            pair.result = result


def _give_ids(pairs: list[_Pair], report: StreamReport) -> None:
    """Make a new id for each call without one, or with the id of an earlier call."""
    used = {pair.id for pair in pairs}
    seen: Counter[str] = Counter()
    for pair in pairs:
        seen[pair.call.id] += 1
        if pair.call.id and seen[pair.call.id] == 1:
            continue
        report.repair("id_duplicate" if pair.call.id else "id_missing")
        number = seen[pair.call.id]
        while pair.id in used:
            pair.id = f"call_{hashed(f'{pair.call.id} {number} {pair.call.name}', 22)}"
            number += 1
        used.add(pair.id)


def _repaired(turns: list[Turn], spans: dict[int, list[_Pair]], report: StreamReport) -> Iterator[Turn]:
    answers: list[ToolResult] = []  # results for the calls of the turn before
    for number, turn in enumerate(turns):
        results = _results(turn)
        if answers and not results:
            yield Turn("user", [*answers])
            answers = []
        if results:
            parts = [*answers, *(part for part in turn.parts if not isinstance(part, ToolResult))]
            answers = []
            if parts:
                yield _with_parts(turn, parts)
            continue
        pairs = spans.get(number, [])
        calls = iter(pairs)
        yield _with_parts(turn, [_called(next(calls)) if isinstance(part, ToolCall) else part for part in turn.parts])
        following = turns[number + 1 : number + 2]
        if following or any(pair.result for pair in pairs):
            answers = _answers(pairs, following, report)
    if answers:
        yield Turn("user", [*answers])


def _answers(pairs: list[_Pair], following: list[Turn], report: StreamReport) -> list[ToolResult]:
    leading = takewhile(lambda part: isinstance(part, ToolResult), following[0].parts if following else [])
    order = {id(result): place for place, result in enumerate(leading)}
    in_place = True
    for pair in pairs:
        if pair.result is None:
            report.repair("result_missing")
        elif id(pair.result) not in order:
            report.repair("result_moved")
        if pair.result is not None and not pair.result.call_id and pair.call.id:
            report.repair("id_missing")
        in_place = in_place and id(pair.result) in order
    if in_place:
        pairs = sorted(pairs, key=lambda pair: order[id(pair.result)])
    return [_answer(pair) for pair in pairs]


def _answer(pair: _Pair) -> ToolResult:
    if pair.result is None:
        return ToolResult(pair.id, [Text(NO_RESULT)], pair.call.name, is_error=True, kind=pair.call.kind)
    return pair.result if pair.result.call_id == pair.id else evolve(pair.result, call_id=pair.id)


def _called(pair: _Pair) -> ToolCall:
    return pair.call if pair.call.id == pair.id else evolve(pair.call, id=pair.id)


def _with_parts(turn: Turn, parts: list[Part]) -> Turn:
    same = len(parts) == len(turn.parts) and all(map(is_, parts, turn.parts))
    return turn if same else evolve(turn, parts=parts)


def _results(turn: Turn) -> list[ToolResult]:
    return [part for part in turn.parts if isinstance(part, ToolResult)]


Keywords: TypeAlias = frozenset[str]
Path: TypeAlias = tuple[str | int, ...]
MAX_FINDINGS: Final = (
    1000  #: a schema is walked no further once there are so many: each has a path of up to 8,000 characters
)
MAX_SUBSCHEMAS: Final = 100_000  #: maximum number in one request; ``schema_bytes`` holds so many at ten bytes each
REPAIRED: Final = frozenset({"name_unfit", "properties_missing"})  #: rules that writing a request repairs
MAX_LISTED: Final = 5  #: number of findings that an error message lists; the others are counted

TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
#: Keywords that hold one subschema.
ONE: Final = (
    "items", "additionalProperties", "unevaluatedProperties", "propertyNames", "additionalItems", "unevaluatedItems",
    "contains", "not", "if", "then", "else",
)  # fmt: skip
MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items")  #: keywords that hold a list of subschemas
#: Keywords that hold a mapping of names to subschemas.
NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_OBJECT: Final = (dict, Mapping)  #: the test for a Mapping alone is slow, and nearly all schemas are dicts
#: The required type of these keywords' values.
_SHAPES: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    **dict.fromkeys(NAMED, (_OBJECT, "an object of schemas")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), (list, "a list of schemas")),
}
_HOLDERS: Final = frozenset({*ONE, *MANY, *NAMED})  #: keywords that hold subschemas
#: Keywords whose subschemas apply to the same value as the schema around them.
HERE: Final = frozenset({"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"})
#: Keywords that may define a property that is not in ``properties``.
ELSEWHERE: Final = (*HERE, "$ref", "$dynamicRef", "patternProperties")


@frozen(kw_only=True)
class ToolRules:
    """A dialect's rules for tool definitions. The defaults are what all dialects accept."""

    names: re.Pattern[str] = PORTABLE_NAMES  #: pattern for a tool's whole name
    properties: bool = False  #: True if an object schema must have ``properties``, even if empty
    not_at_root: Keywords = frozenset()  #: keywords that are forbidden in the schema itself and allowed in subschemas
    keywords: Keywords | None = None  #: keywords that have an effect; None: all, as far as is known
    root_keywords: Keywords | None = None  #: ``keywords`` for the schema itself, if they differ there
    whole: Keywords = frozenset()  #: keywords whose value is passed on unchecked, whatever is in it


PORTABLE_TOOLS: Final = ToolRules()  #: the rules for a dialect that has none of its own


@frozen
class ToolFinding:
    """A fault in a tool's definition. ``path`` leads to the fault: ``tools[2].parameters.properties.city.type``."""

    rule: str  #: short name, stable
    path: str
    message: str
    severity: Literal["error", "note"] = "error"


def check_tools(
    tools: Sequence[Tool], rules: ToolRules = PORTABLE_TOOLS, *, limits: Limits = DEFAULT_LIMITS
) -> list[ToolFinding]:
    """Return the faults in the tools of a request, in order, by a dialect's rules (``Dialect.tools``).

    A schema is read no further after ``MAX_FINDINGS`` faults.

    Violations of ``REPAIRED`` are repaired when a request is written (repairs ``name_rewritten``, ``properties_added``): drop
    those findings if you rely on the repair.
    """
    checker = _Checker(rules, limits)
    for number, tool in enumerate(tools):
        if tool.raw is None:
            checker.check_name(tool.name, ("tools", number, "name"))
            if tool.kind == "function":
                checker.check_schema(tool.parameters, ("tools", number, "parameters"))
    return checker.findings


def refuse_tools(findings: Sequence[ToolFinding]) -> None:
    """Raise BadRequest if a finding is an error: with the path of the first error, and the messages of the first few."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        others = [f"{finding.path}: {finding.message}" for finding in errors[1:MAX_LISTED]]
        more = [f"and {len(errors) - MAX_LISTED} more"] if len(errors) > MAX_LISTED else []
        raise BadRequest(errors[0].path, "; ".join([errors[0].message, *others, *more]))


@define
class _Checker:
    rules: ToolRules
    limits: Limits
    findings: list[ToolFinding] = field(factory=list)
    _names: dict[str, Path] = field(factory=dict)
    _left: int = MAX_SUBSCHEMAS

    def _error(self, rule: str, path: Path, message: str) -> None:
        self.findings.append(ToolFinding(rule, _shown(path), message))

    def _note(self, rule: str, path: Path, message: str) -> None:
        self.findings.append(ToolFinding(rule, _shown(path), message, "note"))

    def check_name(self, name: str, path: Path) -> None:
        if not name:
            self._error("name_missing", path, "the tool has no name")
            return
        if not self.rules.names.fullmatch(name):
            self._error("name_unfit", path, f"the name {quoted(name)} does not match {self.rules.names.pattern}")
        if name in self._names:
            self._error("name_used_twice", path, f"{_shown(self._names[name])} has the same name, {quoted(name)}")
        self._names.setdefault(name, path)

    # -- the schema itself ---------------------------------------------------------------------------------------------

    def check_schema(self, schema: Any, path: Path) -> None:
        if schema is None or schema == {}:
            self._note("parameters_missing", path, "no parameters are defined: the tool takes none")
            return
        if not isinstance(schema, Mapping):
            self._error("schema_invalid", path, f"the parameters must be an object schema, not {_described(schema)}")
            return
        kind = schema.get("type")
        if kind is None:
            self._error("type_missing", path, 'the type is missing; it must be "object"')
        elif kind != "object":
            self._error("type_not_object", (*path, "type"), f'the type must be "object", not {_described(kind)}')
        if schema.get("properties") is None:
            say = self._error if self.rules.properties else self._note
            say("properties_missing", path, "the schema has no properties")
        elif schema["properties"] and schema.get("required") is None:
            self._note(
                "required_missing", path, "the schema has no required properties: the model may omit all of them"
            )
        for keyword in sorted(self.rules.not_at_root & schema.keys()):
            self._error("keyword_at_root", (*path, keyword), f"{keyword} is not allowed at the root of a schema")
        self._walk(schema, path)

    def _walk(self, schema: Any, path: Path) -> None:
        # the last item: whether the node applies to the same value as the schema around it
        waiting = [(schema, path, 1, False)]
        while waiting and len(self.findings) < MAX_FINDINGS:
            node, path, depth, here = waiting.pop()
            if isinstance(node, bool):
                continue
            if not isinstance(node, _OBJECT):
                self._error("schema_invalid", path, f"a schema must be an object or a boolean, not {_described(node)}")
                continue
            if depth > self.limits.json_depth:
                self._error("schema_too_deep", path, f"nested deeper than {self.limits.json_depth} (json_depth)")
                continue
            if self._left == 0:
                self._error("schema_too_large", path, f"more than {MAX_SUBSCHEMAS:,} subschemas in all tools")
                return
            self._left -= 1
            self._check_node(node, path, root=depth == 1, here=here)
            if node.keys().isdisjoint(_HOLDERS):
                continue
            waiting += [
                (inner, (*path, *key), depth + 1, key[0] in HERE)
                for key, inner in reversed([*_subschemas(node)])
                if key[0] not in self.rules.whole
            ]

    def _check_node(self, node: Mapping[str, Any], path: Path, *, root: bool, here: bool) -> None:
        kinds = None if root else node.get("type")  # the root's type is already checked
        for kind in kinds if isinstance(kinds, list) else [] if kinds is None else [kinds]:
            if kind not in TYPES:
                self._error(
                    "type_unknown",
                    (*path, "type"),
                    f"{_described(kind)} is not a type; write one of {', '.join(TYPES)}",
                )
        for keyword, (shape, needed) in () if node.keys().isdisjoint(_SHAPES.keys()) else _SHAPES.items():
            if keyword in node and not isinstance(node[keyword], shape):
                self._error(
                    "schema_invalid", (*path, keyword), f"{keyword} must be {needed}, not {_described(node[keyword])}"
                )
        self._check_required(node, path, root=root, here=here)
        allowed = self.rules.root_keywords if root and self.rules.root_keywords is not None else self.rules.keywords
        for keyword in () if allowed is None else [keyword for keyword in node if keyword not in allowed]:
            word = shortened(keyword, STEP_CHARS)
            self._note("keyword_unsupported", (*path, keyword), f"the dialect does not support {word}")

    def _check_required(self, node: Mapping[str, Any], path: Path, *, root: bool, here: bool) -> None:
        required = node.get("required")
        if required is None:
            return
        if not isinstance(required, list) or not {str}.issuperset(map(type, required)):
            self._error(
                "required_invalid", (*path, "required"), f"required must be a list of names, not {_described(required)}"
            )
            return
        properties = node.get("properties")
        if here or not isinstance(properties, Mapping | None) or not node.keys().isdisjoint(ELSEWHERE):
            return
        for name in required:
            if name not in (properties or {}):
                say = self._error if root else self._note
                say("required_unknown", (*path, "required"), f"{quoted(name)} is required but not in properties")


def _subschemas(node: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for keyword, value in node.items():
        if keyword not in _HOLDERS:
            continue
        if keyword in NAMED and isinstance(value, _OBJECT):
            for name, inner in value.items():
                yield (keyword, name), inner
        elif keyword in MANY and isinstance(value, list):
            for number, inner in enumerate(value):
                yield (keyword, number), inner
        elif keyword in ONE:
            yield (keyword,), value


def _described(value: Any) -> str:
    return quoted(value) if isinstance(value, str | bool | int | float | None) else f"a {type(value).__name__}"


def _shown(path: Path) -> str:
    return steps(path).removeprefix(".")
