"""What the encoders of Chat and Anthropic write, to the byte: each event, and what is counted where it has no place."""

from __future__ import annotations

from typing import Any

import pytest

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
}


def finish(reason: Any = "stop", **rest: Any) -> list[Event]:
    return [ResponseFinished(reason, **rest), StreamEnded(clean=True)]


def encoded(dialect: str, events: list[Event], profile: dict[str, Any]) -> tuple[str, StreamReport]:
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(
        Encoding(profile=ChatClient(**profile), make_id=lambda prefix: f"{prefix}made", clock=lambda: 7.9), report
    )
    return b"".join([*(encoder.feed([event]) for event in events), encoder.finish()]).decode(), report


CHAT: dict[str, Any] = {
    "nothing but an end": (
        [*finish()],
        {},
        [
            r'{MADE"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            r'{MADE"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        {},
        [],
    ),
    "no start": (
        [TextDelta("a"), *finish()],
        {"model":"mine"},
        [
            (r'{"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"mine",'
             r'"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}'),
            (r'{"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"mine",'
             r'"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}'),
            (r'{"id":"chatcmpl-made","object":"chat.completion.chunk","created":7,"model":"mine",'
             r'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'),
            r"[DONE]",
        ],
        {},
        [],
    ),
    "asides": (
        [
            START,
            Aside(V, "logprobs", "logprobs", {"content":[]}, 1),
            Aside(V, "audio", "audio", {"id":"a"}),
            Aside(V, "citation", "annotations", {"url":"u"}),
            Aside(V, "metadata", "delta.own", 1),
            Aside(V, "metadata", "choices.own", 2),
            Aside(V, "metadata", "own", {"a":1}),
            Aside(V, "server_tool", "odd", {}),
            Aside("anthropic", "metadata", "own", 1),
            *finish(),
        ],
        {},
        [
            r'{HEAD"choices":[{"index":1,"delta":{},"logprobs":{"content":[]},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"audio":{"id":"a"}},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"annotations":[{"url":"u"}]},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"own":1},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{},"own":2,"finish_reason":null}]}',
            r'{HEAD"choices":[],"own":{"a":1}}',
            r'{HEAD"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        {"server_tool": 1, "metadata": 1},
        [],
    ),
    "reasoning": (
        [
            START,
            ReasoningDelta("r", block=0),
            ReasoningSignature("s1", "v", block=0),
            ReasoningSignature("s2", "v", block=0),
            ReasoningOpaque("o", "v", block=1),
            ReasoningDelta("q", block=2),
            ReasoningSignature("s3", "v", block=2),
            TextDelta("t", block=3),
            ReasoningSignature("s4", "v", block=4, on="text"),
            ReasoningDelta("z", block=5),
            ReasoningSignature("s5", "v", block=6),
            *finish(),
        ],
        {"reasoning_details":True,"reasoning_fields":("reasoning","reasoning_content")},
        [
            r'{HEAD"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"reasoning":"r","reasoning_content":"r"},"finish_reason":null}]}',
            (r'{HEAD"choices":[{"index":0,"delta":{"reasoning_details":[{"index":0,"type":"reasoning.text",'
             r'"signature":"s1","format":"v-v1"}]},"finish_reason":null}]}'),
            (r'{HEAD"choices":[{"index":0,"delta":{"reasoning_details":[{"index":0,"type":"reasoning.text",'
             r'"signature":"s2"}]},"finish_reason":null}]}'),
            (r'{HEAD"choices":[{"index":0,"delta":{"reasoning_details":[{"index":1,"type":"reasoning.encrypted",'
             r'"data":"o","format":"v-v1"}]},"finish_reason":null}]}'),
            r'{HEAD"choices":[{"index":0,"delta":{"reasoning":"\n\n","reasoning_content":"\n\n"},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"reasoning":"q","reasoning_content":"q"},"finish_reason":null}]}',
            (r'{HEAD"choices":[{"index":0,"delta":{"reasoning_details":[{"index":2,"type":"reasoning.text",'
             r'"signature":"s3","format":"v-v1"}]},"finish_reason":null}]}'),
            r'{HEAD"choices":[{"index":0,"delta":{"content":"t"},"finish_reason":null}]}',
            (r'{HEAD"choices":[{"index":0,"delta":{"extra_content":{"v":{"thought_signature":"s4"}}},'
             r'"finish_reason":null}]}'),
            r'{HEAD"choices":[{"index":0,"delta":{"reasoning":"\n\n","reasoning_content":"\n\n"},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"reasoning":"z","reasoning_content":"z"},"finish_reason":null}]}',
            (r'{HEAD"choices":[{"index":0,"delta":{"reasoning_details":[{"index":4,"type":"reasoning.text",'
             r'"signature":"s5","format":"v-v1"}]},"finish_reason":null}]}'),
            r'{HEAD"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        {"block_boundary": 1, "block_order": 1},
        [],
    ),
    "no details": (
        [START, ReasoningDelta("r"), ReasoningSignature("s","v"), ReasoningOpaque("o","v"), *finish()],
        {"reasoning_details":False},
        [
            r'{HEAD"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"reasoning_content":"r"},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        {"reasoning_signature": 1, "reasoning_opaque": 1},
        [],
    ),
    "calls": (
        [
            ResponseStarted("id", "m", 5, vendor=V, extras={"tier":"x"}),
            ToolCallStarted(0, "c0", "f", extras={"own":1}, signature=Opaque("v", "b")),
            ToolCallArguments(0, '{"a"'), ToolCallFinished(0, "c0", "f", '{"a"'), ToolCallStarted(1, "c1", "g", kind="custom"), ToolCallArguments(1, "x"), ToolCallFinished(1, "c1", "g", "x", kind="custom"), ToolCallStarted(2, "c2", "h", kind="custom"), ToolCallFinished(2, "c2", "h", "y", kind="custom", ended=False), ToolCallStarted(3, "c3", ""), ToolCallFinished(3, "c3", "", "z"), ToolCallStarted(4, "c4", "k", cut=True), ToolCallFinished(4, "c4", "k", "", ended=False), ToolCallStarted(5, "c5", "l"), ToolCallFinished(5, "c5", "l", " "), RefusalDelta("no", choice=1), TextDelta("late"), *[ResponseFinished("tool_calls"), ResponseFinished("stop", choice=1, stop_sequence="x"), StreamEnded(clean=True)],
        ],
        {},
        [
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"role":"assistant","content":null},'
             r'"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function",'
             r'"function":{"name":"f","arguments":""},"own":1,"extra_content":{"v":{"thought_signature":"b"}}}]},'
             r'"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
             r'"function":{"arguments":"{\"a\""}}]},"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c1","type":"function",'
             r'"function":{"name":"g","arguments":""}}]},"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,'
             r'"function":{"arguments":"{\"input\":\"x\"}"}}]},"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"id":"c2","type":"function",'
             r'"function":{"name":"h","arguments":""}}]},"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":3,"id":"c5","type":"function",'
             r'"function":{"name":"l","arguments":""}}]},"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":3,'
             r'"function":{"arguments":"{}"}}]},"finish_reason":null}]}'),
            (r'{HEAD"tier":"x","choices":[{"index":1,"delta":{"role":"assistant","content":null},'
             r'"finish_reason":null}]}'),
            r'{HEAD"tier":"x","choices":[{"index":1,"delta":{"refusal":"no"},"finish_reason":null}]}',
            r'{HEAD"tier":"x","choices":[{"index":0,"delta":{"content":"late"},"finish_reason":null}]}',
            r'{HEAD"tier":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
            r'{HEAD"tier":"x","choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        {"custom_tool_wrapped": 1, "call_withheld": 3, "block_order": 1, "stop_sequence": 1},
        [("c2", "h", "y"), ("c3", None, "z"), ("c4", "k", "")],
    ),
    "usage": (
        [START, UsageReported(1,2,None,3,4,4,raw={"x":1},vendor="other"), *finish()],
        {"include_usage":True},
        [
            r'{HEAD"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            (r'{HEAD"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4,'
             r'"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":4}}}'),
            r"[DONE]",
        ],
        {"usage_detail": 1},
        [],
    ),
    "usage with stop": (
        [
            START,
            TextDelta("a"),
            UsageReported(1, None, None, 3, None, 4),
            ResponseFinished("stop"),
            ResponseFinished("length", choice=1),
            StreamEnded(clean=True),
        ],
        {"include_usage":True,"usage_with_stop":True},
        [
            r'{HEAD"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":1,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            (r'{HEAD"choices":[{"index":1,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":1,'
             r'"completion_tokens":3,"total_tokens":4}}'),
            r"[DONE]",
        ],
        {},
        [],
    ),
    "stop held, no usage": (
        [START, TextDelta("a"), *finish()],
        {"usage_with_stop":True},
        [
            r'{HEAD"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}',
            r'{HEAD"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
            r"[DONE]",
        ],
        {},
        [],
    ),
    "error": (
        [
            START,
            ProviderFailed("server", "broken", "x", "y", 500, raw={"message":"broken", "own":1}, vendor="openai"),
            StreamEnded(clean=False),
        ],
        {},
        [
            r'{"error":{"message":"broken","own":1}}',
        ],
        {},
        [],
    ),
    "foreign fields": (
        [
            ResponseStarted(None, None, None, vendor="google", extras={"own":1}),
            ToolCallStarted(0, "c", "f", extras={"own":1}),
            ToolCallFinished(0, "c", "f", "{}"),
            *finish("tool_calls"),
        ],
        {},
        [
            r'{MADE"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}',
            (r'{MADE"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function",'
             r'"function":{"name":"f","arguments":""}}]},"finish_reason":null}]}'),
            r'{MADE"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
            r"[DONE]",
        ],
        {"response_fields": 1, "metadata": 1},
        [],
    ),
}  # fmt: skip

ANTHROPIC: dict[str, Any] = {
    "nothing but an end": (
        [*finish()],
        {},
        [
            (r'{"type":"message_start","message":{"id":"msg_made","type":"message","role":"assistant","model":"",'
             r'STOPS"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS,REST}}}'),
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,'
             r'"container":null},"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        {"usage_unknown": 1},
        [],
    ),
    "text and citations": (
        [
            ASTART,
            TextDelta("a"),
            Aside(A, "citation", "citations_delta", {"n":1}),
            Aside(A, "citation", "citations_delta", {"n":2}, block=1),
            TextDelta("b", block=1),
            Aside(A, "citation", "citations_delta", {"n":3}, block=2),
            UsageReported(3, 1, None, 5, None, 8),
            *finish("stop", stop_sequence="x"),
        ],
        {},
        [
            (r'{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
             r'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'),
            r'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
            r'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}',
            r'{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"n":1}}}',
            r'{"type":"content_block_stop","index":0}',
            r'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
            r'{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"n":2}}}',
            r'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}',
            r'{"type":"content_block_stop","index":1}',
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":"x","stop_details":null,'
             r'"container":null},"usage":{"input_tokens":2,"output_tokens":5,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        {"citation": 1},
        [],
    ),
    "beside": (
        [
            ASTART,
            Aside(A, "metadata", "message_delta.own", {"a":1}),
            Aside(A, "metadata", "beside_delta.own", 2),
            Aside(A, "metadata", "beside_delta.type", 2),
            Aside(A, "metadata", "beside_delta.delta", 2),
            Aside(A, "metadata", "beside_delta.usage", 2),
            Aside(A, "unknown_event", "event.odd", {"type":"odd", "x":1}),
            Aside(A, "unknown_event", "event.odd", {"type":"other"}),
            Aside(A, "unknown_event", "a b", {"type":"a b"}),
            Aside(A, "unknown_event", "event.odd", ["odd"]),
            Aside("x", "metadata", "odd", {}),
            *finish(),
        ],
        {},
        [
            (r'{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
             r'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'),
            r'{"type":"odd","x":1}',
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,'
             r'"container":null,"own":{"a":1}},"usage":{"input_tokens":0,"output_tokens":0,'
             r'"cache_creation_input_tokens":null,"cache_read_input_tokens":null,NULLS},"own":2}'),
            r'{"type":"message_stop"}',
        ],
        {"unknown_event": 3, "metadata": 1, "usage_unknown": 1},
        [],
    ),
    "raw blocks": (
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
        {},
        [
            (r'{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
             r'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'),
            r'{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s"}}',
            r'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}',
            r'{"type":"content_block_stop","index":0}',
            r'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
            r'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"t"}}',
            r'{"type":"content_block_stop","index":1}',
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,'
             r'"container":null},"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        {"server_tool": 5, "usage_unknown": 1},
        [],
    ),
    "sealed": (
        [
            ASTART,
            ReasoningDelta("r"),
            ReasoningSignature("s", A),
            ReasoningOpaque("o", A, block=1),
            ReasoningOpaque("p", A, block=2),
            *finish(),
        ],
        {},
        [
            (r'{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
             r'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'),
            (r'{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"",'
             r'"signature":""}}'),
            r'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"r"}}',
            r'{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}',
            r'{"type":"content_block_stop","index":0}',
            r'{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"o"}}',
            r'{"type":"content_block_stop","index":1}',
            r'{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"p"}}',
            r'{"type":"content_block_stop","index":2}',
            (r'{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,'
             r'"container":null},"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        {"usage_unknown": 1},
        [],
    ),
    "calls": (
        [
            ASTART,
            ToolCallStarted(0, "c0", "f", extras={"own":1}),
            ToolCallArguments(0, "{}"),
            ToolCallFinished(0, "c0", "f", "{}"),
            *finish("tool_calls"),
        ],
        {},
        [
            (r'{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
             r'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'),
            (r'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c0","name":"f",'
             r'"input":{},"caller":{"type":"direct"},"own":1}}'),
            r'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}',
            r'{"type":"content_block_stop","index":0}',
            (r'{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,'
             r'"container":null},"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        {"usage_unknown": 1},
        [],
    ),
    "foreign": (
        [
            ResponseStarted(None, None, vendor="google", extras={"own":1}),
            ToolCallStarted(0, "c0", "f", extras={"own":1}),
            ToolCallFinished(0, "c0", "f", "{}"),
            *finish("content_filter"),
        ],
        {"model":"mine"},
        [
            (r'{"type":"message_start","message":{"id":"msg_made","type":"message","role":"assistant",'
             r'"model":"mine",STOPS"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS,REST}}}'),
            (r'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c0","name":"f",'
             r'"input":{},"caller":{"type":"direct"}}}'),
            r'{"type":"content_block_stop","index":0}',
            (r'{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":null,'
             r'"container":null},"usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":null,'
             r'"cache_read_input_tokens":null,NULLS}}'),
            r'{"type":"message_stop"}',
        ],
        {"response_fields": 1, "metadata": 1, "usage_unknown": 1, "stop_reason": 1},
        [],
    ),
    "error": (
        [
            ASTART,
            Aside(A, "metadata", "message_delta.own", 1),
            Aside(A, "metadata", "beside_delta.own", 1),
            ProviderFailed("rate_limit", "slow"),
            StreamEnded(clean=False),
        ],
        {},
        [
            (r'{"type":"message_start","message":{"id":"id","type":"message","role":"assistant","model":"m",'
             r'STOPS"usage":{"input_tokens":2,"output_tokens":1,"cache_read_input_tokens":1,'
             r'"cache_creation_input_tokens":null,NULLS,REST},"own":1}}'),
            r'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
        ],
        {"metadata": 2},
        [],
    ),
    "error first": (
        [ProviderFailed("rate_limit","slow"), StreamEnded(clean=False)],
        {},
        [
            r'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
        ],
        {},
        [],
    ),
}  # fmt: skip


def lines(text: str) -> list[str]:
    """The payload of each event; an event's name is the type of its payload."""
    for short, long in SHORT.items():
        text = text.replace(long, short)
    found = []
    for event in text.split("\n\n")[:-1]:
        name, _, data = event.rpartition("data: ")
        assert not name or data.startswith(f'{{"type":"{name[7:-1]}"')
        found.append(data)
    return found


@pytest.mark.parametrize("name", CHAT)
def test_chat(name):
    events, profile, written, losses, withheld = CHAT[name]
    text, report = encoded("openai-chat", events, profile)
    assert lines(text) == written
    assert report.losses == losses
    assert [(one.id, one.name, one.arguments) for one in report.withheld] == withheld


@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropic(name):
    events, profile, written, losses, _ = ANTHROPIC[name]
    text, report = encoded("anthropic", events, profile)
    assert lines(text) == written
    assert report.losses == losses
