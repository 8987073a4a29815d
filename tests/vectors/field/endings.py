"""Cases 305 to 314: how an answer ends that was refused, whose call is open, or in which others speak than the model."""

from __future__ import annotations

from typing import Any

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import gemini as gm
from tests.vectors.field.case import Case, Output, Text, Use
from tests.vectors.field.shapes import anthropic, bedrock, gemini, written
from tests.vectors.vector import Call

A, USE = Call("f", '{"x":1}', id="a"), Use("a", "f", '{"x":1}')
DETAILS = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
WHY = Text("Not this.")


def refused(details: dict[str, Any] | None = None) -> dict[str, Any]:
    """The end of a message of Claude's that a classifier stopped."""
    end = am.finish("refusal")
    return {**end, "delta": {**end["delta"], "stop_details": details}}


def counted(*losses: str) -> dict[str, int]:
    return {"stop_reason": 1, **dict.fromkeys(losses, 1)}


CASES = (
    Case(
        number=305,
        refs="aaif-goose/goose#9724; NousResearch/hermes-agent#108682; tetsuo-ai/agenc-core#2402",
        cause="a classifier ends the answer: before any text, inside of it, or behind a whole call",
        does=(
            "No client sees a natural end, and none gets a call that it would run. Why Claude refused is a refusal in the "
            "dialects that have one, and text in the others."
        ),
        forms=(
            anthropic(
                am.START,
                refused(DETAILS),
                am.STOP,
                name="nothing but the reason",
                stop="refusal",
                to={
                    "openai-responses": written(
                        WHY, stop="content_filter", losses=counted("metadata", "usage_unknown")
                    ),
                    "openai-chat": written(WHY, stop="content_filter", losses=counted("metadata")),
                    "ollama": written(WHY, stop="length", losses=counted("metadata", "refusal_as_text")),
                    "ai-sdk": written(WHY, stop="content-filter", losses=counted("metadata", "refusal_as_text")),
                    "anthropic": Output(stop="refusal", holds=(b'"explanation":"Not this."',)),
                },
            ),
            anthropic(
                am.START,
                *am.block(0, "One"),
                *am.tool(1, "a", "f", '{"x":1}'),
                refused(DETAILS),
                am.STOP,
                name="behind text and a whole call",
                text="One",
                calls=(A,),
                stop="refusal",
                to={
                    "openai-responses": written(
                        Text("One"), USE, WHY, stop="content_filter", losses=counted("metadata", "usage_unknown")
                    ),
                    "openai-chat": written(
                        Text("OneNot this."), USE, stop="content_filter", losses=counted("block_order", "metadata")
                    ),
                    "gemini": written(
                        Text("One"), USE, WHY, stop="SAFETY", losses=counted("metadata", "refusal_as_text")
                    ),
                    "bedrock": written(
                        Text("One"), USE, WHY, stop="content_filtered", losses=counted("metadata", "refusal_as_text")
                    ),
                    "cohere": written(
                        Text("One"),
                        USE,
                        WHY,
                        stop="MAX_TOKENS",
                        losses=counted("block_order", "metadata", "refusal_as_text"),
                    ),
                    "gemini-interactions": written(
                        Text("One"), USE, WHY, stop="incomplete", losses=counted("metadata", "refusal_as_text")
                    ),
                    "ag-ui": Output(
                        said=(Text("One"), USE, WHY),
                        stop="refusal",
                        losses={"metadata": 1, "refusal_as_text": 1},
                        holds=(b"Error: not run, since the answer was refused",),
                    ),
                    "ai-sdk": Output(
                        said=(Text("One"), USE, WHY),
                        stop="content-filter",
                        losses=counted("call_withheld", "metadata", "refusal_as_text"),
                        withheld=('{"x":1}',),
                        lacks=(b"tool-input-available",),
                    ),
                },
            ),
            anthropic(
                am.START,
                *am.block(0, "One"),
                refused(),
                am.STOP,
                name="without details",
                text="One",
                stop="refusal",
                to={
                    "openai-responses": written(Text("One"), stop="content_filter", losses=counted("usage_unknown")),
                    "openai-chat": written(Text("One"), stop="content_filter", losses=counted()),
                    "mistral": written(Text("One"), stop="length", losses=counted()),
                },
            ),
            anthropic(
                am.START,
                am.begin(0, "tool_use", id="a", name="f", input={}),
                refused(),
                am.STOP,
                name="before the arguments of a call",
                calls=(Call("f", "", "truncated", id="a"),),
                stop="refusal",
                repairs={"block_unclosed": 1},
                to={
                    "openai-chat": written(stop="content_filter", losses=counted("call_withheld"), withheld=("",)),
                    "anthropic": Output(stop="refusal", losses={"call_withheld": 1}, withheld=("",)),
                },
            ),
            bedrock(
                br.START,
                *br.tool(0, "a", "f", '{"x":1}'),
                br.finish("guardrail_intervened"),
                br.counts(),
                name="a guardrail of Bedrock's",
                calls=(A,),
                stop="content_filter",
                to={
                    "openai-responses": written(USE, stop="content_filter", losses={"metadata": 1, "usage_unknown": 1}),
                    "ollama": written(Use(None, "f", '{"x":1}'), stop="length", losses=counted("call_id", "metadata")),
                    "ai-sdk": written(
                        USE, stop="content-filter", losses={"call_withheld": 1, "metadata": 1}, withheld=('{"x":1}',)
                    ),
                },
            ),
            gemini(
                gm.chunk(gm.text("One")),
                gm.chunk(finish="PROHIBITED_CONTENT"),
                name="a filter of Google's",
                text="One",
                stop="content_filter",
                to={
                    "openai-responses": written(Text("One"), stop="content_filter"),
                    "cohere": written(Text("One"), stop="MAX_TOKENS", losses=counted()),
                    "mistral": written(Text("One"), stop="length", losses=counted()),
                },
            ),
        ),
    ),
)
