"""L11: what is made of a text does not depend on how its deltas are cut, and a planted secret never appears in it.

The secret is planted in the texts and in the arguments of every stream. Wherever deltas are then cut, with events between the
pieces, the output is the same, and at most as many characters wait as the stage holds.
"""

from __future__ import annotations

import json
import random

import pytest
from attrs import evolve

from streamkit import map_text, redact
from streamkit.events import Aside, TextDelta, ToolCallArguments, ToolCallFinished
from streamkit.report import StreamReport
from streamkit.testing import joined
from streamkit.testing.recut import TEXTS, is_inserted, recut
from tests.laws.running import every_stream, read

SECRET = 'sk-"s3cr3t"/é\U0001f511'
SHOWN = "[a key]"


def planted(events, seed):
    """The events with the secret in some deltas and in every whole call, and the texts that must come out."""
    rng = random.Random(seed)
    out = []
    for given in events:
        event = given
        if TEXTS.get(type(event)) == "text" and rng.random() < 0.5:
            place = rng.randint(0, len(event.text))
            event = evolve(event, text=event.text[:place] + SECRET + event.text[place:])
        elif isinstance(event, ToolCallFinished) and event.kind == "function" and event.verdict.kind == "complete":
            value = {**json.loads(event.arguments), "planted": [f"a {SECRET}"]}
            text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
            out = [each for each in out if not is_fragment(each, event)]
            out.append(ToolCallArguments(event.call, text, event.choice))
            event = evolve(event, arguments=text)
        out.append(event)
    return out


def is_fragment(event, call):
    return isinstance(event, ToolCallArguments) and (event.choice, event.call) == (call.choice, call.call)


def run(events):
    machine = redact(SECRET, replacement=SHOWN).make(StreamReport())
    out = machine.feed(events) + machine.finish()
    return joined([event for event in out if not is_inserted(event)])


def texts(events):
    """Every text of a stream as a client reads it: of arguments their value."""
    for event in joined(events):
        member = TEXTS.get(type(event))
        if member == "text":
            yield event.text
        elif isinstance(event, ToolCallFinished):
            try:
                yield json.dumps(json.loads(event.arguments), ensure_ascii=False).replace('\\"', '"')
            except ValueError:
                yield event.arguments
        elif isinstance(event, Aside):
            yield json.dumps(event.raw, ensure_ascii=False)


@pytest.mark.parametrize("stream", every_stream("l11"))
def test_a_secret_never_appears_wherever_the_text_is_cut(stream):
    events = planted(read(stream.dialect, [stream.body]).events, str(stream))
    whole = run(events)
    assert not [text for text in texts(whole) if SECRET in text]
    before, after = ("".join(each).count for each in (texts(events), texts(whole)))
    assert after(SHOWN) >= before(SECRET)
    for how, other in recut(events, len(events)):
        assert run(other) == whole, how


@pytest.mark.parametrize("hold", [0, 1, 20])
def test_at_most_as_many_characters_wait_as_are_held(hold):
    machine, sent = map_text(str, hold=hold).make(StreamReport()), 0
    for number in range(1, 100):
        sent += sum(len(event.text) for event in machine.feed([TextDelta("abc")]))
        assert sent == max(3 * number - hold, 0)
