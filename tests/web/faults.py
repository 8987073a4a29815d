"""Whole scripts for the evil upstream: answers of every dialect, sound ones and each fault of the matrix.

What is said comes from the project's own writers: one response of two sentences and a tool call, as a stream of one chunk an
event or as a whole body (``whole=True``), and errors by ``encode_error``. A fault in the middle is in the middle of the bytes:
half of the chunks have come before it. Everything streamed is sent with chunked transfer coding, a chunk in a piece.

``FAULTS`` is the matrix's rows by name.

Source: limits.md C12.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from typing import Final, TypeAlias

from streamkit.conversation.messages import Choice, Response, Text, ToolCall
from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.error_bodies import ERROR_BY_STATUS
from streamkit.events import Event, ProviderFailed, TextDelta, ToolCallArguments, UsageReported, Verdict
from streamkit.http_errors import encode_error
from streamkit.report import StreamReport
from streamkit.translation.bodies import encode_response
from tests.web.evil import Delay, Fin, Hang, Received, Rst, Script, Send, Step

Headers: TypeAlias = Mapping[str, str]
#: What every sound answer says, and what a fault in the middle lets through of it is a beginning of this.
TEXT: Final = "It is cold in Oslo. I shall look up how cold."
CALL: Final = ("get_weather", '{"city":"Oslo","days":1}')
MODEL: Final = "evil-1"
#: How every failure that the upstream tells begins, by which a test knows that it came through.
WHY: Final = "the evil upstream says"
END_OF_CHUNKS: Final = b"0\r\n\r\n"
#: Before an answer breaks: clients forget what they have not yet read of a connection that broke.
SOON: Final = Delay(0.05)
PAGE: Final = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><p>Welcome back.</p></body></html>"


# -- bytes -------------------------------------------------------------------------------------------------------------


def head(status: int = 200, headers: Headers | None = None) -> bytes:
    """The status line and the headers, with the blank line behind them."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def answer(status: int, body: bytes, headers: Headers | None = None) -> Script:
    """A whole answer with its length, in one piece."""
    return Script((Send(head(status, {"Content-Length": str(len(body)), **(headers or {})}) + body),))


# -- what is said ------------------------------------------------------------------------------------------------------


def said(dialect: str) -> Response:
    """The response that every sound answer is."""
    name, arguments = CALL
    call = ToolCall(0, "call_1", name, arguments, verdict=Verdict("complete"))
    choice = Choice(parts=[Text(TEXT), call], stop_reason="tool_calls")
    usage = UsageReported(input_total=9, output_total=14)
    return Response(dialect, id="evil-7", model=MODEL, created=1_700_000_000, choices=[choice], usage=usage, clean=True)


@cache
def speech(dialect: str, *, whole: bool = False) -> tuple[bytes, ...]:
    """``said`` in the bytes of a dialect: as a stream, a chunk for each word and event; or as one body in three pieces."""
    if whole and DIALECTS[dialect].answers_whole:
        body = encode_response(said(dialect), dialect)
        third = len(body) // 3
        return body[:third], body[third : 2 * third], body[2 * third :]
    events = [piece for event in response_events(said(dialect)) for piece in _pieces(event)]
    return _written(dialect, events)


def failure(status: int = 503, message: str = "no capacity") -> ProviderFailed:
    return ProviderFailed(ERROR_BY_STATUS.get(status, "server"), f"{WHY}: {message}", http_status=status)


def _written(dialect: str, events: Sequence[Event]) -> tuple[bytes, ...]:
    encoding = Encoding(make_id=lambda prefix: f"{prefix}1", clock=lambda: 1_700_000_000.0)
    encoder = DIALECTS[dialect].encoder(encoding, StreamReport())
    chunks = [*(encoder.feed([event]) for event in events), encoder.finish()]
    assert encoder.fault is None
    return tuple(filter(None, chunks))


def _pieces(event: Event) -> Sequence[Event]:
    match event:
        case TextDelta():
            return [TextDelta(word, event.choice, event.block) for word in re.findall(r"\S+\s*", event.text)]
        case ToolCallArguments():
            half = len(event.fragment) // 2
            parts = event.fragment[:half], event.fragment[half:]
            return [ToolCallArguments(event.call, part, event.choice) for part in parts]
    return [event]


def _stream(dialect: str, *, whole: bool, headers: Headers | None = None) -> Send:
    media_type = "application/json" if whole and DIALECTS[dialect].answers_whole else DIALECTS[dialect].media_type
    return Send(head(200, {"Content-Type": media_type, "Transfer-Encoding": "chunked", **(headers or {})}))


def _halves(dialect: str, *, whole: bool) -> tuple[tuple[bytes, ...], bytes]:
    """The first half of the chunks, and the chunk in the middle."""
    chunks = speech(dialect, whole=whole)
    middle = len(chunks) // 2
    return chunks[:middle], chunks[middle]


# -- sound answers -----------------------------------------------------------------------------------------------------


def good(
    dialect: str, chunks: Sequence[bytes] | None = None, *, delay_s: float = 0.0, headers: Headers | None = None
) -> Script:
    """A stream: ``speech``, or a recording as the network cut it. ``delay_s`` is waited before each chunk.

    Chunks sent without a delay may reach the client in one read.
    """
    steps: list[Step] = [_stream(dialect, whole=False, headers=headers)]
    for data in speech(dialect) if chunks is None else chunks:
        steps += [*([Delay(delay_s)] if delay_s else []), Send(chunk(data))]
    return Script((*steps, Send(END_OF_CHUNKS)))


