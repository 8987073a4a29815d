"""What a client should see of a response, and how that is compared with what it saw.

The expectation is worked out from ``collect`` of the source, never from the output. A difference is allowed only where
``ALLOWED`` names the loss and the report of that very stream counts it. Text and complete calls are compared as they are;
parsed numbers are compared after the client's own parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import asdict, frozen

from streamkit.conversation.messages import Choice as Said
from streamkit.conversation.messages import Reasoning, Response, Text, ToolCall
from streamkit.dialects.streams.carrier import PHASE
from streamkit.dialects.vocabulary.stop_reasons import was_stopped
from streamkit.events import Aside
from streamkit.text.identifiers import nine_characters
from tests.clients.readers import Call, Choice, Reading, Usage, parsed

#: Stop reasons that a dialect has a word of its own for (dialects.md §7.1, without the entries marked `*`).
EXACT_STOPS: Mapping[str, Mapping[str, str]] = {
    "openai-chat": {"stop": "stop", "length": "length", "tool_calls": "tool_calls", "content_filter": "content_filter"},
    "anthropic": {
        "stop": "end_turn",
        "stop_sequence": "stop_sequence",
        "length": "max_tokens",
        "context_full": "model_context_window_exceeded",
        "tool_calls": "tool_use",
        "refusal": "refusal",
        "pause": "pause_turn",
        "compaction": "compaction",
    },
    # what the output holds says the rest
    "openai-responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "refusal": "completed",
        "length": "max_output_tokens",
        "content_filter": "content_filter",
    },
    # `stop` beside calls says that they are to be run
    "ollama": {"stop": "stop", "length": "length", "tool_calls": "stop"},
    "mistral": {"stop": "stop", "length": "length", "context_full": "model_length", "tool_calls": "tool_calls"},
    "cohere": {"stop": "COMPLETE", "stop_sequence": "STOP_SEQUENCE", "length": "MAX_TOKENS", "tool_calls": "TOOL_CALL"},
    # `STOP` beside calls says that they are to be run
    "gemini": {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "pause": "CONTINUATION",
    },
    "gemini-interactions": {
        "stop": "completed",
        "tool_calls": "requires_action",
        "length": "incomplete",
        "pause": "requires_continuation",
    },
    "bedrock": {
        "stop": "end_turn",
        "stop_sequence": "stop_sequence",
        "length": "max_tokens",
        "context_full": "model_context_window_exceeded",
        "tool_calls": "tool_use",
        "content_filter": "content_filtered",
    },
}
#: The entries marked `*`: right only where the loss is counted.
NEAREST_STOPS: Mapping[str, Mapping[str, str]] = {
    "openai-chat": {
        "stop_sequence": "stop",
        "context_full": "length",
        "refusal": "content_filter",
        "pause": "length",
        "compaction": "length",
        "other": "stop",
    },
    "anthropic": {"content_filter": "refusal", "other": "end_turn"},
    "openai-responses": {
        "stop_sequence": "completed",
        "context_full": "max_output_tokens",
        "pause": "steered",
        "compaction": "completed",
        "other": "completed",
    },
    "gemini": {
        "stop_sequence": "STOP",
        "context_full": "MAX_TOKENS",
        "refusal": "SAFETY",
        "compaction": "MAX_TOKENS",
        "other": "STOP",
    },
    "gemini-interactions": {
        "stop_sequence": "completed",
        "context_full": "incomplete",
        "content_filter": "incomplete",
        "refusal": "incomplete",
        "compaction": "incomplete",
        "other": "completed",
    },
    "bedrock": {"refusal": "content_filtered", "pause": "max_tokens", "compaction": "max_tokens", "other": "end_turn"},
    "mistral": {
        "stop_sequence": "stop",
        "content_filter": "length",
        "refusal": "length",
        "pause": "length",
        "compaction": "length",
        "other": "stop",
    },
    "cohere": {
        "context_full": "MAX_TOKENS",
        "content_filter": "MAX_TOKENS",
        "refusal": "MAX_TOKENS",
        "pause": "MAX_TOKENS",
        "compaction": "MAX_TOKENS",
        "other": "COMPLETE",
    },
    "ollama": {
        "stop_sequence": "stop",
        "context_full": "length",
        "content_filter": "length",
        "refusal": "length",
        "pause": "length",
        "compaction": "length",
        "other": "stop",
    },
}


#: What a dialect counts in detail though it has no place for other details.
COUNTED: Mapping[str, frozenset[str]] = {
    "openai-chat": frozenset({"cached", "cache_write", "reasoning"}),
    "openai-responses": frozenset({"cached", "cache_write", "reasoning"}),
    "anthropic": frozenset({"cached", "cache_write", "reasoning"}),
    "mistral": frozenset({"cached", "cache_write", "reasoning"}),
    "cohere": frozenset({"cached"}),
    "gemini": frozenset({"cached", "reasoning"}),
    "gemini-interactions": frozenset({"cached", "reasoning"}),
    "bedrock": frozenset({"cached", "cache_write"}),
}
#: Dialects that send the sum.
TOTALLED = frozenset({"mistral", "gemini", "gemini-interactions", "openai-chat", "openai-responses", "bedrock"})
#: Dialects with a block for each block of reasoning. The others have one string, with a blank line between blocks.
BLOCKS_OF_REASONING = frozenset({"anthropic", "openai-responses", "bedrock", "cohere", "gemini-interactions"})
#: Dialects whose response has one text, without places for messages.
ONE_TEXT = frozenset({"openai-chat", "mistral", "ollama", "gemini", "cohere"})
#: What is 0 where it is unknown, beside both counts.
DEMANDED: Mapping[str, tuple[str, ...]] = {"openai-responses": ("cached", "reasoning")}


@frozen
class Difference:
    """What a counted loss changes in the reading, and why it must."""

    reason: str
    apply: Callable[[Reading, Response, str], None]


def keep_first_choice(reading: Reading, _response: Response, _target: str) -> None:
    reading.choices = {0: reading.choices[min(reading.choices)]}


def nearest_stops(reading: Reading, response: Response, target: str) -> None:
    for said in response.choices:
        if said.index in reading.choices and said.stop_reason not in EXACT_STOPS[target]:
            reason = said.stop_reason or ""
            ended = reason == "refusal" and said.refusal and target in {"ollama", "cohere", "mistral"}
            if ended and not was_stopped("refusal", said.native_stop_reason):
                reason = "other"  # a refusal is all that the model said, and no word of the provider's
            reading.choices[said.index].stop = NEAREST_STOPS[target][reason]


def drop_usage_details(reading: Reading, _response: Response, target: str) -> None:
    usage = reading.usage
    if usage is None:
        return
    for name in {"cached", "cache_write", "reasoning"} - COUNTED.get(target, frozenset()):
        setattr(usage, name, None)
    if (
        target in {"gemini", "gemini-interactions"}
        and usage.output is not None
        and (usage.reasoning or 0) > usage.output
    ):
        usage.output += usage.reasoning or 0  # it was counted beside the output, as it is here


def refusal_into_text(reading: Reading, _response: Response, _target: str) -> None:
    for choice in reading.choices.values():
        choice.text += choice.refusal
        choice.refusal = ""


def wrap_arguments(reading: Reading, response: Response, _target: str) -> None:
    for call, made in calls_of(reading, response):
        if made.verdict is not None and made.verdict.kind in {"malformed", "not_an_object"}:
            call.arguments = {"_raw_arguments": made.arguments}


def wrap_input(reading: Reading, response: Response, _target: str) -> None:
    for call, made in calls_of(reading, response):
        if made.kind == "custom":
            call.arguments, call.text = {"input": made.arguments}, None


def id_in(target: str, call_id: str | None) -> str | None:
    """An id as a dialect can carry it."""
    return nine_characters(call_id) if target == "mistral" and call_id is not None else call_id


def hash_ids(reading: Reading, response: Response, target: str) -> None:
    for call, made in calls_of(reading, response):
        call.id = id_in(target, made.id)


def calls_of(reading: Reading, response: Response) -> list[tuple[Call, ToolCall]]:
    return [
        pair
        for said in response.choices
        if said.index in reading.choices
        for pair in zip(reading.choices[said.index].calls, said.tool_calls, strict=True)
    ]


def unknown_as_zero(reading: Reading, _response: Response, target: str) -> None:
    usage = reading.usage = reading.usage or Usage()
    usage.given, usage.output = usage.given or 0, usage.output or 0
    if usage.total is None or target not in DEMANDED:
        usage.total = usage.given + usage.output
    for name in DEMANDED.get(target, ()):
        setattr(usage, name, getattr(usage, name) or 0)


def take_any_calls(reading: Reading, _response: Response, _target: str) -> None:
    """Which calls these are is tested by itself (tests/dialects/streams/test_client_calls.py); the rest is compared here."""
    for choice in reading.choices.values():
        choice.calls, choice.stop = None, ""


#: By kind of loss. `extra_choice` comes last: the others speak of all choices.
ALLOWED: Mapping[str, Difference] = {
    "stop_reason": Difference("the dialect has no word for this reason", nearest_stops),
    "usage_unknown": Difference("the dialect demands both counts", unknown_as_zero),
    "usage_detail": Difference(
        "the dialect counts no cache and no reasoning, or has no name for another count (images, searches)",
        drop_usage_details,
    ),
    "refusal_as_text": Difference("the dialect has no refusal, and nothing said may vanish", refusal_into_text),
    "arguments_wrapped": Difference("the dialect carries objects only, and the text is none", wrap_arguments),
    "custom_tool_wrapped": Difference("the dialect has functions only", wrap_input),
    "call_id": Difference("an id that the dialect would not take back becomes a hash of nine characters", hash_ids),
    "client_tool": Difference("what the client runs in a form of the source's is a call here", take_any_calls),
    "extra_choice": Difference("the dialect has one choice", keep_first_choice),
}
#: Losses that change nothing of what is compared here. Any other kind fails the test that meets it.
UNSEEN = {
    "block_boundary",
    "block_order",
    "citation",
    "compaction",
    "logprobs",
    "media_output",
    "metadata",
    "reasoning_opaque",
    "reasoning_signature",
    "response_fields",
    "server_tool",
    "stop_sequence",
    "unknown_event",
}


def expected(response: Response, target: str, losses: Mapping[str, int]) -> Reading:
    """What a client of ``target`` should see of a response, given the losses that were counted."""
    reading = Reading({said.index: choice_as_said(said, target) for said in response.choices})
    if target == response.dialect == "gemini":  # it has many words for one reason, and keeps its own
        for said in response.choices:
            reading.choices[said.index].stop = said.native_stop_reason
    reading.usage = usage_as_said(response, target)
    assert not set(losses) - set(ALLOWED) - UNSEEN, f"a loss that no table explains: {dict(losses)}"
    for kind, difference in ALLOWED.items():
        if kind in losses:
            difference.apply(reading, response, target)
    if target not in {"openai-chat", "mistral"} and len(reading.choices) == 1:
        reading.choices = {0: next(iter(reading.choices.values()))}
    return reading


def choice_as_said(said: Said, target: str) -> Choice:
    stop = EXACT_STOPS[target].get(said.stop_reason or "", f"<uncounted loss: {said.stop_reason}>")
    if said.stop_reason == "refusal" and said.refusal and target == "openai-chat":
        stop = "stop"  # as OpenAI does it: the refusal stands in the deltas
    calls = [Call(call.name, parsed(call.arguments.strip()), call.id, call.arguments) for call in said.tool_calls]
    blocks = [part.text for part in said.parts if isinstance(part, Reasoning)]
    reasoning = "".join(blocks) if target in BLOCKS_OF_REASONING else said.reasoning
    if target == "gemini":  # a signature ends a block, and needs no blank line
        reasoning = ""
        for part in said.parts:
            if isinstance(part, Reasoning) and part.text:
                reasoning += part.text + ("" if part.signature is not None else "\n\n")
        reasoning = reasoning.removesuffix("\n\n")
    return Choice(text_as_said(said, target), said.refusal, reasoning, calls, stop)


def text_as_said(said: Said, target: str) -> str:
    """The text, with a blank line before each message with a phase but the first where the dialect has one string."""
    text, phases = "", 0
    for part in said.parts:
        if isinstance(part, Aside) and part.type == PHASE:
            text += "\n\n" if phases and target in ONE_TEXT else ""
            phases += 1
        text += part.text if isinstance(part, Text) else ""
    return text


def usage_as_said(response: Response, target: str) -> Usage | None:
    said = response.usage
    if said is None:
        return None
    usage = Usage(
        said.input_total,
        said.output_total,
        said.total,
        said.input_cached,
        said.input_cache_write,
        said.output_reasoning,
    )
    if target == response.dialect and said.raw is not None and said.raw.get("completion_tokens") is not None:
        usage.output = said.raw["completion_tokens"]  # xAI counts reasoning beside it; its own counts stay as they came
    if usage.given is not None and usage.output is not None and (target not in TOTALLED or usage.total is None):
        usage.total = usage.given + usage.output  # computed: the dialect sends none
    return usage


# -- comparison ----------------------------------------------------------------------------------------------------


def differences(want: Reading, seen: Reading) -> list[str]:
    found = unequal("usage", asdict(want.usage) if want.usage else None, asdict(seen.usage) if seen.usage else None)
    found += unequal("choices", sorted(want.choices), sorted(seen.choices))
    for number, choice in want.choices.items():
        other = seen.choices.get(number, Choice())
        for name in ("text", "refusal", "reasoning", *(["stop"] if choice.calls is not None else [])):
            found += unequal(f"choice {number} {name}", getattr(choice, name), getattr(other, name))
        if choice.calls is None:
            continue
        found += unequal(f"choice {number} calls", len(choice.calls), len(other.calls))
        for place, (call, read) in enumerate(zip(choice.calls, other.calls, strict=False)):
            found += call_differences(f"choice {number} call {place}", call, read)
    return found


def call_differences(where: str, want: Call, seen: Call) -> list[str]:
    found = unequal(f"{where} name", want.name, seen.name)
    # as text: 1, 1.0 and True are equal to Python, and the order of keys is the model's
    found += unequal(f"{where} arguments", repr(want.arguments), repr(seen.arguments))
    if seen.id is not None:  # None: the client has no field for it
        found += unequal(f"{where} id", want.id, seen.id)
    if seen.text is not None and want.text is not None and not (want.text.strip() == "" and seen.text == "{}"):
        found += unequal(f"{where} text", want.text, seen.text)
    return found


def unequal(what: str, want: object, seen: object) -> list[str]:
    if want == seen and type(want) is type(seen):
        return []
    start = 0
    if isinstance(want, str) and isinstance(seen, str):
        start = max(0, next((n for n, (a, b) in enumerate(zip(want, seen, strict=False)) if a != b), 0) - 20)
        want, seen = want[start : start + 80], seen[start : start + 80]
    return [f"{what}: expected {want!r:.300}, the client has {seen!r:.300}" + (f" (from {start})" if start else "")]
