from __future__ import annotations

import orjson
import pytest
from aiohttp import web

from streamkit.lab.doctor.probes import plan
from streamkit.lab.doctor.reporting import as_lines, as_markdown, as_object, line_of, verdict_of
from streamkit.lint import members_of
from streamkit.report import Status
from tests.lab.doctor.servers import examined, model_server
from tests.vectors.openai_chat import CALLED, DONE, ROLE, call, calls
from tests.vectors.vector import sse

CHAT = "openai-chat"
WITHOUT_INDEX = sse(ROLE, calls(call(None, "a", "get_weather", '{"city":"Bern"}')), CALLED, DONE)


@pytest.fixture
async def judged():
    """A server whose streams are all the same call without an index."""

    def change(asked, usual):
        return web.Response(body=WITHOUT_INDEX, content_type="text/event-stream") if asked.stream else usual

    return list((await examined(model_server(CHAT, change), CHAT)).values())


def test_the_object_has_every_answer_with_what_lint_says_of_it(judged):
    report = as_object(CHAT, "demo", plan(CHAT, "demo"), judged)
    assert orjson.loads(orjson.dumps(report)) == report | {"probes": orjson.loads(orjson.dumps(report["probes"]))}
    assert (report["verdict"], report["requests"], report["left_out"]) == ("repairable", 10, {})
    tool = next(each for each in report["probes"] if each["probe"] == "tool")
    assert {"violations", "repairs", "other_repairs"} <= tool.keys()
    assert tool["violations"][0]["case"] == 6
    assert tool["violations"] == members_of(judged[3].check)["violations"]
    assert (tool["status"], tool["end"], tool["calls"], tool["stop_reason"]) == (
        200,
        "whole",
        ["complete"],
        "tool_calls",
    )
    assert tool["reads"] >= 1
    assert tool["bytes"] == len(WITHOUT_INDEX)


def test_what_is_the_same_in_many_answers_stands_there_once(judged):
    lines = list(as_lines(CHAT, "demo", plan(CHAT, "demo"), judged))
    (found,) = (line for line in lines if "call_index" in line)
    assert found.startswith(
        "  text, usage, tool, parallel, forced, result, length: error call_index: index is None (text, byte "
    )
    assert "frame 1; 7 in all)" in found
    assert "looks like field failure 6" in lines[lines.index(found) + 1]
    assert lines[-1] == "openai-chat, demo: repairable"


def test_an_answer_is_a_line_with_its_numbers(judged):
    line = line_of(judged[3])
    assert line.startswith("tool      repairable  4 events in 1 read, first after 0.0")
    assert line.endswith("s, 1 call, stop reason tool_calls")


def test_the_markdown_names_no_host_and_can_be_pasted(judged):
    text = "\n".join(as_markdown(CHAT, "de`mo", plan(CHAT, "demo"), judged))
    assert "127.0.0.1" not in text
    assert text.startswith("### `openai-chat`, model `` de`mo ``: repairable")
    assert "| tool: a tool call | repairable | 4 events" in text
    assert "- `text, usage, tool, parallel, forced, result, length: error call_index" in text
    assert "\\_" in text


def test_what_a_dialect_can_not_ask_for_stands_in_each_form():
    chosen = plan("ollama", "m")
    assert "forced" in as_object("ollama", "m", chosen, [])["left_out"]
    assert any(line.startswith("  forced: left out: ") for line in as_lines("ollama", "m", chosen, []))
    assert any(
        line.startswith("| forced | left out | tool\\_choice") for line in as_markdown("ollama", "m", chosen, [])
    )


def test_each_status_has_its_word():
    words = {Status.DONE: "clean", Status.WOULD_BE_REPAIRED: "repairable", Status.FAILED: "broken"}
    assert {status: verdict_of(status) for status in words} == words
    assert verdict_of(Status.NOT_THIS_DIALECT) == "not this dialect"
