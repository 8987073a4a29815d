"""Rows about bodies of requests, and the one runner of them all.

A row names only what differs from the least request of its dialect: members of the body, or of the request. It says what the body is
read as, what is written of the request, what is lost and repaired on the way, or at which place and with which words it is refused.
Of each row the runner also checks that writing changes no request, and of most that the official client lets its user write the body.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import orjson
import pytest
from attrs import evolve, frozen

from streamkit.conversation.messages import Part, Request, Text, Turn
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, drop_unreadable, encode_request
from tests.requests.sdk_types import faults

#: Members of a body or of a request by their names; ``...`` stands for a member that is not there.
Members: TypeAlias = Mapping[str, Any]
#: How often each kind was counted, or each single time by its kind and words, which are blank where there are none.
Counts: TypeAlias = Mapping[str, int] | list[tuple[str, str]]
NONE: Mapping[str, Any] = MappingProxyType({})


def by_user(*parts: Part, **more: Any) -> Turn:
    return Turn("user", [*parts], **more)


def by_model(*parts: Part, **more: Any) -> Turn:
    return Turn("assistant", [*parts], **more)


def by_system(*parts: Part, **more: Any) -> Turn:
    return Turn("system", [*parts], **more)


HI = by_user(Text("hi"))


def parameters(*names: str) -> list[tuple[str, str]]:
    """Losses of options that the dialect has no place for."""
    return [("parameter", name) for name in names]


@frozen
class Row:
    """A request, and what becomes of it."""

    given: Members | Request  #: members of a body that is read, or the request itself
    read: Members | None = None  #: members of the request that the body is
    written: Members | None = None  #: members of the body that is written, none beside them
    at: Members = NONE  #: what stands at these places of the body that is written: ``{"messages[0].content": "hi"}``
    losses: Counts | None = NONE  #: None: another row counts them
    repairs: Mapping[str, int] | None = NONE
    refused: tuple[str, str] | None = None  #: the path, and some of the words
    to: str = ""  #: the dialect that it is written for, if it is another
    target: Members = NONE
    typed: bool = False  #: the body is checked against the types of the official client
    writes: bool = True
    change: Callable[[Request], object] | None = None  #: what a program does to the request before it is written


def rows(about: str, table: Mapping[str, Any] | list[Any], make: Callable[..., Row]) -> dict[str, Row]:
    """Rows of a table; each is made of the values of one line."""
    lines = table.items() if isinstance(table, Mapping) else enumerate(table)
    return {f"{about}: {name}": make(*(line if isinstance(line, tuple) else (line,))) for name, line in lines}


def write(request: Request, to: str, report: StreamReport | None = None, **target: Any) -> tuple[Any, StreamReport]:
    """The body that is written of a request, and what was counted."""
    report = report or StreamReport()
    if target.pop("unreadable", "refuse") == "drop":
        request = drop_unreadable(request, to, report=report)
    return orjson.loads(encode_request(request, to, report=report, **target)), report


def translate(body: Mapping[str, Any] | bytes, source: str, to: str, **target: Any) -> tuple[Any, StreamReport]:
    """What the body of one dialect is in another, and what was counted on both ways."""
    report = StreamReport()
    whole = body if isinstance(body, bytes) else orjson.dumps(body)
    return write(decode_request(whole, source, report=report), to, report, **target)


def at(body: Any, place: str) -> Any:
    """What stands at a place of a body."""
    keys = [int(key) if key.isdecimal() else key for key in place.replace("[", ".").replace("]", "").split(".")]
    return reduce(lambda value, key: value.get(key, ...) if isinstance(value, dict) else value[key], keys, body)


def check_losses(report: StreamReport, losses: Counts | None) -> None:
    if isinstance(losses, list):
        assert sorted(report.lost) == sorted(loss for loss in losses if loss[1])
        assert report.losses == Counter(kind for kind, _ in losses)
    elif losses is not None:
        assert report.losses == losses


@frozen
class Dialect:
    """A dialect whose rows are made by the methods, and its least request."""

    name: str
    least: Members  #: the body that each row adds to
    plain: Request  #: what the least body is read as
    foreign: Request  #: a request of another dialect that is written as the least body
    target: Members = NONE

    def body(self, members: Members) -> dict[str, Any]:
        return {name: value for name, value in {**self.least, **members}.items() if value is not ...}

    def read(self, report: StreamReport | None = None, /, **members: Any) -> Request:
        return decode_request(orjson.dumps(self.body(members)), self.name, report=report)

    def write(
        self, request: Request, to: str = "", report: StreamReport | None = None, **target: Any
    ) -> tuple[dict[str, Any], StreamReport]:
        return write(request, to or self.name, report, **{**self.target, **target})

    def kept(self, members: Members, *, typed: bool = True, **read: Any) -> Row:
        """A body that is read as these members of the request, and written as it was."""
        return Row(members, read, members, typed=typed)

    def means(self, members: Members, **read: Any) -> Row:
        """A body that is read as these members of the request. How it is written is not asked."""
        return Row(members, read, writes=False)

    def alike(self, members: Members, written: Members, **more: Any) -> Row:
        """A body that is written in another form."""
        return Row(members, None, written, **more)

    def translated(self, to: str, members: Members, at: Members = NONE, losses: Counts = NONE, **more: Any) -> Row:
        """A body that is written for another dialect, and what stands there at some places."""
        return Row(members, None, None, at, losses, to=to, **more)

    def of_another(
        self,
        members: Members,
        written: Members | None,
        losses: Counts | None = NONE,
        repairs: Members = NONE,
        **more: Any,
    ) -> Row:
        """A request of another dialect, by its members, and the body that is written."""
        more = {"typed": True, "at": NONE, **more}
        return Row(evolve(self.foreign, **members), None, written, losses=losses, repairs=repairs, **more)

    def refused(self, members: Members, path: str, words: str, **more: Any) -> Row:
        """A body that cannot be read; with ``to``, one that cannot be written for that dialect."""
        return Row(members, refused=(path, words), **more)

    def unwritable(self, members: Members, path: str, words: str, **target: Any) -> Row:
        """A request of another dialect, by its members, that cannot be written."""
        return Row(evolve(self.foreign, **members), refused=(path, words), to=self.name, target=target)

    def check(self, row: Row, *, beyond: bool = False) -> None:
        """Check all that a row says; ``beyond``: the official client does not let its user write the body."""
        report = StreamReport()
        if row.refused is None:
            request = self.request(row, report)
            if row.writes:
                self.check_written(request, row, report, beyond=beyond)
            return
        request = self.request(row, report) if row.to else None
        with pytest.raises(BadRequest) as bad:
            self.request(row, report) if request is None else self.write(request, row.to, **row.target)
        path, words = row.refused
        assert bad.value.path == path
        assert words in bad.value.reason

    def request(self, row: Row, report: StreamReport) -> Request:
        """The request of a row, as it is to be written."""
        request = row.given if isinstance(row.given, Request) else self.read(report, **row.given)
        if row.read is not None:
            # what another dialect refuses of it, rows of refusals say
            assert request == evolve(self.plain, **{"unreadable": request.unreadable, **row.read})
        if row.change is not None:
            row.change(request)
        if row.to:
            request.model = request.model or "m"  # some dialects have it in the URL
        return request

    def check_written(self, request: Request, row: Row, report: StreamReport, *, beyond: bool) -> None:
        before = repr(request)
        # what only another provider can read is refused by default, as test_unreadable.py says
        written, _ = self.write(request, row.to, report, **{"unreadable": "drop", **row.target})
        assert repr(request) == before
        if row.written is not None:
            assert written == self.body(row.written)
        for place, value in row.at.items():
            assert at(written, place) == value, place
        check_losses(report, row.losses)
        if row.repairs is not None:
            assert report.repairs == row.repairs
        if row.typed:
            assert bool(faults(self.name, written)) == beyond
