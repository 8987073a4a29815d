"""A whole conversation with tools through the running gateway: two calls at once, their results, the answer.

Every client's dialect from every upstream's, streaming and whole. What the client holds of the first leg goes back as it is,
and the upstream must get its own calls again, each with its result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, Final, TypeAlias

import pytest

from streamkit.conversation.checks import check_pairing
from streamkit.conversation.messages import Choice, Reasoning, Request, Response, Text, ToolCall, ToolResult
from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.events import Event, Opaque, ResponseFinished, StreamEnded, ToolCallFinished, UsageReported, Verdict
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_name
from streamkit.translation.bodies import decode_request, encode_response
from tests.clients.expected import id_in
from tests.gateway.clients.in_thread import UPSTREAMS, GatewayThread
from tests.gateway.clients.judging import Clients
from tests.gateway.clients.programs import PROGRAMS, QUESTION, SYSTEM, TOOLS, Program, Told, result_of, schema
from tests.web.evil import Script
from tests.web.faults import good
from tests.web.faults import whole as answer_of

VENDORS: Final = {"openai-chat": "openai", "openai-responses": "openai", "gemini": "google"}
FIRST, LAST = "Let me look: „grün“\n", "½ of it, and 5."
CALLS: Final = {"call_1": ("get_weather", {"city": "Zürich", "days": 1}), "call_2": ("add", {"a": 2, "b": 3})}


#: Events that a stream lacks which is cut behind all of its calls, or inside of the last one.
Cut: TypeAlias = tuple[type[Event], ...]
CUT_BEHIND: Final[Cut] = (ResponseFinished, StreamEnded)
CUT_INSIDE: Final[Cut] = (ToolCallFinished, *CUT_BEHIND)


def script(upstream: str, *, stream: bool = True, parts: list[Any], stop: Any, cut: Cut = ()) -> Script:
    """An answer of these parts, in chunks of an event each, or whole; a stream that is ``cut`` lacks the events of its end."""
    choice = Choice(parts=parts, stop_reason=stop)
    usage = UsageReported(input_total=9, output_total=14)
    vendor = VENDORS.get(upstream, upstream)
    said = Response(upstream, id="r", model="m", created=1, vendor=vendor, choices=[choice], usage=usage, clean=True)
    if not stream and DIALECTS[upstream].answers_whole:
        return answer_of(upstream, encode_response(said, upstream))
    encoder = DIALECTS[upstream].encoder(Encoding(), StreamReport())
    events = [event for event in response_events(said) if not isinstance(event, cut)]
    pieces = [*(encoder.feed([event]) for event in events), b"" if cut else encoder.finish()]
    return good(upstream, [piece for piece in pieces if piece])


def calls() -> list[ToolCall]:
    return [
        ToolCall(index, call_id, name, json.dumps(arguments, ensure_ascii=False), verdict=Verdict("complete"))
        for index, (call_id, (name, arguments)) in enumerate(CALLS.items())
    ]


def two_legs(served: GatewayThread, upstream: str, *, stream: bool, parts: list[Any]) -> str:
    """The model that says ``parts`` when it is first asked, and ``LAST`` then."""
    first = script(upstream, stream=stream, parts=parts, stop="tool_calls")
    return served.register(upstream, first, script(upstream, stream=stream, parts=[Text(LAST)], stop="stop"))


def asked_for(served: GatewayThread, model: str, upstream: str) -> tuple[Request, Request]:
    """Both requests that came to the upstream."""
    first, second = (decode_request(request.body, upstream) for request in served.asked(model))
    return first, second


EVERY_WAY = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@EVERY_WAY
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.dialect)
def test_a_tool_loop(program: Program, upstream: str, stream: bool, served: GatewayThread, client: Clients):
    model = two_legs(served, upstream, stream=stream, parts=[Text(FIRST), *calls()])
    assert program.run(client(program.package), model, stream) == Told(FIRST, list(CALLS.values()), LAST)
    check_legs(*asked_for(served, model, upstream), with_ids=program.dialect != "ollama")


def check_legs(first: Request, second: Request, *, with_ids: bool) -> None:
    """The upstream was told all that its client was told, and its calls came back with their results.

    ``with_ids``: the client knows of the ids of calls. Ollama's upstreams give none.
    """
    for request in (first, second):
        tools = {tool.name: without_bounds(tool.parameters) for tool in request.tools}
        assert tools == {name: without_bounds(schema(name)) for name in TOOLS}
        assert texts_of(request, "system") == SYSTEM
        assert texts_of(request, "user") == QUESTION
    assert texts_of(second, "assistant") == FIRST
    check_pairing(second)
    made, results = parts_of(second, ToolCall), parts_of(second, ToolResult)
    assert [(call.name, json.loads(call.arguments)) for call in made] == list(CALLS.values())
    assert [result.text for result in results] == [result_of(*call) for call in CALLS.values()]
    assert [result.call_id for result in results] == [call.id for call in made]
    if with_ids and second.dialect != "ollama":
        assert [call.id for call in made] == [id_in(second.dialect, call_id) for call_id in CALLS]


def without_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Ollama's client and dialect have no place for the word that forbids other members."""
    return {name: value for name, value in schema.items() if name != "additionalProperties"}


