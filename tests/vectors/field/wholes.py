"""Cases 137 to 150: the whole answer said again, and what of a Responses stream names its end and its calls."""

from __future__ import annotations

from attrs import evolve

from tests.vectors import ag_ui as ag
from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini_interactions as gi
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Case, Form, Output, Text, Thinking, Use
from tests.vectors.field.shapes import (
    bedrock,
    chat,
    cohere,
    form,
    message,
    messages,
    ollama,
    responses,
    responses_turn,
    written,
)
from tests.vectors.openai_chat import DONE, ROLE, call, calls, chunk, said
from tests.vectors.vector import Call

A = Call("f", '{"x":1}', id="a")
B = Call("g", '{"y":2}', id="b")
BLANK, WITHHELD = (
    Call("f", "", "truncated", id="a"),
    written(stop="length", losses={"call_withheld": 1}, withheld=("",)),
)
HI = rs.message(0, "Hel", "lo")


def done(*output: object, status: str = "completed", **fields: object) -> dict[str, object]:
    """The event that some servers end with."""
    return rs.last(status, *output, kind="response.done", **fields)


def arguments(fragment: str, **where: object) -> dict[str, object]:
    return {"type": "response.function_call_arguments.delta", "delta": fragment, **where}


def interleaved(first: dict[str, object], second: dict[str, object]) -> tuple[object, ...]:
    """Two calls whose fragments come in turns; nothing but ``first`` and ``second`` tells of which."""
    return (
        rs.added(0, "function_call", call_id="a", name="f", arguments=""), rs.added(1, "function_call", call_id="b", name="g", arguments=""),
        arguments('{"x":', **first), arguments('{"y":', **second), arguments("1}", **first), arguments("2}", **second),
        rs.done(0, "function_call", call_id="a", name="f", arguments=A.arguments), rs.done(1, "function_call", call_id="b", name="g", arguments=B.arguments),
    )  # fmt: skip


TWO = {"anthropic": messages(Use("a", "f", A.arguments), Use("b", "g", B.arguments), stop="tool_use", usage=None)}
CUT_ITEM = rs.done(0, "function_call", call_id="a", name="f", arguments="", status="incomplete")

LONG = "It is a long answer, and each of its messages begins with all that the ones before it had said. "


def co_starts(text: str, *deltas: str) -> tuple[object, ...]:
    """A block of Cohere's that starts with text."""
    return (
        co.event("content-start", 0, content={"type": "text", "text": text}),
        *(co.delta(0, each) for each in deltas),
        co.end(0),
    )


def gi_starts(text: str, *deltas: str) -> tuple[object, ...]:
    """A step of an interaction that starts with text."""
    return (gi.begin(0, "model_output", content=[{"type": "text", "text": text}]), *gi.said(0, *deltas), gi.end(0))


def interaction(name: str, *payloads: object, to: dict[str, Output], **expected: object) -> Form:
    return form(
        "gemini-interactions",
        gi.named(gi.START, *payloads, gi.event("interaction.completed", interaction=gi.interaction("completed"))),
        name,
        to,
        expected,
    )


HELLO_CHAT = {"openai-chat": written(Text("Hello"))}


def delta(text: str, kind: str = "output_text", **where: object) -> dict[str, object]:
    return rs.event(f"{kind}.delta", **{"content_index": 0, "delta": text, **where})


def snapshots(*texts: str, fragment: int = 30) -> tuple[object, ...]:
    """Messages of which each begins anew with all that was said before it, as Bedrock's Mantle writes a long answer."""
    return tuple(
        event
        for index, text in enumerate(texts)
        for event in rs.message(index, *(text[begin : begin + fragment] for begin in range(0, len(text), fragment)))
    )


def renamed(found: dict[str, object], name: str) -> dict[str, object]:
    """An item that is done, under another id."""
    return {**found, "item": {**found["item"], "id": name}}


HELLO = written(Text("Hello"))
OPENED = rs.added(0, "message", role="assistant", content=[])
PART = rs.event("content_part.added", content_index=0, part=rs.part(""))
TEXT_DONE, PART_DONE, ITEM_DONE = HI[4:]
THOUGHT = rs.added(0, "reasoning", summary=[])
THOUGHT_DONE = rs.done(0, "reasoning", summary=[], content=[rs.part("Hm.", "reasoning_text")])
NEW_IDS = {"openai-chat": HELLO, "anthropic": messages(Text("Hello"), usage=None)}


