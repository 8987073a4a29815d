"""``check_dialect``: check laws L1, L3, L4, L5 and L10 for a dialect that a user wrote: streams, responses, requests.

Source: design.md §1; docs/explanation/laws.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, get_args

import orjson
from attrs import define, evolve

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Options, Request, Text, Tool, ToolCall, ToolChoice, ToolResult, Turn
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Bodies, Dialect
from streamkit.dialects.members.fields import fields_of
from streamkit.dialects.profiles import Encoding, Target
from streamkit.errors import BadRequest, StreamError
from streamkit.events import (
    ChoiceStarted,
    Event,
    ProviderFailed,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StopReason,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    Verdict,
)
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.pipeline import Stage
from streamkit.read_options import ReadOptions
from streamkit.recipes import reading_stages
from streamkit.report import StreamReport
from streamkit.testing.cuts import cuts, single_cuts
from streamkit.testing.drive import drive_machine, joined
from streamkit.translation.lowering import lower

#: A member that no dialect has, and a value that occurs nowhere else.
UNKNOWN, VALUE = "zz_unknown_member", 987_654_321_012
CUTS = 60  #: how many cuts of a long stream are tried for L3
#: Kinds of repair that a reader makes only if an option asks for them. The check expects nothing of the quirks for these.
ASKED_FOR = frozenset({"thinking_in_text", "call_in_text", "objects_split", "custom_input_bare"})
ALSO = {"id_late": {"id_missing"}}  #: for a kind of repair: the other kinds that always occur together with it
FAILING = frozenset({"call_nameless"})  #: kinds of repair after which no response can count as clean
#: Requests in the neutral form, with features that nearly all dialects can express.
REQUESTS = {
    "text": Request("", "m", [Turn("user", [Text("Hi")])], options=Options(max_tokens=99)),
    "calls": Request(
        "",
        "m",
        [
            Turn("system", [Text("Be brief.")]),
            Turn("user", [Text("Weather in Oslo and Rome?")]),
            Turn(
                "assistant",
                [
                    Text("Let me look."),
                    ToolCall(0, "call_a", "get_weather", '{"city":"Oslo","days":1.0}'),
                    ToolCall(1, "call_b", "get_weather", '{"city":"Rome"}'),
                ],
            ),
            Turn("user", [ToolResult("call_a", [Text("18 C")]), ToolResult("call_b", [Text("25 C")])]),
            Turn("assistant", [Text("Mild.")]),
            Turn("user", [Text("Thanks. And Bergen?")]),
        ],
        [Tool("get_weather", "The weather", {"type": "object", "properties": {"city": {"type": "string"}}})],
        ToolChoice("auto"),
        Options(max_tokens=99),
    ),
    "options": Request(
        "", "m", [Turn("user", [Text("Hi")])], options=Options(max_tokens=99, temperature=0.5, stop=("END",))
    ),
}

#: A call of ``_responses``.
CALL = (
    ToolCallStarted(0, "call_a", "f"),
    ToolCallArguments(0, '{"x":1}'),
    ToolCallFinished(0, "call_a", "f", '{"x":1}', verdict=Verdict("complete")),
)


def _responses() -> Iterator[tuple[str, list[Event]]]:
    """Yield responses with what other dialects can express, each with a name."""
    start = ResponseStarted("r", "m"), ChoiceStarted()
    usage, end = UsageReported(input_total=7, output_total=3), StreamEnded(clean=True)
    for reason in get_args(StopReason):
        called = reason == "tool_calls"
        yield (
            f"stop reason {reason}",
            [*start, TextDelta("Hi"), *(CALL if called else ()), ResponseFinished(reason), end],
        )
    done = ResponseFinished("stop"), end
    yield "usage", [*start, TextDelta("Hi"), usage, *done]
    yield "reasoning", [*start, ReasoningDelta("Hm"), TextDelta("Hi", block=1), *done]
    yield "refusal", [*start, RefusalDelta("No"), ResponseFinished("refusal"), end]
    yield (
        "choices",
        [*start, TextDelta("a"), ChoiceStarted(1), TextDelta("b", choice=1), ResponseFinished("stop", choice=1), *done],
    )


def check_dialect(dialect: Dialect, bodies: Mapping[str, bytes], *, exhaustive: bool = False, seed: int = 0) -> None:
    """Check that ``dialect`` keeps the laws on ``bodies``: its streams as bytes, each with a name, valid and broken ones.

    * L1: however the bytes are split into reads, the events, the fault and the repairs are the same.
    * L3: a truncated stream reports success only if it has all of the text and calls. If it does not, its translation into
      this dialect and every built-in one does not either.
    * L4: the encoder's output is read without repairs and breaks no rule, and has the same content except for counted
      losses.
    * L5: in a stream that needs no repair, an unknown member in any object is in an event or counted.
    * L10: each quirk changes at least one of the streams. Reading the changed stream needs that repair and no other, and the
      stream ends as before.

    L5 is also checked for sample responses of other dialects: the encoder must write their usage, stop reasons, reasoning,
    refusals and choices, or count a loss, or end the stream with an error.

    If the dialect has ``bodies``, L3, L4 and L5 are checked for whole responses too: the response of each stream is written
    whole and read again. Sample requests are written, read, and written again, and both bodies must be equal (L5).

    ``exhaustive`` and ``seed`` are those of ``cuts``; a test of a few short streams has time for every cut. Raises
    AssertionError that names the law, the stream and the place. Raises ValueError if no stream of ``bodies`` is a success,
    or none has what a quirk changes, because the test would then prove nothing.
    """
    readings = {name: _read(dialect, [body]) for name, body in bodies.items()}
    if not any(reading.clean for reading in readings.values()):
        raise ValueError("check_dialect needs at least one stream that is a success")
    if dialect.bodies is not None:
        for name, request in REQUESTS.items():
            _check_request(dialect.bodies, f"the sample request {name!r} in {dialect.name}", request)
    for name, whole in readings.items():
        where = f"stream {name!r} of {dialect.name}"
        _check_cuts(dialect, where, bodies[name], whole, exhaustive=exhaustive, seed=seed)
        _check_success(dialect, where, bodies[name], whole, exhaustive=exhaustive, seed=seed)
        _check_return(dialect, where, whole)
        if dialect.bodies is not None:
            _check_response(dialect, dialect.bodies, where, whole)
        if not whole.fault and not whole.report.repairs:
            _check_members(dialect, where, bodies[name], whole)
    for name, events in _responses():
        _check_sample(dialect, name, _Reading(events, None, StreamReport()))
    _check_quirks(dialect, readings)


@define
class _Reading:
    """The content of a stream, with adjacent deltas joined."""

    events: list[Any]
    fault: Exception | None
    report: StreamReport

    @property
    def clean(self) -> bool:
        return any(isinstance(event, StreamEnded) and event.clean for event in self.events)

    @property
    def facts(self) -> Any:
        """What must be the same however the bytes are split into reads."""
        return self.events, repr(self.fault), +self.report.repairs

    def content(self) -> dict[str, Any]:
        """Return what a user sees: text, reasoning and refusals, complete calls, and how each choice finished."""
        texts: dict[str, str] = {}
        for event in self.events:
            if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
                key = f"{type(event).__name__} of choice {event.choice}"
                texts[key] = texts.get(key, "") + event.text
        stops = {event.choice: event.reason for event in self.events if isinstance(event, ResponseFinished)}
        return {**texts, "calls": self._calls(complete=True), "stops": stops}

    def counts(self) -> tuple[int | None, int | None]:
        """Return the token counts of input and output that were reported last."""
        usage = [event for event in self.events if isinstance(event, UsageReported)]
        return (usage[-1].input_total, usage[-1].output_total) if usage else (None, None)

    def _calls(self, *, complete: bool) -> list[tuple[int, str, Any]]:
        """Return the complete calls, or the others."""
        calls = [
            (event.choice, event.name, _value(event.arguments))
            for event in self.events
            if isinstance(event, ToolCallFinished)
            and bool(event.ended and event.verdict and event.verdict.kind != "truncated") == complete
        ]
        return sorted(calls, key=str)

    def has_all_of(self, whole: _Reading) -> bool:
        """Return whether the content is that of ``whole``.

        If ``whole`` is no success, its complete calls may be incomplete here: a dialect whose clients run every complete call
        must not complete a call of a failed response.
        """
        expected, content = whole.content(), self.content()
        if not whole.clean:
            calls = content["calls"]
            for call in self._calls(complete=False):
                if calls.count(call) < expected["calls"].count(call):
                    calls.append(call)
            calls.sort(key=str)
        return content == expected


def _value(arguments: str) -> Any:
    """Return the value of arguments: an empty text is an empty object, and text that is not JSON stays text."""
    try:
        return orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments


def _numbered() -> Callable[[str], str]:
    """Return a function that makes numbered ids, so that equal streams get equal ids."""
    counts: Counter[str] = Counter()

    def make_id(prefix: str) -> str:
        counts[prefix] += 1
        return f"{prefix}{counts[prefix]}"

    return make_id


def _stages(dialect: Dialect) -> list[Stage[Any, Any]]:
    return reading_stages(dialect, None, ReadOptions(make_id=_numbered()), join=False)


def _read(dialect: Dialect, reads: list[bytes]) -> _Reading:
    return _run(_stages(dialect), reads)


def _run(stages: list[Stage[Any, Any]], items: list[Any]) -> _Reading:
    report = StreamReport()
    chain = Chain(*(stage.make(report) for stage in stages))
    events = [event for batch in drive_machine(chain, items) for event in batch]
    return _Reading(joined(events), chain.fault, report)


def _write(dialect: Dialect, reading: _Reading) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    encoder = dialect.encoder(Encoding(make_id=_numbered(), clock=lambda: 1_700_000_000.0), report)
    output = encoder.feed(reading.events)
    output += encoder.fail(reading.fault) if isinstance(reading.fault, StreamError) else encoder.finish()
    if encoder.fault is not None:
        raise AssertionError(f"the encoder of {dialect.name} failed: {encoder.fault!r}") from encoder.fault
    return output, report


def _last(dialect: Dialect, output: bytes) -> bytes:
    """Return the last payload of a stream. In a complete stream, it states that the stream is complete."""
    parser = dialect.parser(DEFAULT_LIMITS, StreamReport())
    frames = [*parser.feed(output), *parser.finish()]
    return frames[-1].data if frames else b""


def _check_cuts(dialect: Dialect, where: str, body: bytes, whole: _Reading, *, exhaustive: bool, seed: int) -> None:
    for reads in cuts(body, exhaustive=exhaustive, seed=seed, pairs_up_to=0):
        found = _read(dialect, reads)
        if found.facts != whole.facts:
            sizes = [len(one) for one in reads[:12]]
            raise AssertionError(
                f"L1, chunk invariance: {where}, in reads of {sizes} bytes, says\n  {found.facts!r}\n"
                f"and in one read\n  {whole.facts!r}"
            )


def _check_success(dialect: Dialect, where: str, body: bytes, whole: _Reading, *, exhaustive: bool, seed: int) -> None:
    ends = range(len(body)) if exhaustive else single_cuts(len(body), seed=seed, all_up_to=CUTS, edge=40, seeded=CUTS)
    targets = (dialect, *DIALECTS.built_in.values())
    terminators = {target.name: _last(target, _write(target, whole)[0]) for target in targets if whole.clean}
    for end in ends:
        cut = _read(dialect, [body[:end]])
        if cut.clean:
            if whole.clean and cut.content() != whole.content():
                raise AssertionError(
                    f"L3, success is never invented: {where} is cut after {end} bytes and says success with\n"
                    f"  {cut.content()!r}\nand whole it has\n  {whole.content()!r}"
                )
            continue
        for target in targets:
            output, _ = _write(target, cut)
            if _read(target, [output]).clean or terminators.get(target.name) == _last(target, output) != b"":
                raise AssertionError(
                    f"L3, success is never invented: {where} is cut after {end} bytes, and written in "
                    f"{target.name} it says success:\n  {output!r}"
                )


def _check_return(dialect: Dialect, where: str, whole: _Reading) -> None:
    output, report = _write(dialect, whole)
    again = _read(dialect, [output])
    if again.fault or again.report.repairs:
        raise AssertionError(
            f"L4, a conforming stream is not repaired: {where} is written as\n  {output!r}\n"
            f"and reading that takes {dict(again.report.repairs)}, {again.fault!r}"
        )
    linter, parser = dialect.linter(), dialect.parser(DEFAULT_LIMITS, StreamReport())
    broken = [*linter.feed(parser.feed(output) + parser.finish()), *linter.finish()]
    if errors := [violation for violation in broken if violation.severity == "error"]:
        raise AssertionError(
            f"L4, a conforming stream is not repaired: {where} is written as\n  {output!r}\nwhich breaks {errors[0]!r}"
        )
    if again.clean != whole.clean or (not again.has_all_of(whole) and not report.losses):
        raise AssertionError(
            f"L5, nothing is silent: {where} has\n  {whole.content()!r}\nand comes back, with nothing counted as lost, as\n"
            f"  {again.content()!r}"
        )


def _check_sample(dialect: Dialect, name: str, whole: _Reading) -> None:
    """Check that the encoder writes a response of another dialect, or counts what it leaves out."""
    where = f"the sample response {name!r}"
    output, report = _write(dialect, whole)
    written = {"a stream": (output, _read(dialect, [output]), report)}
    if dialect.bodies is not None and dialect.bodies.encode_response is not None:
        body, report = _write_whole(dialect, dialect.bodies.encode_response, whole)
        written["a whole response"] = body, _read_whole(dialect, dialect.bodies, where, body, StreamReport()), report
    for form, (output, again, report) in written.items():
        kept = again.has_all_of(whole) and (again.counts() == whole.counts() or whole.counts() == (None, None))
        failed = any(isinstance(event, ProviderFailed) for event in again.events)
        if not report.losses and not (kept if again.clean else failed):
            raise AssertionError(
                f"L5, nothing is silent: {where} has\n  {whole.content()!r}, tokens {whole.counts()}\n"
                f"and is written in {dialect.name} as {form}, with nothing counted as lost:\n  {output!r}\n"
                "write what it has, or count a loss with `lose`"
            )


def _check_members(dialect: Dialect, where: str, body: bytes, whole: _Reading) -> None:
    parser = dialect.parser(DEFAULT_LIMITS, StreamReport())
    frames = [*parser.feed(body), *parser.finish()]
    for number, frame in enumerate(frames):
        try:
            document = orjson.loads(frame.data)
        except orjson.JSONDecodeError:
            continue
        for path in _objects(document):
            document = holder = orjson.loads(frame.data)
            for step in path:
                holder = holder[step]
            holder[UNKNOWN] = VALUE
            changed = [*frames[:number], evolve(frame, data=orjson.dumps(document)), *frames[number + 1 :]]
            found = _run(_stages(dialect)[1:], [changed])
            if str(VALUE) not in repr(found.events) and found.facts[1:] == whole.facts[1:]:
                place = ".".join(map(str, path)) or "the payload"
                raise AssertionError(
                    f"L5, nothing is silent: an unknown member, added to {place} of frame {number} of {where}, is in "
                    f"no event and in no count; pass what you do not read to `self.keep_others`"
                )


def _write_whole(
    dialect: Dialect, encode: Callable[..., dict[str, Any]], whole: _Reading
) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    collector = Collector(dialect.name, report)
    collector.feed(whole.events)
    encoding = Encoding(make_id=_numbered(), clock=lambda: 1_700_000_000.0)
    return orjson.dumps(encode(collector.finish(), encoding, report)), report


def _read_whole(dialect: Dialect, bodies: Bodies, where: str, body: bytes, report: StreamReport) -> _Reading:
    try:
        return _run(_stages(dialect)[2:], [bodies.decode_response(body, DEFAULT_LIMITS, report)])
    except StreamError as error:
        raise AssertionError(
            f"L4, a conforming response is not repaired: {where} is written whole as\n  {body!r}\nand can't be read: {error}"
        ) from error


def _check_response(dialect: Dialect, bodies: Bodies, where: str, whole: _Reading) -> None:
    if bodies.encode_response is None:
        return
    body, report = _write_whole(dialect, bodies.encode_response, whole)
    again = _read_whole(dialect, bodies, where, body, read := StreamReport())
    if repairs := read.repairs + again.report.repairs:
        raise AssertionError(
            f"L4, a conforming response is not repaired: {where} is written whole as\n  {body!r}\n"
            f"and reading that takes {dict(repairs)}"
        )
    if again.clean and not whole.clean:
        raise AssertionError(
            f"L3, success is never invented: {where} is no success, and is written whole as one:\n  {body!r}"
        )
    if again.clean != whole.clean or (not again.has_all_of(whole) and not report.losses):
        raise AssertionError(
            f"L5, nothing is silent: {where} has\n  {whole.content()!r}\nand comes back from a whole response, with nothing "
            f"counted as lost, as\n  {again.content()!r}"
        )


def _check_quirks(dialect: Dialect, readings: Mapping[str, _Reading]) -> None:
    """Check each quirk: the encoder's streams, changed by it, must need the repair of its name and no other."""
    for kind, change in dialect.quirks.items():
        changed = 0
        for name, whole in readings.items():
            output, _ = _write(dialect, whole)
            frames = _frames(dialect, output)
            quirky = change(frames)
            if quirky == frames:
                continue
            changed += 1
            found, before = _read(dialect, [b"".join(quirky)]), _read(dialect, [output])
            ends = kind in FAILING or found.clean == before.clean
            if kind not in ASKED_FOR and (found.report.repairs.keys() != {kind, *ALSO.get(kind, ())} or not ends):
                raise AssertionError(
                    f"L10, a quirk needs only its own repair: {kind} makes of stream {name!r} of "
                    f"{dialect.name}\n  {quirky!r}\n"
                    f"and reading that takes {dict(found.report.repairs)}, clean: {found.clean}, {found.fault!r}"
                )
        if not changed:
            raise ValueError(f"check_dialect: no stream has what the quirk {kind!r} of {dialect.name} changes; add one")


