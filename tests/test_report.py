"""What a report shows of itself."""

from __future__ import annotations

import json

import pytest

from streamkit import Status
from streamkit.tool_calls.partial_arguments import MISSING


@pytest.mark.parametrize("word", [*Status, MISSING], ids=repr)
def test_a_word_is_shown_as_a_word(word):
    assert str(word) == f"{word}" == "%s" % word == word.name  # noqa: UP031 - as logging formats it
    assert f"{word:>20}" == word.name.rjust(20)


def test_a_status_is_still_the_exit_status():
    assert (int(Status.CUT), json.dumps(Status.CUT), Status.CUT) == (3, "3", 3)
