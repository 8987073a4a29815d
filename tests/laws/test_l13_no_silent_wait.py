"""L13: what the client has to answer never ends as a natural stop.

An answer that waits for its client is for the client of each dialect a call, or a turn that ends as what it is, or an error that
names the item: streamed, whole, and from one to the other.
"""

from __future__ import annotations

import pytest

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response
from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_response, encode_response
from tests.laws.asking import ASKING, Asking
from tests.laws.running import CLOCK, chain_of, maker, translate
from tests.whole_answers import ANSWERING_WHOLE

#: Stop reasons after which a client takes its turn for done.
NATURAL = {"stop", "stop_sequence"}


def collected(dialect: str, stream: bytes) -> Response:
    report = StreamReport()
    collector, chain = Collector(dialect, report), chain_of(dialect, report)
    for events in chain.feed(stream), chain.finish():
        collector.feed(events)
    assert chain.fault is None, chain.fault
    return collector.finish()


def streamed(response: Response, target: str) -> bytes:
    """A whole answer as a stream, as where only the client asked for one."""
    encoder = DIALECTS[target].encoder(Encoding(make_id=maker(), clock=CLOCK), StreamReport())
    output = encoder.feed(response_events(response))
    return output + (encoder.finish() if encoder.fault is None else encoder.fail(encoder.fault))


def waits(found: Response, asking: Asking) -> bool:
    """Whether a client that reads this knows that it is to do something."""
    if not found.clean:
        return found.error is not None and asking.item in found.error.message
    (choice,) = found.choices
    is_called = bool(choice.tool_calls) or any(aside.kind == "client_tool" for aside in choice.asides)
    return is_called if choice.stop_reason == "tool_calls" else choice.stop_reason not in NATURAL


def tells(report: StreamReport) -> bool:
    """Whether a report, from which the gateway has its metrics and its log, says that the turn is not done."""
    return report.error is not None or {stop.reason for stop in report.stops}.isdisjoint(NATURAL)


@pytest.mark.parametrize("target", DIALECTS.built_in)
@pytest.mark.parametrize("asking", ASKING, ids=str)
def test_streamed(asking, target):
    stream, report = translate(asking.dialect, target, [asking.stream], passing=False)
    assert waits(collected(target, stream), asking), stream.decode("utf-8", "replace")
    assert tells(report)


@pytest.mark.parametrize("asking", ASKING, ids=str)
def test_passed_frame_by_frame(asking):
    """The client gets the bytes of its provider; what is reported of them is what the gateway counts and logs."""
    stream, report = translate(asking.dialect, asking.dialect, [asking.stream])
    assert stream == asking.stream
    assert tells(report)


@pytest.mark.parametrize("target", ANSWERING_WHOLE)
@pytest.mark.parametrize("asking", ASKING, ids=str)
def test_whole(asking, target):
    for response in [collected(asking.dialect, asking.stream)] + (
        [] if asking.body is None else [decode_response(asking.body, asking.dialect)]
    ):
        body = encode_response(response, target)
        assert waits(decode_response(body, target), asking), body.decode()


@pytest.mark.parametrize("target", DIALECTS.built_in)
@pytest.mark.parametrize("asking", [each for each in ASKING if each.body is not None], ids=str)
def test_whole_for_a_client_that_streams(asking, target):
    stream = streamed(decode_response(asking.body or b"", asking.dialect), target)
    assert waits(collected(target, stream), asking), stream.decode("utf-8", "replace")
