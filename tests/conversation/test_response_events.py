"""A whole response as a stream, and the stream as the same whole response."""

from __future__ import annotations

import pytest

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response
from streamkit.conversation.response_events import response_events
from streamkit.report import StreamReport
from tests.laws.running import every_stream
from tests.laws.running import read as read_stream


def collected(dialect, events):
    collector = Collector(dialect, StreamReport())
    collector.feed(events)
    return collector.finish()


@pytest.mark.parametrize("stream", every_stream("replay", ours=24))
def test_what_is_collected_of_a_replay_is_the_response(stream):
    response = collected(stream.dialect, read_stream(stream.dialect, [stream.body]).events)
    again = collected(stream.dialect, response_events(response))
    assert again == response
    assert isinstance(again, Response)
