"""Requests of each dialect to a mock, as they are sent over HTTP."""

from __future__ import annotations

from typing import Any

import orjson

from streamkit.conversation.messages import Request, Text, Tool, Turn
from streamkit.dialects import DIALECTS
from streamkit.lab.mock.server import Mock
from streamkit.report import StreamReport
from streamkit.translation.bodies import encode_request

#: Dialects whose requests we write: all but those in which only user interfaces ask.
ASKED = [name for name, dialect in DIALECTS.built_in.items() if dialect.answers_whole]
WEATHER = Tool("weather", "the weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})


def request(text: str = "Hello, you", *, dialect: str = "openai-chat", stream: bool = True, **members: Any) -> Request:
    """What a user asks in one message."""
    asked = Request(dialect, model="m", turns=[Turn("user", [Text(text)])], stream=stream, **members)
    asked.stream_usage = True
    return asked


def said(asked: Request) -> bytes:
    """The body of a request, in its own dialect."""
    return encode_request(asked, asked.dialect, report=StreamReport())


def url_for(mock: Mock, root: str, asked: Request) -> str:
    """Where it is sent, by the dialect's own address behind the base URL that the mock names."""
    endpoint = DIALECTS[asked.dialect].http.endpoint
    assert endpoint is not None
    return endpoint.url(mock.urls(root)[asked.dialect], asked.model or "", asked.stream is True)


def chat(*messages: dict[str, Any], stream: bool = True, **members: Any) -> bytes:
    """A request in Chat's own words, for histories that are written by hand."""
    return orjson.dumps({"model": "m", "stream": stream, "messages": list(messages), **members})


def user(text: str = "Hello") -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}
