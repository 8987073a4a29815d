"""Cases 85 to 93: reasoning, its signatures and its many names."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors import anthropic as am
from tests.vectors import gemini as gm
from tests.vectors import ollama as ol
from tests.vectors.field.case import Block, Case, Form, Text, Thinking, Use
from tests.vectors.field.shapes import anthropic, calling, chat, failed, gemini, message, messages, ollama_turn, written
from tests.vectors.openai_chat import DONE, STOP, call, calls, chunk, said
from tests.vectors.vector import Call, named

KNOWN = {"input_tokens": 9, "output_tokens": 4}
A = Call("f", '{"x":1}', id="a")
LONG = "c2ln" * 60
SIGNATURE = (
    b'"delta":{"type":"thinking_delta","thinking":"hm"}}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"signature_delta","signature":"c2ln"}}\n\nevent: content_block_stop'
)
SIGNED = {"reasoning_signature": 1}


def thinking(index: int, text: str, *signatures: str) -> tuple[Any, ...]:
    return (
        am.begin(index, "thinking", thinking="", signature=""),
        am.delta(index, "thinking_delta", thinking=text),
        *(am.delta(index, "signature_delta", signature=signature) for signature in signatures),
        am.stop(index),
    )


def named_so(name: str, delta: dict[str, Any], **expected: Any) -> Form:
    """Reasoning under one of its names in Chat."""
    return chat(
        chunk(delta), said("Hi"), STOP, DONE, name=name, text="Hi", reasoning="hm", **expected,
        to={
            "anthropic": messages(Thinking("hm"), Text("Hi")),
            "ollama": written(Thinking("hm"), Text("Hi")),
            "openai-chat": written(Thinking("hm"), Text("Hi"), lacks=(b'"reasoning":', b"reasoning_details")),
        },
    )  # fmt: skip


CASES = (
    Case(
        number=85, refs="hebo-gateway#131; bitrouter#592; imp#1555; ccs#415",
        cause="nothing is wrong in the stream: a thinking block ends with a signature. Other software loses the signature",
        does="streamkit writes the signature before the end of the block, or in another place that the client's dialect has for signatures. If the dialect has no such place, streamkit counts a loss.",
        forms=(
            message(
                *thinking(0, "hm", "c2ln"), *am.tool(1, "a", "f", '{"x":1}'), reason="tool_use", reasoning="hm", calls=(A,), stop="tool_calls",
                to={
                    "anthropic": messages(Thinking("hm", "c2ln"), Use("a", "f", '{"x":1}'), stop="tool_use", usage=KNOWN),
                    "openai-chat": written(Thinking("hm", "c2ln"), Use("a", "f", '{"x":1}'), stop="tool_calls", holds=(b'"format":"anthropic-claude-v1"',)),
                    "ollama": written(Thinking("hm"), Use(None, "f", '{"x":1}'), stop="stop", losses=SIGNED | {"call_id": 1}),
                },
            ),
        ),
        beside="tests/dialects/test_signed_reasoning.py::test_a_signature_comes_back_with_the_very_text_that_it_proves",
    ),
    Case(
        number=86, refs="maximhq/bifrost#5638, #5560",
        cause="nothing is wrong in the stream: a thinking block has a text and a signature. Other software writes the signature as thinking",
        does="streamkit writes the signature as one `signature_delta`, directly before the end of the block. streamkit never writes the signature as thinking.",
        forms=(
            message(
                *thinking(0, "hm", "c2ln"), *am.block(1, "Hi"), name="with a signature", text="Hi", reasoning="hm",
                to={
                    "anthropic": messages(
                        Thinking("hm", "c2ln"), Text("Hi"), usage=KNOWN,
                        holds=(SIGNATURE,),
                    ),
                    "ollama": written(Thinking("hm"), Text("Hi"), losses=SIGNED),
                },
            ),
            message(
                *thinking(0, "hm", ""), *am.block(1, "Hi"), name="with an empty one", text="Hi", reasoning="hm",
                to={"anthropic": messages(Thinking("hm"), Text("Hi"), usage=KNOWN, lacks=(b"signature_delta",)), "openai-chat": written(Thinking("hm"), Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=87, refs="CLIProxyAPI#570; Antigravity-Manager#608",
        cause="reasoning has no signature, or the signature of another vendor",
        does="streamkit invents no signature. streamkit seals another vendor's signature together with the name of the vendor, so that only this vendor gets the signature back.",
        forms=(
            chat(
                chunk({"reasoning_content": "hm"}), said("Hi"), STOP, DONE, name="unsigned", text="Hi", reasoning="hm",
                to={"anthropic": messages(Thinking("hm"), Text("Hi"), lacks=(b"signature_delta",))},
            ),
            chat(
                chunk({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "google-gemini-v1"}]}), said("Hi"), STOP, DONE, name="another vendor's",
                text="Hi", reasoning="hm", to={"anthropic": messages(Thinking("hm", seal("reasoning", "google", "c2ln")), Text("Hi"), lacks=(b'"c2ln"',))},
            ),
        ),
        beside="tests/requests/test_anthropic.py::test_a_request",
    ),
    Case(
        number=88, refs="openclaw#92201",
        cause="a long signature is split between reads or deltas, or the input ends inside the signature",
        does="streamkit joins the parts byte for byte. streamkit does not use an incomplete frame.",
        forms=(
            message(
                *thinking(0, "hm", LONG[:37], LONG[37:]), *am.block(1, "Hi"), name="two deltas", text="Hi", reasoning="hm",
                to={"anthropic": messages(Thinking("hm", LONG), Text("Hi"), usage=KNOWN), "openai-chat": written(Thinking("hm", LONG), Text("Hi"))},
            ),
            anthropic(
                named(am.START, *thinking(0, "hm", LONG)[:-1])[:-20], name="broken off", reasoning="hm", stop=None,
                to={
                    "anthropic": failed(Thinking("hm"), error="stream truncated: the stream ended without a stop reason (cut inside a frame)", lacks=(b"c2ln",)),
                    "openai-chat": failed(Thinking("hm"), error="stream truncated: the stream ended without a stop reason (cut inside a frame)"),
                },
            ),
        ),
    ),
    Case(
        number=89, refs="CLIProxyAPI#5129; OmniRoute#9221, #9273; 9router#2193; Antigravity#139",
        cause="a call has a thought signature (Gemini), which other software loses",
        does="The signature stays with its call. If the client's dialect has no signatures on calls, streamkit writes the sealed signature before the call. A text with a signature stays visible text.",
        forms=(
            calling(
                calls({**call(0, "a", "f", '{"x":1}'), "extra_content": {"google": {"thought_signature": "c2ln"}}}),
                calls=(A,),
                to={
                    "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", holds=(b'"thought_signature":"c2ln"',)),
                    "anthropic": messages(Block("redacted_thinking"), Use("a", "f", '{"x":1}'), stop="tool_use", holds=(seal("call", "google", "c2ln").encode(),)),
                    "gemini": written(Use("a", "f", '{"x":1}'), stop="STOP", holds=(b'"id":"a"},"thoughtSignature":"c2ln"',)),
                },
            ),
            gemini(
                gm.chunk(gm.text("Hi", thoughtSignature="bWFy")), gm.chunk(gm.call("f", {"x": 1}, id="a", signature="c2ln")), gm.STOP, name="Gemini",
                text="Hi", calls=(A,), stop="tool_calls",
                to={
                    "gemini": written(
                        Text("Hi"), Use("a", "f", '{"x":1}'), stop="STOP",
                        holds=(b'"text":"Hi","thoughtSignature":"bWFy"', b'"id":"a"},"thoughtSignature":"c2ln"'), lacks=(b'"thought"',),
                    ),
                    "openai-chat": written(
                        Text("Hi"), Use("a", "f", '{"x":1}'), stop="tool_calls", holds=(b'"thought_signature":"bWFy"', b'"thought_signature":"c2ln"'), lacks=(b"reasoning_content",),
                    ),
                },
            ),
        ),
    ),
    Case(
        number=90, refs="OmniRoute#731",
        cause="nothing is wrong in the stream: the text and the call have no signature. Other software adds signatures everywhere",
        does="streamkit writes only what it received. streamkit adds no thinking and no signature.",
        forms=(
            calling(
                said("Hi"), calls(call(0, "a", "f", '{"x":1}')), text="Hi", calls=(A,),
                to={"anthropic": messages(Text("Hi"), Use("a", "f", '{"x":1}'), stop="tool_use", lacks=(b"signature", b"thinking"))},
            ),
        ),
    ),
    Case(
        number=91, refs="zed#46794; litellm#20246, #24019, #14137; koog#2148; bitrouter#448; fastllm#61; Fastllm-proxy#23",
        cause="each server uses a different member for the reasoning: `reasoning`, `reasoning_content`, `reasoning_details` or `thinking`",
        does="streamkit reads all these members as one kind of event. If two members have the same text, the text counts once. The client's profile chooses the member that streamkit writes.",
        forms=(
            named_so("reasoning_content", {"reasoning_content": "hm"}),
            named_so("reasoning", {"reasoning": "hm"}),
            named_so("both", {"reasoning": "hm", "reasoning_content": "hm"}),
            named_so("reasoning_details", {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
            named_so("a list of parts", {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, repairs={"content_as_list": 1}),
            ollama_turn(ol.line(thinking="hm"), ol.line("Hi"), name="thinking", text="Hi", reasoning="hm", to={"anthropic": messages(Thinking("hm"), Text("Hi"))}),
        ),
    ),
    Case(
        number=92, refs="BerriAI/litellm#38907, #29216",
        cause="a delta or a call has unknown members",
        does="For clients of the same dialect, streamkit writes these members again. For other clients, streamkit drops these members and counts a loss.",
        forms=(
            chat(
                chunk({"content": "Hi", "x_score": 0.5}), STOP, DONE, text="Hi",
                to={"openai-chat": written(Text("Hi"), holds=(b'"delta":{"x_score":0.5}',)), "anthropic": messages(Text("Hi"), losses={"metadata": 1})},
            ),
            message(
                am.begin(0, "tool_use", id="a", name="f", input={}, x_caller="agent"), am.delta(0, "input_json_delta", partial_json='{"x":1}'), am.stop(0), reason="tool_use", name="of a call",
                calls=(A,), stop="tool_calls",
                to={
                    "anthropic": messages(Use("a", "f", '{"x":1}'), stop="tool_use", usage=KNOWN, holds=(b'"x_caller":"agent"',)),
                    "openai-chat": written(Use("a", "f", '{"x":1}'), stop="tool_calls", losses={"metadata": 1}),
                },
            ),
        ),
    ),
    Case(
        number=93, refs="vllm#32997, #32921, #42875",
        cause="the last part of the reasoning arrives together with the end of a call",
        does="streamkit reads this part as reasoning, and does not add it to the text.",
        forms=(
            chat(
                chunk({"reasoning": "h"}), calls(call(0, "a", "f", '{"x":1}')), chunk({"reasoning": "m"}, "tool_calls"), DONE,
                reasoning="hm", calls=(A,), stop="tool_calls",
                to={
                    "anthropic": messages(Thinking("h"), Use("a", "f", '{"x":1}'), Thinking("m"), stop="tool_use"),
                    "openai-chat": written(Thinking("hm"), Use("a", "f", '{"x":1}'), stop="tool_calls", losses={"block_order": 1}),
                },
            ),
        ),
    ),
)  # fmt: skip
