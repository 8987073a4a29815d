"""The official clients read what we write: every recording, in every direction, with every reader.

``expected`` says what they should see and which differences are allowed. Without the recordings our own vectors still run.
"""

from __future__ import annotations

import asyncio
import pkgutil
import random
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from streamkit import keep_alive, transcode
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import KeepAliveForm
from streamkit.read_options import ReadOptions
from streamkit.testing import source_of
from tests.clients.expected import EXACT_STOPS, differences, expected, id_in
from tests.clients.readers import READERS, Reader, Reading
from tests.clients.recipes import (
    DIRECTIONS,
    Recording,
    conforms,
    converted,
    counting_ids,
    recordings,
    violations,
    whole,
)
from tests.clients.replay import ReplayServer
from tests.clients.vectors import BEGUN, FAILURES, LOSSY, WHOLE, Vector
from tests.sampling import Part, drawn, part_of, parts

SAME = [(source, target) for source, target in DIRECTIONS if source == target]
SEED = 20_261_121
#: Recordings of each collection that a reader draws in `make test`.
EACH = 2

Clients = Callable[[str], Any]


#: What each client raises for an error in the stream: a name in its package, or where the class is.
RAISED = {
    "openai": "APIError",
    "anthropic": "APIStatusError",
    "ollama": "ResponseError",
    "cohere": "tests.clients.shapes:StreamFailed",
    "mistralai.client": "tests.clients.shapes:StreamFailed",
    "boto3": "botocore.exceptions:EventStreamError",
    "google.genai": "google.genai.errors:APIError",
    "google.genai.interactions": "google.genai._interactions:APIError",
}


def raised_by(package: str) -> type[Exception]:
    pytest.importorskip(package)
    name = RAISED[package]
    found: type[Exception] = pkgutil.resolve_name(name if ":" in name else f"{package}:{name}")
    return found


class Judge:
    """Serves bytes and lets a reader read them; keeps what went wrong, by recording."""

    def __init__(self, replay: ReplayServer, client: Clients, reader: Reader) -> None:
        self.complaints: list[str] = []
        self._replay = replay
        self._client = client(reader.package)
        self._error = raised_by(reader.package)
        self._reader = reader

    def read(self, body: bytes) -> Reading:
        return self._reader.read(self._client, self._replay.register(body))

    def compare(self, name: str, body: bytes, want: Reading) -> None:
        try:
            found = differences(want, self.read(body))
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the finding
            found = [f"the client raised {type(error).__name__}: {error}"]
        self.complaints += [f"{name}: {complaint}" for complaint in found]

    def refuse(self, name: str, body: bytes, message: str = "") -> None:
        """The client must raise its own error, with ``message`` in it."""
        try:
            seen = self.read(body)
        except self._error as error:
            if message not in str(error):
                self.complaints.append(f"{name}: the error says {error}")
        except Exception as error:  # noqa: BLE001 - another error than the client's own is the finding
            self.complaints.append(f"{name}: the client raised {type(error).__name__}: {error}")
        else:
            self.complaints.append(f"{name}: ends as success: {seen!r:.300}")

    def verdict(self, what: str) -> None:
        assert not self.complaints, f"{what}, {self._reader.name}:\n" + "\n".join(self.complaints[:30])


def ways_to_write() -> list[Any]:
    """Each direction with each reader; within a dialect as it came, too: between two every stream is written anew."""
    return [
        pytest.param(*case.values, reencode, id=f"{case.id}-{'anew' if reencode else 'as it came'}")
        for case in reader_cases(DIRECTIONS)
        for reencode in (True, False)
        if reencode or case.values[0] == case.values[1].dialect
    ]


def reader_cases(directions: list[tuple[str, str]]) -> list[Any]:
    return [
        pytest.param(source, reader, id=f"{source}-to-{target}-{reader.name.replace(' ', '-')}")
        for source, target in directions
        for reader in READERS
        if reader.dialect == target
    ]


