"""What is put together of pieces is copied once, however many there are, and what belongs to somebody else stays as it is."""

from __future__ import annotations

from streamkit.dialects.members.values import Growing


def test_a_list_grows_in_its_place():
    theirs = [1]
    body = {"values": theirs}
    growing = Growing()
    growing.extend(body, "values", [2])
    first = body["values"]
    growing.extend(body, "values", [3])
    growing.extend(body, "others", (4,))
    assert body == {"values": [1, 2, 3], "others": [4]}
    assert body["values"] is first
    assert theirs == [1]


def test_an_object_is_copied_once():
    theirs = {"a": 1}
    body = {"inner": theirs}
    growing = Growing()
    first = growing.inner(body, "inner")
    first["b"] = 2
    assert growing.inner(body, "inner") is first is body["inner"]
    assert theirs == {"a": 1}


def test_a_text_is_joined_at_the_end():
    body = {"text": "a"}
    growing = Growing()
    for piece in "bcd":
        growing.append(body, "text", piece)
    assert body == {"text": "a"}
    growing.finish()
    assert body == {"text": "abcd"}


def test_what_replaces_a_text_stays():
    body = {"text": "a"}
    growing = Growing()
    growing.append(body, "text", "b")
    growing.put(body, "text", 1)
    growing.finish()
    assert body == {"text": 1}
