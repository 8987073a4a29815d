"""Content as a provider's bytes: OpenAI Chat written here as OpenAI writes it, other dialects by our own encoders.

``oracle.verify`` proves each input before anything is timed: independent readers find in the bytes what the content says.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count

import orjson
from attrs import frozen

from benchmarks import content
from benchmarks.content import SEED, Content
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    ChoiceStarted,
    Event,
    ReasoningDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    Verdict,
)
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport

CHAT = "openai-chat"
ID, MODEL, CREATED = "chatcmpl-DuLe5uYcQLe3hznEQpmI0pr8qyHJ8", "gpt-5.2-2025-12-11", 1_782_321_945
PROMPT_TOKENS = 104
_HEAD = (
    f'{{"id":"{ID}","object":"chat.completion.chunk","created":{CREATED},"model":"{MODEL}",'
    '"service_tier":"default","system_fingerprint":"fp_6c0d7f1e2a",'
)
PADDING = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@frozen
class Input:
    """A whole stream. ``payloads`` are the JSON documents of its events (no ``[DONE]``);"""

    name: str
    dialect: str
    body: bytes
    payloads: tuple[bytes, ...]
    said: Content

    @property
    def events(self) -> int:
        return len(self.payloads)


def chat(name: str, said: Content, *, obfuscation: bool = False, usage: bool = False, crlf: bool = False) -> Input:
    """A Chat stream in OpenAI's own order of fields, 260 to 330 bytes an event.

    ``obfuscation``: random padding in each chunk, as OpenAI sends by default. ``usage``: a running count in each chunk, as
    xAI and vLLM send it. ``crlf``: lines that end with CRLF.
    """
    dice = random.Random(SEED)  # noqa: S311 - reproducible, nothing secret
    payloads = [_chunk(delta, finish, dice, number, obfuscation=obfuscation, usage=usage)
                for number, (delta, finish) in enumerate(deltas(said))]  # fmt: skip
    counts = usage_json(said.deltas)
    payloads.append(f'{_HEAD}"choices":[],"usage":{counts}{random_padding(dice) if obfuscation else ""}}}'.encode())
    end = b"\r\n\r\n" if crlf else b"\n\n"
    body = b"".join(b"data: %b%b" % (payload, end) for payload in [*payloads, b"[DONE]"])
    return Input(name, CHAT, body, tuple(payloads), said)


def deltas(said: Content) -> Iterator[tuple[str, str | None]]:
    """The delta of each chunk as JSON, and its stop reason."""
    yield '{"role":"assistant","content":"","refusal":null}', None
    for fragment in said.reasoning:
        yield f'{{"reasoning_content":{_json(fragment)}}}', None
    for fragment in said.text:
        yield f'{{"content":{_json(fragment)}}}', None
    places = [iter(call.fragments) for call in said.calls]
    started: set[int] = set()
    for number in said.order:
        if number not in started:
            started.add(number)
            call = said.calls[number]
            first = f'"id":"{call.id}","type":"function","function":{{"name":"{call.name}","arguments":""}}'
            yield f'{{"tool_calls":[{{"index":{number},{first}}}]}}', None
        fragment = _json(next(places[number]))
        yield f'{{"tool_calls":[{{"index":{number},"function":{{"arguments":{fragment}}}}}]}}', None
    yield "{}", "tool_calls" if said.calls else "stop"


def _chunk(
    delta: str, finish: str | None, dice: random.Random, number: int, *, obfuscation: bool, usage: bool
) -> bytes:
    counts = usage_json(number) if usage else "null"
    reason = f'"{finish}"' if finish else "null"
    padding = random_padding(dice) if obfuscation else ""
    return (
        f'{_HEAD}"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}],"usage":{counts}'
        f"{padding}}}"
    ).encode()


def random_padding(dice: random.Random) -> str:
    return f',"obfuscation":"{"".join(dice.choices(PADDING, k=dice.randint(0, 16)))}"'


def usage_json(tokens: int) -> str:
    return f'{{"prompt_tokens":{PROMPT_TOKENS},"completion_tokens":{tokens},"total_tokens":{PROMPT_TOKENS + tokens}}}'


def _json(text: str) -> str:
    return orjson.dumps(text).decode()


def counted_ids() -> Callable[[str], str]:
    """Makes ids that are the same in each run, and no two alike."""
    numbers = count(1)
    return lambda prefix: f"{prefix}bench{next(numbers)}"


def encoded(name: str, said: Content, dialect: str) -> Input:
    """A stream of any dialect, one frame a delta where the dialect has deltas, by our encoder."""
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(Encoding(make_id=counted_ids(), clock=lambda: CREATED), report)
    body = b"".join([*(encoder.feed([event]) for event in events(said)), encoder.finish()])
    return Input(name, dialect, body, payloads_of(dialect, body), said)


def payloads_of(dialect: str, body: bytes) -> tuple[bytes, ...]:
    """The JSON documents in a stream's frames."""
    parser = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    frames = [*parser.feed(body), *parser.finish()]
    return tuple(frame.data for frame in frames if frame.data.startswith(b"{"))


def events(said: Content) -> Iterator[Event]:
    """The content as the events that encoders take."""
    yield ResponseStarted(ID, MODEL, CREATED, "bench")
    yield ChoiceStarted()
    yield from (ReasoningDelta(fragment, 0, 0, "summary") for fragment in said.reasoning)
    yield from (TextDelta(fragment, 0, 1) for fragment in said.text)
    places = [iter(call.fragments) for call in said.calls]
    left = [len(call.fragments) for call in said.calls]
    for number in said.order:
        call = said.calls[number]
        if left[number] == len(call.fragments):
            yield ToolCallStarted(number, call.id, call.name)
        yield ToolCallArguments(number, next(places[number]))
        left[number] -= 1
        if not left[number]:
            yield ToolCallFinished(number, call.id, call.name, call.arguments, verdict=Verdict("complete"))
    yield UsageReported(PROMPT_TOKENS, None, None, said.deltas, None, PROMPT_TOKENS + said.deltas)
    yield ResponseFinished("tool_calls" if said.calls else "stop")
    yield StreamEnded(clean=True)


@cache
def recipe_inputs(count: int) -> tuple[Input, ...]:
    """The inputs of the whole recipe, of about ``count`` events each."""
    chars = count * content.FRAGMENT_CHARS
    return (
        chat("text", content.text(count)),
        chat("text, obfuscation", content.text(count), obfuscation=True),
        chat("text, usage on every chunk", content.text(count), usage=True),
        chat("text, CRLF", content.text(count), crlf=True),
        chat("reasoning, then text", content.reasoning_then_text(count)),
        chat("four interleaved calls", content.calls(chars)),
        chat("four interleaved calls, obfuscation", content.calls(chars), obfuscation=True),
        chat("one call", content.one_call(chars)),
    )


@cache
def dialect_inputs(count: int) -> dict[str, Input]:
    """One response in every dialect; Chat's is written here."""
    said = content.mixture(count)
    built_in = list(DIALECTS.built_in)
    return {name: chat(name, said) if name == CHAT else encoded(name, said, name) for name in built_in}
