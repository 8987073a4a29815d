"""Changes of the fragments of calls: which call a fragment belongs to is said by a key."""

from __future__ import annotations

import json

from streamkit.dialects.quirks import Changes, Fragments, LineForm, every

CALLS = Fragments(changes=Changes(LineForm()), start=every("name"), fragment=every("text"), key="call", text="text")


def lines(*values: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(value, separators=(",", ":")).encode() + b"\n" for value in values)


def start(call: int, name: str, **more: object) -> dict[str, object]:
    return {"call": call, "name": name, **more}


def piece(call: int, text: object, **more: object) -> dict[str, object]:
    return {"call": call, "text": text, **more}


TWO = lines(start(0, "f"), piece(0, "{"), start(1, "g"), piece(1, "["), piece(0, "}"), piece(1, "]"))


def test_a_member_of_the_start_is_carried_to_the_fragments_of_its_call():
    expected = lines(
        start(0, "f"),
        piece(0, "{", name="f"),
        start(1, "g"),
        piece(1, "[", name="g"),
        piece(0, "}", name="f"),
        piece(1, "]", name="g"),
    )
    assert CALLS.carry("name")(TWO) == expected


def test_the_whole_stands_in_the_start():
    assert CALLS.whole("all", json.loads)(TWO) == lines(start(0, "f", all={}), start(1, "g", all=[]))


def test_the_whole_stands_in_one_fragment_unless_it_is_the_same():
    assert CALLS.one(lambda text: "x" if text == "{}" else text)(TWO) == lines(
        start(0, "f"), piece(0, "x"), start(1, "g"), piece(1, "["), piece(1, "]")
    )
    assert CALLS.one(str)(TWO) == TWO


def test_fragments_say_all_text_so_far():
    assert CALLS.cumulative()(TWO) == lines(
        start(0, "f"), piece(0, "{"), start(1, "g"), piece(1, "["), piece(0, "{}"), piece(1, "[]")
    )


def test_the_whole_comes_again_behind_the_last_fragment_unless_it_is_an_empty_object():
    assert CALLS.again()(TWO) == (*TWO, *lines(piece(1, "[]")))


def test_a_stream_without_calls_stays():
    text = lines({"say": "hello"})
    for change in (CALLS.carry("name"), CALLS.whole("all", str), CALLS.one(str), CALLS.cumulative(), CALLS.again()):
        assert change(text) == text
