"""The words of a sound are text, and code that ran is where a response says nothing else (dialects.md §7.4)."""

from __future__ import annotations

import json

import pytest

from streamkit import transcode
from streamkit.dialects import DIALECTS
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response

OUTPUT = "42 boats"


def chat(message: dict[str, object]) -> dict[str, object]:
    choices = [{"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "stop"}]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}


def gemini(*parts: dict[str, object]) -> dict[str, object]:
    candidates = [{"index": 0, "content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}]
    return {"candidates": candidates, "modelVersion": "m", "responseId": "r"}


CODE = (
    {"executableCode": {"language": "PYTHON", "code": "print(42)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": OUTPUT}},
)
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "bash_code_execution", "input": {"command": "boats"}}
RESULT = {
    "type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1",
    "content": {"type": "bash_code_execution_result", "stdout": OUTPUT, "stderr": "", "return_code": 0, "content": []},
}  # fmt: skip
#: Bodies that say nothing but what ran.
BODIES = {
    "gemini": gemini(*CODE),
    "anthropic": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [SERVER, RESULT], "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "openai-responses": {
        "id": "r", "object": "response", "model": "m", "status": "completed",
        "output": [{"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "c", "code": "print(42)", "outputs": [{"type": "logs", "logs": OUTPUT}]}],
    },
    "gemini-interactions": {
        "id": "r", "object": "interaction", "model": "m", "status": "completed",
        "steps": [{"type": "code_execution_call", "id": "1", "arguments": {"language": "python", "code": "print(42)"}}, {"type": "code_execution_result", "call_id": "1", "result": OUTPUT}],
    },
}  # fmt: skip


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize("to", ["openai-chat", "ollama", "anthropic", "bedrock", "gemini"])
def test_a_response_of_nothing_but_code_says_the_code_and_its_output(source, to):
    found = decode_response(json.dumps(BODIES[source]).encode(), source)
    written = encode_response(found, to).decode()
    assert OUTPUT in written
    assert ("```" in written) == (source != to)
    assert bool(found.report.losses["server_tool"]) == (source != to)


async def test_so_does_a_stream_and_one_that_says_anything_else_has_its_own_text_alone():
    blocks = "```python\nprint(42)\n```\n```\n42 boats\n```\n"
    for parts, said in (
        (CODE, blocks),
        ((*CODE, {"text": "\n"}), f"\n{blocks}"),
        ((*CODE, {"text": "Many."}), "Many."),
    ):
        body = b"data: %b\r\n\r\n" % json.dumps(gemini(*parts)).encode()
        async with transcode(source_of([body]), "gemini", "openai-chat") as pipe:
            chunks = [json.loads(line[6:]) for line in b"".join([piece async for piece in pipe]).split(b"\n\n")[:-2]]
        assert "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]) == said


@pytest.mark.parametrize(
    "to", sorted(name for name in DIALECTS if DIALECTS[name].answers_whole and name != "openai-chat")
)
def test_the_words_of_a_sound_are_text(to):
    report = StreamReport()
    body = json.dumps(chat({"audio": {"id": "a", "data": "AAAA", "expires_at": 1, "transcript": "Good day."}})).encode()
    found = decode_response(body, "openai-chat", report=report)
    assert decode_response(encode_response(found, to), to).text == "Good day."
    assert report.losses["audio"] == 1
    back = json.loads(encode_response(decode_response(body, "openai-chat"), "openai-chat"))
    assert back["choices"][0]["message"]["audio"]["transcript"] == "Good day."
