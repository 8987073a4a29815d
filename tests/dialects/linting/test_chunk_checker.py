"""Whatever is in a chunk, the run of a stream of chunks is judged alike for Chat and Mistral."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_chat.lint import CHUNK_HINTS, CHUNK_RULES
from streamkit.framing.frame import Frame

END = {"id": "a", "model": "m", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}}]}
END["choices"][0] |= {"delta": {"role": "assistant"}, "finish_reason": "stop"}  # type: ignore[index]


def broken(dialect: str, *payloads: Any) -> set[str]:
    linter = DIALECTS[dialect].linter()
    frames = [Frame(payload if isinstance(payload, bytes) else orjson.dumps(payload)) for payload in payloads]
    return {violation.rule for violation in [*linter.feed(frames), *linter.finish()]}


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
@pytest.mark.parametrize(
    ("payloads", "rules"),
    [
        ([END, b"[DONE]"], set()),
        ([END], {"done"}),
        ([END, b"[DONE]", END], {"after_done"}),
        ([END, b" ", b"[DONE]"], {"empty_data"}),
        ([{**END, "choices": []}], {"truncated"}),
        ([{**END, "choices": [{"delta": {}}]}, END, b"[DONE]"], {"choices"}),
        ([{**END, "choices": None}, END, b"[DONE]"], {"choices"}),
        ([{**END, "id": None}, b"[DONE]"], {"identity"}),
        ([END, {**END, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}, b"[DONE]"], {"after_finish"}),
        ([END, {**END, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}, b"[DONE]"], {"finish_reason"}),
        ([{**END, "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": "a"}, "finish_reason": "stop"}]}, b"[DONE]"], {"tool_calls"}),
    ],
)  # fmt: skip
def test_the_run_of_a_stream_is_judged_alike(dialect, payloads, rules):
    found = broken(dialect, *payloads)
    assert rules <= found
    assert found - rules <= {"after_finish", "role"}


@pytest.mark.parametrize("dialect", ["openai-chat", "mistral"])
def test_each_shared_rule_is_a_rule_of_the_dialect(dialect):
    linter = DIALECTS[dialect].linter()
    assert CHUNK_RULES.items() <= linter.rules.items()  # type: ignore[attr-defined]
    assert CHUNK_HINTS.items() <= linter.hints.items()
