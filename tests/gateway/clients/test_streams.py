"""Official clients read streams through the running gateway: every client's dialect from every upstream's, over TCP.

The upstream replays recordings as the network cut them. What is read must be what the direct tests of ``tests/clients`` expect
for that direction; where a dialect passes unchanged, of recordings that conform to it.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.clients.expected import ALLOWED, UNSEEN
from tests.clients.readers import READERS, Reader
from tests.clients.recipes import Recording, conforms, converted, whole
from tests.clients.test_official_clients import readable
from tests.gateway.clients.in_thread import CLIENTS, UPSTREAMS, GatewayThread
from tests.gateway.clients.judging import Clients, Judge
from tests.gateway.clients.recorded import Stream, recordings, sampled, script, vectors

SAMPLE = 4

EVERY_DIRECTION = pytest.mark.parametrize(
    ("source", "reader"),
    [
        pytest.param(source, reader, id=f"{source}-to-{reader.name.replace(' ', '-')}")
        for source, reader in product(UPSTREAMS, READERS)
        if reader.dialect in CLIENTS
    ],
)


def fit(stream: Stream, reader: Reader) -> bool:
    """Whether there is an expectation: any stream is translated, but what passes unchanged is as good as it came."""
    if stream.dialect != reader.dialect:
        return True
    recording = Recording(stream.name, stream.dialect, stream.body)
    return conforms(recording) and readable(recording, reader)


def check(judge: Judge, streams: list[Stream]) -> None:
    for stream in streams:
        judge.compare(stream.name, stream.dialect, script(stream), whole(stream.body, stream.dialect))


@EVERY_DIRECTION
def test_clients_read_recordings_as_the_network_cut_them(
    source: str, reader: Reader, served: GatewayThread, client: Clients
):
    judge = Judge(served, client, reader)
    check(judge, sampled([each for each in recordings(source) if fit(each, reader)], SAMPLE))
    judge.verdict(f"{source} to {reader.dialect}")


@pytest.mark.exhaustive
@EVERY_DIRECTION
def test_clients_read_every_recording_as_the_network_cut_it(
    source: str, reader: Reader, served: GatewayThread, client: Clients
):
    judge = Judge(served, client, reader)
    check(judge, [each for each in recordings(source) if fit(each, reader)])
    judge.verdict(f"{source} to {reader.dialect}")


@EVERY_DIRECTION
def test_clients_read_our_vectors(source: str, reader: Reader, served: GatewayThread, client: Clients):
    judge = Judge(served, client, reader)
    check(judge, [each for each in vectors(source) if fit(each, reader)])
    judge.verdict(f"{source} to {reader.dialect}")
