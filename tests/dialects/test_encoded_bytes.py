"""What the encoders of Chat and Anthropic write, to the byte: each event, and what is counted where it has no place."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import field, frozen

from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_chat.providers import ChatClient
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    Aside,
    Event,
    Opaque,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.report import StreamReport

V, A = "openai", "anthropic"
START = ResponseStarted("id", "m", 5, vendor=V)
ASTART = ResponseStarted("id", "m", vendor=A, extras={"own": 1}, usage=UsageReported(3, 1, None, 1, None, 4))
#: What stands in front of each chunk, and in each start and end of a message: written once here.
SHORT = {
    "HEAD": '"id":"id","object":"chat.completion.chunk","created":5,"model":"m",',
    "MADE": '"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"",',
    "NULLS": '"output_tokens_details":null,"server_tool_use":null',
    "REST": '"cache_creation":null,"inference_geo":null,"service_tier":null',
    "STOPS": '"content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,',
    # what follows has the short forms above in it
    "FIRST": (
        '{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
        'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
        '"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'
    ),
    "UNKNOWN": (
        '"usage":{"input_tokens":0,'
        '"output_tokens":0,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,NULLS'
    ),
    "DETAILS": '"stop_details":null,"container":null}',
    "DELTA ": '{HEAD"choices":[{"index":0,"delta":',
    "TIER ": '{HEAD"tier":"x","choices":[{"index":',
    " OPEN": ',"finish_reason":null}]}',
    "BEGIN ": '{"type":"content_block_start","index":',
    "PART ": '{"type":"content_block_delta","index":',
    "CLOSE ": '{"type":"content_block_stop","index":',
}


def finish(reason: Any = "stop", **rest: Any) -> list[Event]:
    return [ResponseFinished(reason, **rest), StreamEnded(clean=True)]


@frozen
class Row:
    """The payloads that are written for events, what is counted, and the calls that are withheld."""

    events: list[Event]
    written: list[str]
    profile: dict[str, Any] = field(factory=dict, kw_only=True)
    losses: dict[str, int] = field(factory=dict, kw_only=True)
    withheld: list[tuple[str, str | None, str]] = field(factory=list, kw_only=True)


def encoded(dialect: str, events: list[Event], profile: dict[str, Any]) -> tuple[str, StreamReport]:
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(
        Encoding(profile=ChatClient(**profile), make_id=lambda prefix: f"{prefix}made", clock=lambda: 7.9), report
    )
    return b"".join([*(encoder.feed([event]) for event in events), encoder.finish()]).decode(), report


CHAT: dict[str, Row] = {
    "nothing but an end": Row(
        [*finish()],
        [
            r'{MADE"choices":[{"index":0,"delta":{"role":"assistant","content":""} OPEN',
            r'{MADE"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
    ),
    "no start": Row(
        [TextDelta("a"), *finish()],
        [
            (r'{"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"mine","choices":[{"index":0,'
             r'"delta":{"role":"assistant","content":""} OPEN'),
            (r'{"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"mine","choices":[{"index":0,'
             r'"delta":{"content":"a"} OPEN'),
            (r'{"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"mine","choices":[{"index":0,'
             r'"delta":{},"finish_reason":"stop"}]}'),
            r"[DONE]",
        ],
        profile={"model": "mine"},
    ),
    "asides": Row(
        [
            START, Aside(V, "logprobs", "logprobs", {"content":[]}, 1), Aside(V, "audio", "audio", {"id":"a"}),
            Aside(V, "citation", "annotations", {"url":"u"}), Aside(V, "metadata", "delta.own", 1),
            Aside(V, "metadata", "choices.own", 2), Aside(V, "metadata", "own", {"a":1}),
            Aside(V, "server_tool", "odd", {}), Aside("anthropic", "metadata", "own", 1), *finish(),
        ],
        [
            r'{HEAD"choices":[{"index":1,"delta":{"role":"assistant","content":""},"logprobs":{"content":[]} OPEN',
            r'DELTA {"role":"assistant","content":null} OPEN',
            r'DELTA {"audio":{"id":"a"}} OPEN',
            r'DELTA {"annotations":[{"url":"u"}]} OPEN',
            r'DELTA {"own":1} OPEN',
            r'DELTA {},"own":2 OPEN',
            r'{HEAD"choices":[],"own":{"a":1}}',
            r'DELTA {},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        losses={"server_tool": 1, "metadata": 1},
    ),
    "a member of the choice that comes before its text": Row(
        [START, Aside(V, "metadata", "choices.own", 2), TextDelta("a"), *finish()],
        [
            r'DELTA {"role":"assistant","content":""},"own":2 OPEN',
            r'DELTA {"content":"a"} OPEN',
            r'DELTA {},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
    ),
    "reasoning": Row(
        [
            START, ReasoningDelta("r", block=0), ReasoningSignature("s1", "v", block=0),
            ReasoningSignature("s2", "v", block=0), ReasoningOpaque("o", "v", block=1), ReasoningDelta("q", block=2),
            ReasoningSignature("s3", "v", block=2), TextDelta("t", block=3),
            ReasoningSignature("s4", "v", block=4, on="text"), ReasoningDelta("z", block=5),
            ReasoningSignature("s5", "v", block=6), *finish(),
        ],
        [
            r'DELTA {"role":"assistant","content":null} OPEN',
            r'DELTA {"reasoning":"r","reasoning_content":"r"} OPEN',
            r'DELTA {"reasoning_details":[{"index":0,"type":"reasoning.text","signature":"s1","format":"v-v1"}]} OPEN',
            r'DELTA {"reasoning_details":[{"index":0,"type":"reasoning.text","signature":"s2"}]} OPEN',
            r'DELTA {"reasoning_details":[{"index":1,"type":"reasoning.encrypted","data":"o","format":"v-v1"}]} OPEN',
            r'DELTA {"reasoning":"\n\n","reasoning_content":"\n\n"} OPEN',
            r'DELTA {"reasoning":"q","reasoning_content":"q"} OPEN',
            r'DELTA {"reasoning_details":[{"index":2,"type":"reasoning.text","signature":"s3","format":"v-v1"}]} OPEN',
            r'DELTA {"content":"t"} OPEN',
            r'DELTA {"extra_content":{"v":{"thought_signature":"s4"}}} OPEN',
            r'DELTA {"reasoning":"\n\n","reasoning_content":"\n\n"} OPEN',
            r'DELTA {"reasoning":"z","reasoning_content":"z"} OPEN',
            r'DELTA {"reasoning_details":[{"index":4,"type":"reasoning.text","signature":"s5","format":"v-v1"}]} OPEN',
            r'DELTA {},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        profile={"reasoning_details": True, "reasoning_fields": ("reasoning", "reasoning_content")}, losses={"block_boundary": 1, "block_order": 1},
    ),
    "no details": Row(
        [START, ReasoningDelta("r"), ReasoningSignature("s","v"), ReasoningOpaque("o","v"), *finish()],
        [
            r'DELTA {"role":"assistant","content":null} OPEN',
            r'DELTA {"reasoning_content":"r"} OPEN',
            r'DELTA {},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        profile={"reasoning_details": False}, losses={"reasoning_signature": 1, "reasoning_opaque": 1},
    ),
    "calls": Row(
        [
            ResponseStarted("id", "m", 5, vendor=V, extras={"tier":"x"}),
            ToolCallStarted(0, "c0", "f", extras={"own":1}, signature=Opaque("v", "b")), ToolCallArguments(0, '{"a"'),
            ToolCallFinished(0, "c0", "f", '{"a"'), ToolCallStarted(1, "c1", "g", kind="custom"),
            ToolCallArguments(1, "x"), ToolCallFinished(1, "c1", "g", "x", kind="custom"),
            ToolCallStarted(2, "c2", "h", kind="custom"),
            ToolCallFinished(2, "c2", "h", "y", kind="custom", ended=False), ToolCallStarted(3, "c3", ""),
            ToolCallFinished(3, "c3", "", "z"), ToolCallStarted(4, "c4", "k", cut=True),
            ToolCallFinished(4, "c4", "k", "", ended=False), ToolCallStarted(5, "c5", "l"),
            ToolCallFinished(5, "c5", "l", " "), RefusalDelta("no", choice=1), TextDelta("late"),
            *[ResponseFinished("tool_calls"), ResponseFinished("stop", choice=1, stop_sequence="x"), StreamEnded(clean=True)],
        ],
        [
            r'TIER 0,"delta":{"role":"assistant","content":null} OPEN',
            (r'TIER 0,"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f",'
             r'"arguments":""},"own":1,"extra_content":{"v":{"thought_signature":"b"}}}]} OPEN'),
            r'TIER 0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]} OPEN',
            (r'TIER 0,"delta":{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"g",'
             r'"arguments":""}}]} OPEN'),
            r'TIER 0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"input\":\"x\"}"}}]} OPEN',
            (r'TIER 0,"delta":{"tool_calls":[{"index":2,"id":"c2","type":"function","function":{"name":"h",'
             r'"arguments":""}}]} OPEN'),
            (r'TIER 0,"delta":{"tool_calls":[{"index":3,"id":"c5","type":"function","function":{"name":"l",'
             r'"arguments":""}}]} OPEN'),
            r'TIER 0,"delta":{"tool_calls":[{"index":3,"function":{"arguments":"{}"}}]} OPEN',
            r'TIER 1,"delta":{"role":"assistant","content":null} OPEN',
            r'TIER 1,"delta":{"refusal":"no"} OPEN',
            r'TIER 0,"delta":{"content":"late"} OPEN',
            r'TIER 0,"delta":{},"finish_reason":"tool_calls"}]}',
            r'TIER 1,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        losses={"custom_tool_wrapped": 1, "call_withheld": 3, "block_order": 1, "stop_sequence": 1},
        withheld=[("c2", "h", "y"), ("c3", None, "z"), ("c4", "k", "")],
    ),
    "usage": Row(
        [START, UsageReported(1,2,None,3,4,4,raw={"x":1},vendor="other"), *finish()],
        [
            r'DELTA {"role":"assistant","content":""} OPEN',
            r'DELTA {},"finish_reason":"stop"}]}',
            (r'{HEAD"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4,'
             r'"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":4}}}'),
            r"[DONE]",
        ],
        profile={"include_usage": True}, losses={"usage_detail": 1},
    ),
    "usage with stop": Row(
        [
            START, TextDelta("a"), UsageReported(1, None, None, 3, None, 4), ResponseFinished("stop"),
            ResponseFinished("length", choice=1), StreamEnded(clean=True),
        ],
        [
            r'DELTA {"role":"assistant","content":""} OPEN',
            r'DELTA {"content":"a"} OPEN',
            r'{HEAD"choices":[{"index":1,"delta":{"role":"assistant","content":""} OPEN',
            r'DELTA {},"finish_reason":"stop"}]}',
            (r'{HEAD"choices":[{"index":1,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":1,'
             r'"completion_tokens":3,"total_tokens":4}}'),
            r"[DONE]",
        ],
        profile={"include_usage": True, "usage_with_stop": True},
    ),
    "stop held, no usage": Row(
        [START, TextDelta("a"), *finish()],
        [
            r'DELTA {"role":"assistant","content":""} OPEN',
            r'DELTA {"content":"a"} OPEN',
            r'DELTA {},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        profile={"usage_with_stop": True},
    ),
    "error": Row(
        [
            START,
            ProviderFailed("server", "broken", "x", "y", 500, raw={"message":"broken", "own":1}, vendor="openai"),
            StreamEnded(clean=False),
        ],
        [
            r'{"error":{"message":"broken","own":1}}',
        ],
    ),
    "foreign fields": Row(
        [
            ResponseStarted(None, None, None, vendor="google", extras={"own":1}),
            ToolCallStarted(0, "c", "f", extras={"own":1}), ToolCallFinished(0, "c", "f", "{}"),
            *finish("tool_calls"),
        ],
        [
            r'{MADE"choices":[{"index":0,"delta":{"role":"assistant","content":null} OPEN',
            (r'{MADE"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function",'
             r'"function":{"name":"f","arguments":""}}]} OPEN'),
            r'{MADE"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
            r"[DONE]",
        ],
        losses={"response_fields": 1, "metadata": 1},
    ),
}  # fmt: skip

ANTHROPIC: dict[str, Row] = {
    "nothing but an end": Row(
        [*finish()],
        [
            (r'{"type":"message_start","message":{"id":"msg_made","type":"message","role":"assistant","model":"",'
             r'STOPSUNKNOWN,REST}}}'),
            r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,DETAILS,UNKNOWN}}',
            r'{"type":"message_stop"}',
        ],
        losses={"usage_unknown": 1},
    ),
    "text and citations": Row(
        [
            ASTART, TextDelta("a"), Aside(A, "citation", "citations_delta", {"n":1}),
            Aside(A, "citation", "citations_delta", {"n":2}, block=1), TextDelta("b", block=1),
            Aside(A, "citation", "citations_delta", {"n":3}, block=2), UsageReported(3, 1, None, 5, None, 8),
            *finish("stop", stop_sequence="x"),
        ],
        [
            r"FIRST",
            r'BEGIN 0,"content_block":{"type":"text","text":""}}',
            r'PART 0,"delta":{"type":"text_delta","text":"a"}}',
            r'PART 0,"delta":{"type":"citations_delta","citation":{"n":1}}}',
            r"CLOSE 0}",
            r'BEGIN 1,"content_block":{"type":"text","text":""}}',
            r'PART 1,"delta":{"type":"citations_delta","citation":{"n":2}}}',
            r'PART 1,"delta":{"type":"text_delta","text":"b"}}',
            r"CLOSE 1}",
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":"x",DETAILS,'
             r'"usage":{"input_tokens":2,"output_tokens":5,"cache_read_input_tokens":1,"cache_creation_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        losses={"citation": 1},
    ),
    "beside": Row(
        [
            ASTART, Aside(A, "metadata", "message_delta.own", {"a":1}), Aside(A, "metadata", "beside_delta.own", 2),
            Aside(A, "metadata", "beside_delta.type", 2), Aside(A, "metadata", "beside_delta.delta", 2),
            Aside(A, "metadata", "beside_delta.usage", 2),
            Aside(A, "unknown_event", "event.odd", {"type":"odd", "x":1}),
            Aside(A, "unknown_event", "event.odd", {"type":"other"}),
            Aside(A, "unknown_event", "a b", {"type":"a b"}), Aside(A, "unknown_event", "event.odd", ["odd"]),
            Aside("x", "metadata", "odd", {}), *finish(),
        ],
        [
            r"FIRST",
            r'{"type":"odd","x":1}',
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,'
             r'"container":null,"own":{"a":1}},UNKNOWN},"own":2}'),
            r'{"type":"message_stop"}',
        ],
        losses={"unknown_event": 3, "metadata": 1, "usage_unknown": 1},
    ),
    "raw blocks": Row(
        [
            ASTART,
            Aside(A, "server_tool", "content_block_start", {"type":"content_block_start", "index":0, "content_block":{"type":"server_tool_use", "id":"s"}, "beside":1}, block=7),
            Aside(A, "server_tool", "content_block_delta", {"type":"content_block_delta", "index":0, "delta":{"type":"input_json_delta", "partial_json":"{}"}}, block=7),
            Aside(A, "server_tool", "content_block_delta", {"type":"content_block_delta", "index":0, "delta":{"type":"No Name"}}, block=7),
            Aside(A, "server_tool", "content_block_delta", {"type":"content_block_delta", "index":0, "delta":3}, block=7),
            TextDelta("t", block=8),
            Aside(A, "server_tool", "content_block_stop", {"type":"content_block_stop", "index":0}, block=7),
            Aside(A, "server_tool", "content_block_stop", {"type":"content_block_stop", "index":0}, block=9),
            Aside(A, "server_tool", "content_block_start", {"type":"content_block_start", "index":0, "content_block":{"type":"No Name"}}, block=10),
            *finish(),
        ],
        [
            r"FIRST",
            r'BEGIN 0,"content_block":{"type":"server_tool_use","id":"s"}}',
            r'PART 0,"delta":{"type":"input_json_delta","partial_json":"{}"}}',
            r"CLOSE 0}",
            r'BEGIN 1,"content_block":{"type":"text","text":""}}',
            r'PART 1,"delta":{"type":"text_delta","text":"t"}}',
            r"CLOSE 1}",
            r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,DETAILS,UNKNOWN}}',
            r'{"type":"message_stop"}',
        ],
        losses={"server_tool": 5, "usage_unknown": 1},
    ),
    "sealed": Row(
        [
            ASTART, ReasoningDelta("r"), ReasoningSignature("s", A), ReasoningOpaque("o", A, block=1),
            ReasoningOpaque("p", A, block=2), *finish(),
        ],
        [
            r"FIRST",
            r'BEGIN 0,"content_block":{"type":"thinking","thinking":"","signature":""}}',
            r'PART 0,"delta":{"type":"thinking_delta","thinking":"r"}}',
            r'PART 0,"delta":{"type":"signature_delta","signature":"s"}}',
            r"CLOSE 0}",
            r'BEGIN 1,"content_block":{"type":"redacted_thinking","data":"o"}}',
            r"CLOSE 1}",
            r'BEGIN 2,"content_block":{"type":"redacted_thinking","data":"p"}}',
            r"CLOSE 2}",
            r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,DETAILS,UNKNOWN}}',
            r'{"type":"message_stop"}',
        ],
        losses={"usage_unknown": 1},
    ),
    "calls": Row(
        [
            ASTART, ToolCallStarted(0, "c0", "f", extras={"own":1}), ToolCallArguments(0, "{}"),
            ToolCallFinished(0, "c0", "f", "{}"), *finish("tool_calls"),
        ],
        [
            r"FIRST",
            r'BEGIN 0,"content_block":{"type":"tool_use","id":"c0","name":"f","input":{},"caller":{"type":"direct"},"own":1}}',
            r'PART 0,"delta":{"type":"input_json_delta","partial_json":"{}"}}',
            r"CLOSE 0}",
            r'{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,DETAILS,UNKNOWN}}',
            r'{"type":"message_stop"}',
        ],
        losses={"usage_unknown": 1},
    ),
    "foreign": Row(
        [
            ResponseStarted(None, None, vendor="google", extras={"own":1}),
            ToolCallStarted(0, "c0", "f", extras={"own":1}), ToolCallFinished(0, "c0", "f", "{}"),
            *finish("content_filter"),
        ],
        [
            (r'{"type":"message_start","message":{"id":"msg_made","type":"message","role":"assistant","model":"mine",'
             r'STOPSUNKNOWN,REST}}}'),
            r'BEGIN 0,"content_block":{"type":"tool_use","id":"c0","name":"f","input":{},"caller":{"type":"direct"}}}',
            r"CLOSE 0}",
            r'{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,DETAILS,UNKNOWN}}',
            r'{"type":"message_stop"}',
        ],
        profile={"model": "mine"}, losses={"response_fields": 1, "metadata": 1, "usage_unknown": 1, "stop_reason": 1},
    ),
    "error": Row(
        [
            ASTART, Aside(A, "metadata", "message_delta.own", 1), Aside(A, "metadata", "beside_delta.own", 1),
            ProviderFailed("rate_limit", "slow"), StreamEnded(clean=False),
        ],
        [
            r"FIRST",
            r'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
        ],
        losses={"metadata": 2},
    ),
    "error first": Row(
        [ProviderFailed("rate_limit","slow"), StreamEnded(clean=False)],
        [
            r'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
        ],
    ),
}  # fmt: skip


def lines(text: str) -> list[str]:
    """The payload of each event; an event's name is the type of its payload."""
    found = []
    for event in text.split("\n\n")[:-1]:
        name, _, data = event.rpartition("data: ")
        assert not name or data.startswith(f'{{"type":"{name[7:-1]}"')
        for short, long in SHORT.items():
            data = data.replace(long, short)
        found.append(data)
    return found


@pytest.mark.parametrize(
    ("dialect", "row"),
    [
        pytest.param(dialect, row, id=f"{dialect}-{name}".replace(" ", "-"))
        for dialect, table in (("openai-chat", CHAT), ("anthropic", ANTHROPIC))
        for name, row in table.items()
    ],
)
def test_each_event_is_written_to_the_byte(dialect, row):
    text, report = encoded(dialect, row.events, row.profile)
    assert lines(text) == row.written
    assert report.losses == row.losses
    assert [(one.id, one.name, one.arguments) for one in report.withheld] == row.withheld
