"""The openai SDK: ``client.chat.completions.stream``, and its final completion."""

from __future__ import annotations

from typing import Any

import openai
from common import Result, main, read_completion


def answer(url: str, _stream: dict[str, Any]) -> Result:
    client = openai.OpenAI(api_key="none", base_url=url, max_retries=0, timeout=10)
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "Hi"}]) as stream:
        for _ in stream:
            pass
        return read_completion(stream.get_final_completion())


main("openai", answer)
