"""A conversation that is longer than the context window: clients learn it in the words by which they shorten it themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streamkit import transcode
from streamkit.http_errors import decode_error, encode_error, is_retryable

SENTENCES = {
    "openai-chat": {
        "OpenAI": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "SGLang": "Requested token count exceeds the model's maximum context length of 262144 tokens.",
        "OpenRouter": "This endpoint's maximum context length is 131072 tokens. However, you requested about 135349 tokens",
        "llama.cpp": "the request exceeds the available context size, try increasing it",
        "xAI": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Moonshot": "Invalid request: Your request exceeded model token limit: 262144",
        "MiniMax": "invalid params, context window exceeds limit",
        "Poolside": "Input length 262200 exceeds the maximum allowed input length of 262144 tokens",
        "Copilot": "prompt token count of 129000 exceeds the limit of 128000",
        "vLLM": "The prompt (total length 40000) is too long to fit into the model (context length 32768).",
        "vLLM's other": "The decoder prompt (length 50000) is longer than the maximum model length of 32768.",
        "TGI": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        "LM Studio": "Trying to keep the first 8000 tokens when context the overflows. However, the model is loaded with 4096",
        "Alibaba": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        "Z.AI": "Prompt exceeds max length",
    },
    "openai-responses": {"OpenAI": "Your input exceeds the context window of this model."},
    "anthropic": {
        "Anthropic": "prompt is too long: 1022145 tokens > 1000000 maximum",
        "Anthropic's other": "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000",
    },
    "gemini": {
        "Google": "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        "Vertex AI": "Unable to submit request because the input token count is 2097 but model only supports up to 2048.",
    },
    "bedrock": {
        "AWS": "Input is too long for requested model.",
        "Titan": "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9203",
        "Nova": "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    },
    "cohere": {
        "Cohere": "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000.",
        "Cohere's other": "too many tokens: size limit exceeded by 1502 tokens. Try using shorter or fewer inputs.",
    },
    "ollama": {
        "Ollama": "prompt too long; exceeded max context length by 4 tokens",
        "Ollama's other": "the input length exceeds the context length",
    },
    "mistral": {
        "Mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
    },
}
SAID = [(dialect, text) for dialect, texts in SENTENCES.items() for text in texts.values()]
OTHER = [
    (400, "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens"),
    (429, "Request too large for model on tokens per minute (TPM): Limit 6000"),
    (429, "Too many tokens, please wait before trying again."),
    (400, "string too long. Expected a string with maximum length 64"),
    (413, "Request exceeds the maximum size"),
    (400, "messages: the context is missing"),
    (400, "too many tokens in the stop sequence"),
]


def body(dialect: str, message: str) -> bytes:
    error: dict[str, Any] = {"message": message, "type": "invalid_request_error"}
    match dialect:
        case "anthropic":
            return json.dumps({"type": "error", "error": error}).encode()
        case "gemini":
            return json.dumps({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}).encode()
        case "bedrock" | "mistral" | "cohere":
            return json.dumps({"message": message}).encode()
        case "ollama":
            return json.dumps({"error": message}).encode()
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(("dialect", "message"), SAID, ids=str)
@pytest.mark.parametrize("status", [400, 500])
def test_claude_code_and_codex_are_told_in_the_words_they_look_for(dialect: str, message: str, status: int):
    failed = decode_error(status, body(dialect, message), dialect)
    assert failed.type == "too_large"
    assert not is_retryable(failed)
    if dialect != "anthropic":
        answer = encode_error(failed, "anthropic")
        assert answer.status == 400
        error = json.loads(answer.body)["error"]
        assert error["type"] == "invalid_request_error"
        assert error["message"].lower().startswith("prompt is too long")
        assert message in error["message"]
    for client in {"openai-chat", "openai-responses"} - {dialect}:
        answer = encode_error(failed, client)
        assert answer.status == 400
        assert json.loads(answer.body)["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize(("status", "message"), OTHER)
def test_other_things_that_are_too_many_are_none(status: int, message: str):
    failed = decode_error(status, body("openai-chat", message), "openai-chat")
    assert "prompt is too long" not in json.loads(encode_error(failed, "anthropic").body)["error"]["message"]


def test_a_code_says_it_without_a_sentence():
    failed = decode_error(400, b'{"error": {"message": "no", "code": "context_length_exceeded"}}', "openai-chat")
    assert json.loads(encode_error(failed, "anthropic").body)["error"]["message"] == "prompt is too long: no"


def test_within_a_dialect_the_provider_is_quoted():
    said = body("anthropic", SENTENCES["anthropic"]["Anthropic's other"])
    assert encode_error(decode_error(400, said, "anthropic"), "anthropic").body == said.replace(b'": ', b'":').replace(
        b', "', b',"'
    )


@pytest.mark.parametrize(
    ("to", "words"), [("anthropic", b'"prompt is too long: '), ("openai-responses", b'"context_length_exceeded"')]
)
async def test_in_a_stream_as_well(to: str, words: bytes):
    message = SENTENCES["openai-chat"]["SGLang"]
    said = {"error": {"message": message, "type": "BadRequestError", "code": 400}}

    async def source() -> AsyncIterator[bytes]:
        yield b"data: " + json.dumps(said).encode() + b"\n\n"

    async with transcode(source(), "openai-chat", to) as stream:
        written = b"".join([chunk async for chunk in stream])
    assert words in written
    assert message.encode() in written


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("message", SENTENCES["openai-chat"].values())
def test_a_server_that_speaks_the_clients_dialect_and_says_it_in_its_own_words_is_understood(status: int, message: str):
    said = {"type": "error", "error": {"type": "BadRequestError", "message": message}}
    answer = encode_error(decode_error(status, json.dumps(said).encode(), "anthropic"), "anthropic")
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["message"] == f"prompt is too long: {message}"
    for dialect in ("openai-chat", "openai-responses"):
        for code in (400, None, "invalid_parameter_error"):
            said = {"error": {"message": message, "type": "BadRequestError", "param": "input_tokens", "code": code}}
            answer = encode_error(decode_error(status, json.dumps(said).encode(), dialect), dialect)
            assert answer.status == 400
            assert json.loads(answer.body)["error"] == said["error"] | {"code": "context_length_exceeded"}


@pytest.mark.parametrize("code", ["context_length_exceeded", "model_max_prompt_tokens_exceeded"])
def test_a_code_that_says_it_stays(code: str):
    said = {"error": {"message": "no", "type": "invalid_request_error", "param": "messages", "code": code}}
    answer = encode_error(decode_error(400, json.dumps(said).encode(), "openai-chat"), "openai-chat")
    assert json.loads(answer.body) == said
