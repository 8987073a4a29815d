"""Machines that hand on each item: whose fault it is, what comes then, and machines of others, which take batches."""

from __future__ import annotations

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.errors import BrokenFrame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain, Link
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from tests.laws.running import CLOCK, maker
from tests.vectors.openai_chat import DONE, ROLE, STOP, said
from tests.vectors.vector import sse

READS = [sse(ROLE, said("Hel"), said("lo")), sse(said(" you"), STOP), sse(DONE)]
PLACES = ["parser", "decoder", "accumulator", "between", "encoder"]
FAULTS = {"of a stream": BrokenFrame("a fault", b""), "a bug": ValueError("a bug")}


class Between(Link):
    """Somebody's stage, in front of the encoder."""

    def push(self, event):
        self.emit(event)


def machines_of(asked=None, broken=None):
    """A machine for each of ``PLACES``. Each notes in ``asked`` that it is asked for what it holds; ``broken`` is a place, a
    method and what that raises.
    """
    report, chat, anthropic = StreamReport(), DIALECTS["openai-chat"], DIALECTS["anthropic"]
    makes = {
        "parser": lambda: chat.parser(DEFAULT_LIMITS, report),
        "decoder": lambda: chat.decoder(DEFAULT_LIMITS, report),
        "accumulator": lambda: ToolCallAccumulator(report=report, join=True),
        "between": Between,
        "encoder": lambda: anthropic.encoder(Encoding(make_id=maker(), clock=CLOCK), report),
    }
    made = []
    for place, make in makes.items():
        machine = make()
        kind = type(machine)

        def push_rest(self, place=place, kind=kind):
            asked.append(place)
            kind.push_rest(self)

        def breaks(self, *_given):
            raise broken[2]

        methods = {} if asked is None else {"push_rest": push_rest}
        if broken is not None and broken[0] == place:
            methods |= dict.fromkeys(("push", "push_batch") if broken[1] == "push" else broken[1:2], breaks)
            if broken[1] == "end_read":  # as where something always waits for it
                methods |= {"waits": True, "holds": property(lambda _self: True, lambda _self, _holds: None)}
                vars(machine).pop("waits", None)
        machine.__class__ = type(kind.__name__, (kind,), methods)
        made.append(machine)
    return made


def run(machines):
    """All that is written of the stream, up to a fault, and the chain."""
    chain, encoder, written = Chain(*machines), machines[-1], []
    for work in [*(lambda read=read: chain.feed(read) for read in READS), chain.finish]:
        written += work()
        written.append(encoder.written() if isinstance(encoder, Link) else b"")
        if chain.fault is not None:
            break
    return b"".join(written), chain


WHOLE, _ = run(machines_of())


@pytest.mark.parametrize("error", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("method", ["push", "push_end", "end_read"])
@pytest.mark.parametrize("place", PLACES)
def test_a_fault_is_that_of_the_machine_that_raised_and_those_from_it_on_hand_on_what_they_hold(place, method, error):
    asked, number = [], PLACES.index(place)
    _, chain = run(machines_of(asked, (place, method, error)))
    assert chain.fault is error
    assert [link.fault for link in chain.links] == [error if at == number else None for at in range(len(PLACES))]
    assert asked == PLACES[number:]
    chain.push_rest()
    assert asked == PLACES[number:]  # or one in front of the fault would hand on what came after it


@pytest.mark.parametrize("place", PLACES[:2])
def test_what_precedes_a_fault_in_its_read_is_written(place):
    body = sse(ROLE, said("Hel"), said("lo"), b"{oops}" if place == "decoder" else b"[]", said("behind"), STOP)
    machines = machines_of()
    if place == "parser":
        machines[0]._cap = 100  # what is longer is no line, and the rest stands behind it
        body = body.replace(b"[]", b"x" * 5_000_000 * 4)
    chain = Chain(*machines)
    chain.push_batch(body)
    assert chain.fault is machines[PLACES.index(place)].fault is not None
    assert b'"text":"Hello"' in (written := machines[-1].written())
    assert b"behind" not in written


class Batches:
    """A machine of a plug-in, around one of ours that is driven alone."""

    def __init__(self, machine):
        self._machine = machine
        self.feed, self.finish, self.abandon = machine.feed, machine.finish, machine.abandon

    @property
    def fault(self):
        return self._machine.fault


@pytest.mark.parametrize("place", PLACES)
def test_a_machine_that_takes_batches_may_be_anywhere_in_a_chain(place):
    machines, number = machines_of(), PLACES.index(place)
    machines[number] = Batches(machines[number])
    written, chain = run(machines)
    assert chain.fault is None
    deltas = b'data: {"type":"content_block_delta"'
    assert written.count(b"message_stop") == WHOLE.count(b"message_stop") > 0
    assert (written == WHOLE) is (
        written.count(deltas) == WHOLE.count(deltas)
    )  # each item is a batch, which joins nothing


@pytest.mark.parametrize("method", ["push", "push_end"])
@pytest.mark.parametrize("place", PLACES)
def test_a_fault_of_a_machine_that_takes_batches_is_its_own(place, method):
    error, number = BrokenFrame("a fault", b""), PLACES.index(place)
    machines = machines_of(broken=(place, method, error))
    machines[number] = Batches(machines[number])
    _, chain = run(machines)
    assert chain.fault is chain.links[number].fault is error
