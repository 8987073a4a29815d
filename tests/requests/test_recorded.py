"""The recorded requests: each comes back as it was, and in another dialect its official client lets its user write it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, drop_unreadable, encode_request
from tests.corpora import requests
from tests.requests.sdk_types import faults


def there_and_back(request: Any, dialect: str, **target: Any) -> tuple[Any, StreamReport]:
    report = StreamReport()
    return orjson.loads(encode_request(request, dialect, report=report, **target)), report


# -- within a dialect: what is written, but for members that say nothing or the default -----------------------------------


def of_anthropic(request: Any) -> Any:
    """One plain text is a string, and a mark's span and whether a result is an error are left out where they are the default."""
    if isinstance(request, list):
        return [of_anthropic(value) for value in request]
    if not isinstance(request, dict):
        return request
    said = {name: of_anthropic(value) for name, value in request.items() if value is not None}
    for name in {"content", "system"} & said.keys():
        if isinstance(said[name], list) and len(said[name]) == 1 and said[name][0].keys() == {"type", "text"}:
            said[name] = said[name][0]["text"]
    default = {"ephemeral": ("ttl", "5m"), "tool_result": ("is_error", False)}.get(str(said.get("type")))
    if default is not None and said.get(default[0]) == default[1]:
        del said[default[0]]
    return said


def of_gemini(request: Any) -> Any:
    """The names are the wire's, nulls and parts that say nothing are left out; schemas and arguments are as they are."""
    if isinstance(request, list):
        return [of_gemini(each) for each in request if each != {"text": ""}]
    if not isinstance(request, dict):
        return request
    names = {name: "".join([name.split("_")[0], *map(str.capitalize, name.split("_")[1:])]) for name in request}
    whole = {"parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "args", "response"}
    return {
        names[name]: value if names[name] in whole else of_gemini(value)
        for name, value in request.items()
        if value is not None
    }


def of_chat(request: dict[str, Any]) -> dict[str, Any]:
    """Null members, ``""`` as content, and ``reasoning`` beside its details are left out."""
    messages = []
    for message in request["messages"]:
        said_again = {"reasoning"} if "reasoning_details" in message else set()
        messages.append({k: v for k, v in message.items() if v is not None and v != "" and k not in said_again})
    return {**request, "messages": messages}


def of_responses(request: dict[str, Any]) -> dict[str, Any]:
    """An input of one text is an item; an image says its detail, a function ``strict``; empty lists are left out."""
    items = request["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    told = {**request, "input": [of_item(item) for item in items]}
    if "tools" in request:
        told["tools"] = [{"strict": None, **tool} if tool["type"] == "function" else tool for tool in request["tools"]]
    return {name: value for name, value in told.items() if value not in (None, [])}


def of_item(item: dict[str, Any]) -> dict[str, Any]:
    """Content of one plain text is a string; that an item is a message or completed is not said."""
    item = {name: value for name, value in item.items() if (name, value) != ("status", "completed")}
    if "role" in item:
        item.pop("type", None)
    content = item.get("content")
    if isinstance(content, list):
        item["content"] = [{"detail": "auto", **part} if part["type"] == "input_image" else part for part in content]
        if len(content) == 1 and content[0].keys() == {"type", "text"}:
            item["content"] = content[0]["text"]
    return item


#: How a dialect writes a recorded request again, and words of the faults that old recordings have.
NORMAL: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "anthropic": (
        of_anthropic,
        ("temperature", "tools["),
    ),  # the newest API has no sampling, and no tools of old versions
    "gemini": (of_gemini, ("TYPE_UNSPECIFIED",)),  # types in small letters
    "openai-chat": (of_chat, ()),
    "openai-responses": (of_responses, ()),
}


@pytest.mark.parametrize("dialect", NORMAL)
def test_every_recorded_request_comes_back(dialect):
    normal, old = NORMAL[dialect]
    for recorded in requests(dialect):
        written, report = there_and_back(decode_request(orjson.dumps(recorded.body), dialect), dialect)
        assert normal(written) == normal(recorded.body), recorded.name
        assert not report.losses, recorded.name
        assert not report.repairs, recorded.name
        if dialect != "openai-chat" or "api.openai.com" in recorded.url:  # other servers take more
            assert [fault for fault in faults(dialect, written) if not any(word in fault for word in old)] == [], (
                recorded.name
            )


# -- between dialects ----------------------------------------------------------------------------------------------------

WITH_BODIES = [name for name, dialect in DIALECTS.items() if dialect.bodies is not None]
MODELS = {"bedrock": ("us.anthropic.claude-opus-4-8-v1:0", "amazon.nova-lite-v1:0")}
TYPED = [(to, model) for to in WITH_BODIES if to not in {"ai-sdk", "ag-ui"} for model in MODELS.get(to, ("m",))]


@pytest.mark.parametrize(
    ("target", "source"), [(to, source) for to, source in product(TYPED, WITH_BODIES) if to[0] != source]
)
def test_recorded_requests_of_other_dialects_pass_the_types_of_the_client(target, source):
    dialect, model = target
    for recorded in requests(source):
        request = decode_request(orjson.dumps(recorded.body), source)
        if dialect in MODELS or not request.model:
            request.model = model
        if dialect == "bedrock" and not request.tools:
            request.tool_choice = None
        written, _ = there_and_back(
            drop_unreadable(request, dialect), dialect, repair=True, emulate=True, linked_media="drop"
        )
        assert faults(dialect, written) == [], recorded.name
        if written.get("input") == []:  # a message of nothing, which Responses leaves out
            continue
        again, report = there_and_back(decode_request(orjson.dumps(written), dialect), dialect)
        assert again == written, recorded.name
        assert not report.losses, recorded.name
        assert not report.repairs, recorded.name
        if dialect == "bedrock":
            roles = [message["role"] for message in written["messages"]]
            assert all(one != other for one, other in pairwise(roles)), recorded.name
