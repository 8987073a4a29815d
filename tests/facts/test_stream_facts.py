"""Facts about whole streams that others wrote down, each however the stream is cut.

A fact is read field by field: ``READERS`` has one reader for each field, and a field without a reader fails. What was
written in the target dialect is read by the small strict readers below, which share nothing with the package's decoders.
Where a fact is another project's policy, ``HELD_OTHERWISE`` says why, and a run of the official client shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from functools import cached_property
from itertools import count
from typing import Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from streamkit import Response, StreamReport, ToolCall, collect, decode_response, transcode
from streamkit.errors import BrokenFrame
from streamkit.events import Aside
from streamkit.read_options import ReadOptions
from streamkit.testing import cuts, source_of
from tests.corpora import CORPORA, require_corpora

#: Streams up to this many bytes are cut at every place; longer ones at seeded places.
EVERY_CUT_UP_TO = 1_300

Document = dict[str, Any]


# -- the stream, cut -----------------------------------------------------------------------------------------------------


def cuttings(data: bytes, *, every: bool = True) -> Iterator[list[bytes]]:
    """Whole, per byte, at random places, and at sampled places or at ``every`` one of a small stream."""
    return cuts(data, exhaustive=every and len(data) <= EVERY_CUT_UP_TO, pairs_up_to=0)


EVERY = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])


def at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits: the sources here have all their bytes."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waited")


class Run:
    """A stream read at one set of cuts: what ``collect`` says of it, and what ``transcode`` writes."""

    def __init__(self, reads: list[bytes], dialect: str, to_dialect: str = "") -> None:
        self.reads, self.dialect, self.to_dialect = reads, dialect, to_dialect
        self.report = StreamReport()

    @cached_property
    def response(self) -> Response:
        made = count()
        return at_once(
            collect(
                source_of(self.reads), self.dialect, ReadOptions(make_id=lambda prefix: f"{prefix}made_{next(made)}")
            )
        )

    def written(self, to_dialect: str) -> bytes:
        made = count()

        async def write() -> bytes:
            async with transcode(
                source_of(self.reads),
                self.dialect,
                to_dialect,
                ReadOptions(make_id=lambda prefix: f"{prefix}made_{next(made)}"),
                report=self.report,
                reencode=True,
                clock=lambda: 1_700_000_000,
            ) as stream:
                return b"".join([chunk async for chunk in stream])

        return at_once(write())

    @cached_property
    def chat(self) -> list[Document | str]:
        return read_chat(self.written("openai-chat"))

    @cached_property
    def anthropic(self) -> list[Document]:
        return read_anthropic(self.written("anthropic"))

    @property
    def calls(self) -> list[Document]:
        """The calls as the target dialect's readers see them; of a fact that only decodes, as ``collect`` has them."""
        if self.to_dialect == "anthropic":
            blocks = blocks_of(self.anthropic)
            return [
                {"id": block["id"], "name": block["name"], "arguments": block["said"]}
                for block in blocks
                if block["type"] == "tool_use"
            ]
        return [
            {"id": call.id, "name": call.name, "arguments": call.arguments, "verdict": call.verdict}
            for call in self.response.tool_calls
        ]


# -- strict readers of what was written ------------------------------------------------------------------------------------


def read_chat(data: bytes) -> list[Document | str]:
    frames = data.decode().split("\n\n")
    assert frames.pop() == ""
    assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames)
    payloads = [frame.removeprefix("data: ") for frame in frames]
    return [payload if payload == "[DONE]" else json.loads(payload) for payload in payloads]


