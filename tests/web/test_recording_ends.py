"""How an exchange ended, in the words of a recording."""

from __future__ import annotations

import pytest

from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    NotThisDialect,
    SourceFailed,
    Stopped,
    TotalTimeout,
)
from streamkit.web.observers import end_of


def reset() -> SourceFailed:
    failed = SourceFailed("broke")
    failed.is_reset = True
    return failed


@pytest.mark.parametrize(
    ("error", "kind", "unanswered"),
    [
        (StopAsyncIteration(), "whole", "whole"),
        (SourceFailed("broke"), "cut", "unreachable"),
        (reset(), "reset", "unreachable"),
        (ConnectTimeout(1), "timeout:connect", "timeout:connect"),
        (FirstByteTimeout(1), "timeout:first_byte", "timeout:first_byte"),
        (IdleTimeout(1), "timeout:idle", "timeout:idle"),
        (TotalTimeout(1), "timeout:total", "timeout:total"),
        (Interrupted("stop"), "shut_down", "shut_down"),
        (Stopped("stop"), "client_left", "client_left"),
        (NotThisDialect("a", "b"), "client_left", "client_left"),
    ],
)
def test_an_end_is_told_by_what_the_reading_raised(error, kind, unanswered):
    assert (end_of(error), end_of(error, answered=False)) == (kind, unanswered)
