"""dialects.md §7.1 has the words in which each dialect is told why a model stopped, as they are written."""

import json
import re
from pathlib import Path

import pytest

from streamkit import transcode
from streamkit.report import StreamReport
from streamkit.testing import source_of

PAGE = Path(__file__).parents[2] / "docs" / "spec" / "dialects.md"
#: Where the word stands in what is written; the last one is the end of the stream.
MEMBERS = {
    "openai-chat": r'"finish_reason": ?"(\w+)"',
    "openai-responses": r'"type": ?"response\.(?:completed|incomplete)"',
    "anthropic": r'"stop_reason": ?"(\w+)"',
    "ollama": r'"done_reason": ?"(\w+)"',
    "gemini": r'"finishReason": ?"(\w+)"',
    "bedrock": r'"stopReason": ?"(\w+)"',
    "cohere": r'"finish_reason": ?"(\w+)"',
    "mistral": r'"finish_reason": ?"(\w+)"',
}
FAILED = {"malformed_tool": "MALFORMED_FUNCTION_CALL", "error": "OTHER"}


def table():
    """The cells of §7.1 by reason and dialect."""
    section = PAGE.read_text("utf-8").split("### 7.1 ")[1].split("\n### ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")
    ]
    return {row[0].split(" ")[0]: dict(zip(MEMBERS, row[1:], strict=True)) for row in rows if row[0] != "neutral"}


def anthropic(reason, *, called=False):
    block = (
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}} if called else {"type": "text", "text": ""}
    )
    delta = {"type": "input_json_delta", "partial_json": "{}"} if called else {"type": "text_delta", "text": "hello"}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": {**message, "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    return "anthropic", "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def gemini(reason):
    candidate = {"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": reason, "index": 0}
    chunk = {
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 1},
        "modelVersion": "g",
        "responseId": "r",
    }
    return "gemini", b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n"


STREAMS = {
    "stop": anthropic("end_turn"),
    "stop_sequence": anthropic("stop_sequence"),
    "length": anthropic("max_tokens"),
    "context_full": anthropic("model_context_window_exceeded"),
    "tool_calls": anthropic("tool_use", called=True),
    "content_filter": gemini("SAFETY"),
    "refusal": anthropic("refusal"),
    "pause": anthropic("pause_turn"),
    "compaction": anthropic("compaction"),
    "other": anthropic("never_heard_of"),
    **{reason: gemini(word) for reason, word in FAILED.items()},
}


async def written(stream, dialect):
    """The bytes of the stream in a dialect, and whether its stop reason was a loss."""
    source_dialect, data = stream
    report = StreamReport()
    async with transcode(source_of([data]), source_dialect, dialect, report=report, reencode=True) as pipe:
        body = b"".join([batch async for batch in pipe])
    return body.decode("utf-8", "replace"), "stop_reason" in report.losses


def test_the_table_has_a_row_for_each_reason():
    assert set(table()) == set(STREAMS)


@pytest.mark.parametrize("dialect", MEMBERS)
@pytest.mark.parametrize("reason", [reason for reason in STREAMS if reason not in FAILED])
async def test_a_cell_says_what_is_written(reason, dialect):
    cell = table()[reason][dialect]
    body, lost = await written(STREAMS[reason], dialect)
    if dialect == "openai-responses":
        status, _, why = re.match(r"(\w+)(/?)(\w*)", cell).groups()
        assert f'"type":"response.{status}"' in body.replace(" ", "")
        assert not why or f'"reason":"{why}"' in body.replace(" ", "")
    else:
        assert re.findall(MEMBERS[dialect], body)[-1] == re.match(r"\w+", cell)[0]
    # Responses tells a refusal by a part of its own; this one came as text, so that only its reason is lost
    assert lost == ("*" in cell) or (reason, dialect) == ("refusal", "openai-responses")


@pytest.mark.parametrize("dialect", MEMBERS)
@pytest.mark.parametrize("reason", FAILED)
async def test_a_failed_turn_is_an_error_and_no_end(reason, dialect):
    assert re.search("error|ERROR|failed|exception", table()[reason][dialect])
    body, _ = await written(STREAMS[reason], dialect)
    assert "rror" in body or "xception" in body
    assert not re.search(r"\[DONE\]|message_stop|response\.completed|end_turn|COMPLETE", body)