def read_anthropic(data: bytes) -> list[Document]:
    frames = data.decode().split("\n\n")
    assert frames.pop() == ""
    events = []
    for frame in frames:
        name, payload = frame.split("\n")
        event = json.loads(payload.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def blocks_of(events: list[Document]) -> list[Document]:
    """Content blocks, with what their deltas say as ``said``. One is open at a time; indices are dense from 0."""
    blocks: list[Document] = []
    for event in events:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            assert not blocks or blocks[-1]["stops"] == 1
            blocks.append({**event["content_block"], "said": "", "stops": 0})
        elif event["type"].startswith("content_block_"):
            assert event["index"] == len(blocks) - 1
            assert blocks[-1]["stops"] == 0
            if event["type"] == "content_block_stop":
                blocks[-1]["stops"] += 1
            else:
                (said,) = (value for name, value in event["delta"].items() if name != "type")
                blocks[-1]["said"] += said
    return blocks


def fold_chat(chunks: list[Document | str]) -> Document:
    """What a chat stream says, by OpenAI's grammar and the two habits of the recorded ones: an absent index is 0, a
    blank name says nothing.
    """
    said: Document = {"id": None, "model": None, "text": "", "reasoning": "", "calls": {}, "finish": [], "usage": None}
    for chunk in chunks:
        if chunk == "[DONE]" or not chunk["id"]:
            continue
        said["id"], said["model"] = chunk["id"], chunk["model"]
        said["usage"] = chunk.get("usage") or said["usage"]
        for choice in chunk["choices"]:
            delta = choice.get("delta") or {}
            said["text"] += delta.get("content") or ""
            said["reasoning"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", ()):
                whole = said["calls"].setdefault(call.get("index", 0), {"id": None, "name": "", "arguments": ""})
                whole["id"] = whole["id"] or call.get("id")
                whole["name"] = whole["name"] or call["function"].get("name")
                whole["arguments"] += call["function"].get("arguments", "")
            if choice.get("finish_reason"):
                said["finish"].append(choice["finish_reason"])
    return said


def sum_up_anthropic(events: list[Document]) -> Document:
    """What an Anthropic stream says: usage of the end replaces that of the start."""
    start, delta = events[0]["message"], events[-2]
    usage = {**start["usage"], **delta["usage"]}
    return {
        "id": start["id"],
        "model": start["model"],
        "blocks": [(b["type"], b.get("id"), b.get("name"), b["said"], b["stops"]) for b in blocks_of(events)],
        "stop": {name: value for name, value in delta["delta"].items() if value is not None},
        "usage": (usage["input_tokens"], usage["output_tokens"]),
    }


def without_nulls(document: Document) -> Document:
    return {name: value for name, value in document.items() if value is not None}


def order_of(events: list[Document]) -> list[tuple[str, int | None]]:
    """Names and block indices of the events, a run of deltas as one."""
    order: list[tuple[str, int | None]] = []
    for event in events:
        step = (event["type"], event.get("index"))
        if step[0] != "content_block_delta" or order[-1] != step:
            order.append(step)
    return order


# -- official clients ------------------------------------------------------------------------------------------------------


def as_openai_reads(body: bytes) -> list[Any]:
    """The chunks that openai's client yields. Raises what it raises."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    with httpx2.Client(transport=transport) as http:
        client = openai.OpenAI(api_key="none", base_url="http://upstream", http_client=http, max_retries=0)
        return list(client.chat.completions.create(model="m", messages=[], stream=True))


def as_anthropic_reads(body: bytes) -> Any:
    """The message that anthropic's stream helper adds up. Raises what it raises."""
    transport = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    with httpx2.Client(transport=transport) as http:
        client = anthropic.Anthropic(api_key="none", base_url="http://upstream", http_client=http, max_retries=0)
        with client.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
            return stream.get_final_message()


# -- the readers of the facts' fields --------------------------------------------------------------------------------------


def tool_calls(told: Any, run: Run) -> None:
    if isinstance(told, int):
        assert len(run.calls) == told
        return
    assert len(run.calls) == len(told)
    for position, (fact, call) in enumerate(zip(told, run.calls, strict=True)):
        for field, value in fact.items():
            if field == "index":
                assert position == value
            elif field in {"id", "name"}:
                assert call[field] == value
            elif field == "complete":
                assert (call["verdict"].kind == "complete") is value
            elif field == "arguments" and isinstance(value, str):
                assert call["arguments"] == value
            else:
                assert field in {"arguments", "arguments_json"}
                assert json.loads(call["arguments"]) == value


def finish(told: str, run: Run) -> None:
    choice = run.response.choices[0]
    if told == "tool_calls (inferred)":
        assert choice.native_stop_reason is None
        assert choice.stop_reason == "tool_calls"
        assert run.response.report.repairs["finish_derived"] == 1
    elif told == "error":  # the wire's finish reason; what it means is the error beside it
        assert choice.stop_reason is None
        assert run.response.report.status.name == "PROVIDER_ERROR"
    else:
        assert choice.native_stop_reason == told
        assert run.response.clean


def usage(told: dict[str, int], run: Run) -> None:
    if "input_tokens" in told:
        written = run.anthropic[-2]["usage"]
        assert told == {name: written[name] for name in told}
    else:
        found = run.response.usage
        assert told == {"prompt": found.input_total, "completion": found.output_total}


def error(told: Any, run: Run) -> None:
    response = run.response
    assert not response.clean
    if isinstance(told, dict):
        names = {"type": "native_type", "code": "code", "message": "message"}
        assert told == {field: getattr(response.error, names[field]) for field in told}
    elif "non-JSON" in told:
        assert isinstance(response.report.error, BrokenFrame)
        assert [list(frame) for frame in run.chat] == [["error"]]  # nothing else, and no [DONE]
    else:
        assert response.error.message == told


def ids(told: str, run: Run) -> None:
    assert told in {"must be unique downstream", "unique and non-empty downstream"}
    found = [call["id"] for call in run.calls]
    assert len(set(found)) == len(found)
    assert all(found)


def http_status(told: int, run: Run) -> None:
    """The transport said 200, which the bytes can't show; no other status may be made up."""
    assert told == 200
    assert run.response.error.http_status is None


def stream_ends_after(told: bool, run: Run) -> None:
    last = run.chat[-1]
    assert ("error" in last and last != "[DONE]") is told
    assert not any(choice["finish_reason"] for frame in run.chat for choice in frame.get("choices", ()))


def reasoning_blocks(told: int, run: Run) -> None:
    assert [block["type"] for block in blocks_of(run.anthropic)].count("thinking") == told


def emitted_once(told: bool, run: Run) -> None:
    frames = [frame for frame in run.chat if isinstance(frame, dict)]
    starts = [call for frame in frames for call in deltas_of(frame).get("tool_calls", ()) if "id" in call]
    assert (len(starts) == 1) is told


def deltas_of(frame: Document) -> Document:
    return frame["choices"][0]["delta"] if frame["choices"] else {}


def complete(told: bool, run: Run) -> None:
    assert all((call["verdict"].kind == "complete") is told for call in run.calls)


def comments_ignored(told: int, run: Run) -> None:
    assert b"".join(run.reads).count(b"\n:") + 1 == told
    assert run.response.report.frames == 1


def policy(told: str, run: Run) -> None:
    """The fact leaves a choice; ours is the strict one it names: an index nobody announced is a call without a name."""
    assert "may instead flag index 7 as a call without name/id. Must not crash" in told
    announced, stray = run.response.tool_calls
    assert (announced.name, announced.arguments) == ("get_weather", "")
    assert (stray.name, stray.arguments) == ("", "{}")
    assert run.response.report.repairs["call_nameless"] == 1
    assert [call["name"] for call in run.calls] == ["get_weather"]
    assert [(call.name, call.arguments) for call in run.report.withheld] == [(None, "{}")]


def frames(told: list[str], run: Run) -> None:
    assert told == ["content, finish_reason null", "delta:{} finish_reason=stop", "[DONE]"]
    content, last, done = run.chat[-3:]
    assert (content["choices"][0]["delta"], content["choices"][0]["finish_reason"]) == (
        {"content": "single chunk"},
        None,
    )
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
    assert done == "[DONE]"


def finish_reason(told: str, run: Run) -> None:
    said = [choice["finish_reason"] for frame in run.chat[:-1] for choice in frame["choices"]]
    assert [reason for reason in said if reason] == [told]


def content_frame_finish_reason(told: None, run: Run) -> None:
    (content,) = (frame for frame in run.chat[:-1] if frame["choices"] and deltas_of(frame).get("content"))
    assert content["choices"][0]["finish_reason"] is told


def first_events(told: list[str], run: Run) -> None:
    assert [event["type"] for event in run.anthropic[: len(told)]] == told


def stop_reason(told: str, run: Run) -> None:
    (delta,) = (event for event in run.anthropic if event["type"] == "message_delta")
    assert delta["delta"]["stop_reason"] == told


def text(told: str, run: Run) -> None:
    assert run.response.text == told


def reasoning(told: str, run: Run) -> None:
    assert run.response.choices[0].reasoning == told


def order(told: list[str], run: Run) -> None:
    assert [call["name"] for call in run.calls] == told


def last(told: str, run: Run) -> None:
    assert run.anthropic[-1]["type"] == told


READERS: dict[str, Callable[[Any, Run], None]] = {
    "tool_calls": tool_calls,
    "finish": finish,
    "usage": usage,
    "text": text,
    "error": error,
    "reasoning": reasoning,
    "reasoning_blocks": reasoning_blocks,
    "emitted_once": emitted_once,
    "ids": ids,
    "each_complete": complete,
    "complete": complete,
    "http_status": http_status,
    "stream_ends_after": stream_ends_after,
    "comments_ignored": comments_ignored,
    "policy": policy,
    "frames": frames,
    "finish_reason": finish_reason,
    "openai_finish_reason": finish_reason,
    "content_frame_finish_reason": content_frame_finish_reason,
    "first_events": first_events,
    "stop_reason": stop_reason,
    "last": last,
    "order": order,
}


def one_role_chunk(told: Any, run: Run) -> None:
    frames(told, run)
    (first,) = run.chat[:-3]
    assert deltas_of(first) == {"role": "assistant", "content": ""}


def cut_and_not_other(told: str, run: Run) -> None:
    assert told == "unknown/other"
    assert run.response.choices[0].stop_reason is None
    assert run.response.report.status.name == "CUT"
    assert run.chat[-1]["error"]["code"] == "stream_truncated"


def left_open(told: Any, run: Run) -> None:
    assert told in ([0, 1], True)
    assert [(block["name"], block["stops"]) for block in blocks_of(run.anthropic)] == [("get_weather", 0)]
    assert run.anthropic[-1]["type"] == "error"
    assert [(call.kind, call.name) for call in run.report.withheld] == [("cut_call", "get_time")]
    assert {call.verdict.kind for call in run.response.tool_calls} == {"truncated"}


NO_STOP_REASON = (
    "should keep finishReason as other when finish_reason is null and no tool calls are present in streaming (#166)"
)
NEVER_ENDED = "stream ends without finish_reason, two open calls"
#: Facts we do not follow to the letter: what holds instead, and why. Below a client shows each.
HELD_OTHERWISE: dict[tuple[str, str], tuple[Callable[[Any, Run], None], str]] = {
    # Ollama's server repeats the role in each chunk
    ("single chunk", "frames"): (
        one_role_chunk,
        "the role comes once, first: openai's stream helper joins repeated ones",
    ),
    # a policy: the text is delivered, success is not claimed (dialects.md §7.6)
    (NO_STOP_REASON, "finish"): (cut_and_not_other, "`[DONE]` without stop reason or call may end half an answer"),
    # held to be wrong (quirks.md R8, 64, 65)
    (NEVER_ENDED, "content_block_stop_for"): (left_open, "a closed block is a call to execute; neither call was ended"),
    (NEVER_ENDED, "closed_once"): (left_open, "as above"),
}


def stream_of(fact: Document) -> bytes:
    """The fact's input as the provider framed it."""
    if "input_sse" in fact:
        return "".join(part if part.endswith("\n") else f"{part}\n" for part in fact["input_sse"]).encode()
    if fact["from_dialect"] == "ollama":
        return "".join(f"{line}\n" for line in fact["input"]).encode()
    return "".join(f"data: {payload}\n\n" for payload in fact["input"]).encode()


def facts(*names: str) -> list[Any]:
    if CORPORA is None:
        return [pytest.param(None, id="no-corpora")]
    return [
        pytest.param(fact, id=(fact.get("name") or fact["input_file"].rpartition("/")[2]).replace(" ", "-"))
        for name in names
        for fact in json.loads((CORPORA / "facts" / f"{name}.json").read_text("utf-8"))
    ]


#: A rule without a stream: it has a test of its own.
RULE = "encode: consumer needs object arguments"
STREAMS = [
    fact
    for fact in facts("stream_openrouter", "stream_anyllm", "stream_ollama")
    if CORPORA is None or fact.values[0]["name"] != RULE
]


@EVERY
@pytest.mark.parametrize("fact", STREAMS)
def test_a_stream_says_what_was_recorded_however_it_is_cut(fact, every):
    require_corpora()
    for reads in cuttings(stream_of(fact), every=every):
        run = Run(reads, fact["from_dialect"].partition("/")[0], fact.get("to_dialect", ""))
        for field, told in fact["expected"].items():
            held = HELD_OTHERWISE.get((fact["name"], field))
            read = READERS[field] if held is None else held[0]
            read(told, run)


def test_every_exception_is_to_a_fact_that_exists():
    require_corpora()
    recorded = {(fact.values[0]["name"], field) for fact in STREAMS for field in fact.values[0]["expected"]}
    assert set(HELD_OTHERWISE) <= recorded
    assert all(why for _read, why in HELD_OTHERWISE.values())


def fact_named(source: str, name: str) -> Document:
    require_corpora()
    return next(fact.values[0] for fact in facts(source) if fact.values[0]["name"] == name)


def test_ollama_gets_each_call_whole_as_an_object():
    fact = fact_named("stream_ollama", RULE)
    (told,) = fact["input"]
    arguments = json.loads(told.partition("arguments ")[2].removesuffix(")"))
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    delta = {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}
    halves = [
        {"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in (arguments[:9], arguments[9:])
    ]
    payloads = [{**chunk, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in [delta, *halves]]
    payloads.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    payloads.append({**chunk, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}})
    data = "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads).encode() + b"data: [DONE]\n\n"
    for reads in cuttings(data):
        output = Run(reads, "openai-chat").written("ollama")
        lines = [json.loads(line) for line in output.splitlines()]
        assert all(line["message"]["role"] == "assistant" and line["message"]["content"] == "" for line in lines)
        calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
        assert calls == [{"function": {"name": "f", "arguments": {"city": "london"}}}]
        assert [line["done"] for line in lines] == [False, True]
        assert lines[-1]["done_reason"] == "stop"
        assert (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == (3, 4)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=output))
    with ollama.Client("http://upstream", transport=transport) as client:
        read_by_client = list(client.chat("m", [], stream=True))
    assert read_by_client[0].message.tool_calls[0].function.arguments == {"city": "london"}


def test_openai_joins_roles_that_are_repeated():
    fact = fact_named("stream_ollama", "single chunk")
    assert "frames" in fact["expected"]
    each = b'data: {"id":"c","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":%b}]}\n\n'
    theirs = b"".join(each % b'{"role":"assistant","content":"%b"}' % part for part in (b"a", b"b"))
    ours = Run([stream_of(fact)], "ollama").written("openai-chat")

    def role(body: bytes) -> str:
        state = ChatCompletionStreamState()
        for chunk in as_openai_reads(body):
            state.handle_chunk(chunk)
        return state.current_completion_snapshot.choices[0].message.role

    assert role(theirs) == "assistantassistant"
    assert role(ours) == "assistant"


def test_openai_cannot_tell_that_a_stream_without_a_stop_reason_was_cut():
    data = stream_of(fact_named("stream_openrouter", NO_STOP_REASON))
    chunks = as_openai_reads(data)  # as it came: success, for all that the client says
    assert {choice.finish_reason for chunk in chunks for choice in chunk.choices} == {None}
    with pytest.raises(openai.APIError, match="stream truncated"):
        as_openai_reads(Run([data], "openai-chat").written("openai-chat"))


def test_anthropic_takes_closed_calls_of_a_cut_stream_for_calls_to_execute():
    data = stream_of(fact_named("stream_anyllm", NEVER_ENDED))
    usage_of_nothing = {"input_tokens": 0, "output_tokens": 0}
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage_of_nothing,
    }
    events: list[Document] = [{"type": "message_start", "message": message}]
    for index, name in enumerate(["get_weather", "get_time"]):
        block = {"type": "tool_use", "id": f"call_{index}", "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    closed = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    calls = as_anthropic_reads(closed.encode()).content
    assert [(call.name, call.input) for call in calls] == [("get_weather", {}), ("get_time", {})]
    with pytest.raises(anthropic.APIStatusError, match="stream truncated"):
        as_anthropic_reads(Run([data], "openai-chat").written("anthropic"))


# -- what openai's own tests expect of its recorded streams ---------------------------------------------------------------


@pytest.mark.parametrize("fact", facts("openai_python_streams_expected"))
def test_openais_recorded_streams_say_what_its_tests_expect_at_every_cut(fact):
    data = (require_corpora() / fact["input_file"]).read_bytes()
    expected = fact["expected"]
    assert set(expected) == {"text", "refusal", "tool_calls", "finish_reason", "usage", "data_events"}
    for reads in cuttings(data):
        response = Run(reads, "openai-chat").response
        choices = {str(choice.index): choice for choice in response.choices}
        said = {number: choice.text for number, choice in choices.items() if choice.text}
        assert set(said) == set(expected["text"])
        for number, told in expected["text"].items():
            if isinstance(told, dict):
                assert len(said[number]) == told["length"]
                assert said[number].startswith(told["start"])
                assert said[number].endswith(told["end"])
            else:
                assert said[number] == told
        assert {n: c.refusal for n, c in choices.items() if c.refusal} == (expected["refusal"] or {})
        calls = {
            number: {
                str(call.index): {"id": call.id, "name": call.name, "arguments": call.arguments}
                for call in choice.tool_calls
            }
            for number, choice in choices.items()
            if choice.tool_calls
        }
        assert calls == (expected["tool_calls"] or {})
        assert {n: c.native_stop_reason for n, c in choices.items()} == expected["finish_reason"]
        assert {name: response.usage.raw[name] for name in expected["usage"]} == expected["usage"]
        assert response.report.frames == expected["data_events"]
        assert response.clean
        assert not response.report.repairs  # OpenAI itself needs no tolerance


# -- another translator's recorded pairs -----------------------------------------------------------------------------------


def framed(path: str, dialect: str) -> bytes:
    """A recording of one frame a line, framed as its provider frames it."""
    lines = [json.loads(line) for line in (require_corpora() / path).read_text("utf-8").splitlines()]
    named = dialect == "anthropic"
    return "".join(
        (f"event: {line['Type']}\n" if named else "") + f"data: {line['Data']}\n\n" for line in lines
    ).encode()


def pairs(kind: str) -> list[Any]:
    return [fact for fact in facts("pairs_golden") if CORPORA is None or fact.values[0]["kind"] == kind]


#: Differences of form from the recorded translations; each is checked to be there, so that none outlives its cause.
DIFFERENT_FORM = {
    "early-usage": "their message_start has the usage that the source sent last; a stream can't know it (0 until then)",
    "usage-fields": "they write zero cache counts whatever the source said; we write what it said",
    "created": "they write 0, we the time: Anthropic sends none and clients read it as one",
    "role-repeated": "they repeat the role in each delta; clients that join strings get `assistantassistant`",
    "identity-repeated": "they repeat id and type, and a blank name, in each fragment (dialects.md §1.8: first one only)",
    "index-left-out": "they leave out an index of 0 (Go's omitempty); openai's stream helper fails on it",
    "finish-without-delta": "their last chunk has no delta; OpenAI's has an empty one",
    "done-as-object": "one recording has their inner form of `[DONE]`; on the wire it is the bare word",
}
TO_CHAT = {"created", "role-repeated", "finish-without-delta"}
FORMS_OF = {
    "anthropic-stop.stream.jsonl": {"early-usage", "usage-fields"},
    "anthropic-parallel_multiple_tool.stream.jsonl": {"early-usage", "usage-fields"},
    "anthropic-think.stream.jsonl": {"early-usage", "usage-fields"},
    "llm-stop.stream.jsonl": TO_CHAT,
    "llm-tool.stream.jsonl": {*TO_CHAT, "identity-repeated"},
    "llm-think.stream.jsonl": {*TO_CHAT, "identity-repeated", "index-left-out", "done-as-object"},
}


def test_every_difference_of_form_is_met():
    assert set().union(*FORMS_OF.values()) == set(DIFFERENT_FORM)


@pytest.mark.parametrize("pair", pairs("stream"))
def test_a_translation_means_what_another_translator_wrote_at_every_cut(pair):
    require_corpora()
    data = framed(pair["input_file"], pair["from_dialect"])
    expected = framed(pair["expected_file"], pair["to_dialect"])
    forms = FORMS_OF[pair["expected_file"].rpartition("/")[2]]
    for reads in cuttings(data):
        run = Run(reads, pair["from_dialect"])
        if pair["to_dialect"] == "anthropic":
            assert same_message(run.anthropic, read_anthropic(expected)) == forms
        else:
            assert same_chat(run.chat, read_chat(expected)) == forms


def same_message(ours: list[Document], theirs: list[Document]) -> set[str]:
    """The differences of form between two Anthropic streams that mean the same."""
    assert sum_up_anthropic(ours) == sum_up_anthropic(theirs)
    assert order_of(ours) == order_of(theirs)
    start, their_start = ours[0]["message"], theirs[0]["message"]
    forms = set()
    if start.pop("usage") != (their_usage := their_start.pop("usage")):
        forms.add("early-usage")
        assert their_usage["input_tokens"] > 0
    if ours[-2]["usage"].keys() != their_usage.keys():
        forms.add("usage-fields")
    assert without_nulls(start) == without_nulls(
        their_start
    )  # ours says what is not there, as Anthropic's schema demands
    return forms


def same_chat(ours: list[Document | str], theirs: list[Document | str]) -> set[str]:
    """The differences of form between two Chat streams that mean the same."""
    meaning, their_meaning = fold_chat(ours), fold_chat(theirs)
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    for said in (meaning, their_meaning):
        assert len(said["finish"]) == 1
        said["usage"] = {name: said["usage"][name] for name in counts}
    assert meaning == their_meaning
    assert ours[-1] == "[DONE]"
    return {name for name, shown in chat_forms(theirs).items() if shown} - {
        name for name, shown in chat_forms(ours).items() if shown
    }


def chat_forms(chunks: list[Document | str]) -> dict[str, bool]:
    """Which of the differing forms a chat stream has."""
    documents = [chunk for chunk in chunks if isinstance(chunk, dict)]
    choices = [choice for document in documents for choice in document["choices"] or ()]
    deltas = [choice.get("delta") or {} for choice in choices]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    ids = [call["id"] for call in calls if "id" in call]
    return {
        "created": {document["created"] for document in documents} == {0},
        "role-repeated": sum("role" in delta for delta in deltas) > 1,
        "identity-repeated": len(ids) > len(set(ids)),
        "index-left-out": any("index" not in call for call in calls),
        "finish-without-delta": any("delta" not in choice for choice in choices),
        "done-as-object": any(document.get("object") == "[DONE]" for document in documents),
    }


@EVERY
@pytest.mark.parametrize("pair", pairs("accumulate"))
def test_a_stream_adds_up_to_the_recorded_whole_response_however_it_is_cut(pair, every):
    require_corpora()
    data = framed(pair["input_file"], pair["from_dialect"])
    expected = json.loads((require_corpora() / pair["expected_file"]).read_text("utf-8"))
    check = is_the_chat_completion if pair["from_dialect"] == "openai-chat" else is_the_message
    for reads in cuttings(data, every=every):
        check(Run(reads, pair["from_dialect"]), dict(expected))


@pytest.mark.parametrize("pair", pairs("accumulate"))
def test_the_whole_response_reads_as_its_stream_does(pair):
    require_corpora()
    streamed = Run([framed(pair["input_file"], pair["from_dialect"])], pair["from_dialect"]).response
    whole = decode_response((require_corpora() / pair["expected_file"]).read_bytes(), pair["from_dialect"])
    assert whole.clean
    assert (whole.id, whole.model, whole.usage) == (streamed.id, streamed.model, streamed.usage)
    assert said(whole) == said(streamed)


def said(response: Response) -> list[Any]:
    """Every part but what is about single deltas; arguments by value, since a whole message may have them as an object."""
    return [
        (choice.role, choice.stop_reason, choice.native_stop_reason, [
            (type(part).__name__, part.name, json.loads(part.arguments), part.id) if isinstance(part, ToolCall) else part
            for part in choice.parts
            if not isinstance(part, Aside)
        ])
        for choice in response.choices
    ]  # fmt: skip


def is_the_chat_completion(run: Run, expected: Document) -> None:
    response = run.response
    assert expected.pop("object") == "chat.completion"  # the whole response's word for itself
    assert expected.pop("id") == response.id
    assert expected.pop("model") == response.model
    assert expected.pop("created") == response.created
    assert expected.pop("usage") == response.usage.raw
    if fingerprint := expected.pop("system_fingerprint", None):  # a constant field: carried for the same dialect
        assert run.chat[0]["system_fingerprint"] == fingerprint
    (choice,) = expected.pop("choices")
    assert not expected
    found = response.choices[choice["index"]]
    assert set(choice) == {"index", "message", "finish_reason"}
    assert choice["finish_reason"] == found.native_stop_reason
    message = dict(choice["message"])
    assert message.pop("role") == found.role
    assert (message.pop("content") or "") == found.text
    assert message.pop("reasoning_content", "") == found.reasoning
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in found.tool_calls
    ]
    assert message.pop("tool_calls", []) == calls
    assert not message


def is_the_message(run: Run, expected: Document) -> None:
    response = run.response
    assert expected.pop("type") == "message"
    assert expected.pop("id") == response.id
    assert expected.pop("role") == response.choices[0].role
    assert expected.pop("model") == response.model
    assert expected.pop("stop_reason") == response.choices[0].native_stop_reason
    assert expected.pop("usage") == response.usage.raw
    blocks = []
    for block in blocks_of(run.anthropic):
        if block["type"] == "tool_use":
            blocks.append(
                {"type": "tool_use", "id": block["id"], "name": block["name"], "input": json.loads(block["said"])}
            )
        else:
            blocks.append({"type": block["type"], block["type"]: block["said"]})
    assert expected.pop("content") == blocks
    assert not expected
