"""Write the next request of a tool conversation: the request that follows a response with tool calls.

The next request has the whole conversation: the model's turn unchanged (reasoning, signatures and parts that only its vendor
can read in their places, the text of arguments as it was), then one result for each call. Data about the response that the
model did not say (log probabilities, timings) is left out.

A call that was not run because its arguments are bad needs a result, too, made from the verdict (``tool_calls/check.py``).
No other result is made up: a missing result, or one for no call, raises an error. The calls of an interrupted response must
not be answered: even a call that looks whole may be truncated.

Source: dialects.md §2.2, §3.2, §7.3 (results of each dialect); seeds.md S3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from attrs import evolve

from streamkit.conversation.messages import (
    Choice,
    Media,
    Part,
    Refusal,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects import DIALECTS, dialect_named
from streamkit.dialects.profiles import Target
from streamkit.errors import UsageError, check_type
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted, quoted_all
from streamkit.tool_calls.check import JudgedCall, error_text, is_bad
from streamkit.translation.lowering import lower

ResultContent: TypeAlias = str | Sequence[Text | Media | Aside]
Results: TypeAlias = Iterable[ToolResult] | Mapping[str, ResultContent]
"""The output of the tools: results, or a mapping from a call's id to its text or parts."""

#: Kinds of asides that describe a response and are no part of the conversation.
ABOUT: Final = frozenset({"logprobs", "metadata"})


@cache
def _resent() -> frozenset[tuple[str, str]]:
    """Return vendor and type of the asides that describe a response and must nevertheless be in the next request."""
    return frozenset(each for dialect in DIALECTS.built_in.values() for each in dialect.resent)


def request_with_results(
    request: Request, response: Response, results: Results, *, choice: int = 0, report: StreamReport | None = None
) -> Request:
    """Return the next request of a conversation: ``request``, followed by one choice of ``response`` and the tools'
    ``results``.

    A call with a bad verdict needs no result: streamkit adds a result that tells the model what to fix. In the next
    request, the results are in the order of the calls, and each result has the name and kind of its tool. All other
    fields of ``request`` stay the same. For example, if the tool choice of ``request`` required a call, the next
    request requires a call again.

    If ``request`` and ``response`` are of different dialects, fields that only the response's dialect knows are left
    out. ``report`` counts each of these fields as a loss of the kind ``metadata``. Raises UsageError if the response is
    not clean, has no choice with the index ``choice``, or calls no tools. Also raises UsageError if a call has no
    result, if a result's id belongs to no call, or if two results have the same id. ``request`` and ``response`` are
    not changed.
    """
    check_type("request", request, Request, "decode_request(body, dialect)")
    check_type("response", response, Response, "decode_response(body, dialect) or await collect(source, dialect)")
    turn = _choice(response, choice)
    calls = turn.tool_calls
    if not calls:
        raise UsageError("the response has no tool calls, so there is no next request")
    by_call = _by_call(results, calls)
    missing = [call.id for call in calls if call.id not in by_call and not is_bad(call.verdict)]
    if missing:
        raise UsageError(f"the results of the calls {quoted_all(missing)} are missing")
    foreign = request.dialect != response.dialect
    parts = said_parts(turn)
    parts = [_kept(part, report) for part in parts] if foreign else parts
    answers: list[Part] = [_answer(call, by_call.get(call.id)) for call in calls]
    return evolve(request, turns=[*request.turns, Turn("assistant", parts), Turn("user", answers)])


def said_parts(turn: Choice, keeps: Callable[[ToolCall], bool] = lambda _call: True) -> list[Part]:
    """Return the parts of a response that belong to the conversation, and those of its calls that ``keeps`` accepts."""
    return [part for part in turn.parts if _is_said(part) and (not isinstance(part, ToolCall) or keeps(part))]


def mend_result(call: JudgedCall) -> ToolResult:
    """Return a result for a call that was not run: it tells the model what to fix. Raises UsageError without a bad verdict."""
    return ToolResult(call.id, [Text(error_text(call))], call.name, is_error=True, kind=call.kind)


