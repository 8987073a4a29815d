"""Small Responses streams for the checker: one at least for every rule, and streams that break none."""

from __future__ import annotations

from typing import Any

from tests.vectors.openai_responses import (
    ANNOTATED,
    CUSTOM,
    FAILED,
    FLAT,
    GOING,
    HI,
    NESTED,
    REFUSED,
    RESPONSE,
    SEARCHED,
    START,
    added,
    call,
    cut_off,
    done,
    event,
    last,
    message,
    numbered,
    part,
    spoken,
    thought,
)
from tests.vectors.vector import named, sse


def turn(*payloads: Any) -> bytes:
    """A stream with its start, and an end that repeats what was done."""
    return numbered(
        START, *payloads, last("completed", *(one for one in payloads if one["type"].endswith("item.done")))
    )


def without(payload: Any, *names: str) -> Any:
    return {name: value for name, value in payload.items() if name not in names}


CALL = call(0, "c1", "f", '{"x"', ":1}")
END = last("completed", HI[-1])
DATA = b"event: response.completed\ndata: %b\n\n"

# fmt: off
RESPONSES: list[tuple[str, bytes, str]] = [
    ("text", turn(GOING, *HI), ""),
    ("reasoning, text and a call", turn(*thought(0, "a", "b"), *message(1, "Hi"), *call(2, "c1", "f", "{}")), ""),
    ("raw reasoning", turn(*thought(0, "a", kind="raw"), *message(1, "Hi")), ""),
    ("a refusal", turn(*REFUSED), ""),
    ("a custom call", turn(*CUSTOM), ""),
    ("annotations and log probabilities", turn(*ANNOTATED), ""),
    ("a tool of the server's", turn(*SEARCHED), ""),
    ("nothing but done events", turn(added(0, "message", content=[]), done(0, "message", content=[part("Hi")])), ""),
    ("cut by the length", numbered(START, *HI, cut_off("max_output_tokens", HI[-1])), ""),
    ("an item that is cut by the length", numbered(START, added(0, "message", content=[]), cut_off("max_output_tokens")), ""),
    ("an event, an item and a part of the future", turn({"type": "response.novelty"}, added(0, "novelty"), done(0, "novelty"), added(1, "message", content=[]), event("content_part.added", 1, "i1", content_index=0, part={"type": "novelty"}), done(1, "message", content=[])), ""),
    ("an error", numbered(START, *HI[:4], NESTED), ""),
    ("an error, then the failure", numbered(START, *HI[:4], {**NESTED, **FLAT}, FAILED), ""),
    ("a failure", numbered(START, FAILED), ""),
    ("an error at once", numbered(NESTED, FAILED), ""),
    ("a byte that is no UTF-8", numbered(START) + b'data: {"x":"\xff"}\n\n', "not_utf8 truncated"),
    ("no JSON", numbered(START) + DATA % b'{"x":', "not_json truncated"),
    ("no object", numbered(START) + DATA % b"[]", "not_object truncated"),
    ("no last event", numbered(START, *HI), "truncated"),
    ("nothing but [DONE]", b"data: [DONE]\n\n", "not_json truncated"),
    ("the last event cut off", turn(*HI)[:-1], "unterminated"),
    ("no event lines", sse(*({**one, "sequence_number": number} for number, one in enumerate((START, END)))), "event_line* event_line* output"),
    ("another event line", turn(*HI).replace(b"event: response.completed", b"event: done"), "event"),
    ("no type", numbered(START) + b'event: x\ndata: {"sequence_number":1}\n\n', "event truncated"),
    ("a bare error", numbered(START) + b'data: {"error":{"message":"no"}}\n\n', "event"),
    ("no sequence_number", named(START, last()), "sequence* sequence*"),
    ("a sequence from 4", named({**START, "sequence_number": 4}, {**last(), "sequence_number": 5}), "sequence*"),
    ("no start", numbered(*HI, END), "created"),
    ("a second start", turn(START, *HI), "created"),
    ("no response", turn({"type": "response.in_progress"}, *HI), "response"),
    ("a response without its model", numbered({**START, "response": without(RESPONSE, "model")}, last()), "response"),
    ("another status", numbered(START, last("incomplete", kind="response.completed")), "response"),
    ("output null", numbered(START, *HI, last(output=None)), "response*"),
    ("output that is an object", numbered(START, *HI, last(output={})), "response"),
    ("another id", numbered(START, *HI, last("completed", HI[-1], id="resp_8")), "identity"),
    ("usage null", numbered(START, last(usage=None)), ""),
    ("usage that is a number", numbered(START, last(usage=3)), "usage"),
    ("a count that is a text", numbered(START, last(usage={"input_tokens": 1, "output_tokens": "2", "total_tokens": 3})), "usage"),
    ("a gap between items", turn(*message(2, "Hi")), "output_index*"),
    ("an index used again", turn(*HI, HI[0]), "output_index unfinished"),
    ("no index", numbered(START, without(HI[0], "output_index"), END), "output_index unfinished output"),
    ("item null", numbered(START, {**HI[0], "item": None}, last()), "item unfinished"),
    ("a message without id", turn({**HI[0], "item": without(HI[0]["item"], "id")}, {**HI[-1], "item": without(HI[-1]["item"], "id")}), "item"),
    ("another type when it is done", turn(HI[0], done(0, "reasoning", summary=[])), "item"),
    ("done and never added", turn(HI[-1]), "item_order output"),
    ("a delta behind the end of its item", turn(*HI, HI[2]), "item_order"),
    ("a delta before its item", turn(HI[2], *HI), "item_order"),
    ("two items at once", turn(HI[0], *message(1, "Hi"), *HI[1:]), "interleaved*"),
    ("another item_id", turn(*HI[:2], {**HI[2], "item_id": "i9"}, *HI[3:]), "item_id"),
    ("text without its part", turn(HI[0], HI[2], HI[-1]), "part_order"),
    ("parts that leave a place out", turn(HI[0], *spoken(0, "Hi", place=1), done(0, "message", content=[])), "part_order"),
    ("an item whose content is no list", turn(*HI[:-1], {**HI[-1], "item": {**HI[-1]["item"], "content": 1}}), "part"),
    ("a part without a type", turn(HI[0], {**HI[1], "part": {}}, HI[-1]), "part"),
    ("a part that ends without a type", turn(HI[0], {**HI[1], "type": "response.content_part.done", "part": None}, HI[-1]), "part"),
    ("a part of another item", turn(HI[0], {**HI[1], "part": part("", "reasoning_text")}, HI[-1]), "part"),
    ("a delta that is a number", turn(*HI[:2], {**HI[2], "delta": 5}, *HI[2:]), "delta"),
    ("a delta of another item", turn(CALL[0], event("output_text.delta", content_index=0, delta="a"), *CALL[1:]), "delta"),
    ("a delta of another part", turn(*HI[:2], event("refusal.delta", content_index=0, delta="Hello"), *HI[4:]), "delta"),
    ("input of another call", turn(CALL[0], event("custom_tool_call_input.delta", delta='{"x":1}'), *CALL[3:]), "delta"),
    ("another text at the end", turn(*HI[:4], {**HI[4], "text": "Hi"}, *HI[5:]), "whole"),
    ("no text at the end", turn(*HI[:4], without(HI[4], "text"), *HI[5:]), "whole"),
    ("another text when the item is done", turn(*HI[:-1], done(0, "message", content=[part("Hi")])), "whole"),
    ("other arguments at the end", turn(*CALL[:-1], done(0, "function_call", call_id="c1", name="f", arguments="{}")), "whole"),
    ("a call without call_id", turn(*call(0, "", "f", "{}")), "call call"),
    ("a call without a name", turn(*call(0, "c1", " ", "{}")), "call call"),
    ("arguments as an object", turn(added(0, "function_call", call_id="c1", name="f", arguments=""), done(0, "function_call", call_id="c1", name="f", arguments={})), "call whole"),
    ("one call_id twice", turn(*call(0, "c1", "f", "{}"), *call(1, "c1", "f", "{}")), "call_id"),
    ("arguments that are no JSON", turn(*call(0, "c1", "f", "{x}")), "arguments_unparsable*"),
    ("arguments that are a list", turn(*call(0, "c1", "f", "[]")), "arguments_unparsable*"),
    ("arguments that are cut, and say so", turn(*CALL[:2], done(0, "function_call", status="incomplete", call_id="c1", name="f", arguments='{"x"')), ""),
    ("an output that is empty", numbered(START, *HI, last()), "output"),
    ("an output with more than was done", numbered(START, END), "output"),
    ("an item that is not done", numbered(START, *HI[:-1], last()), "unfinished"),
    ("incomplete without a reason", numbered(START, last("incomplete")), "incomplete*"),
    ("incomplete with a blank reason", numbered(START, last("incomplete", incomplete_details={"reason": ""})), "incomplete"),
    ("a flat error alone", numbered(START, FLAT), "error*"),
    ("an error without its message", numbered(START, {"type": "error", "error": {}}), "error"),
    ("a failure without its error", numbered(START, last("failed")), "error"),
    ("an event behind the end", turn(*HI) + numbered(GOING), "after_end"),
    ("[DONE] behind the end", turn(*HI) + b"data: [DONE]\n\n", "after_end*"),
    ("an event behind an error", numbered(START, NESTED, GOING), "after_error"),
    ("[DONE] behind an error", numbered(START, NESTED) + b"data: [DONE]\n\n", "after_error*"),
]
# fmt: on
