"""Official clients read streams through the running gateway: every client's dialect from every upstream's, over TCP.

The upstream replays recordings as the network cut them. What is read must be what the direct tests of ``tests/clients`` expect
for that direction; where a dialect passes unchanged, of recordings that conform to it.
"""

from __future__ import annotations

from itertools import accumulate, product
from typing import Final

import pytest

from streamkit.web.source import TimedSource
from tests.clients.readers import READERS, Reader, fold_anthropic
from tests.clients.recipes import Recording, conforms, whole
from tests.clients.test_official_clients import readable
from tests.gateway.clients.in_thread import CLIENT_KEY, CLIENTS, UPSTREAM_KEY, UPSTREAMS, GatewayThread
from tests.gateway.clients.judging import Clients, Judge
from tests.gateway.clients.recorded import Stream, recordings, sampled, script, vectors
from tests.web.faults import good, speech

SAMPLE: Final = 2

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
    known = recordings(source)
    if not known:
        pytest.skip(f"no recordings of {source}")
    judge = Judge(served, client, reader)
    check(judge, sampled(known, SAMPLE, lambda stream: fit(stream, reader)))
    judge.verdict(f"{source} to {reader.dialect}")


@pytest.mark.exhaustive
@EVERY_DIRECTION
def test_clients_read_every_recording_and_vector(source: str, reader: Reader, served: GatewayThread, client: Clients):
    judge = Judge(served, client, reader)
    streams = [each for each in recordings(source) if fit(each, reader)]
    streams += vectors(source) if reader.dialect != source else []
    if not streams:
        pytest.skip(f"no recording of {source} has an expectation for {reader.name}")
    check(judge, streams)
    judge.verdict(f"{source} to {reader.dialect}")


@EVERY_DIRECTION
def test_clients_read_our_vectors(source: str, reader: Reader, served: GatewayThread, client: Clients):
    judge = Judge(served, client, reader)
    if reader.dialect == source:  # what passes is as odd as we wrote it; this is as plain as can be
        judge.compare("speech", source, good(source), whole(b"".join(speech(source)), source))
    else:
        check(judge, sampled(vectors(source), SAMPLE))
    judge.verdict(f"{source} to {reader.dialect}")


# -- what the tests stand on -------------------------------------------------------------------------------------------


def test_the_gateway_reads_what_was_recorded_as_it_was_cut(
    served: GatewayThread, client: Clients, monkeypatch: pytest.MonkeyPatch
):
    """Each chunk in a read of its own: most of them, since nobody can tell the network how to cut."""
    reads: list[bytes] = []
    read = TimedSource.__anext__

    async def noted(source: TimedSource) -> bytes:
        again = bool(source._owned[0]._rest)  # put back by who looked at how the answer begins
        data = await read(source)
        if not again:
            reads.append(data)
        return data

    monkeypatch.setattr(TimedSource, "__anext__", noted)
    recorded = seen = 0
    for stream in sampled([*recordings("openai-chat"), *vectors("openai-chat")], 12, lambda each: len(each.reads) > 1):
        reads.clear()
        fold_anthropic(client("anthropic"), served.register(stream.dialect, script(stream)))
        places = set(accumulate(map(len, stream.reads)))
        recorded, seen = recorded + len(places), seen + len(places & set(accumulate(map(len, reads))))
    assert seen >= 0.9 * recorded > 20


@pytest.mark.parametrize(
    "reader",
    [reader for reader in READERS if reader.dialect in CLIENTS],
    ids=lambda reader: reader.name.replace(" ", "-"),
)
def test_the_upstream_is_shown_the_gateways_key_and_no_clients(reader: Reader, served: GatewayThread, client: Clients):
    model = served.register("anthropic", good("anthropic"))
    reader.read(client(reader.package), model)
    (asked,) = served.asked(model)
    assert asked.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert CLIENT_KEY not in str(asked.headers) + asked.body.decode()
