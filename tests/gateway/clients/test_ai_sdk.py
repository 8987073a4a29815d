"""The AI SDK for JavaScript reads through the running gateway: its OpenAI provider, both ways, and its Anthropic provider."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import pytest

from streamkit.conversation.messages import Text
from streamkit.gateway.record import Record
from tests.clients.expected import differences
from tests.clients.recipes import whole
from tests.clients.shapes import Call, Choice, Reading
from tests.clients.vectors import BEGUN, FAILURES
from tests.gateway.clients import ai_sdk_client
from tests.gateway.clients.in_thread import CLIENT_KEY, UPSTREAMS, GatewayThread, listed, running
from tests.gateway.clients.judging import expectation, take_made_ids
from tests.gateway.clients.programs import QUESTION, SYSTEM, TOOLS, schema
from tests.gateway.clients.recorded import Stream, recordings, sampled, script, vectors
from tests.gateway.clients.test_tool_loops import (
    CALLS,
    CUT_BEHIND,
    CUT_INSIDE,
    FIRST,
    LAST,
    asked_for,
    calls,
    check_legs,
    two_legs,
)
from tests.gateway.clients.test_tool_loops import script as tool_loop_script
from tests.sampling import Part, part_of, parts

PROVIDERS: Final = ("openai-chat", "openai-responses", "anthropic")
SCHEMAS: Final = {name: schema(name) for name in TOOLS}
SAMPLE: Final = 2
#: Providers that read no reasoning, or summaries only.
DEAF: Final = {"openai-chat", "openai-responses"}


def ask(served: GatewayThread, provider: str, model: str, *, stream: bool = True, **more: Any) -> dict[str, Any]:
    """A scenario. Nothing is stored, or Responses would be asked to look its own earlier items up."""
    return {
        "provider": provider,
        "url": served.url,
        "key": CLIENT_KEY,
        "model": model,
        "stream": stream,
        "prompt": QUESTION,
        "instructions": SYSTEM,
        "store": False,
        **more,
    }


@pytest.mark.parametrize("part", parts(2))
def test_a_tool_loop_from_every_upstream(part: Part, served: GatewayThread):
    """With every provider, as a stream or whole, by turns; the exhaustive form has both."""
    cases = {
        two_legs(served, upstream, stream=stream, parts=[Text(FIRST), *calls()]): (provider, upstream, stream)
        for (turn, provider), (other, upstream) in product(enumerate(PROVIDERS), enumerate(UPSTREAMS))
        for stream in part_of((True, False), part, turn=turn + other)
    }
    scenarios = [
        ask(served, provider, model, stream=stream, tools=SCHEMAS) for model, (provider, _, stream) in cases.items()
    ]
    for (model, case), came in zip(cases.items(), ai_sdk_client.run(scenarios), strict=True):
        assert not came["errors"], case
        first, second = came["steps"]
        assert (first["text"], first["finishReason"]) == (FIRST, "tool-calls"), case
        assert [(call["name"], call["input"]) for call in first["calls"]] == list(CALLS.values()), case
        assert (second["text"], second["finishReason"], second["calls"]) == (LAST, "stop", []), case
        assert (second["usage"]["inputTokens"], second["usage"]["outputTokens"]) == (9, 14), case
        check_legs(*asked_for(served, model, case[1]), with_ids=True)


def test_what_leans_on_stored_items_is_told_not_to(served: GatewayThread):
    """The SDK's Responses provider refers to items by default, and then loses nothing silently."""
    model = two_legs(served, "anthropic", stream=True, parts=[Text(FIRST), *calls()])
    (came,) = ai_sdk_client.run([ask(served, "openai-responses", model, tools=SCHEMAS, store=True)])
    assert [(error["name"], error["status"]) for error in came["errors"]] == [("AI_APICallError", 400)]
    assert "store: false" in came["errors"][0]["message"]
    assert len(served.asked(model)) == 1


def test_its_default_works_from_every_upstream_where_responses_are_kept():
    """Its Responses provider names what was said by ``item_reference``, which needs ``[responses] state``."""
    with running(state=True) as served:
        models = {
            two_legs(served, upstream, stream=turn % 2 == 0, parts=[Text(FIRST), *calls()]): (upstream, turn % 2 == 0)
            for turn, upstream in enumerate(UPSTREAMS)
        }
        scenarios = [
            ask(served, "openai-responses", model, stream=stream, tools=SCHEMAS, store=True)
            for model, (_, stream) in models.items()
        ]
        for (model, (upstream, _)), came in zip(models.items(), ai_sdk_client.run(scenarios), strict=True):
            assert not came["errors"], upstream
            assert [step["text"] for step in came["steps"]] == [FIRST, LAST], upstream
            check_legs(*asked_for(served, model, upstream), with_ids=True)


