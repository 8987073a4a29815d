"""S1: a provider answers in OpenAI's shape; the program that wanted its own gave up with "error decoding response body".

Source: seeds.md S1, as a stream and as a whole response.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit import Response, Status, StreamReport, collect, transcode
from streamkit.errors import NotThisDialect
from streamkit.read_options import ReadOptions
from streamkit.testing import cuts, source_of
from streamkit.translation.bodies import decode_response
from tests.cli.command import run

GOOD = '{"city": "Oslo", "days": 3}'
BAD = '{"city": Oslo}'
WHOLE = '{"zone": "UTC"}'
#: Three calls, the second of them malformed, each in fragments.
CALLS = [
    ("call_1", "get_weather", [GOOD[:9], GOOD[9:]]),
    ("call_2", "get_weather", [BAD[:4], BAD[4:]]),
    ("call_3", "get_time", [WHOLE]),
]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **beside: Any) -> str:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**head, 'choices': choices, **beside})}\n\n"


def call(index: int, arguments: str, call_id: str = "", name: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    identity = {"id": call_id, "type": "function"} if call_id else {}
    return {"tool_calls": [{"index": index, **identity, "function": function}]}


def fragments() -> list[dict[str, Any]]:
    return [
        delta
        for index, (call_id, name, parts) in enumerate(CALLS)
        for delta in [call(index, "", call_id, name), *(call(index, part) for part in parts)]
    ]


def whole_calls() -> list[dict[str, Any]]:
    return [call(index, "".join(parts), call_id, name) for index, (call_id, name, parts) in enumerate(CALLS)]


def said(deltas: list[dict[str, Any]], **beside: Any) -> list[str]:
    return [chunk({"role": "assistant", "content": None}), *(chunk(delta, **beside) for delta in deltas)]


#: How each provider of the dialect says the same.
PROVIDERS = {
    "openai": [*said(fragments()), chunk({}, "tool_calls"), chunk(None, usage=USAGE), "data: [DONE]\n\n"],
    "openrouter": [
        ": OPENROUTER PROCESSING\n\n",
        *said([{**delta, "content": None, "role": "assistant"} for delta in fragments()], provider="Upstream"),
        ": OPENROUTER PROCESSING\n\n",
        chunk({"role": "assistant", "content": ""}, "tool_calls", provider="Upstream"),
        chunk({"role": "assistant", "content": ""}, usage={**USAGE, "cost": 0.1}, provider="Upstream"),
        "data: [DONE]\n\n",
    ],
    "groq": [*said(whole_calls()), chunk({}, "tool_calls", x_groq={"id": "req_1", "usage": USAGE}), "data: [DONE]\n\n"],
    "together": [
        *said([{"role": "assistant", "content": "", "token_id": 5, **delta} for delta in fragments()]),
        chunk({"role": "assistant", "content": ""}, "tool_calls", usage=USAGE),
        "data: [DONE]\n\n",
    ],
}


def stream_of(provider: str) -> bytes:
    return "".join(PROVIDERS[provider]).encode()


def assert_two_good_and_one_bad(response: Response) -> None:
    assert response.clean
    assert [(each.id, each.name, each.arguments) for each in response.tool_calls] == [
        (call_id, name, "".join(parts)) for call_id, name, parts in CALLS
    ]
    first, bad, last = (each.verdict for each in response.tool_calls)
    assert first.kind == last.kind == "complete"
    assert (bad.kind, bad.position) == ("malformed", BAD.index("Oslo"))
    assert "value" in bad.reason
    assert response.text == ""
    assert response.choices[0].stop_reason == "tool_calls"
    assert (response.usage.input_total, response.usage.output_total) == (11, 7)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_of_three_calls_the_two_good_ones_are_delivered_and_the_bad_one_says_why(provider):
    for reads in cuts(stream_of(provider)):
        assert_two_good_and_one_bad(await collect(source_of(reads), "openai-chat"))


@pytest.mark.parametrize("content", [None, "", ...])
async def test_null_or_missing_content_is_no_error(content):
    delta = {"role": "assistant", "content": content}
    first = chunk({"role": "assistant"} if content is ... else delta)
    stream = first + "".join(chunk(each) for each in whole_calls()) + chunk({}, "tool_calls", usage=USAGE)
    assert_two_good_and_one_bad(await collect(source_of([stream.encode()]), "openai-chat"))


async def translated(to_dialect: str, reads: list[bytes]) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    async with transcode(source_of(reads), "openai-chat", to_dialect, report=report) as stream:
        return b"".join([piece async for piece in stream]), report


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_anthropics_reader_gets_all_three_as_blocks(provider):
    for reads in cuts(stream_of(provider), sample=5):
        output, report = await translated("anthropic", reads)
        assert_two_good_and_one_bad(await collect(source_of([output]), "anthropic"))
        assert report.status is Status.DONE


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_ollamas_reader_gets_the_bad_one_as_an_object(provider):
    for reads in cuts(stream_of(provider), sample=5):
        output, report = await translated("ollama", reads)
        lines = [json.loads(line) for line in output.splitlines()]
        functions = [each["function"] for line in lines for each in line["message"].get("tool_calls", ())]
        assert [function["arguments"] for function in functions] == [
            {"city": "Oslo", "days": 3},
            {"_raw_arguments": BAD},
            {"zone": "UTC"},
        ]
        assert report.losses["arguments_wrapped"] == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_command_line_says_the_same(provider):
    inspected = run("inspect", "--json", stdin=stream_of(provider))
    assert inspected.returncode == Status.DONE
    document = json.loads(inspected.stdout)
    assert document["dialect"] == "openai-chat"
    calls = document["choices"][0]["tool_calls"]
    assert [each["arguments"] for each in calls] == [GOOD, BAD, WHOLE]
    converted = run("convert", "--from", "openai-chat", "--to", "anthropic", stdin=stream_of(provider))
    assert converted.returncode == Status.DONE
    assert converted.stdout.count(b'"type":"tool_use"') == 3
    assert converted.stdout.endswith(b'{"type":"message_stop"}\n\n')


# -- the whole response ------------------------------------------------------------------------------------------------


def whole_response(provider: str) -> bytes:
    """The response of the report, and how each provider of the dialect says it."""
    calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "".join(parts)}}
        for call_id, name, parts in CALLS
    ]
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": calls}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"id": "gen-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    match provider:
        case "openai":
            message |= {"refusal": None, "annotations": []}
            choice["logprobs"] = None
        case "openrouter":
            message |= {"content": "", "refusal": None, "reasoning": None}
            choice |= {"native_finish_reason": "tool_calls", "logprobs": None}
            body |= {"provider": "Upstream", "usage": {**USAGE, "cost": 0.1}}
        case "groq":
            del message["content"]
            body["x_groq"] = {"id": "req_1"}
        case "together":
            for index, each in enumerate(calls):
                each["index"] = index
            choice |= {"seed": 5, "finish_reason": "tool_calls"}
    return json.dumps(body).encode()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_whole_response_delivers_the_two_good_calls_and_says_why_the_bad_one_is_bad(provider):
    response = decode_response(whole_response(provider), provider)
    assert_two_good_and_one_bad(response)
    assert not response.report.repairs
    assert response.report.verdicts == {"complete": 2, "malformed": 1}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_whole_response_says_what_the_stream_says(provider):
    whole = decode_response(whole_response(provider), provider)
    streamed = await collect(source_of([stream_of(provider)]), provider)
    assert whole.tool_calls == streamed.tool_calls
    assert (whole.text, whole.choices[0].stop_reason) == (streamed.text, streamed.choices[0].stop_reason)


def test_arguments_can_be_checked_against_the_schema_of_their_tool():
    pytest.importorskip("jsonschema_rs", reason="extra `schema`")
    days = {"type": "object", "properties": {"days": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": "get_weather", "parameters": days}},
        {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object"}}},
    ]
    response = decode_response(whole_response("openai"), "openai", ReadOptions(tools=tools))
    assert [each.verdict.kind for each in response.tool_calls] == ["schema_invalid", "malformed", "complete"]


def test_the_raw_body_is_on_the_debug_log_without_secrets(caplog):
    body = whole_response("openrouter").replace(
        b'"Upstream"', b'"Bearer abcdef.12345", "api_key": "hush", "note": "sk-or-v1-0123456789"'
    )
    with caplog.at_level("DEBUG", logger="streamkit.translation.bodies"):
        decode_response(body, "openrouter")
    [line] = [record.getMessage() for record in caplog.records if record.name == "streamkit.translation.bodies"]
    assert "get_weather" in line
    assert BAD.replace('"', '\\"') in line
    assert not any(secret in line for secret in ("abcdef", "hush", "sk-or"))
    caplog.clear()
    with caplog.at_level("INFO", logger="streamkit.translation.bodies"):
        decode_response(body, "openrouter")
    assert not caplog.records


def test_a_failure_is_counted_and_says_what_was_found():
    report = StreamReport()
    with pytest.raises(NotThisDialect, match="Bad Gateway"):
        decode_response(b"<html>Bad Gateway</html>", "openrouter", report=report)
    assert report.status is Status.NOT_THIS_DIALECT
    refused = decode_response(b'{"error": {"message": "No endpoints found", "code": 404}}', "openrouter")
    assert refused.report.status is Status.PROVIDER_ERROR
    assert (refused.error.type, refused.error.http_status) == ("not_found", 404)
