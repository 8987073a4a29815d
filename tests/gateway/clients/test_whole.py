"""Official clients read whole answers through the running gateway: every client's dialect from every upstream's.

What the upstream answers is what a recorded stream says, as one body of its dialect, and where another translator recorded
whole answers of real providers, these.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from streamkit.read_options import ReadOptions
from streamkit.translation.bodies import decode_response, encode_response
from tests.clients.readers import Reader
from tests.clients.recipes import counting_ids, whole
from tests.corpora import require_corpora
from tests.facts.test_stream_facts import pairs
from tests.gateway.clients.in_thread import GatewayThread
from tests.gateway.clients.judging import Clients, Judge
from tests.gateway.clients.read_whole import WHOLE_READERS
from tests.gateway.clients.recorded import Stream, recordings, sampled, vectors
from tests.web.faults import speech
from tests.web.faults import whole as answer_of
from tests.whole_answers import ANSWERING_WHOLE

SAMPLE: Final = 2

EVERY_DIRECTION = pytest.mark.parametrize(
    ("source", "reader"),
    [
        pytest.param(source, reader, id=f"{source}-to-{reader.name.replace(' ', '-')}")
        for source, reader in product(ANSWERING_WHOLE, WHOLE_READERS)
    ],
)


def check(judge: Judge, source: str, bodies: dict[str, bytes]) -> None:
    for name, body in bodies.items():
        judge.compare(
            name, source, answer_of(source, body), decode_response(body, source, ReadOptions(make_id=counting_ids()))
        )


def ours(source: str, reader: Reader) -> tuple[Stream, ...]:
    """Our vectors, but where they would pass as odd as we wrote them."""
    return () if source == reader.dialect else vectors(source)


def bodies_of(streams: list[Stream]) -> dict[str, bytes]:
    """What recorded streams say, each as one body of its dialect."""
    answers = {stream.name: whole(stream.body, stream.dialect) for stream in streams}
    return {name: encode_response(answer, answer.dialect) for name, answer in answers.items() if answer.clean}


@EVERY_DIRECTION
def test_clients_read_whole_answers(source: str, reader: Reader, served: GatewayThread, client: Clients):
    judge = Judge(served, client, reader)
    check(judge, source, {"what every sound upstream says": b"".join(speech(source, whole=True))})
    check(judge, source, bodies_of([*sampled(recordings(source), SAMPLE), *sampled(ours(source, reader), SAMPLE)]))
    judge.verdict(f"{source} to {reader.dialect}")


@pytest.mark.exhaustive
@EVERY_DIRECTION
def test_clients_read_every_whole_answer(source: str, reader: Reader, served: GatewayThread, client: Clients):
    judge = Judge(served, client, reader)
    check(judge, source, bodies_of([*recordings(source), *ours(source, reader)]))
    judge.verdict(f"{source} to {reader.dialect}")


@pytest.mark.parametrize("reader", WHOLE_READERS, ids=lambda reader: reader.name.replace(" ", "-"))
def test_clients_read_the_whole_answers_that_another_translator_recorded(
    reader: Reader, served: GatewayThread, client: Clients
):
    folder = require_corpora()
    judge = Judge(served, client, reader)
    for pair in (fact.values[0] for fact in pairs("accumulate")):
        body = (folder / pair["expected_file"]).read_bytes()
        check(judge, pair["from_dialect"], {pair["expected_file"]: body})
    assert judge.judged >= 8
    judge.verdict("recorded whole answers")
