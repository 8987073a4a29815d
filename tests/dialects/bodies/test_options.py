"""Options are read by the table by which they are written."""

from __future__ import annotations

import orjson
import pytest
from attrs import fields as members_of

from streamkit.conversation.messages import Options, Thinking
from streamkit.dialects.bodies.options import READERS, read_options
from streamkit.dialects.members.fields import Fields, fields_of
from streamkit.errors import BadRequest

NAMES = {"max_tokens": "num_predict", "top_p": "p", "stop": "stops", "logprobs": "logprobs", "user": "user"}


def fields(**members: object) -> Fields:
    return fields_of(orjson.dumps(members))


def test_each_option_is_read_by_its_name_in_the_dialect():
    body = fields(num_predict=5, p=0.5, stops=["a", "b"], logprobs=True, user="me", seed=7)
    assert read_options(body, NAMES) == Options(max_tokens=5, top_p=0.5, stop=("a", "b"), logprobs=True, user="me")
    assert body.rest() == {"seed": 7}


def test_an_absent_option_is_as_one_that_nobody_set():
    assert read_options(fields(), NAMES) == Options()


def test_what_is_read_already_is_not_read_again():
    body = fields(num_predict=-1, p=1)
    options = read_options(body, NAMES, max_tokens=None, thinking=Thinking("low"))
    assert options == Options(top_p=1, thinking=Thinking("low"))
    assert body.rest() == {"num_predict": -1}


@pytest.mark.parametrize(("name", "value"), [("num_predict", "5"), ("p", []), ("stops", "a"), ("logprobs", 1)])
def test_a_value_of_another_type_is_refused_by_its_place(name, value):
    with pytest.raises(BadRequest, match=f"^{name}"):
        read_options(fields(**{name: value}), NAMES)


def test_every_reader_is_for_an_option():
    assert READERS.keys() <= {member.name for member in members_of(Options)}
