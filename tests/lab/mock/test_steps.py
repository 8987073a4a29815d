"""What a step can't be is refused when it is made."""

from __future__ import annotations

import pytest

from streamkit.errors import UsageError
from streamkit.lab.mock.script import STEPS, Call, ErrorStatus, Raw, Usage, Wait


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Wait(-1), "seconds: must be 0 or more"),
        (lambda: Usage(output=-1), "output: must be 0 or more"),
        (lambda: ErrorStatus(200), "status: must be 400 to 599"),
        (lambda: ErrorStatus(429, retry_after=-1), "retry_after: must be 0 or more"),
        (lambda: ErrorStatus(429, retry_after=1e9), "retry_after: must be at most"),
        (lambda: Call("f", {"x": object()}), "arguments: must be JSON"),
    ],
)
def test_a_step_that_cannot_be_is_refused(make, reason):
    with pytest.raises(UsageError, match=reason):
        make()


def test_steps_are_named_as_the_file_names_them():
    assert sorted(STEPS) == sorted(
        ["say", "think", "call", "wait", "usage", "stop", "error", "status", "stall", "cut", "reset", "raw", "comment"]
    )


def test_arguments_are_text_or_an_object():
    assert Call("f", {"a": 1}).text == '{"a":1}'
    assert Call("f", '{"a": ').text == '{"a": '
    assert Call("f", '{"a": 1}', finished=False).text == '{"a"'


def test_raw_text_is_utf8():
    assert Raw("é").data == b"\xc3\xa9"


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request"), (429, "rate_limit"), (599, "server"), (451, "invalid_request")]
)
def test_a_status_means_what_it_usually_does(status, kind):
    assert ErrorStatus(status).error_type == kind