def test_an_answer_that_breaks_off_is_asked_for_once_and_nothing_of_it_is_run(served: GatewayThread):
    """In its text, behind whole calls, and inside of one, where an end of Chat's body made it ask up to five times."""
    text, both = [Text(FIRST)], [Text(FIRST), *calls()]
    ways = {"in its text": (text, CUT_BEHIND), "behind its calls": (both, CUT_BEHIND), "in a call": (both, CUT_INSIDE)}
    cases = {
        (provider, upstream, where): served.register(
            upstream, tool_loop_script(upstream, parts=parts, stop="tool_calls", cut=cut)
        )
        for provider, upstream in product(PROVIDERS, ("anthropic", "openai-chat"))
        for where, (parts, cut) in ways.items()
    }
    scenarios = [ask(served, provider, model, tools=SCHEMAS) for (provider, *_), model in cases.items()]
    for (case, model), came in zip(cases.items(), ai_sdk_client.run(scenarios), strict=True):
        assert "stream truncated" in came["errors"][0]["message"], case
        assert len(served.asked(model)) == 1, case
        assert served.record(model).ending == "broken", case


# -- recordings --------------------------------------------------------------------------------------------------------


def reading(step: dict[str, Any]) -> Reading:
    made = [Call(call["name"], call["input"], call["id"]) for call in step["calls"]]
    return Reading({0: Choice(step["text"], "", step["reasoning"], made)})


def in_javascript(value: Any) -> Any:
    """A value of JSON as JavaScript has it, where every number is a double and -0 is written as 0."""
    if isinstance(value, dict):
        return {name: in_javascript(member) for name, member in value.items()}
    if isinstance(value, list):
        return [in_javascript(member) for member in value]
    return float(value) + 0.0 if isinstance(value, int | float) and not isinstance(value, bool) else value


def unlike(stream: Stream, provider: str, came: dict[str, Any], record: Record) -> list[str]:
    """What the SDK read otherwise than clients of the dialect are to. Stops and counts are in its own words: see the loop."""
    response = whole(stream.body, stream.dialect)
    if len(response.choices) > 1 and provider == "openai-chat":
        return []  # it takes all choices for one
    if not response.clean:
        return [] if came["errors"] else [f"ends as success: {came['steps']!r:.300}"]
    if came["errors"]:
        return [f"the client raised {came['errors'][0]}"]
    want, seen = expectation(response, provider, record), reading(came["steps"][0])
    want.usage, want.choices = None, {0: want.choices[0]}  # it knows of one choice
    choice = want.choices[0]
    choice.text += (
        choice.refusal if seen.choices[0].text != choice.text else ""
    )  # which it shows as text, or not at all
    choice.stop, choice.refusal = None, ""
    if provider in DEAF and not seen.choices[0].reasoning:
        choice.reasoning = ""
    for call in choice.calls or ():
        call.arguments = call.text if call.arguments is None else call.arguments  # free text is its value
    for call in (*(choice.calls or ()), *seen.choices[0].calls):
        call.arguments, call.text = in_javascript(call.arguments), None
    take_made_ids(want, seen)
    return differences(want, seen)


def check(served: GatewayThread, cases: Sequence[tuple[str, Stream]]) -> None:
    """Let each provider read its stream, in one run of the program, since it takes longer to start than to read."""
    models = [served.register(stream.dialect, script(stream)) for _, stream in cases]
    found = ai_sdk_client.run(
        [ask(served, provider, model) for (provider, _), model in zip(cases, models, strict=True)]
    )
    complaints = [
        f"{provider} from {stream.dialect}, {stream.name} ({model}): {complaint}"
        for (provider, stream), model, came in zip(cases, models, found, strict=True)
        for complaint in unlike(stream, provider, came, served.record(model))
    ]
    assert not complaints, "\n".join(complaints)


DIRECTIONS: Final = [(source, provider) for source, provider in product(UPSTREAMS, PROVIDERS) if source != provider]


def test_it_reads_recordings_as_the_network_cut_them(served: GatewayThread):
    known = [(provider, each) for source, provider in DIRECTIONS for each in (recordings(source), vectors(source))]
    check(served, [(provider, stream) for provider, streams in known for stream in sampled(streams, SAMPLE)])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("source", "provider"), DIRECTIONS)
def test_it_reads_every_recording_as_the_network_cut_it(source: str, provider: str, served: GatewayThread):
    check(served, [(provider, stream) for stream in (*recordings(source), *vectors(source))])


# -- errors ------------------------------------------------------------------------------------------------------------


def test_errors_before_the_stream(served: GatewayThread):
    wrong = [ask(served, provider, listed("anthropic"), key="none") for provider in PROVIDERS]
    unknown = [ask(served, provider, "nobody", stream=False) for provider in PROVIDERS]
    found = [came["errors"][0] for came in ai_sdk_client.run([*wrong, *unknown])]
    assert {error["name"] for error in found} == {"AI_APICallError"}
    assert [error["status"] for error in found] == [401] * len(wrong) + [404] * len(unknown)
    assert all("'nobody'" in error["message"] for error in found[len(wrong) :])


def test_a_failure_in_the_stream_is_an_error_with_its_message(served: GatewayThread):
    cases = {
        served.register(upstream, script(Stream("failing", upstream, (BEGUN[upstream], FAILURES[upstream])))): (
            provider,
            upstream,
        )
        for provider, upstream in product(PROVIDERS, UPSTREAMS)
    }
    scenarios = [ask(served, provider, model) for model, (provider, _) in cases.items()]
    for case, came in zip(cases.values(), ai_sdk_client.run(scenarios), strict=True):
        assert "all busy" in came["errors"][0]["message"], case
        assert not any(step["finishReason"] in {"stop", "tool-calls"} for step in came["steps"]), case
