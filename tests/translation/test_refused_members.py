"""What servers say of a member that they do not take: which member is meant, and whether the request can do without it.

The texts are those that users reported of OpenAI, Azure, Anthropic, Google, Mistral, AWS, Groq, xAI, Cohere, Fireworks, vLLM,
LiteLLM, OpenRouter and Ollama.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.events import ProviderFailed
from streamkit.http_errors import decode_error
from streamkit.translation.refused_members import LEARNABLE, refused_members

MARK = {"type": "ephemeral", "scope": "global", "ttl": "1h"}
TEXT = {"type": "text", "text": "a", "cache_control": MARK}
TOOL = {"type": "custom", "name": "f", "strict": True, "cache_control": MARK}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [],
    "stream": True,
    "tools": [TOOL],
    "tool_choice": "auto",
    "stop": ["x"],
    "n": 1,
    "temperature": 0,
    "top_p": 1,
    "top_k": 1,
    "seed": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "user": "u",
    "logprobs": True,
    "top_logprobs": 2,
    "reasoning_effort": "low",
    "verbosity": "low",
    "parallel_tool_calls": True,
    "max_tokens": 9,
    "store": False,
    "stream_options": {"include_usage": True},
    "response_format": {},
    "metadata": {},
    "service_tier": "flex",
    "logit_bias": {},
}
CLAUDE = {
    "system": [TEXT],
    "messages": [{"role": "user", "content": [TEXT]}],
    "tools": [TOOL],
    "temperature": 1,
    "top_p": 1,
}
CLAUDE |= {"top_k": 1, "thinking": {}, "context_management": {}, "output_config": {"effort": "low", "format": {}}}
GOOGLE = {
    "contents": [],
    "generationConfig": {
        "seed": 1,
        "frequencyPenalty": 1,
        "responseLogprobs": True,
        "logprobs": 1,
        "responseSchema": {},
        "thinkingConfig": {"thinkingLevel": "LOW"},
    },
}
AWS = {"messages": [], "inferenceConfig": {"temperature": 1, "stopSequences": ["x"], "maxTokens": 1}}
AWS |= {"additionalModelRequestFields": {"top_k": 1, "reasoning_effort": "low"}}
RESPONSES = {"input": "a", "reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}}


def openai(message: str, **members: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **members}}


def claude(message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def pydantic(*names: str) -> list[dict[str, Any]]:
    return [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"} for name in names
    ]


#: The dialect, the body that was sent, the body of the error, and the paths of the members to leave out.
LASTING = [
    ("openai-chat", CHAT, openai("Unsupported parameter: 'temperature' is not supported with this model."), "temperature"),
    ("openai-chat", CHAT, openai("Unknown parameter: 'reasoning_effort'.", code="unknown_parameter"), "reasoning_effort"),
    ("openai-chat", CHAT, openai("Unrecognized request argument supplied: stream_options"), "stream_options"),
    (
        "openai-chat", CHAT,
        openai("Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported."),
        "temperature",
    ),
    ("openai-responses", RESPONSES, openai("Unsupported parameter: 'reasoning.effort' is not supported with this model."), "reasoning.effort"),
    ("openai-responses", RESPONSES, openai("Unknown parameter: 'text.verbosity'."), "text.verbosity"),
    ("openai-responses", RESPONSES, {"code": "Client specified an invalid argument", "error": "Model grok-4-1-fast does not support parameter reasoningEffort."}, "reasoning.effort"),
    ("openai-chat", CHAT, {"code": "Client specified an invalid argument", "error": "Model grok-4 does not support parameter presencePenalty."}, "presence_penalty"),
    ("openai-chat", CHAT, {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: frequencyPenalty"}, "frequency_penalty"),
    ("openai-chat", CHAT, openai("property 'verbosity' is unsupported"), "verbosity"),
    ("openai-chat", CHAT, openai("`logprobs` is not supported with this model"), "logprobs top_logprobs"),
    ("openai-chat", CHAT, openai("Extra inputs are not permitted, field: 'seed', value: 1"), "seed"),
    ("openai-chat", CHAT, {"detail": pydantic("verbosity")}, "verbosity"),
    ("openai-chat", CHAT, {"object": "error", "message": str(pydantic("seed")), "type": "BadRequestError", "code": 400}, "seed"),
    ("openai-chat", CHAT, {"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 1}]", "code": 400}, "seed"),
    ("openai-chat", CHAT, {"object": "error", "message": orjson.dumps({"detail": pydantic("frequency_penalty")}).decode(), "type": "internal_error_proxy"}, "frequency_penalty"),
    ("openai-chat", CHAT, openai("litellm.UnsupportedParamsError: vertex_ai does not support parameters: ['parallel_tool_calls'], for model=x. To drop these, set `litellm.drop_params=True`"), "parallel_tool_calls"),
    ("openai-chat", CHAT, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": orjson.dumps(openai("Unsupported parameter: 'top_p' is not supported with this model.")).decode()}}}, "top_p"),
    ("openai-chat", CHAT, openai('Invalid JSON payload received. Unknown name "frequency_penalty": Cannot find field.\nInvalid JSON payload received. Unknown name "seed": Cannot find field.'), "frequency_penalty seed"),
    ("openai-chat", CHAT, openai("invalid temperature: only 1 is allowed for this model"), "temperature"),
    ("openai-chat", CHAT, openai("deepseek-reasoner does not support the parameter `temperature`"), "temperature"),
    ("openai-chat", CHAT, openai("litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0.0. Only temperature=1 is supported."), "temperature"),
    ("openai-chat", CHAT, openai("Extra parameters ['seed'] are not allowed when extra-parameters is not set or set to be 'error'."), "seed"),
    ("openai-chat", CHAT, openai("Unsupported parameter(s): `user`, `seed`"), "user"),
    ("openai-chat", CHAT, openai("1 validation error for ChatCompletionRequest\nuser\n  Extra inputs are not permitted [type=extra_forbidden]"), "user"),
    ("openai-chat", CHAT, openai('"llama3.1:8b" does not support thinking'), "reasoning_effort"),
    ("ollama", {"model": "m", "messages": [], "think": True}, {"error": '"llama3.1:8b" does not support thinking'}, "think"),
    ("cohere", {"messages": [], "tools": [{"function": {"strict": True}}], "k": 1}, {"message": "unknown field: parameter 'strict' is not a valid field."}, "tools.*.function.strict"),
    ("mistral", CHAT, {"object": "error", "message": {"detail": pydantic("seed")}, "type": "invalid_request_error"}, "seed"),
    ("mistral", CHAT, {"detail": pydantic("user", "seed")}, "user seed"),
    ("anthropic", CLAUDE, claude("context_management: Extra inputs are not permitted"), "context_management"),
    ("anthropic", CLAUDE, claude("system.0.cache_control.ephemeral.scope: Extra inputs are not permitted"), "system.*.cache_control.scope"),
    ("anthropic", CLAUDE, claude("messages.0.content.0.text.cache_control.ttl: Extra inputs are not permitted"), "messages.*.content.*.cache_control.ttl"),
    ("anthropic", CLAUDE, claude("tools.0.custom.strict: Extra inputs are not permitted"), "tools.*.strict"),
    ("anthropic", CLAUDE, claude("output_config.effort: Extra inputs are not permitted"), "output_config.effort"),
    ("anthropic", CLAUDE, claude("`temperature` is deprecated for this model."), "temperature"),
    ("gemini", GOOGLE, {"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"seed\" at 'generation_config': Cannot find field.", "status": "INVALID_ARGUMENT"}}, "generationConfig.seed"),
    ("gemini", GOOGLE, {"error": {"code": 400, "message": "Thinking level is not supported for this model.", "status": "INVALID_ARGUMENT"}}, "generationConfig.thinkingConfig.thinkingLevel"),
    ("gemini", GOOGLE, {"error": {"code": 400, "message": "Logprobs is not enabled for models/gemini-2.5-pro", "status": "INVALID_ARGUMENT"}}, "generationConfig.logprobs generationConfig.responseLogprobs"),
    ("gemini", GOOGLE, {"error": {"code": 400, "message": "Unable to submit request because Logprobs is not supported for this model.", "status": "INVALID_ARGUMENT"}}, "generationConfig.logprobs generationConfig.responseLogprobs"),
    ("bedrock", AWS, {"message": "The model returned the following errors: `temperature` is deprecated for this model."}, "inferenceConfig.temperature"),
    ("bedrock", AWS, {"message": "The model returned the following errors: Malformed input request: #: extraneous key [top_k] is not permitted, please reformat your input and try again."}, "additionalModelRequestFields.top_k"),
    ("bedrock", AWS, {"message": "The model returned the following errors: Unknown parameter: 'reasoning_effort'."}, "additionalModelRequestFields.reasoning_effort"),
    ("bedrock", AWS, {"message": "This model doesn't support the temperature field. Remove temperature and try again."}, "inferenceConfig.temperature"),
]  # fmt: skip
#: Refused together with another member.
PASSING = [
    ("anthropic", CLAUDE, claude("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode."), "temperature"),
    ("anthropic", CLAUDE, claude("`top_k` must be unset when thinking is enabled."), "top_k"),
    ("anthropic", CLAUDE, claude("`temperature` and `top_p` cannot both be specified for this model. Please use only one."), "top_p"),
    ("openai-chat", CHAT, openai("gpt-5-nano doesn't support temperature=0.1 while reasoning is active. Only temperature=1 is supported unless reasoning.effort resolves to 'none'"), "temperature"),
    ("bedrock", AWS, {"message": "temperature is not supported when thinking is enabled"}, "inferenceConfig.temperature"),
    ("openai-chat", CHAT, openai("`top_p` is not supported with this model when reasoning_effort is set."), "top_p"),
]  # fmt: skip
#: The client's own errors, and members that the request needs.
STAYING = [
    ("openai-chat", CHAT, openai("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 5 instead."), ""),
    ("openai-chat", CHAT, openai("Invalid type for 'temperature': expected a decimal, but got a string instead."), ""),
    ("openai-chat", CHAT, openai("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low' and 'high'.", code="unsupported_value"), ""),
    ("openai-chat", CHAT, openai("Unsupported value: 'low' is not supported with the 'm' model. Supported values are: 'medium'.", param="verbosity"), ""),
    ("openai-chat", CHAT, openai("Unsupported parameter: 'stop' is not supported with this model."), ""),
    ("openai-chat", CHAT, openai("Unsupported parameter: 'max_tokens' is not supported with this model."), ""),
    ("openai-chat", CHAT, openai("Unsupported parameter: 'response_format' is not supported with this model."), ""),
    ("openai-chat", CHAT, openai("Unsupported parameter: 'logit_bias' is not supported with this model."), ""),
    ("openai-chat", CHAT, openai("Unknown parameter: 'store'."), ""),
    ("openai-chat", CHAT, openai("Unknown parameter: 'min_p'."), ""),  # the request has none
    ("openai-chat", CHAT, openai("Unrecognized request argument supplied: functions"), ""),
    ("openai-chat", CHAT, openai("m does not support tools"), ""),
    ("openai-chat", CHAT, openai("m does not support image input."), ""),
    ("openai-chat", CHAT, openai("Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'."), ""),
    ("openai-chat", CHAT, openai("Extra parameters ['n'] are not allowed when extra-parameters is not set or set to be 'error'."), ""),
    ("openai-chat", CHAT, openai("Tool choice is not supported with this model"), ""),
    ("openai-chat", CHAT, openai("'messages.1' : property 'user' is unsupported"), ""),
    ("openai-chat", CHAT, openai("This model's maximum context length is 4096 tokens."), ""),
    ("mistral", CHAT, {"detail": pydantic("store", "seed")}, ""),
    ("mistral", CHAT, {"detail": [{"type": "extra_forbidden", "loc": ["body"], "msg": "Extra inputs are not permitted"}]}, ""),
    ("anthropic", CLAUDE, claude("messages.0.content.0.tool_use.text: Extra inputs are not permitted"), ""),
    ("anthropic", CLAUDE, claude("tools.0.custom.defer_loading: Extra inputs are not permitted"), ""),
    ("anthropic", CLAUDE, claude("adaptive thinking is not supported on this model"), ""),
    ("gemini", GOOGLE, {"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[5].parameters': Cannot find field.", "status": "INVALID_ARGUMENT"}}, ""),
    ("bedrock", AWS, {"message": "This model doesn't support the stopSequences field. Remove stopSequences and try again."}, ""),
    ("bedrock", AWS, {"message": "Malformed input request: #/messages/0/content/0: extraneous key [type] is not permitted, please reformat your input"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "sent", "error", "members", "lasts"),
    [*((*row, True) for row in LASTING), *((*row, False) for row in PASSING), *((*row, None) for row in STAYING)],
)
def test_which_members_an_error_refuses(dialect, sent, error, members, lasts):
    failed = decode_error(400, orjson.dumps(error), dialect)
    changes, found = refused_members(failed, orjson.dumps(sent))
    assert [change.path for change in changes] == members.split()
    assert not members or found == lasts


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_bound_of_the_output_is_renamed_if_the_error_says_how(name):
    [other] = {"max_tokens", "max_completion_tokens"} - {name}
    failed = ProviderFailed(
        "invalid_request", f"Unsupported parameter: '{name}' is not supported with this model. Use '{other}' instead."
    )
    (change,), lasts = refused_members(failed, orjson.dumps({name: 9}))
    assert (change.path, change.name, lasts) == (name, other, True)
    assert refused_members(failed, orjson.dumps({other: 9}))[0] == ()


def test_nothing_that_a_request_needs_may_be_left_out():
    names = {path.split(".")[0] for path in LEARNABLE if "." not in path} | {
        path.rpartition(".")[2] for path in LEARNABLE
    }
    needed = "model stream messages input contents system systemInstruction instructions tools functions tool_choice toolConfig"
    form = "response_format format responseSchema responseMimeType max_tokens max_completion_tokens max_output_tokens maxTokens n"
    assert not names & {
        *needed.split(),
        *form.split(),
        "stop",
        "stopSequences",
        "stop_sequences",
        "store",
        "logit_bias",
    }