def ending(message: dict[str, object], *, finish: str = "stop", **beside: object) -> dict[str, object]:
    """A chunk with a whole message, and the stop reason."""
    found = {"role": "assistant", **message}
    return {
        "id": "chatcmpl-7",
        "object": "chat.completion.chunk",
        "model": "m-1",
        "choices": [{"index": 0, "message": found, "finish_reason": finish, **beside}],
    }


def completion(**message: object) -> dict[str, object]:
    """A whole answer in the place of the last chunk."""
    return {
        **ending(
            {"content": None, "refusal": None, **message},
            finish="tool_calls" if "tool_calls" in message else "stop",
            logprobs=None,
        ),
        "object": "chat.completion",
    }


def saying(text: str, **beside: object) -> dict[str, object]:
    return {
        "id": "chatcmpl-7",
        "object": "chat.completion.chunk",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, **beside}],
    }


def thinking(text: str) -> dict[str, object]:
    return chunk({"reasoning_content": text})


SAID = (ROLE, said("Hel"), said("lo"))
BOTH = (calls(call(0, "a", "f", '{"x":')), calls(call(0, None, None, "1}")), calls(call(1, "b", "g", '{"y":2}')))
WHOLE_CALLS = [call(0, "a", "f", A.arguments), call(1, "b", "g", B.arguments)]
USED = {"anthropic": messages(Use("a", "f", A.arguments), Use("b", "g", B.arguments), stop="tool_use")}