def parts_of(request: Request, kind: type) -> list[Any]:
    return [part for turn in request.turns for part in turn.parts if type(part) is kind]


def texts_of(request: Request, role: str) -> str:
    return "".join(
        part.text for turn in request.turns if turn.role == role for part in turn.parts if type(part) is Text
    )


THOUGHT: Final = "hm, „hm“"
SIGNATURE: Final = "c2lnbmVk"


def signing() -> Iterator[Any]:
    """Clients that have a place for what only the model's vendor can read, each way, from two vendors."""
    able = [program for program in PROGRAMS if program.dialect != "ollama"]
    for upstream, program, stream in product(("anthropic", "gemini"), able, (True, False)):
        name = f"{upstream}-to-{program.dialect}-{'stream' if stream else 'whole'}"
        yield pytest.param(program, upstream, stream, id=name)


@pytest.mark.parametrize(("program", "upstream", "stream"), list(signing()))
def test_what_only_its_vendor_can_read_comes_back_to_it(
    program: Program, upstream: str, stream: bool, served: GatewayThread, client: Clients
):
    reasoning, made = Reasoning(THOUGHT), calls()
    signed: Reasoning | ToolCall = reasoning if upstream == "anthropic" else made[0]
    signed.signature = Opaque(VENDORS.get(upstream, upstream), SIGNATURE)
    model = two_legs(served, upstream, stream=stream, parts=[reasoning, Text(FIRST), *made])
    program.run(client(program.package), model, stream)
    _, second = asked_for(served, model, upstream)
    back = [part for part in parts_of(second, type(signed)) if part.signature is not None]
    assert [part.signature for part in back] == [signed.signature]
    assert signed is made[0] or back[0].text == THOUGHT


# -- what a request renames --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["files.read", "mcp:weather/now", "n" * 65])
def test_a_call_has_the_name_that_its_tool_has_for_the_client(name: str, served: GatewayThread, client: Clients):
    """Gemini's names may have dots, colons and slashes and be longer than others'."""
    types = pytest.importorskip("google.genai.types")
    made = ToolCall(0, "call_1", portable_name(name), "{}", verdict=Verdict("complete"))
    model = served.register("anthropic", script("anthropic", stream=False, parts=[made], stop="tool_calls"))
    declared = types.FunctionDeclaration(name=name, parameters_json_schema={"type": "object", "properties": {}})
    found = client("google.genai").models.generate_content(
        model=model, contents="?", config={"tools": [types.Tool(function_declarations=[declared])]}
    )
    assert [call.name for call in found.function_calls] == [name]


@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic"])
def test_a_custom_tool_is_called_as_one(upstream: str, served: GatewayThread, client: Clients):
    """As Codex offers `apply_patch`: free text in, free text out, whatever the upstream makes of it."""
    made = ToolCall(0, "call_1", "apply_patch", '{"input":"*** Begin"}', verdict=Verdict("complete"))
    model = served.register(upstream, script(upstream, stream=False, parts=[made], stop="tool_calls"))
    tools = [{"type": "custom", "name": "apply_patch", "format": {"type": "text"}}]
    found = client("openai").responses.create(model=model, input="?", tools=tools)
    assert [(item.type, item.name, item.input) for item in found.output] == [
        ("custom_tool_call", "apply_patch", "*** Begin")
    ]
