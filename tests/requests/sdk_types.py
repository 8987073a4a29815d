"""Request bodies against the official clients' own types, deeply: ``faults(dialect, body)``.

Where a client's type says less than its wire (a role that is any text, a field that only the server knows), ``CHANGES`` says it.
Tests skip, with a reason, without the package (extra ``clients``).
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import orjson
import pytest

from tests.requests.typed import Checker, Fault, shown

#: Hints that replace a client's own, by class and field, for one dialect.
CHANGES: dict[str, Callable[[Any], dict[tuple[str, str], Any]]] = {
    "gemini": lambda types: {("Content", "role"): Literal["user", "model"], ("GenerationConfig", "serviceTier"): str},
    "gemini-interactions": lambda _types: {("CreateModelInteractionParam", "model"): str},
    # the TypedDict has the client's own name for `schema`
    "mistral": lambda models: {("ResponseFormatTypedDict", "json_schema"): models.JSONSchema},
    # api/types.go knows ids of calls, more roles than any text, and schemas as far as dialects.md §4.1 says
    "ollama": lambda types: {
        ("ChatRequest", "messages"): Sequence[types.Message],
        ("ChatRequest", "options"): types.Options,
        ("ChatRequest", "think"): bool | Literal["low", "medium", "high", "max"],
        ("Message", "role"): Literal["system", "user", "assistant", "tool"],
        ("Message", "images"): Sequence[str],
        ("Message", "tool_call_id"): str,
        ("Message.ToolCall", "id"): str,
        ("Tool.Function.Parameters", "properties"): Mapping[str, dict[str, Any]],
    },
}


def faults(dialect: str, body: Mapping[str, Any]) -> list[str]:
    """What the official client of a dialect would not have let its user write, each with its path; empty if all is well."""
    value = orjson.loads(orjson.dumps(body))
    if dialect == "bedrock":
        return [f"{shown(path)}: {words}" for path, words in bedrock_faults(value)]
    checker, hint = judge(dialect)
    return checker.faults(value, hint)


def _package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"the official types: {name} (extra `clients`)")


@cache
def judge(dialect: str) -> tuple[Checker, Any]:
    """The checker for a dialect, and the type of its whole body."""
    match dialect:
        case "openai-chat":
            return Checker(), _package("openai.types.chat.completion_create_params").CompletionCreateParams
        case "openai-responses":
            return Checker(), _package("openai.types.responses.response_create_params").ResponseCreateParams
        case "anthropic":
            return Checker(), _package("anthropic.types.message_create_params").MessageCreateParams
        case "mistral":
            models = _package("mistralai.client.models")
            either = models.ChatCompletionRequestTypedDict | models.ChatCompletionStreamRequestTypedDict
            return Checker(CHANGES[dialect](models)), either
        case "cohere":
            client = _package("cohere.v2.client").V2Client
            return Checker(), parameters_of(client.chat, without={"request_options"}, beside={"stream": bool})
        case "ollama":
            types = _package("ollama._types")
            return Checker(CHANGES[dialect](types)), types.ChatRequest
        case "gemini":
            types = _package("google.genai.types")
            return Checker(CHANGES[dialect](types)), gemini_body(types)
        case "gemini-interactions":
            types = _package("google.genai.interactions")
            return Checker(CHANGES[dialect](types)), types.CreateModelInteractionParam
    raise LookupError(f"no official client is known for {dialect}")


def parameters_of(method: Callable[..., Any], *, without: set[str], beside: dict[str, Any]) -> Any:
    """The keyword parameters of a client's method, as a type of object."""
    hints = typing.get_type_hints(method, include_extras=True)
    keys = {
        name: hints[name] if parameter.default is parameter.empty else typing.NotRequired[hints[name]]
        for name, parameter in inspect.signature(method).parameters.items()
        if name in hints and name not in without
    }
    return typing.TypedDict("Parameters", {**keys, **{name: typing.NotRequired[hint] for name, hint in beside.items()}})


def gemini_body(types: Any) -> Any:
    """The body of ``generateContent``: the client assembles it from its parts' types, and has none for the whole."""
    return typing.TypedDict(
        "GenerateContentBody",
        {
            "contents": typing.Required[list[types.Content]],
            "systemInstruction": types.Content,
            "tools": list[types.Tool],
            "toolConfig": types.ToolConfig,
            "generationConfig": types.GenerationConfig,
            "safetySettings": list[types.SafetySetting],
            "cachedContent": str,
            "labels": dict[str, str],
            "serviceTier": str,
            "store": bool,
        },
        total=False,
    )


# -- Bedrock: botocore's own validator, and the words and patterns of its model that it leaves unchecked ----------------


@cache
def converse_shape() -> Any:
    session = _package("botocore.session").get_session()
    return session.get_service_model("bedrock-runtime").operation_model("ConverseStream").input_shape


def bedrock_faults(body: dict[str, Any]) -> list[Fault]:
    validate = _package("botocore.validate")
    body = {"modelId": "m", **body}
    report = validate.ParamValidator().validate(body, converse_shape())
    said = [((), line) for line in report.generate_report().splitlines()]
    return [*said, *shape_faults(body, converse_shape(), ())]


def shape_faults(value: Any, shape: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Text that a shape's model does not allow; botocore leaves that to the server."""
    kind = shape.type_name
    if kind == "structure" and not shape.is_document_type and isinstance(value, dict):
        for name in value.keys() & shape.members.keys():
            yield from shape_faults(value[name], shape.members[name], (*path, name))
    elif kind == "list" and isinstance(value, list):
        for number, inner in enumerate(value):
            yield from shape_faults(inner, shape.member, (*path, number))
    elif kind == "map" and isinstance(value, dict):
        for key, inner in value.items():
            yield from shape_faults(inner, shape.value, (*path, key))
    elif kind == "string" and isinstance(value, str):
        yield from word_faults(value, shape, path)


def word_faults(value: str, shape: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    pattern, most = shape.metadata.get("pattern"), shape.metadata.get("max")
    if shape.enum and value not in shape.enum:
        yield path, f"{value!r} is none of {', '.join(map(repr, shape.enum))}"
    if pattern and not re.fullmatch(pattern, value):
        yield path, f"{value!r} does not match {pattern}"
    if most is not None and len(value) > most:
        yield path, f"longer than {most} characters"