def error_result(call: JudgedCall, dialect: str) -> dict[str, Any]:
    """Return a tool result that tells the model why a call was not run, in the form that requests in ``dialect`` use.

    ``call`` is a ``ToolCall`` or ``ToolCallFinished`` with a bad verdict. For ``anthropic``, the function returns a
    ``tool_result`` block with ``is_error``, for the next user message. For ``openai-chat`` and ``ollama``, the function
    returns a message with the role ``tool``. For other dialects, the function returns a part of a message, a whole
    message or an item, as the dialect requires for tool results. Raises UsageError for a call whose verdict is good or
    missing, and for an unknown dialect.
    """
    result = mend_result(call)
    bodies = dialect_named(dialect).bodies
    if bodies is None:
        raise UsageError(f"streamkit cannot write requests in the dialect {quoted(dialect)}")
    answered = ToolCall(0, call.id, call.name, "{}", call.kind)
    turns = [Turn("user", [Text("…")]), Turn("assistant", [answered]), Turn("user", [result])]
    request, target, report = Request("", "", turns), Target(), StreamReport()
    if bodies.capabilities is not None:
        request = lower(request, bodies.capabilities, target, report)
    return _last(bodies.encode_request(request, target, report))


def _last(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last message or item of a request body, or its last part if it is a user message made of parts."""
    message: dict[str, Any] = next(body[key] for key in ("messages", "input", "contents") if key in body)[-1]
    parts = message.get("content") or message.get("parts")
    last: dict[str, Any] = parts[-1] if message.get("role") == "user" and isinstance(parts, list) else message
    return last


def _choice(response: Response, index: int) -> Choice:
    if not response.clean:
        why = response.error.message if response.error is not None else "it was truncated"
        raise UsageError(f"the response is incomplete, so its tool calls must not be run: {why}")
    for choice in response.choices:
        if choice.index == index:
            return choice
    raise UsageError(f"the response has no choice {index}")


def _by_call(results: Results, calls: list[ToolCall]) -> dict[str, ToolResult]:
    """Return the results by the id of their call. Raises UsageError for an unknown or repeated id."""
    if isinstance(results, Mapping):
        results = [ToolResult(call_id, _parts(call_id, content)) for call_id, content in results.items()]
    known = {call.id for call in calls}
    by_call: dict[str, ToolResult] = {}
    for result in results:
        check_type("each of the results", result, ToolResult, "ToolResult(call_id, [Text(…)])")
        check_type("the parts of a result", result.parts, list, "[Text(…)]")
        if result.call_id not in known:
            raise UsageError(
                f"there is no call {quoted(result.call_id)} for a result; the calls are {quoted_all(sorted(known))}"
            )
        if result.call_id in by_call:
            raise UsageError(f"the call {quoted(result.call_id)} has two results")
        by_call[result.call_id] = result
    return by_call


def _parts(call_id: str, content: object) -> list[Text | Media | Aside]:
    """Return the parts of a result. Raises UsageError if it is neither text nor parts."""
    parts = [Text(content)] if isinstance(content, str) else content
    if isinstance(parts, list | tuple) and all(isinstance(part, Text | Media | Aside) for part in parts):
        return [*parts]
    found = "a list of other things" if isinstance(content, list | tuple) else type(content).__qualname__
    what = f"the result of the call {quoted(call_id)} must be text or a list of parts"
    raise UsageError(f"{what}, not {found}: write json.dumps(…)")


def _answer(call: ToolCall, result: ToolResult | None) -> ToolResult:
    if result is None:
        return mend_result(call)
    return evolve(result, name=result.name or call.name, kind=call.kind)


def _is_said(part: Part) -> bool:
    """Return whether a part belongs in the turn. An empty text does not: some providers refuse it."""
    match part:
        case Aside():
            return part.kind not in ABOUT or (part.vendor, part.type) in _resent()
        case Text():
            return bool(part.text or part.signature or part.extras)
    return True


def _kept(part: Part, report: StreamReport | None) -> Part:
    """Return a part without the fields that only another dialect knows; each is a loss."""
    if isinstance(part, Aside | Refusal) or not part.extras:
        return part
    for name in part.extras:
        if report is not None:
            report.lose("metadata", what=name)
    return evolve(part, extras=None)
