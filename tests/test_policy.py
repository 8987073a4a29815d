"""Each switch of a policy, both ways, and the three policies as a whole."""

from __future__ import annotations

import pytest

from streamkit import LENIENT, STRICT, TOLERANT, accumulate_tool_calls, collect, decode, parse_sse, pipe
from streamkit.errors import NeedsRepair
from streamkit.read_options import ReadOptions
from streamkit.testing import source_of
from tests.vectors.vector import sse

HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DONE = b"[DONE]"


def chunk(delta, finish=None):
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index=0, call_id="a", name="f", arguments="{}"):
    entry = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    entry["function"] = {key: value for key, value in entry["function"].items() if value is not None}
    return chunk({"tool_calls": [{key: value for key, value in entry.items() if value is not None}]})


STOP, CALLS = chunk({}, "stop"), chunk({}, "tool_calls")
TEXT_ONLY = sse(chunk({"content": "Hi"}), DONE)
CALL_THEN_DONE = sse(call(), DONE)
CALL_THEN_END = sse(call())
CUT_CALL = sse(call(arguments='{"x":'), DONE)


async def read(body, policy):
    return await collect(source_of([body]), "openai-chat", ReadOptions(policy=policy))


@pytest.mark.parametrize(
    ("body", "accepts"),
    [
        (TEXT_ONLY, {"strict": None, "tolerant": None, "lenient": "stop"}),
        (CALL_THEN_DONE, {"strict": None, "tolerant": "tool_calls", "lenient": "tool_calls"}),
        (CALL_THEN_END, {"strict": None, "tolerant": None, "lenient": "tool_calls"}),
        (CUT_CALL, {"strict": None, "tolerant": None, "lenient": None}),
        (CALL_THEN_END[:-20], {"strict": None, "tolerant": None, "lenient": None}),
        (sse(chunk({"content": "Hi"})), {"strict": None, "tolerant": None, "lenient": None}),
        (b"", {"strict": None, "tolerant": None, "lenient": None}),
    ],
    ids=["text and [DONE]", "call and [DONE]", "call and end", "cut call", "cut frame", "text and end", "nothing"],
)
async def test_an_end_without_a_stop_reason(body, accepts):
    for name, reason in accepts.items():
        response = await read(body, {"strict": STRICT, "tolerant": TOLERANT, "lenient": LENIENT}[name])
        assert response.clean is (reason is not None), name
        if reason is not None:
            assert response.choices[0].stop_reason == reason, name
            assert response.report.repairs == {"finish_derived": 1}, name


async def test_a_missing_id_is_made_or_refused():
    body = sse(call(), STOP, DONE)
    stages = parse_sse(), decode("openai-chat")
    with pytest.raises(NeedsRepair, match="stop"):
        async with pipe(source_of([body]), *stages, accumulate_tool_calls(policy=STRICT)) as stream:
            [batch async for batch in stream]
    assert stream.report.repairs == {"stop_with_calls": 1}
    async with pipe(source_of([body + b": \n\nfoo: bar\n\n"]), *stages, accumulate_tool_calls()) as stream:
        [batch async for batch in stream]
    assert stream.report.repairs == {"stop_with_calls": 1, "sse_field_unknown": 1}
    with pytest.raises(NeedsRepair):
        async with pipe(source_of([b"foo: bar\n\n" + body]), *stages, accumulate_tool_calls(policy=STRICT)) as stream:
            [batch async for batch in stream]
    assert stream.report.repairs == {"sse_field_unknown": 1}
