"""Short ways to write the streams of the catalogue, and what must come of them."""

from __future__ import annotations

from typing import Any

from tests.vectors import anthropic as am
from tests.vectors import bedrock as br
from tests.vectors import cohere as co
from tests.vectors import gemini as gm
from tests.vectors import mistral as mi
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Form, Output, Said, Use
from tests.vectors.openai_chat import CALLED, DONE
from tests.vectors.vector import Call, lines, named, sse

#: What OpenAI does not say without being asked and Anthropic demands.
NO_USAGE = {"usage_unknown": 1}
NO_COUNTS = dict.fromkeys(
    ["cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens_details", "server_tool_use"]
)


def form(dialect: str, body: bytes, name: str, to: dict[str, Output], expected: dict[str, Any]) -> Form:
    return Form(name=name, dialect=dialect, body=body, to=to, **expected)


def chat(*payloads: Any, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    """A Chat stream: the payloads as ``data:`` events, or its bytes."""
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else sse(*payloads)
    return form("openai-chat", body, name, to, expected)


def calling(
    *payloads: Any, calls: tuple[Call, ...], to: dict[str, Output] | None = None, name: str = "", **expected: Any
) -> Form:
    """A Chat stream that ends by the book; by default it becomes one ``tool_use`` block for each call, in order."""
    to = {"anthropic": messages(*uses(calls), stop="tool_use")} if to is None else to
    return chat(*payloads, CALLED, DONE, name=name, to=to, **{"stop": "tool_calls", "calls": calls, **expected})


def anthropic(*payloads: Any, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else named(*payloads)
    return form("anthropic", body, name, to, expected)


def message(*payloads: Any, to: dict[str, Output], reason: str = "end_turn", **expected: Any) -> Form:
    """An Anthropic stream that starts and ends by the book."""
    return anthropic(am.START, *payloads, am.finish(reason), am.STOP, to=to, **expected)


def ollama(*payloads: Any, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    return form("ollama", lines(*payloads), name, to, expected)


def ollama_turn(*payloads: Any, to: dict[str, Output], **expected: Any) -> Form:
    """Lines with a usual last one."""
    return ollama(*payloads, ol.end(), to=to, **expected)


def bedrock(*parts: br.Pair | bytes, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    return form("bedrock", br.vector(name, *parts).body, name, to, expected)


def gemini(*payloads: Any, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else gm.events(*payloads)
    return form("gemini", body, name, to, expected)


def responses(*payloads: Any, to: dict[str, Output], name: str = "", **expected: Any) -> Form:
    """A Responses stream, its events numbered."""
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else rs.numbered(*payloads)
    return form("openai-responses", body, name, to, expected)


def responses_turn(*payloads: Any, to: dict[str, Output], end: Any = None, **expected: Any) -> Form:
    """A Responses stream that starts and ends by the book."""
    finished = [one for one in payloads if one["type"] == "response.output_item.done"]
    return responses(rs.START, *payloads, end or rs.last("completed", *finished), to=to, **expected)


def cohere(*payloads: Any, to: dict[str, Output], reason: str = "COMPLETE", name: str = "", **expected: Any) -> Form:
    """A Cohere stream that starts and ends by the book."""
    return form("cohere", named(co.START, *payloads, co.finish(reason)), name, to, expected)


def mistral(*payloads: Any, to: dict[str, Output], reason: str = "tool_calls", name: str = "", **expected: Any) -> Form:
    """A Mistral stream that starts and ends by the book."""
    return form("mistral", sse(mi.ROLE, *payloads, mi.finish(reason), mi.DONE), name, to, expected)


def uses(calls: tuple[Call, ...]) -> tuple[Use, ...]:
    return tuple(Use(call.id, call.name, call.arguments) for call in calls)


def messages(*said: Said, stop: str = "end_turn", losses: dict[str, int] | None = None, **rest: Any) -> Output:
    """An Anthropic stream that ends well; its usage was unknown unless given, and what is not given of it is null."""
    unknown = {} if "usage" in rest else NO_USAGE
    if rest.get("usage") is not None:
        rest["usage"] = {**NO_COUNTS, **rest["usage"]}
    return Output(said=said, stop=stop, losses={**unknown, **(losses or {})}, **rest)


def written(*said: Said, stop: str = "stop", losses: dict[str, int] | None = None, **rest: Any) -> Output:
    """A stream of Chat, Ollama or Responses that ends well."""
    return Output(said=said, stop=stop, losses=losses or {}, **rest)


def failed(*said: Said, error: str, losses: dict[str, int] | None = None, **rest: Any) -> Output:
    """A stream of any dialect that ends in an error and without success."""
    return Output(said=said, error=error, losses=losses or {}, **rest)


NO_REASON = "stream truncated: the stream ended without a stop reason"
NO_CONTENT = "stream truncated: the stream ended without any content"