def _frames(dialect: Dialect, output: bytes) -> tuple[bytes, ...]:
    parser = dialect.parser(DEFAULT_LIMITS, StreamReport())
    places = [frame.offset for frame in [*parser.feed(output), *parser.finish()]]
    return tuple(output[begin:end] for begin, end in pairwise([*places, len(output)]))


def _check_request(bodies: Bodies, where: str, request: Request) -> None:
    """Check that a written request is read unchanged, and that an unknown member is kept, counted as lost or refused."""
    body, report = _write_request(bodies, request)
    again = bodies.decode_request(fields_of(body), StreamReport())
    if _asked(again) != _asked(request) and not report.losses:
        raise AssertionError(
            f"L5, nothing is silent: {where} has\n  {_asked(request)!r}\nand comes back, with nothing counted as lost, as\n"
            f"  {_asked(again)!r}"
        )
    same, _ = _write_request(bodies, again)
    if orjson.loads(same) != orjson.loads(body):
        raise AssertionError(f"L5, nothing is silent: {where} is\n  {body!r}\nand read and written again\n  {same!r}")
    for path in _objects(orjson.loads(body)):
        changed = holder = orjson.loads(body)
        for step in path:
            holder = holder[step]
        holder[UNKNOWN] = VALUE
        report = StreamReport()
        try:
            kept, counted = _write_request(bodies, bodies.decode_request(fields_of(orjson.dumps(changed)), report))
        except BadRequest:
            continue  # the client gets an error, so nothing is lost silently
        if str(VALUE).encode() not in kept and not counted.losses and not report.losses:
            place = ".".join(map(str, path)) or "the body"
            raise AssertionError(
                f"L5, nothing is silent: an unknown member, added to {place} of {where}, is not written "
                f"again and not counted; keep what `Fields.rest` gives as extras"
            )


def _write_request(bodies: Bodies, request: Request) -> tuple[bytes, StreamReport]:
    target, report = Target(), StreamReport()
    if bodies.capabilities is not None:
        request = lower(request, bodies.capabilities, target, report)
    return orjson.dumps(bodies.encode_request(request, target, report)), report


def _asked(request: Request) -> dict[str, Any]:
    """Return the parts of a request to compare: its conversation (calls by number, not id), its tools and some options."""
    content: list[tuple[Any, ...]] = []
    calls: list[str] = []
    for turn in request.turns:
        for part in turn.parts:
            match part:
                case Text():
                    content.append((turn.role, part.text))
                case ToolCall():
                    calls.append(part.id)
                    content.append((part.name, _value(part.arguments)))
                case ToolResult():
                    content.append((calls.index(part.call_id) if part.call_id in calls else part.call_id, part.text))
    tools = [(tool.name, tool.description, tool.parameters) for tool in request.tools]
    options = request.options
    return {"content": content, "tools": tools, "options": (options.max_tokens, options.temperature, options.stop)}


def _objects(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in inner:
        yield from _objects(member, (*path, step))
