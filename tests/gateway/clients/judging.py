"""What a client read through the gateway, held against what ``tests/clients`` expects of that direction.

The losses that may explain a difference are those that the gateway counted for that very answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from streamkit.conversation.messages import Response
from streamkit.gateway.record import Record
from tests.clients.expected import differences, expected
from tests.clients.readers import Reader, Reading
from tests.clients.test_official_clients import raised_by
from tests.gateway.clients.in_thread import GatewayThread
from tests.web.evil import Script

Clients = Callable[[str], Any]
#: A loss that no reading shows, beside those that ``tests/clients`` knows of.
UNREAD = {"audio"}
#: Whole responses say 0 where it is unknown, as openai-python's types demand; streams leave it out.
COUNTING_CACHE_WRITES = {"openai responses whole"}
#: Ids of ``counting_ids``.
MADE = re.compile(r"\w*made\d+")


class Judge:
    """Lets a reader read through the gateway, and keeps what went wrong."""

    def __init__(self, served: GatewayThread, client: Clients, reader: Reader) -> None:
        self.complaints: list[str] = []
        self.judged = 0
        self._served = served
        self._client = client(reader.package)
        self._reader = reader
        self._error = raised_by(reader.package)

    def compare(self, what: str, dialect: str, played: Script, response: Response) -> None:
        """The reader must see ``response``, or raise its client's own error if that is not clean."""
        model = self._served.register(dialect, played)
        try:
            seen = self._reader.read(self._client, model)
        except self._error as error:
            found = [f"the client raised {type(error).__name__}: {error}"] if response.clean else []
        except Exception as error:  # noqa: BLE001 - whatever else a client raises is the finding
            found = [f"the client raised {type(error).__name__}: {error}"]
        else:
            found = self._unlike(seen, model, response) if response.clean else [f"ends as success: {seen!r:.300}"]
        self.judged += 1
        self.complaints += [f"{what} ({model}): {complaint}" for complaint in found]

    def _unlike(self, seen: Reading, model: str, response: Response) -> list[str]:
        record = self._served.record(model)
        want = expectation(response, self._reader.dialect, record)
        if record.client == response.dialect:  # it passed: the provider's own word, whatever it means
            for said in response.choices:
                want.choices[said.index].stop = said.native_stop_reason
        elif want.usage is not None and want.usage.cache_write is None and self._reader.name in COUNTING_CACHE_WRITES:
            want.usage.cache_write = 0
        take_made_ids(want, seen)
        return differences(want, seen)

    def verdict(self, what: str) -> None:
        assert self.judged, f"{what}, {self._reader.name}: nothing was read"
        assert not self.complaints, f"{what}, {self._reader.name}:\n" + "\n".join(self.complaints[:30])


def expectation(response: Response, dialect: str, record: Record) -> Reading:
    """What a client of ``dialect`` is to see of a response, by the losses that the gateway counted for it."""
    losses = {kind: times for kind, times in record.attempts[-1].report.losses.items() if kind not in UNREAD}
    return expected(response, dialect, losses)


def take_made_ids(want: Reading, seen: Reading) -> None:
    """A call that came without an id of its own gets one that nobody can know before; it is only to be like no other."""
    for number, choice in want.choices.items():
        read = seen.choices[number].calls if number in seen.choices else []
        for call, other in zip(choice.calls or (), read, strict=False):
            if call.id is not None and MADE.fullmatch(call.id) and [each.id for each in read].count(other.id) == 1:
                call.id = other.id