# -- recordings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_what_is_written_passes_its_dialects_linter_without_a_note(source: str, target: str, part: Part):
    complaints = [
        f"{recording.name}, {source} to {target}: {found}"
        for recording in part_of(recordings(source), part, turn=list(DIALECTS).index(target))
        for found in violations(converted(recording.body, source, target).body, target)
    ]
    assert not complaints, "\n".join(complaints[:30])


def some_of(source: str, reader: Reader) -> list[Recording]:
    """A few of each collection, which each reader draws for itself."""
    return drawn(recordings(source), EACH, f"{source} {reader.name}")


CHOSEN = pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(some_of, id="some"),
        pytest.param(lambda source, _: recordings(source), id="all", marks=pytest.mark.exhaustive),
    ],
)


@CHOSEN
@pytest.mark.parametrize(("source", "reader"), reader_cases(DIRECTIONS))
def test_clients_read_what_was_recorded(
    source: str, reader: Reader, chosen: Any, replay: ReplayServer, client: Clients
):
    judge = Judge(replay, client, reader)
    for recording in chosen(source, reader):
        output = converted(recording.body, source, reader.dialect)
        want = expected(whole(recording.body, source), reader.dialect, output.report.losses)
        judge.compare(recording.name, output.body, want)
    judge.verdict(f"{source} to {reader.dialect}")


@pytest.mark.parametrize(("source", "target"), SAME)
def test_conforming_recordings_pass_byte_for_byte(source: str, target: str):
    broken = [
        recording.name
        for recording in conforming(source)
        if converted(recording.body, source, target, reencode=False).body
        not in (recording.body, recording.body + (DIALECTS[source].frame_end or b""))
    ]
    assert not broken


@CHOSEN
@pytest.mark.parametrize(("source", "reader"), reader_cases(SAME))
def test_clients_read_conforming_recordings_that_pass(
    source: str, reader: Reader, chosen: Any, replay: ReplayServer, client: Clients
):
    judge = Judge(replay, client, reader)
    for recording in chosen(source, reader):
        if not (conforms(recording) and readable(recording, reader)):
            continue
        output = converted(recording.body, source, source, reencode=False)
        response = whole(recording.body, source)
        want = expected(response, source, {})
        for said in response.choices:  # the provider's own word, whatever it means
            want.choices[said.index].stop = said.native_stop_reason
        judge.compare(recording.name, output.body, want)
    judge.verdict(f"{source} passed through")


def conforming(dialect: str) -> list[Recording]:
    return [recording for recording in recordings(dialect) if conforms(recording)]


def readable(recording: Recording, reader: Reader) -> bool:
    """Whether a conforming stream is one for this reader at all."""
    if reader.dialect == "ollama":  # the others are answers of /api/generate
        return b'"message":' in recording.body
    if reader.dialect == "gemini":  # it asks for events
        return recording.body.startswith(b"data:")
    if reader.dialect == "bedrock":  # it insists on what the grammar says, as we write it
        return not {found.rule for found in violations(recording.body, recording.dialect)} & {"block_order", "metrics"}
    if reader.name == "openai helper":  # passes over chunks without `object`, stumbles over `type: null`
        return not {found.rule for found in violations(recording.body, recording.dialect)} & {"object", "call_repeat"}
    return True


def cut(body: bytes, name: str) -> bytes:
    return body[: random.Random(f"{SEED} {name}").randrange(1, len(body))]


def check_cut_recordings(judge: Judge, source: str, target: str, chosen: list[Recording]) -> None:
    for recording in chosen:
        body = cut(recording.body, recording.name)
        output = converted(body, source, target)
        if whole(body, source).clean:
            judge.compare(recording.name, output.body, expected(whole(body, source), target, output.report.losses))
        else:
            judge.refuse(f"{recording.name}, first {len(body)} bytes", output.body)
    judge.verdict(f"{source} to {target}, cut")


@pytest.mark.parametrize(("source", "reader"), reader_cases(DIRECTIONS))
def test_cut_recordings_never_end_as_success(source: str, reader: Reader, replay: ReplayServer, client: Clients):
    chosen = drawn(recordings(source), 1, f"cut {source} {reader.name}")
    check_cut_recordings(Judge(replay, client, reader), source, reader.dialect, chosen)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("source", "reader"), reader_cases(DIRECTIONS))
