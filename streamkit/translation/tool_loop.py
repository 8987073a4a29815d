"""The second leg of a tool conversation: the request that follows a response which called tools.

Theory: a model that called tools is asked again with the whole conversation, its own turn in it exactly as it was (reasoning,
signatures and what only its vendor can read in their places, argument text unchanged) and behind it one result for each call.
What is about the response and not said in it (log probabilities, timings) stays behind.

A call that was not run because its arguments are bad needs a result too: it is made of the verdict (``tool_calls/mend.py``).
Nothing else is made up: a result that is missing, or that answers no call, is the caller's mistake and is said to be one. The
calls of a response that was cut are not to be answered: that they look whole proves nothing.

Source: dialects.md §2.2, §3.2, §7.3; seeds.md S3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from streamkit.errors import UsageError
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted, quoted_all
from streamkit.tool_calls.mend import JudgedCall, error_text, is_bad
from streamkit.translation.lowering import lower

ResultContent: TypeAlias = str | Sequence[Text | Media | Aside]
Results: TypeAlias = Iterable[ToolResult] | Mapping[str, ResultContent]
"""What the tools said: results, or by the id of the call their text or parts."""

#: Kinds of asides that are about a response and no part of what was said.
ABOUT: Final = frozenset({"logprobs", "metadata"})


@cache
def _resent() -> frozenset[tuple[str, str]]:
    """Return the vendors and types of the asides about a response that are to be sent back."""
    return frozenset(each for dialect in DIALECTS.built_in.values() for each in dialect.resent)


def request_with_results(
    request: Request, response: Response, results: Results, *, choice: int = 0, report: StreamReport | None = None
) -> Request:
    """The next request: the conversation of ``request``, what ``response`` said in a ``choice``, and the ``results``.

    A call with a bad verdict needs no result: it gets one that tells the model what to mend. Results come in the order of the
    calls, with the name and kind of their tool. Everything else of ``request`` stays, its tool choice too: one that requires
    a tool requires it again.

    Fields that only the response's dialect knows are left out where the request is of another (loss ``metadata``, counted in
    ``report``). Raises UsageError for a response that is not clean, has no such choice or calls no tools, for a result whose
    id is that of no call or that comes twice, and for calls without one. ``request`` and ``response`` are not changed.
    """
    turn = _choice(response, choice)
    calls = turn.tool_calls
    if not calls:
        raise UsageError("the response calls no tools: there is no second leg")
    by_call = _by_call(results, calls)
    missing = [call.id for call in calls if call.id not in by_call and not is_bad(call.verdict)]
    if missing:
        raise UsageError(f"no result for the calls {quoted_all(missing)}")
    foreign = request.dialect != response.dialect
    parts = [_kept(part, report) if foreign else part for part in turn.parts if _is_said(part)]
    answers: list[Part] = [_answer(call, by_call.get(call.id)) for call in calls]
    return evolve(request, turns=[*request.turns, Turn("assistant", parts), Turn("user", answers)])


def mend_result(call: JudgedCall) -> ToolResult:
    """The result of a call that was not run: it tells the model what to mend. Raises UsageError without a bad verdict."""
    return ToolResult(call.id, [Text(error_text(call))], call.name, is_error=True, kind=call.kind)


def error_result(call: JudgedCall, dialect: str) -> dict[str, Any]:
    """The result of a call that was not run, as the dialect's next request has it: for a ``ToolCall`` or ``ToolCallFinished``.

    ``anthropic``: a ``tool_result`` block with ``is_error`` for the next user message. ``openai-chat`` and ``ollama``: a
    message with the role ``tool``. Others alike: a block or part where results are parts of a message, else the message or
    item. Raises UsageError for a call whose verdict is good or missing, and for an unknown dialect.
    """
    result = mend_result(call)
    bodies = dialect_named(dialect).bodies
    if bodies is None:
        raise UsageError(f"no error result for the dialect {quoted(dialect)}: no requests are written in it")
    answered = ToolCall(0, call.id, call.name, "{}", call.kind)
    turns = [Turn("user", [Text("…")]), Turn("assistant", [answered]), Turn("user", [result])]
    request, target, report = Request("", "", turns), Target(), StreamReport()
    if bodies.capabilities is not None:
        request = lower(request, bodies.capabilities, target, report)
    return _last(bodies.encode_request(request, target, report))


def _last(body: Mapping[str, Any]) -> dict[str, Any]:
    """The last thing that a body says: the last message or item, or the last part of one that the user's parts make up."""
    message: dict[str, Any] = next(body[key] for key in ("messages", "input", "contents") if key in body)[-1]
    parts = message.get("content") or message.get("parts")
    last: dict[str, Any] = parts[-1] if message.get("role") == "user" and isinstance(parts, list) else message
    return last


def _choice(response: Response, index: int) -> Choice:
    if not response.clean:
        why = response.error.message if response.error is not None else "it was cut"
        raise UsageError(f"the response is not clean, so its calls must be neither run nor answered: {why}")
    for choice in response.choices:
        if choice.index == index:
            return choice
    raise UsageError(f"the response has no choice {index}")


def _by_call(results: Results, calls: list[ToolCall]) -> dict[str, ToolResult]:
    """The results by the id of their call."""
    if isinstance(results, Mapping):
        results = [
            ToolResult(call_id, [Text(said)] if isinstance(said, str) else [*said]) for call_id, said in results.items()
        ]
    known = {call.id for call in calls}
    by_call: dict[str, ToolResult] = {}
    for result in results:
        if result.call_id not in known:
            raise UsageError(f"a result for {quoted(result.call_id)}, and the calls are {quoted_all(sorted(known))}")
        if result.call_id in by_call:
            raise UsageError(f"two results for the call {quoted(result.call_id)}")
        by_call[result.call_id] = result
    return by_call


def _answer(call: ToolCall, result: ToolResult | None) -> ToolResult:
    if result is None:
        return mend_result(call)
    return evolve(result, name=result.name or call.name, kind=call.kind)


def _is_said(part: Part) -> bool:
    """Whether a part belongs to the turn; a text without a character says nothing, and some providers refuse it."""
    match part:
        case Aside():
            return part.kind not in ABOUT or (part.vendor, part.type) in _resent()
        case Text():
            return bool(part.text or part.signature or part.extras)
    return True


def _kept(part: Part, report: StreamReport | None) -> Part:
    """A part without the fields that only another dialect knows."""
    if isinstance(part, Aside | Refusal) or not part.extras:
        return part
    for name in part.extras:
        if report is not None:
            report.lose("metadata", what=name)
    return evolve(part, extras=None)
