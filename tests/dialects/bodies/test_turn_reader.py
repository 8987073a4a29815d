"""One turn a message, and one turn for the results that stand together."""

from __future__ import annotations

import orjson
import pytest

from streamkit.conversation.messages import Text, ToolResult, Turn
from streamkit.dialects.members.fields import Fields, TurnReader, fields_of
from streamkit.errors import BadRequest
from streamkit.report import StreamReport


class Reader(TurnReader):
    def content(self, message: Fields) -> list[Text]:
        return [Text(message.needed("content"))]

    def assistant(self, message: Fields) -> Turn:
        return Turn("assistant", [*self.content(message)])

    def result(self, message: Fields) -> ToolResult:
        return ToolResult(message.needed("id"))


def turns(*messages: dict[str, str]) -> list[Turn]:
    reader = Reader(StreamReport())
    reader.read_turns(fields_of(orjson.dumps({"messages": messages})))
    return reader.turns


def test_results_that_stand_together_are_one_turn_of_the_user():
    read = turns(
        {"role": "assistant", "content": "two calls"},
        {"role": "tool", "id": "a"},
        {"role": "tool", "id": "b"},
        {"role": "user", "content": "and now?"},
        {"role": "tool", "id": "c"},
    )
    assert [turn.role for turn in read] == ["assistant", "user", "user", "user"]
    assert [[getattr(part, "call_id", None) for part in turn.parts] for turn in read[1:]] == [["a", "b"], [None], ["c"]]


def test_what_nobody_reads_of_a_message_is_kept():
    assert turns({"role": "system", "content": "short", "colour": "red"})[0].extras == {"colour": "red"}


def test_an_unknown_role_is_refused_with_its_place():
    with pytest.raises(BadRequest, match=r"messages\[0\]\.role"):
        turns({"role": "critic", "content": "no"})


def test_a_request_without_messages_is_refused():
    with pytest.raises(BadRequest, match="messages"):
        Reader(StreamReport()).read_turns(fields_of(b"{}"))
