"""The judge judged: what plain pydantic lets pass is a fault with its place, and what is right is none."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict, TypeVar, Union

import pytest
from typing_extensions import TypeAliasType

from tests.requests.typed import Checker

T = TypeVar("T")
Words = TypeAliasType("Words", Union[str, list[str]])  # noqa: UP007  # as the clients write it
Maybe = TypeAliasType("Maybe", T | None, type_params=(T,))


class Alias:
    alias = "from"


class Colour(enum.StrEnum):
    RED = "red"


class Part(TypedDict, total=False):
    type: Required[Literal["text"]]
    text: Required[str]


class Image(TypedDict):
    type: Literal["image"]
    url: str
    detail: NotRequired[Literal["low", "high"]]


class Open(TypedDict, total=False):
    known: int


Open.__pydantic_config__ = {"extra": "allow"}


class Base(TypedDict):
    role: Literal["user"]


class Message(Base, total=False):
    content: Union[str, Iterable[Union[Part, Image]]]  # noqa: UP007
    number: float
    whole: int
    flag: bool
    sure: Literal[True]
    nothing: None
    colour: Colour
    words: Words
    maybe: Maybe[int]
    any: Any
    map: Mapping[str, int]
    open: Open
    renamed: Annotated[str, Alias()]
    later: Union[Literal["a"], Any]  # noqa: UP007
    many: Sequence[bool]


RIGHT = {
    "role": "user",
    "content": [{"type": "text", "text": "x"}, {"type": "image", "url": "u", "detail": "low"}],
    "number": 1, "whole": 1, "flag": True, "sure": True, "nothing": None, "colour": "red", "words": ["a"], "maybe": None, "any": {"x": [1]},
    "map": {"a": 1}, "open": {"known": 1, "other": 2}, "from": "x", "later": "a", "many": [True],
}  # fmt: skip


def faults(**changes):
    return Checker().faults({**RIGHT, **changes}, Message)


def test_what_is_right_has_no_faults():
    assert faults() == []
    assert faults(content="x", words="a", maybe=1, number=1.5) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"role": "nobody"}, "role: 'nobody' is none of 'user'"),
        ({"content": 3}, "content: str is needed, not 3; a list is needed, not 3"),
        ({"content": {"type": "text"}}, "content: str is needed, not {'type': 'text'}; a list is needed, not {'type': 'text'}"),
        ({"extra": 1}, "extra: Message has no such key"),
        ({"content": [{"type": "text", "text": "x", "cache": 1}]}, "content[0].cache: Part has no such key"),
        ({"content": [{"type": "text"}]}, "content[0].text: is missing"),
        ({"content": [{"type": "image", "url": "u", "detail": "x"}]}, "content[0].detail: 'x' is none of 'low', 'high'"),
        ({"content": ["x"]}, "content[0]: Part is needed, not 'x'; Image is needed, not 'x'"),
        ({"number": "1"}, "number: float is needed, not '1'"),
        ({"number": True}, "number: float is needed, not True"),
        ({"whole": 1.5}, "whole: int is needed, not 1.5"),
        ({"whole": True}, "whole: int is needed, not True"),
        ({"flag": 1}, "flag: bool is needed, not 1"),
        ({"sure": 1}, "sure: 1 is none of True"),
        ({"nothing": 0}, "nothing: null is needed, not 0"),
        ({"colour": "RED"}, "colour: 'RED' is none of 'red'"),
        ({"words": [1]}, "words[0]: str is needed, not 1"),
        ({"maybe": "1"}, "maybe: int is needed, not '1'; null is needed, not '1'"),
        ({"map": {"a": "b"}}, "map.a: int is needed, not 'b'"),
        ({"map": []}, "map: an object is needed, not []"),
        ({"open": {"known": "x"}}, "open.known: int is needed, not 'x'"),
        ({"from": 1}, "from: str is needed, not 1"),
        ({"renamed": "x"}, "renamed: Message has no such key"),
        ({"later": "b"}, "later: 'b' is none of 'a'"),
        ({"many": [True, 0]}, "many[1]: bool is needed, not 0"),
        ({"many": "yes"}, "many: a list is needed, not 'yes'"),
    ],
)  # fmt: skip
def test_each_fault_has_its_place(changes, expected):
    assert faults(**changes) == [expected]


def test_keys_of_a_base_and_all_faults_at_once():
    assert Checker().faults({"flag": 1, "x": 2}, Message) == [
        "flag: bool is needed, not 1",
        "x: Message has no such key",
        "role: is missing",
    ]


def test_a_field_can_be_judged_by_another_hint():
    checker = Checker({("Message", "role"): str, ("Message", "extra"): int})
    assert checker.faults({**RIGHT, "role": "nobody", "extra": 1}, Message) == []
    assert checker.faults({**RIGHT, "extra": "1"}, Message) == ["extra: int is needed, not '1'"]
    assert checker.faults({}, Message) == ["role: is missing"]


def test_models_are_judged_by_their_names_on_the_wire_and_told_apart_by_their_tag():
    pydantic = pytest.importorskip("pydantic", reason="extra `clients`")

    class User(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow", arbitrary_types_allowed=True)
        role: Literal["user"] = "user"
        content: Annotated[str, pydantic.Field(alias="text")]

    class System(pydantic.BaseModel):
        role: Literal["system"] = "system"
        text: str | None = None

    either = User | System
    check = Checker().faults
    assert check({"role": "user", "text": "x"}, either) == []
    assert check({"text": "x"}, User) == []
    assert check({"text": "x"}, either) == ["role: is missing, and tells which it is"]
    assert check({"role": "user", "content": "x", "text": "y"}, User) == ["content: User has no such key"]
    assert check({"role": "user"}, User) == ["text: is missing"]
    assert check({"role": "user", "text": 1}, User) == ["text: str is needed, not 1"]