def whole(dialect: str, body: bytes | None = None, *, headers: Headers | None = None) -> Script:
    """A whole response: ``said``, or another body."""
    body = b"".join(speech(dialect, whole=True)) if body is None else body
    return answer(200, body, {"Content-Type": "application/json", **(headers or {})})


def as_asked(dialect: str) -> Callable[[Received], Script]:
    """``good`` or ``whole``, as the request asks."""
    return lambda request: good(dialect) if asks_for_stream(request, dialect) else whole(dialect)


def asks_for_stream(request: Received, dialect: str) -> bool:
    """By the path where a dialect says it there, else by ``stream`` in the body; Ollama streams unless told not to."""
    if dialect in {"gemini", "bedrock"}:
        return "stream" in request.path
    return bool(request.json().get("stream", dialect == "ollama")) or not DIALECTS[dialect].answers_whole


# -- faults ------------------------------------------------------------------------------------------------------------


def refuse() -> Script:
    """Nobody listens on the port."""
    return Script(door="refused")


def never_connect() -> Script:
    """The connection is never established: the packets are dropped, as by a firewall."""
    return Script(door="full")


def tls_failure(*, certificate: bool = True) -> Script:
    """Addressed by https: a certificate that nobody trusts, or a server that speaks no TLS."""
    return Script(door="untrusted" if certificate else "no-tls")


def status(
    code: int,
    dialect: str = "openai-chat",
    *,
    message: str = "no",
    body: bytes | None = None,
    headers: Headers | None = None,
) -> Script:
    """An error over HTTP in the dialect's envelope, or with another body."""
    told = encode_error(failure(code, message), dialect)
    return answer(code, told.body if body is None else body, {**told.headers, **(headers or {})})


def html_200() -> Script:
    """A web page with status 200: a login, a proxy's greeting."""
    return answer(200, PAGE, {"Content-Type": "text/html; charset=utf-8"})


def error_first(dialect: str, *, whole: bool = False) -> Script:
    """Status 200, and an error is the first event, or the body."""
    if whole:
        return answer(200, encode_error(failure(), dialect).body, {"Content-Type": "application/json"})
    return good(dialect, _written(dialect, [failure()]))


def error_midstream(dialect: str) -> Script:
    """Half of the stream, then an error event and the end."""
    events = [piece for event in response_events(said(dialect)) for piece in _pieces(event)]
    return good(dialect, _written(dialect, [*events[: len(events) // 2], failure()]))


def reset_mid_line(dialect: str, *, whole: bool = False) -> Script:
    """Half of the answer, half of a line, RST."""
    return Script((*_broken_off(dialect, whole=whole), Rst()))


def truncated_chunked(dialect: str, *, whole: bool = False) -> Script:
    """Half of the answer, half of the bytes that a chunk promised, FIN."""
    return Script((*_broken_off(dialect, whole=whole), Fin()))


def _broken_off(dialect: str, *, whole: bool) -> list[Step]:
    before, middle = _halves(dialect, whole=whole)
    part = chunk(middle)[: -2 - len(middle) // 2]
    return [_stream(dialect, whole=whole), *(Send(chunk(data)) for data in before), Send(part), SOON]


def silence_before_headers() -> Script:
    """The request is taken, and nothing comes."""
    return Script((Hang(),))


def silence_midstream(dialect: str, *, whole: bool = False) -> Script:
    """Half of the answer, and then nothing: the connection stays."""
    before, _ = _halves(dialect, whole=whole)
    return Script((_stream(dialect, whole=whole), *(Send(chunk(data)) for data in before), Hang()))


def bad_gzip(dialect: str, *, whole: bool = False) -> Script:
    """Half of the answer compressed with gzip, then bytes that are none."""
    before, _ = _halves(dialect, whole=whole)
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    packed = packer.compress(b"".join(before)) + packer.flush(zlib.Z_SYNC_FLUSH)
    stream = _stream(dialect, whole=whole, headers={"Content-Encoding": "gzip"})
    return Script((stream, Send(chunk(packed)), SOON, Send(chunk(b"\xff" * 64)), Send(END_OF_CHUNKS)))


def redirect(to: str, code: int = 307) -> Script:
    return answer(code, b"", {"Location": to})


#: The rows of the fault matrix: what the upstream does to a client of ``dialect``, who asked for a stream or for a ``whole``
#: answer. The redirect leads to a server that a test may watch; by default to one where nobody listens.
Fault: TypeAlias = Callable[..., Script]
FAULTS: Final[Mapping[str, Fault]] = {
    "refused": lambda _dialect, **_: refuse(),
    "never connects": lambda _dialect, **_: never_connect(),
    "untrusted certificate": lambda _dialect, **_: tls_failure(),
    "no TLS": lambda _dialect, **_: tls_failure(certificate=False),
    **{
        f"status {code}": partial(lambda code, dialect, **_: status(code, dialect), code)
        for code in (401, 404, 429, 500)
    },
    "200 with HTML": lambda _dialect, **_: html_200(),
    "200 with an error first": error_first,
    "error mid-stream": lambda dialect, **_: error_midstream(dialect),
    "reset mid-line": reset_mid_line,
    "truncated chunked body": truncated_chunked,
    "silence before headers": lambda _dialect, **_: silence_before_headers(),
    "silence mid-stream": silence_midstream,
    "bad gzip": bad_gzip,
    "redirect": lambda _dialect, **_: redirect("http://127.0.0.1:9/"),
}
