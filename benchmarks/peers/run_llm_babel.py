"""llm-babel: ``translate_stream`` from openai-chat to anthropic-messages.

It has no framing: it gets the payloads as JSON, without ``[DONE]``, as its documents describe a host's part. A payload that is
no JSON is an error of the host's.
"""

from __future__ import annotations

import json
from typing import Any

from common import Result, main, read_messages
from llm_transform.registry import materialize, translate_stream


def answer(_url: str, stream: dict[str, Any]) -> Result:
    chunks = [json.loads(payload) for payload in stream["payloads"] if payload.strip() != "[DONE]"]
    envelope = {"id": "c", "model": "m", "created": 1700000000}
    return read_messages(materialize(translate_stream("openai-chat", "anthropic-messages", chunks, envelope)))


main("llm-babel", answer)
