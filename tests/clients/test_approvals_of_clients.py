"""Approvals, as the AI SDK's and AG-UI's own clients show and answer them: the answer is what the provider of the tool gets."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding, Profile
from streamkit.events import ChoiceStarted, ResponseFinished, ResponseStarted, StreamEnded
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.clients.test_ag_ui_readers import VERSIONS, judged
from tests.clients.test_ai_sdk_ui import asked
from tests.laws.asking import AG_UI, AI_SDK, RESPONSES, item_of, responses
from tests.laws.running import CLOCK, maker, translate

ITEM = {**item_of("mcp_approval_request"), "arguments": '{"sides":6}'}
ANSWER = {"type": "mcp_approval_response", "approval_request_id": "i1", "approve": False, "reason": "no games"}


def stream_for(client: str) -> str:
    return base64.b64encode(translate(RESPONSES, client, [responses(ITEM)[0]], passing=False)[0]).decode()


def input_of(body: dict[str, Any], client: str) -> list[Any]:
    return orjson.loads(encode_request(decode_request(orjson.dumps({**body, "model": "m"}), client), RESPONSES))[
        "input"
    ]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", [7, 6])
def test_the_ai_sdk(version):
    line = {"stream": stream_for(AI_SDK), "answer": {"approved": False, "reason": "no games"}}
    (seen,) = asked(version, [orjson.dumps(line)], "approvals")
    assert (seen["failure"], seen["ran"], seen["asked"]) == (None, [], [["mcp.roll", {"sides": 6}]])
    _, body = seen["bodies"]
    assert input_of(body, AI_SDK)[1:3] == [ITEM, ANSWER]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", VERSIONS)
def test_ag_ui(version):
    payload = {"approved": False, "reason": "no games"}
    line = {"version": version, "stream": stream_for(AG_UI), "next": "", "payload": payload}
    name = "streamkit_mcp_approval_request_i1"
    # the next run, as it is written for the request with the answer
    settings = {"threadId": "t", "runId": "r2", "answers": {name: "not approved: no games"}}
    encoder = DIALECTS[AG_UI].encoder(
        Encoding(profile=Profile(settings=settings), make_id=maker(), clock=CLOCK), StreamReport()
    )
    events = [ResponseStarted(), ChoiceStarted(), ResponseFinished("stop"), StreamEnded(clean=True)]
    line["next"] = base64.b64encode(encoder.feed(events) + encoder.finish()).decode()
    (seen,) = judged([orjson.dumps(line)], "interrupts")
    assert ([wait["toolCallId"] for wait in seen["waits"]], seen["left"]) == ([name], [])
    _, second, third = seen["bodies"]
    assert second["resume"] == [{"interruptId": name, "status": "resolved", "payload": payload}]
    assert input_of(second, AG_UI)[1:] == [ITEM, ANSWER]
    assert "resume" not in third  # from now on it is a message
    assert input_of(third, AG_UI)[1:] == [ITEM, ANSWER]