CASES = (
    Case(
        number=137, refs="abundantbeing/hermes-browser-extension#11; infiniflow/ragflow#15286; posit-dev/chatlas#435",
        cause="a Chat stream ends with the complete response in `choices[].message`. This member arrives in addition to the last delta or instead of it",
        does="streamkit takes only the missing text, reasoning and refusal from this member. If a delta repeats all earlier text, streamkit reads the delta as new text.",
        forms=(
            chat(*SAID, ending({"content": "Hello"}), DONE, name="instead", text="Hello", to={"openai-responses": written(Text("Hello"), stop="completed")}),
            chat(*SAID, ending({"content": "Hello"}, delta={}), DONE, name="beside a blank delta", text="Hello", to={"openai-responses": written(Text("Hello"), stop="completed")}),
            chat(*SAID[:2], ending({"content": "Hello"}, delta={"content": "lo"}), DONE, name="beside the last delta", text="Hello", to={"openai-responses": written(Text("Hello"), stop="completed")}),
            chat(*SAID[:2], ending({"content": "lo"}, delta={"content": "lo"}), DONE, name="which says what its delta does", text="Hello", to={"openai-responses": written(Text("Hello"), stop="completed")}),
            chat(*SAID, ending({"content": "Hello you"}), DONE, name="more than the deltas", text="Hello you", repairs={"fragments_missing": 1}, to={"openai-responses": written(Text("Hello you"), stop="completed")}),
            chat(*SAID, ending({"content": "Hullo"}), DONE, name="contradicts", text="Hello", repairs={"whole_differs": 1}, to={"openai-responses": written(Text("Hello"), stop="completed")}),
            chat(ROLE, ending({"content": "Hello"}, delta={}), DONE, name="alone", text="Hello", to={"openai-responses": written(Text("Hello"), stop="completed")}),
            chat(
                ROLE, thinking("H"), thinking("m."), said("Hi"), ending({"content": "Hi", "reasoning_content": "Hm.", "refusal": None}), DONE, name="reasoning", reasoning="Hm.", text="Hi",
                to={"anthropic": messages(Thinking("Hm."), Text("Hi"))},
            ),
            chat(ROLE, chunk({"refusal": "N"}), chunk({"refusal": "o."}), ending({"content": None, "refusal": "No."}), DONE, name="a refusal", refusal="No.", stop="refusal", to={"openai-chat": written(Text("No."))}),
            chat(saying("Hel"), saying("lo", finish_reason="stop"), DONE, name="fragments in messages", text="Hello", to={"openai-chat": written(Text("Hello"))}),
            chat(saying("ha"), saying("ha"), saying("ha", finish_reason="stop"), DONE, name="fragments that are alike", text="hahaha", to={"openai-chat": written(Text("hahaha"))}),
            chat(saying("Hel"), saying("lo"), saying("Hello", finish_reason="stop"), DONE, name="fragments in messages, and all of them", text="Hello", to={"openai-chat": written(Text("Hello"))}),
            chat(saying(LONG), saying(LONG + "More."), saying(LONG + "More. End.", finish_reason="stop"), DONE, name="each with all before it", text=LONG + "More. End.", repairs={"fragments_missing": 2}, to={"openai-chat": written(Text(LONG + "More. End."))}),
            chat(ROLE, said("ha"), said("ha"), said("haha"), chunk(finish="stop"), DONE, name="deltas are text", text="hahahaha", to={"openai-chat": written(Text("hahahaha"))}),
        ),
    ),
    Case(
        number=138, refs="servers with caches or filters, which append the response as one object",
        cause="a Chat stream contains a complete `chat.completion` object",
        does="streamkit reads this object like the `message` of case 137. The choices in the object are then finished.",
        forms=(
            chat(*SAID, completion(content="Hello"), DONE, name="behind all deltas", text="Hello", to={"anthropic": messages(Text("Hello"))}),
            chat(*SAID, chunk(finish="stop"), completion(content="Hello"), DONE, name="behind the stop reason", text="Hello", to={"anthropic": messages(Text("Hello"))}),
            chat(completion(content="Hello"), DONE, name="alone", text="Hello", to={"anthropic": messages(Text("Hello"))}),
        ),
    ),
    Case(
        number=139, refs="abetlen/llama-cpp-python; servers that end with the whole message",
        cause="at the end of a Chat stream, `message.tool_calls` repeats the calls of the deltas. The repeated calls have other indices or no ids",
        does="streamkit matches each repeated call by id, arguments, index or name, and adds only what is missing.",
        forms=(
            chat(*BOTH, ending({"content": None, "tool_calls": WHOLE_CALLS}, finish="tool_calls"), DONE, name="alike", calls=(A, B), stop="tool_calls", to=USED),
            chat(*BOTH, completion(tool_calls=WHOLE_CALLS), DONE, name="a whole completion", calls=(A, B), stop="tool_calls", to=USED),
            chat(
                *BOTH, ending({"content": None, "tool_calls": [{k: v for k, v in each.items() if k not in {"id", "index"}} for each in reversed(WHOLE_CALLS)]}, finish="tool_calls"), DONE,
                name="neither ids nor indices, and another order", calls=(A, B), stop="tool_calls", to=USED,
            ),
            chat(
                *BOTH[:1], ending({"content": None, "tool_calls": WHOLE_CALLS}, finish="tool_calls"), DONE, name="half of one, and one that never came", calls=(A, B), stop="tool_calls",
                repairs={"fragments_missing": 1}, to=USED,
            ),
            chat(
                *BOTH, ending({"content": None, "tool_calls": [call(0, "a", "f", '{"x":9}'), WHOLE_CALLS[1]]}, finish="tool_calls"), DONE, name="contradicts", calls=(A, B),
                stop="tool_calls", repairs={"whole_differs": 1}, withheld=('{"x":9}',), to=USED,
            ),
        ),
    ),
    Case(
        number=140, refs="abetlen/llama-cpp-python#2285; PrimeIntellect-ai/verifiers#2164",
        cause="`output_item.added` or `content_part.added` already contains the first text or all of it, and the deltas repeat this text",
        does="streamkit holds the text of this event until deltas arrive. The deltas show whether they repeat or continue the text.",
        forms=(
            responses_turn(
                rs.added(0, "message", role="assistant", content=[rs.part("Hel")]), rs.event("content_part.added", content_index=0, part=rs.part("Hel")), *HI[2:],
                name="the first delta", text="Hello", repairs={"text_repeated": 1}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                rs.added(0, "message", role="assistant", content=[rs.part("Hello")]), rs.event("content_part.added", content_index=0, part=rs.part("Hello")), *HI[2:],
                name="all of it", text="Hello", repairs={"text_repeated": 1}, to={"openai-chat": HELLO},
            ),
            responses_turn(OPENED, rs.event("content_part.added", content_index=0, part=rs.part("Hel")), *HI[3:], name="and goes on", text="Hello", to={"openai-chat": HELLO}),
            responses_turn(OPENED, rs.event("content_part.added", content_index=0, part=rs.part("Hello")), ITEM_DONE, name="without deltas", text="Hello", to={"openai-chat": HELLO}),
            responses_turn(
                rs.added(0, "message", role="assistant", content=[rs.part("Hello")]), PART, delta("Hel"), end=rs.last("completed"), name="all of it, and half of the deltas",
                text="Hello", repairs={"text_repeated": 1, "block_unclosed": 1}, to={"openai-chat": HELLO},
            ),
            responses(
                {**rs.START, "response": {**rs.RESPONSE, "output": [rs.added(0, "message", role="assistant", content=[rs.part("Hel")])["item"]]}}, *HI[1:], rs.last("completed", ITEM_DONE),
                name="in the start of the response", text="Hello", repairs={"text_repeated": 1}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                rs.added(0, "reasoning", content=[rs.part("H", "reasoning_text")]), delta("H", "reasoning_text"), delta("m.", "reasoning_text"), THOUGHT_DONE, *rs.message(1, "Hi"),
                name="reasoning", reasoning="Hm.", text="Hi", repairs={"text_repeated": 1}, to={"openai-chat": written(Thinking("Hm."), Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=141, refs="vllm-project/vllm#31761, #45742, #23218; BerriAI/litellm#36375; lemonade-sdk/lemonade#3607",
        cause="the `done` events of Responses repeat the deltas, but have different indices and ids from those of the deltas",
        does="streamkit finds the content that a complete text repeats, and adds only what is missing.",
        forms=(
            responses_turn(
                OPENED, PART, delta("Hel"), delta("lo"), {**TEXT_DONE, "content_index": 1}, {**PART_DONE, "content_index": 1}, ITEM_DONE, name="content_index",
                text="Hello", repairs={"whole_misplaced": 2}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                OPENED, rs.event("content_part.added", content_index=1, part=rs.part("")), delta("Hel", content_index=1), delta("lo", content_index=1), ITEM_DONE,
                name="content_index of the deltas", text="Hello", repairs={"whole_misplaced": 2}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                OPENED, PART, delta("Hel"), delta("lo"), {**TEXT_DONE, "output_index": 4, "item_id": "other"}, {**PART_DONE, "output_index": 4, "item_id": "other"}, ITEM_DONE,
                name="output_index and item_id", text="Hello", repairs={"whole_misplaced": 2}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                OPENED, PART, delta("Hel"), delta("lo"), rs.done(3, "message", id="other", role="assistant", content=[rs.part("Hello")]), end=rs.last("completed"),
                name="the item", text="Hello", repairs={"block_unopened": 1, "whole_misplaced": 1, "block_unclosed": 1}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                THOUGHT, {**rs.event("reasoning_part.added", content_index=0, part=rs.part("", "reasoning_text"))}, delta("Hm", "reasoning_text"),
                rs.event("reasoning_text.done", 1, content_index=0, text="Hm."), rs.event("reasoning_part.done", 1, content_index=0, part=rs.part("Hm.", "reasoning_text")),
                {**THOUGHT_DONE, "output_index": 1}, *rs.message(1, "Hi"), name="reasoning as vLLM writes it", reasoning="Hm.", text="Hi",
                repairs={"index_reused": 3, "fragments_missing": 1}, to={"openai-chat": written(Thinking("Hm."), Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=142, refs="databricks/databricks-ai-bridge#464",
        cause="the last event of a Responses stream has different ids for its items from those in the earlier events, or has more items",
        does="For each entry, streamkit finds the item with the same content, and adds only what is missing.",
        forms=(
            responses_turn(*HI, end=rs.last("completed", renamed(ITEM_DONE, "msg_9")), name="another id", text="Hello", to=NEW_IDS),
            responses_turn(
                *HI, end=rs.last("completed", rs.done(0, "reasoning", id="r", summary=[]), renamed(ITEM_DONE, "msg_9")), name="another id and place", text="Hello",
                repairs={"block_unopened": 1}, to={"openai-chat": HELLO},
            ),
            responses_turn(
                *HI, end=rs.last("completed", ITEM_DONE, rs.done(1, "message", role="assistant", content=[rs.part("There.")])), name="one message more", text="HelloThere.",
                repairs={"block_unopened": 1}, to={"openai-chat": written(Text("HelloThere."), losses={"block_boundary": 1})},
            ),
            responses_turn(
                *HI[:4], end=rs.last("completed", rs.done(0, "message", id="msg_9", role="assistant", content=[rs.part("Hello you")])), name="more than the deltas",
                text="Hello you", repairs={"block_unclosed": 1, "fragments_missing": 1}, to={"openai-chat": written(Text("Hello you"))},
            ),
            responses_turn(
                *HI, end=rs.last("completed", rs.done(0, "message", id="x", role="assistant", content=[rs.part("Hel")]), rs.done(1, "message", id="y", role="assistant", content=[rs.part("lo")])),
                name="divided otherwise", text="Hello", to={"openai-chat": HELLO},
            ),
        ),
    ),
    Case(
        number=143, refs="NousResearch/hermes-agent#41321, #60613; openai/codex#29755",
        cause="a long response arrives as many messages, and each message repeats all earlier text, also in its deltas (Bedrock's Mantle)",
        does="If a message begins with a complete earlier message of at least 64 characters, streamkit emits only the text after this beginning.",
        forms=(
            responses_turn(
                *snapshots(LONG, LONG + "More. ", LONG + "More. And the end."), name="deltas", text=LONG + "More. And the end.", repairs={"text_repeated": 2},
                to={"openai-chat": written(Text(LONG + "More. And the end.")), "anthropic": messages(Text(LONG + "More. And the end."), usage=None)},
            ),
            responses_turn(
                rs.done(0, "message", role="assistant", content=[rs.part(LONG)]), rs.done(1, "message", role="assistant", content=[rs.part(LONG + "More.")]), name="whole items",
                text=LONG + "More.", repairs={"text_repeated": 1, "block_unopened": 2}, to={"openai-chat": written(Text(LONG + "More."))},
            ),
            responses_turn(
                *rs.message(0, "ha"), *rs.message(1, "ha"), name="short ones are text", text="haha", to={"openai-chat": written(Text("haha"), losses={"block_boundary": 1})},
            ),
            responses_turn(
                *snapshots(LONG, LONG[:70] + "something else instead"), name="one that only begins alike", text=LONG + LONG[:70] + "something else instead",
                to={"openai-chat": written(Text(LONG + LONG[:70] + "something else instead"), losses={"block_boundary": 1})},
            ),
        ),
    ),
    Case(
        number=144, refs="KochC/opencode-llm-proxy#49; diegosouzapw/OmniRoute#13693",
        cause="a complete text contradicts the deltas: it is trimmed, empty, or only the first delta",
        does="The text that streamkit already emitted stays. streamkit withholds the complete text, and counts one repair for the content part.",
        forms=(
            responses_turn(
                OPENED, PART, delta("\nHel"), delta("lo"), TEXT_DONE, PART_DONE, ITEM_DONE, name="trimmed", text="\nHello", repairs={"whole_differs": 1},
                to={"openai-chat": written(Text("\nHello"))},
            ),
            responses_turn(*HI[:4], {**TEXT_DONE, "text": ""}, ITEM_DONE, name="empty", text="Hello", to={"openai-chat": HELLO}),
            responses_turn(
                *HI[:3], {**TEXT_DONE, "text": "Hel"}, {**PART_DONE, "part": rs.part("Hel")}, rs.done(0, "message", role="assistant", content=[rs.part("Hel")]), delta("lo"),
                end=rs.last("completed", ITEM_DONE), name="too early", text="Hello", repairs={"block_unopened": 1}, to={"openai-chat": HELLO},
            ),
        ),
    ),
    Case(
        number=145, refs="proxies of Anthropic's, Cohere's and Google's dialects",
        cause="`content_block_start` (in Cohere, `content-start`; in Interactions, `step.start`) contains the first text or all of it, and the deltas repeat this text",
        does="streamkit holds the text of this event until deltas arrive. The deltas show whether they repeat or continue the text.",
        forms=(
            message(am.begin(0, "text", text="Hel"), am.delta(0, "text_delta", text="Hel"), am.delta(0, "text_delta", text="lo"), am.stop(0), name="the first delta", text="Hello", repairs={"text_repeated": 1}, to={"openai-chat": written(Text("Hello"))}),
            message(am.begin(0, "text", text="Hello"), am.delta(0, "text_delta", text="Hel"), am.delta(0, "text_delta", text="lo"), am.stop(0), name="all of it", text="Hello", repairs={"text_repeated": 1}, to={"openai-chat": written(Text("Hello"))}),
            message(am.begin(0, "text", text="Hel"), am.delta(0, "text_delta", text="lo"), am.stop(0), name="and goes on", text="Hello", to={"openai-chat": written(Text("Hello"))}),
            message(am.begin(0, "text", text="Hello"), am.stop(0), name="without deltas", text="Hello", to={"openai-chat": written(Text("Hello"))}),
            message(
                am.begin(0, "thinking", thinking="H"), am.delta(0, "thinking_delta", thinking="H"), am.delta(0, "thinking_delta", thinking="m."), am.delta(0, "signature_delta", signature="s"), am.stop(0),
                *am.block(1, "Hi"), name="thinking", reasoning="Hm.", text="Hi", repairs={"text_repeated": 1},
                to={"openai-chat": written(Thinking("Hm.", "s"), Text("Hi"))},
            ),
            cohere(*co_starts("Hel", "Hel", "lo"), name="Cohere", text="Hello", repairs={"text_repeated": 1}, to={"openai-chat": written(Text("Hello"))}),
            cohere(*co_starts("Hel", "lo"), name="Cohere, and goes on", text="Hello", to={"openai-chat": written(Text("Hello"))}),
            interaction("Interactions, the first delta", *gi_starts("Hel", "Hel", "lo"), text="Hello", repairs={"text_repeated": 1}, to=HELLO_CHAT),
            interaction("Interactions, and goes on", *gi_starts("Hel", "lo"), text="Hello", to=HELLO_CHAT),
            interaction("Interactions, half of the deltas", *gi_starts("Hello", "Hel"), text="Hello", repairs={"text_repeated": 1}, to=HELLO_CHAT),
            interaction(
                "Interactions, a thought with its signature", gi.begin(0, "thought", summary=[{"type": "text", "text": "Hm."}], signature="c2ln"), gi.summary(0, "Hm."), gi.signature(0, "c2ln"), gi.end(0), *gi.text(1, "Hi"),
                text="Hi", reasoning="Hm.", repairs={"text_repeated": 2}, to={"openai-chat": written(Thinking("Hm.", "c2ln"), Text("Hi"))},
            ),
            interaction(
                "Interactions, an image and its text", gi.begin(0, "model_output", content=[{"type": "text", "text": "Hi"}, {"type": "image", **gi.IMAGE}]), *gi.said(0, "H", "i"), gi.delta(0, "image", **gi.IMAGE), gi.end(0),
                text="Hi", repairs={"text_repeated": 2}, to={"openai-chat": written(Text("Hi"))},
            ),
        ),
    ),
    Case(
        number=146, refs="servers of Ollama's dialect; infiniflow/ragflow#15286, posit-dev/chatlas#435",
        cause="the last line of an Ollama stream repeats the whole text. Ollama itself sends no text there",
        does="If this text has 16 characters or more, streamkit adds only what is missing. A shorter text counts as new text. In Gemini and Chat, the text of the last delta always counts as new text.",
        forms=(
            ollama(ol.line(LONG[:30]), ol.line(LONG[30:]), ol.end(message={"role": "assistant", "content": LONG}), name="all of it", text=LONG, repairs={"text_repeated": 1}, to={"openai-chat": written(Text(LONG))}),
            ollama(ol.line("ha"), ol.line("ha"), ol.end(message={"role": "assistant", "content": "haha"}), name="short", text="hahahaha", to={"openai-chat": written(Text("hahahaha"))}),
        ),
    ),
    Case(
        number=147, refs="servers that end a stream as OpenAI's Realtime API does",
        cause="a Responses stream ends with `response.done`",
        does="streamkit takes the outcome from the response in this event, as it does with `response.completed`. If another terminal event arrived before this event, streamkit ignores `response.done`.",
        forms=(
            responses(rs.START, *HI, done(HI[-1]), name="completed", text="Hello", repairs={"terminal_renamed": 1}, to={"openai-chat": written(Text("Hello"))}),
            responses(
                rs.START, *HI, done(HI[-1], status="incomplete", status_details={"type": "incomplete", "reason": "content_filter"}), name="filtered",
                text="Hello", stop="content_filter", repairs={"terminal_renamed": 1}, to={"openai-chat": written(Text("Hello"), stop="content_filter")},
            ),
            responses(rs.START, *HI, rs.last("completed", HI[-1]), done(HI[-1]), name="behind the end", text="Hello", repairs={"after_end": 1}, to={"openai-chat": written(Text("Hello"))}),
        ),
    ),
    Case(
        number=148, refs="servers that do not number items",
        cause="the argument fragments of several calls alternate. A fragment has only a `call_id`, or an `item_id` that contains the id of a call",
        does="streamkit adds each fragment to its call.",
        forms=(
            responses_turn(*interleaved({"call_id": "a"}, {"call_id": "b"}), name="call_id", calls=(A, B), stop="tool_calls", repairs={"index_missing": 4}, to=TWO),
            responses_turn(*interleaved({"item_id": "i0"}, {"item_id": "i1"}), name="item_id", calls=(A, B), stop="tool_calls", repairs={"index_missing": 4}, to=TWO),
            responses_turn(*interleaved({"item_id": "a"}, {"item_id": "b"}), name="the call's id", calls=(A, B), stop="tool_calls", repairs={"index_missing": 4}, to=TWO),
            responses_turn(
                *interleaved({"output_index": 0, "call_id": "a"}, {"output_index": 0, "call_id": "b"}), name="one index", calls=(A, B), stop="tool_calls",
                repairs={"index_reused": 2}, to=TWO,
            ),
        ),
    ),
    Case(
        number=149, refs="Codex, behind a gateway",
        cause="the model is stopped before the first character of a call's arguments",
        does="In Responses, the call has the status `incomplete`. In other dialects, streamkit withholds the call, because clients would read missing arguments as `{}` and run the call. streamkit also withholds a call that the server ended, if no output follows the call: the stream then does not show whether the call has no arguments or whether they are missing.",
        forms=(
            chat(
                ROLE, calls(call(0, "a", "f", "")), chunk(finish="length"), DONE, name="length", calls=(BLANK,), stop="length",
                to={
                    "openai-responses": written(
                        Use("a", "f", ""), stop="max_output_tokens", lacks=(b'"status":"completed"', b"function_call_arguments.done"),
                        holds=(b'"status":"incomplete","call_id":"a"',),
                    ),
                    "anthropic": messages(stop="max_tokens", losses={"call_withheld": 1}, withheld=("",)),
                },
            ),
            chat(
                ROLE, calls(call(0, "a", "f", "")), chunk(finish="content_filter"), DONE, name="filter", calls=(BLANK,), stop="content_filter",
                to={
                    "openai-responses": written(Use("a", "f", ""), stop="content_filter", lacks=(b'"status":"completed"',)),
                    "openai-chat": written(stop="content_filter", losses={"call_withheld": 1}, withheld=("",)),
                    "cohere": written(stop="MAX_TOKENS", losses={"call_withheld": 1, "stop_reason": 1}, withheld=("",)),
                },
            ),
            message(
                am.begin(0, "tool_use", id="a", name="f", input={}), reason="max_tokens", name="no stop of its block",
                calls=(BLANK,), stop="length", repairs={"block_unclosed": 1},
                to={"openai-responses": written(Use("a", "f", ""), stop="max_output_tokens", losses={"usage_unknown": 1}, lacks=(b'"status":"completed"',))},
            ),
            message(
                *am.tool(0, "a", "f"), reason="max_tokens", name="its block stopped", calls=(BLANK,), stop="length",
                to={
                    "openai-responses": written(Use("a", "f", ""), stop="max_output_tokens", losses={"usage_unknown": 1}, lacks=(b'"status":"completed"',)),
                    "anthropic": messages(stop="max_tokens", usage=None, losses={"call_withheld": 1}, withheld=("",)),
                    "ai-sdk": written(Use("a", "f", ""), stop="length", lacks=(b"tool-input-available",)),
                },
            ),
            message(
                *am.tool(0, "a", "f"), *am.block(1, "Hi"), reason="max_tokens", name="text behind its block", calls=(Call("f", "", "empty", id="a"),), text="Hi", stop="length",
                to={"anthropic": messages(Use("a", "f", ""), Text("Hi"), stop="max_tokens", usage=None)},
            ),
            bedrock(
                br.START, *br.tool(0, "a", "f"), br.finish("max_tokens"), br.counts(), name="Bedrock", calls=(BLANK,), stop="length",
                to={"openai-chat": written(stop="length", losses={"call_withheld": 1, "metadata": 1}, withheld=("",))},
            ),
            cohere(*co.tool(0, "a", "f"), reason="MAX_TOKENS", name="Cohere", calls=(BLANK,), stop="length", to={"openai-chat": WITHHELD}),
            responses(
                rs.START, *rs.call(0, "a", "f"), rs.cut_off("max_output_tokens", rs.call(0, "a", "f")[-1]), name="a whole item", calls=(BLANK,), stop="length", to={"openai-chat": WITHHELD},
            ),
            form("gemini-interactions", gi.run("", *gi.tool(0, "a", "f"), status="incomplete").body, "Interactions", {"openai-chat": evolve(WITHHELD, losses={"call_withheld": 1, "usage_detail": 1})}, {"calls": (BLANK,), "stop": "length"}),
            form("ag-ui", ag.run("", *ag.tool("a", "f"), reason="length").body, "AG-UI", {"openai-chat": evolve(WITHHELD, losses={"call_withheld": 1, "response_fields": 1, "usage_detail": 1})}, {"calls": (BLANK,), "stop": "length"}),
            responses(
                rs.START, rs.added(0, "function_call", call_id="a", name="f", arguments=""), CUT_ITEM, rs.last("completed", CUT_ITEM), name="an item marked incomplete",
                calls=(BLANK,), stop="length", repairs={"stop_conflict": 1},
                to={
                    "openai-responses": written(
                        Use("a", "f", ""), stop="max_output_tokens", losses={"stop_reason": 1}, holds=(b'"status":"incomplete","call_id":"a"', b'"incomplete_details":{"reason":"max_output_tokens"}'), lacks=(b"function_call_arguments.done",),
                    ),
                    "anthropic": messages(stop="max_tokens", usage=None, losses={"call_withheld": 1}, withheld=("",)),
                },
            ),
        ),
    ),
    Case(
        number=150, refs="servers that give no `incomplete_details`",
        cause="`response.incomplete` has no reason, or an unknown one",
        does="streamkit reads the reason as `length`, never as a natural stop. For Responses, streamkit writes the reason that it received. If there is none, streamkit writes `max_output_tokens`, because the AI SDK reads a missing reason as a natural stop.",
        forms=(
            responses(
                rs.START, *HI, rs.last("incomplete", HI[-1]), name="none", text="Hello", stop="length",
                to={
                    "openai-chat": written(Text("Hello"), stop="length"),
                    "openai-responses": written(Text("Hello"), stop="max_output_tokens", losses={"stop_reason": 1}, holds=(b'"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}',)),
                },
            ),
            responses(
                rs.START, *HI, rs.cut_off("out_of_luck", HI[-1]), name="unknown", text="Hello", stop="length",
                to={
                    "anthropic": messages(Text("Hello"), stop="max_tokens", usage=None),
                    "openai-responses": written(Text("Hello"), stop="out_of_luck", holds=(b'"incomplete_details":{"reason":"out_of_luck"}',)),
                },
            ),
        ),
    ),
)  # fmt: skip
