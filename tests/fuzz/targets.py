"""What is fuzzed: functions of bytes that must end, and raise nothing but ``Broken`` where a law does not hold.

The law of all of them: whatever bytes come in, only the error tree comes out (``StreamkitError``; what a function of the
standard library would raise of its own counts as a fault). Each adds what else must hold of its place. An input is a line that
names a source and a target (``anthropic ollama 7``: dialects, and a number that chooses cuts and options), and what follows
it; a line that names nothing known chooses by its checksum, so that any bytes are an input.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterator
from typing import Any, get_args

from attrs import frozen

from streamkit import PartialJSON, decode_request, decode_response, encode_request, encode_response, parse_arguments
from streamkit.conversation.messages import Tool
from streamkit.detection import Detector
from streamkit.dialects import DIALECTS
from streamkit.dialects.http import SocketRequest
from streamkit.dialects.openai_responses import socket
from streamkit.dialects.openai_responses.socket import SocketConversation
from streamkit.errors import StreamError, StreamkitError
from streamkit.events import ToolCallArguments, ToolCallDoomed, ToolCallFinished, ToolCallStarted, UsageReported
from streamkit.framing.eventstream import EventStreamParser
from streamkit.framing.json_array import JSONArrayParser
from streamkit.framing.ndjson import NDJSONParser
from streamkit.framing.sse import SSEParser
from streamkit.http_errors import decode_error, encode_error
from streamkit.lab.recording import lines_of, parse_recording
from streamkit.lab.recording.loading import parse_any
from streamkit.lab.recording.matching import RequestMatcher
from streamkit.lab.recording.source import failure, refusal
from streamkit.lint import Check
from streamkit.machines import Chain
from streamkit.policy import LENIENT, STRICT, TOLERANT, Policy, TextCalls
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.testing import joined
from streamkit.tool_calls.check import JSONChecker, check_arguments, error_text, is_bad
from streamkit.tool_calls.early import EarlySchemaChecker
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.object_scanner import ObjectScanner
from streamkit.tool_calls.partial_arguments import MISSING
from streamkit.tool_calls.schema import BadToolSchema, ToolSchemas
from tests.laws.running import facts_of, machines, maker, read, translate
from tests.whole_answers import ANSWERING_WHOLE

NAMES = list(DIALECTS)
WITH_BODIES = [name for name in NAMES if DIALECTS[name].bodies is not None]
PARSERS = {"sse": SSEParser, "ndjson": NDJSONParser, "array": JSONArrayParser, "binary": EventStreamParser}
#: The tools that streams and answers are read with: some schemas that their calls match, and some that they do not.
TOOLS = {
    "get_weather": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    "get_time": {
        "type": "object",
        "properties": {"zone": {"enum": ["UTC", 1, 1e300, None]}},
        "additionalProperties": False,
    },
}


OFFERED = [Tool(name=name, parameters=schema) for name, schema in TOOLS.items()]
POLICIES = [
    STRICT,
    LENIENT,
    Policy(think_tags="on", text_calls=get_args(TextCalls)),
    Policy(think_tags="opened", text_calls=get_args(TextCalls)),
    Policy(two_objects="split", name_pieces="first", end_without_finish="accept"),
    Policy(think_tags="on", text_calls=get_args(TextCalls), refuse_repairs=True),
]


class Broken(AssertionError):
    """A law that does not hold."""


@frozen
class Input:
    source: str
    target: str
    number: int
    body: bytes

    @classmethod
    def of(cls, data: bytes, names: list[str] = NAMES, targets: list[str] = NAMES) -> Input:
        line, _, body = data.partition(b"\n")
        words = line.decode("latin-1").split()
        number = zlib.crc32(line)
        source = words[0] if words and words[0] in names else names[number % len(names)]
        target = words[1] if len(words) > 1 and words[1] in targets else targets[number // 64 % len(targets)]
        return cls(source, target, number, body)

    def line(self) -> bytes:
        return f"{self.source} {self.target} {self.number}\n".encode()

    def cut(self) -> list[bytes]:
        """The body in a few reads, or byte by byte."""
        chance = random.Random(self.number)
        if len(self.body) <= 400 and self.number % 3 == 0:
            return [self.body[at : at + 1] for at in range(len(self.body))]
        places = sorted(chance.choices(range(len(self.body) + 1), k=chance.randrange(1, 9)))
        return [self.body[a:b] for a, b in zip([0, *places], [*places, len(self.body)], strict=True)]


def must_equal(one: Any, other: Any, what: str) -> None:
    if one != other:
        raise Broken(f"{what}: {one!r:.600} is not {other!r:.600}")


# -- framing -----------------------------------------------------------------------------------------------------------


def framing(data: bytes) -> None:
    """Each parser: the frames do not depend on the cuts."""
    given = Input.of(data, list(PARSERS))

    def frames(reads: list[bytes]) -> tuple[Any, str, bool]:
        parser = PARSERS[given.source]()
        found: list[Any] = []
        for chunk in reads:
            found += parser.feed(chunk)
            if parser.fault is not None:
                break
        else:
            found += parser.finish()
        if parser.fault is not None and not isinstance(parser.fault, StreamError):
            raise Broken(f"a fault outside the error tree: {parser.fault!r}")
        return [(f.data, f.event) for f in found], f"{parser.fault!r}", parser.fault is None

    must_equal(frames(given.cut()), frames([given.body]), "cut and whole")


# -- streams -----------------------------------------------------------------------------------------------------------


def decoders(data: bytes) -> None:
    """A stream of each dialect, its calls checked against schemas, as they stream and at the end."""
    given = Input.of(data)
    schemas = ToolSchemas(TOOLS)
    report = StreamReport()
    *before, _ = machines(given.source, report)
    chain = Chain(*before, EarlySchemaChecker(schemas, {}), JSONChecker(report=report, tools=schemas))
    events: list[Any] = []
    for chunk in given.cut():
        events += chain.feed(chunk)
        if chain.fault is not None:
            break
    else:
        events += chain.finish()
    if chain.fault is not None:
        if not isinstance(chain.fault, StreamkitError):
            raise Broken(f"a fault outside the error tree: {chain.fault!r}")
        report.failed(chain.fault)
        events += chain.abandon()
    finished = [event for event in events if isinstance(event, ToolCallFinished)]
    good = {(event.choice, event.call) for event in finished if not is_bad(event.verdict)}
    doomed = {(event.choice, event.call) for event in events if isinstance(event, ToolCallDoomed)}
    if doomed & good:
        raise Broken(f"doomed and then complete: {doomed & good}")
    for event in finished:
        if is_bad(event.verdict):
            error_text(event).encode("utf-8", "surrogatepass")


def cuts(data: bytes) -> None:
    """The events of a stream, and how it ended, do not depend on the cuts."""
    given = Input.of(data)
    must_equal(read(given.source, given.cut()).facts(), read(given.source, [given.body]).facts(), "cut and whole")


def fast(data: bytes) -> None:
    """The path that reads runs of like frames at once, against machines that take them one by one."""
    given = Input.of(data)
    reads = given.cut() if given.number % 2 else [given.body]
    report = StreamReport()
    chain = Chain(*machines(given.source, report))
    events: list[Any] = []
    for chunk in reads:
        events += chain.feed(chunk)
        if chain.fault is not None:
            break
    else:
        events += chain.finish()
    fault = f"{type(chain.fault).__name__}: {chain.fault}" if chain.fault else ""
    found = read(given.source, reads)
    must_equal(found.events, joined(events), "events, fast and plain")
    must_equal(found.fault, fault, "faults, fast and plain")
    if not fault:
        must_equal(found.report.repairs, report.repairs, "repairs, fast and plain")
        must_equal(found.report.losses, report.losses, "losses, fast and plain")


def encoders(data: bytes) -> None:
    """Each dialect into each: what is written is readable, and no success that was not read is written."""
    given = Input.of(data)
    output, report = translate(given.source, given.target, given.cut(), passing=bool(given.number & 16))
    if not output or given.source == given.target:
        return
    again = read(given.target, [output])
    if again.clean and not report.clean and not (report.terminated or report.completed):
        raise Broken(f"a clean end was written of a stream without one ({report.status!r})")
    if report.clean and again.fault:
        raise Broken(f"unreadable: {again.fault}")


def written(data: bytes) -> None:
    """What is written of a stream, and the report, do not depend on the cuts; how much usage a start knew may."""
    given = Input.of(data)
    policy = [TOLERANT, *POLICIES][given.number % (len(POLICIES) + 1)]
    passing, join = bool(given.number & 64) and not policy.reads_text, bool(given.number & 128)
    found = []
    for reads in (given.cut(), [given.body]):
        output, report = translate(given.source, given.target, reads, passing=passing, policy=policy, join=join)
        again = read(given.target, [output])
        said = (
            output
            if passing and given.source == given.target
            else [e for e in again.events if type(e) is not UsageReported]
        )
        found.append((said, facts_of(report)))
    must_equal(found[0], found[1], "cut and whole")


def policies(data: bytes) -> None:
    """What stands in the text, and other choices of a policy: the events do not depend on the cuts."""
    given = Input.of(data)
    policy = POLICIES[given.number % len(POLICIES)]
    cut = read(given.source, given.cut(), policy=policy, offered=OFFERED)
    whole = read(given.source, [given.body], policy=policy, offered=OFFERED)
    must_equal(cut.facts(), whole.facts(), "cut and whole")


def detector(data: bytes) -> None:
    """Which dialect a stream is taken for does not depend on the cuts."""
    given = Input.of(data)

    def named(reads: list[bytes]) -> str:
        machine = Detector()
        try:
            return next(filter(None, map(machine.feed, reads)), None) or machine.finish()
        except StreamkitError as error:
            return type(error).__name__

    must_equal(named(given.cut()), named([given.body]), "cut and whole")


def lint(data: bytes) -> None:
    """What ``streamkit lint`` finds in a stream, behind a fault too, does not depend on the cuts."""
    given = Input.of(data)
    found = []
    for reads in (given.cut(), [given.body]):
        check = Check(given.source)
        for chunk in reads:
            check.feed(chunk)
        status = check.finish()
        found.append((status, f"{check.fault!r}", list(map(repr, check.found)), +check.report.repairs))
    must_equal(found[0], found[1], "cut and whole")


# -- whole bodies ------------------------------------------------------------------------------------------------------


def requests(data: bytes) -> None:
    """A request of each dialect, into each."""
    given = Input.of(data, WITH_BODIES, WITH_BODIES)
    request = decode_request(given.body, given.source)
    body = encode_request(request, given.target, repair=bool(given.number & 1), emulate=bool(given.number & 2))
    json.loads(body, parse_int=str)  # orjson refuses 1E400 and int() 5,000 digits, which are JSON
    decode_request(body, given.target)


def responses(data: bytes) -> None:
    """A whole response of each dialect, into each."""
    given = Input.of(data, ANSWERING_WHOLE, ANSWERING_WHOLE)
    response = decode_response(
        given.body, given.source, ReadOptions(tools=TOOLS_LIST if given.number & 1 else None, make_id=maker())
    )
    body = encode_response(response, given.target, make_id=maker(), clock=lambda: 0.0)
    json.loads(body, parse_int=str)  # orjson refuses 1E400 and int() 5,000 digits, which are JSON
    again = decode_response(body, given.target, ReadOptions(make_id=maker()))
    if again.clean and not response.clean:
        raise Broken("a whole answer was written of one that is not clean")


def errors(data: bytes) -> None:
    """An error over HTTP, into each dialect."""
    given = Input.of(data, WITH_BODIES, WITH_BODIES)
    shown = given.body[:40].decode("latin-1").replace("\n", " ").replace("\r", " ")
    headers = {"retry-after": shown, "retry-after-ms": shown, "date": shown, "x-ratelimit-reset": shown}
    failed = decode_error(400 + given.number % 130, given.body, given.source, headers, clock=lambda: 0.0)
    encode_error(failed, given.target)


def sockets(data: bytes) -> None:
    """A message of a client over a WebSocket, and one of an upstream."""
    given = Input.of(data, WITH_BODIES, WITH_BODIES)
    asked = SocketConversation(1000).read(given.body)
    if isinstance(asked, SocketRequest):
        decode_request(asked.body, "openai-responses")
    socket.event(given.body)
    socket.is_last(given.body)
    refused = socket.refusal(given.body)
    if refused is not None:
        decode_error(refused.status, refused.body, "openai-responses", refused.headers)


TOOLS_LIST = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]


# -- JSON --------------------------------------------------------------------------------------------------------------


def _text_of(given: Input) -> str:
    return given.body.decode("utf-8", "surrogatepass" if given.number & 1 else "replace")


def _fragments(given: Input, text: str) -> Iterator[str]:
    chance = random.Random(given.number)
    places = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(1, 9)))
    for a, b in zip([0, *places], [*places, len(text)], strict=True):
        yield text[a:b]


def partial_json(data: bytes) -> None:
    """A JSON text in fragments: as whole, as ``json`` reads it, and as the scanners judge it."""
    given = Input.of(data)
    try:
        text = _text_of(given)
    except UnicodeDecodeError:
        return
    found = []
    for parts in ([text], list(_fragments(given, text))):
        partial, scanner, objects = PartialJSON(), JSONScanner(), ObjectScanner()
        for part in parts:
            for machine in (partial, scanner, objects):
                machine.feed(part)
            str(partial.path), partial.is_final(partial.path)
        partial.finish()
        scanner.finish()
        value = partial.snapshot()
        shown = "MISSING" if value is MISSING else repr(value)
        found.append((partial.state, partial.reason, partial.position, shown, scanner.state, objects.complete_object))
    must_equal(found[1], found[0], "cut and whole")
    verdict = check_arguments(text)
    if verdict.kind == "complete":
        value = parse_arguments(text)
        must_equal(found[0][0], "complete", "state of a complete text")
        if "\\u" not in text:
            must_equal(found[0][3], repr(value), "the value, streamed and parsed")
    elif found[0][5]:
        raise Broken(f"an object scanner's complete object is {verdict}")


def schema(data: bytes) -> None:
    """Two lines of JSON: a schema, and arguments that are checked against it, early and at the end."""
    given = Input.of(data)
    first, _, rest = given.body.partition(b"\n")
    try:
        document = json.loads(first)
        text = _text_of(Input(given.source, given.target, given.number, rest))
    except (ValueError, RecursionError):
        return
    try:
        tools = ToolSchemas({"f": document})
        tools.compile()
    except BadToolSchema:
        return
    verdicts = []
    for parts in ([text], list(_fragments(given, text))):
        machine = EarlySchemaChecker(tools, {})
        out = machine.feed([ToolCallStarted(0, "i", "f")])
        for part in parts:
            out += machine.feed([ToolCallArguments(0, part)])
        (end,) = JSONChecker(tools=tools).feed([ToolCallFinished(0, "i", "f", text)])
        doomed = [event for event in out if isinstance(event, ToolCallDoomed)]
        if doomed and not is_bad(end.verdict):
            raise Broken(f"doomed ({doomed[0].reason}), and then {end.verdict.kind}")
        verdicts.append((end.verdict, bool(doomed)))
        if is_bad(end.verdict):
            error_text(end).encode("utf-8", "surrogatepass")
    must_equal(verdicts[1], verdicts[0], "cut and whole")


# -- recordings --------------------------------------------------------------------------------------------------------


def recordings(data: bytes) -> None:
    """Files of recordings in each form that is read, and what every reader of one does with it."""
    given = Input.of(data)
    for found in parse_any(given.body, dialect=given.source):
        written = b"".join(lines_of(found))
        must_equal(b"".join(lines_of(parse_recording(written))), written, "a recording and what is read of its lines")
        must_equal(failure(found) is None, found.ending == "whole", "how it ended")
        refusal(found, given.target)
        if found.request is not None:
            must_equal(RequestMatcher([found.request]).matches(found.request), [0], "a request and itself")


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        framing, decoders, cuts, fast, policies, written, encoders, detector, lint, requests, responses, errors, sockets, partial_json,
        schema, recordings,
    )
}  # fmt: skip


def run(name: str, data: bytes) -> None:
    """Run one input. Raises what is a find; errors of the tree are none, wherever they come from."""
    try:
        TARGETS[name](data)
    except StreamkitError:
        return
