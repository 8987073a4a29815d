"""LiteLLM: ``completion(stream=True)`` from an OpenAI-compatible server, its chunks joined by ``stream_chunk_builder``."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

from common import Result, main, read_completion, result

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a table of prices
import litellm

MESSAGES = [{"role": "user", "content": "Hi"}]


def answer(url: str, _stream: dict[str, Any]) -> Result:
    with contextlib.redirect_stdout(io.StringIO()):  # it prints advice when something fails
        chunks = list(
            litellm.completion(
                model="openai/m",
                messages=MESSAGES,
                api_key="none",
                api_base=url,
                stream=True,
                max_retries=0,
                num_retries=0,
                timeout=10,
            )
        )
        completion = litellm.stream_chunk_builder(chunks, messages=MESSAGES)
    return read_completion(completion) if completion else result([], "", None, success=False)


main("litellm", answer)
