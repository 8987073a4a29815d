"""streamkit itself, ``transcode`` to Anthropic: shows that the judge lets a right answer pass."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from common import Result, events_of, main, read_messages

from streamkit import transcode
from streamkit.testing import source_of


async def ask(body: bytes) -> Result:
    async with transcode(source_of([body]), "openai-chat", "anthropic") as stream:
        output = b"".join([chunk async for chunk in stream])
    return read_messages(events_of(output.decode()))


def answer(_url: str, stream: dict[str, Any]) -> Result:
    return asyncio.run(ask(base64.b64decode(stream["body"])))


main("streamkit-llm", answer)
