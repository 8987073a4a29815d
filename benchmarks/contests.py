"""What streamkit and its peers are asked to do, on which input, and how the result is judged.

Peers that read no SSE get the least that a host would have to do, ``bytes.split`` and ``orjson`` on both sides
(``peers/worker.py``). The HTTP clients of the SDKs get an in-memory transport: no sockets for anybody.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import orjson
from attrs import evolve, frozen

from benchmarks import content, inputs, oracle, streams
from benchmarks.inputs import Input
from benchmarks.reads import KIB

OURS = "streamkit"
PYTHON, RUST, NODE = "Python", "Rust core", "Node"
READ = 64 * KIB
#: Fewer where somebody's time grows with the square.
SSE_EVENTS, ACCUMULATE_EVENTS, REENCODE_EVENTS = 4_000, 1_000, 4_000
MIB = KIB * KIB
#: Bytes of the one event whose reads are small.
BIG = 4 * MIB
#: Characters of growing arguments.
PARTIAL = (2_048, 8_192, 32_768)


@frozen
class Peer:
    """Someone who does a work. ``environment`` is empty for streamkit itself, which runs here."""

    name: str
    environment: str
    script: str
    work: str
    kind: str = PYTHON

    @property
    def worker(self) -> tuple[str, str]:
        """What has a process of its own: a process holds one prepared work at a time."""
        return self.script, self.work


def peer(name: str, work: str, *, environment: str = "", kind: str = PYTHON) -> Peer:
    environment = environment or name
    script = "time_node.mjs" if kind == NODE else f"time_{environment.replace('-', '_')}.py"
    return Peer(name, environment, script, work, kind)


def ours(work: str, name: str = OURS) -> Peer:
    return Peer(name, "", "time_streamkit.py", work)


@frozen
class Contest:
    """One work on one input. ``judge`` raises oracle.Wrong for a result that is not what went in.

    Of many streams it raises SomeWrong where some are right: who wrote those is timed, and what is wrong is said.
    """

    work: str
    input: str
    cut: str
    peers: tuple[Peer, ...]
    order: dict[str, Any]
    events: int
    judge: Callable[[Any], None]
    body: bytes = b""


def contests() -> Iterator[Contest]:
    yield from _streaming()
    yield from _parsing()
    yield from _accumulating()
    yield from _reencoding()
    yield from _growing()


def _streaming() -> Iterator[Contest]:
    """Streams as they are, one event a read; those that are recorded are judged by nobody but who wrote them."""
    for source, by_dialect in streams.sources().items():
        for name, target in streams.PAIRS:
            found = by_dialect[name]
            work = f"{streams.STREAMS_WORK}{name} → {target}"
            # Line ends as the peers' least framing splits them, for everybody.
            bodies = [stream.body.replace(b"\r\n", b"\n") for stream in found]
            body = orjson.dumps([base64.b64encode(one).decode() for one in bodies])
            judge = partial(_judge_each, found, target) if source == streams.MIX else _judge_nothing
            peers = tuple(evolve(one, work="streams") for one in (ours("streams"), peer("llm-rosetta", "streams")))
            order = {"cut": 0, "many": True, "from": name, "to": target}
            events = sum(stream.events for stream in found)
            yield Contest(work, source, "per event", peers, order, events, judge, body)


class SomeWrong(oracle.Wrong):
    """Some of the streams of one work are right, and some are not."""


def _judge_each(found: Sequence[Input], target: str, outputs: list[str]) -> None:
    wrong = [_wrong(stream, target, base64.b64decode(output)) for stream, output in zip(found, outputs, strict=True)]
    if any(wrong):
        first = next(filter(None, wrong))
        kind = oracle.Wrong if all(wrong) else SomeWrong
        raise kind(
            f"{len(wrong) - wrong.count('')} of {len(wrong)} streams are wrong. The fault of the first one: {first}"
        )


def _wrong(stream: Input, target: str, output: bytes) -> str:
    """What is wrong with one output; nothing where it is right."""
    try:
        oracle.compare_carried(stream.name, oracle.read(target, output), stream)
    except (oracle.Wrong, LookupError, TypeError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


def _judge_nothing(_outputs: list[str]) -> None:
    """Nobody knows what a recorded stream should say but by reading it."""


def _parsing() -> Iterator[Contest]:
    peers = (
        ours("sse"),
        peer("eventsource-parser", "sse", environment="node", kind=NODE),
        peer("httpx-sse", "sse"),
        peer("openai", "sse"),
        peer("anthropic", "sse"),
    )
    text = content.text(SSE_EVENTS)
    chat, anthropic = inputs.chat("text", text), inputs.encoded("text, with event lines", text, "anthropic")
    for stream, cut, size in ((chat, "64 KiB", READ), (chat, "per event", 0), (anthropic, "64 KiB", READ)):
        ends = [b"[DONE]"] if stream is chat else []
        yield _parsed(stream.name, cut, peers, size, [*stream.payloads, *ends], stream.body)
    line = b'"%b"' % (b"x" * BIG)
    yield _parsed(f"one event of {BIG // MIB} MiB", "1 KiB", peers, KIB, [line], b"data: %b\n\n" % line)


def _parsed(name: str, cut: str, peers: tuple[Peer, ...], size: int, payloads: list[bytes], body: bytes) -> Contest:
    digest = {"events": len(payloads), "sha256": sha256(b"\n".join(payloads)).hexdigest()}
    return Contest("parse SSE", name, cut, peers, {"cut": size}, len(payloads), partial(_same, digest), body)


def _accumulating() -> Iterator[Contest]:
    said = (("text", content.text(ACCUMULATE_EVENTS)), ("four calls", _calls(ACCUMULATE_EVENTS, interleaved=True)))
    peers = (
        ours("accumulate"),
        peer("AI SDK", "accumulate", environment="node", kind=NODE),
        *(peer(name, "accumulate") for name in ("pydantic-ai", "openai", "langchain", "litellm")),
    )
    for name, what in said:
        stream = inputs.chat(f"{name}, interleaved" if what.calls else name, what)
        yield _contest("decode and accumulate", stream, peers, _judge_said)
    for name, what in (said[0], ("four calls", _calls(ACCUMULATE_EVENTS, interleaved=False))):
        stream = inputs.encoded(f"{name}, in Anthropic's dialect", what, "anthropic")
        both = (ours("accumulate_anthropic"), peer("anthropic", "accumulate"))
        yield _contest("decode and accumulate", stream, both, _judge_said)


def _reencoding() -> Iterator[Contest]:
    peers = (
        ours("reencode"),
        ours("reencode_unjoined", f"{OURS}, unjoined"),
        peer("llm-rosetta", "reencode"),
        peer("martian-linguafranca", "reencode", kind=RUST),
        *(peer(name, "reencode") for name in ("llm-babel", "any-llm", "litellm")),
    )
    for stream in (
        inputs.chat("text", content.text(REENCODE_EVENTS)),
        inputs.chat("four calls, one after the other", _calls(REENCODE_EVENTS, interleaved=False)),
        inputs.chat("four calls, interleaved", _calls(REENCODE_EVENTS, interleaved=True)),
    ):
        yield _contest("re-encode to Anthropic", stream, peers, _judge_anthropic)
        if "interleaved" not in stream.name:  # which the fastest one gets wrong
            fastest = ours("reencode"), peer("llm-rosetta", "reencode")
            yield _contest("re-encode to Anthropic", stream, fastest, _judge_anthropic, cut="per event")


def _growing() -> Iterator[Contest]:
    peers = (
        ours("partial"),
        peer("jiter", "jiter", environment="partial-json", kind=RUST),
        peer("partial-json-parser", "partial-json-parser", environment="partial-json"),
        peer("AI SDK", "partial", environment="node", kind=NODE),
    )
    for size in PARTIAL:
        text = content.document(size)
        fragments = content.fragments(text)
        judge = partial(_same, json.loads(text))
        order = {"fragments": fragments}
        yield Contest("look at growing arguments", f"{size:,} characters", "", peers, order, len(fragments), judge)


def _calls(events: int, *, interleaved: bool) -> content.Content:
    return content.calls(events * content.FRAGMENT_CHARS, interleaved=interleaved)


def _contest(
    work: str, stream: Input, peers: tuple[Peer, ...], judge: Callable[[Input, Any], None], *, cut: str = "64 KiB"
) -> Contest:
    oracle.verify(stream)
    order = {"cut": READ if cut == "64 KiB" else 0}
    return Contest(work, stream.name, cut, peers, order, stream.events, partial(judge, stream), stream.body)


def _same(expected: Any, found: Any) -> None:
    if found != expected:
        raise oracle.Wrong(f"{str(found)[:100]}, not {str(expected)[:100]}")


def _judge_said(stream: Input, found: Any) -> None:
    said = oracle.Said(found["text"], "", tuple((name, text) for name, text in found["calls"]), found["stop"])
    oracle.compare(stream.name, said, oracle.without_reasoning(oracle.meant(stream.said)))


def _judge_anthropic(stream: Input, found: str) -> None:
    said = oracle.read_anthropic(oracle.sse_payloads(base64.b64decode(found)), overlapping=True)
    oracle.compare(stream.name, said, oracle.meant(stream.said))