def test_all_cut_recordings_never_end_as_success(source: str, reader: Reader, replay: ReplayServer, client: Clients):
    check_cut_recordings(Judge(replay, client, reader), source, reader.dialect, list(recordings(source)))


# -- vectors -------------------------------------------------------------------------------------------------------

BY_READER = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name.replace(" ", "-"))


@BY_READER
@pytest.mark.parametrize("vector", WHOLE, ids=lambda vector: vector.name.replace(" ", "-"))
def test_clients_read_our_vectors(vector: Vector, reader: Reader, replay: ReplayServer, client: Clients):
    output = converted(vector.body, "openai-chat", reader.dialect)
    assert not violations(output.body, reader.dialect)
    calls = [evolve(call, id=id_in(reader.dialect, call.id)) for call in vector.choice.calls]
    want = evolve(vector.choice, stop=EXACT_STOPS[reader.dialect][vector.stop], calls=calls)
    judge = Judge(replay, client, reader)
    seen = judge.read(output.body)
    assert not differences(Reading({0: want}, seen.usage), seen)


@BY_READER
@pytest.mark.parametrize("loss", LOSSY)
def test_what_a_counted_loss_leaves(loss: str, reader: Reader, replay: ReplayServer, client: Clients):
    output = converted(LOSSY[loss], "openai-chat", reader.dialect)
    found = {broken.rule for broken in violations(output.body, reader.dialect)}
    assert found <= (
        {"input_unparsable", "arguments_unparsable"} if loss == "arguments_wrapped" else set()
    )  # the model's text, kept as it is
    assert set(output.report.losses) <= {loss, "stop_reason", "call_id", "usage_unknown"}
    judge = Judge(replay, client, reader)
    if loss == "arguments_wrapped" and reader.name == "anthropic helper":
        with pytest.raises(ValueError, match="tool parameter JSON"):  # as with Anthropic's own invalid JSON
            judge.read(output.body)
        return
    judge.compare(loss, output.body, expected(whole(LOSSY[loss], "openai-chat"), reader.dialect, output.report.losses))
    judge.verdict("openai-chat")


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "reader", "reencode"), ways_to_write())
def test_a_failure_of_the_provider_raises_with_its_message(
    source: str, reader: Reader, reencode: bool, replay: ReplayServer, client: Clients
):
    output = converted(BEGUN[source] + FAILURES[source], source, reader.dialect, reencode=reencode)
    judge = Judge(replay, client, reader)
    judge.refuse(f"{source} to {reader.dialect}", output.body, "all busy")
    judge.verdict("a failure")


@pytest.mark.parametrize(("source", "reader", "reencode"), ways_to_write())
def test_a_cut_stream_raises_as_truncated(
    source: str, reader: Reader, reencode: bool, replay: ReplayServer, client: Clients
):
    judge = Judge(replay, client, reader)
    for body in (BEGUN[source], BEGUN[source][:-9], b""):
        output = converted(body, source, reader.dialect, reencode=reencode)
        judge.refuse(f"{source} to {reader.dialect}, {len(body)} bytes", output.body, "truncated")
    judge.verdict("a cut")


# -- keep-alives ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dialect", "comment", "event"])
@BY_READER
def test_clients_pass_over_keep_alives(form: KeepAliveForm, reader: Reader, replay: ReplayServer, client: Clients):
    """While the provider is silent, before its first event and between any two, a client sees no more than without."""
    waiting = keep_alive(reader.dialect, form)
    reads = [event + b"\n\n" for event in WHOLE[0].body.split(b"\n\n")[:-1]]

    async def written(between: bytes) -> bytes:
        pipe = transcode(
            source_of(reads), "openai-chat", reader.dialect, ReadOptions(make_id=counting_ids()), reencode=True
        )
        async with pipe as stream:
            return b"".join([between + piece async for piece in stream])

    judge = Judge(replay, client, reader)
    plain, kept = asyncio.run(written(b"")), asyncio.run(written(waiting))
    assert kept.count(waiting) > 2 or not waiting
    assert judge.read(kept) == judge.read(plain)
