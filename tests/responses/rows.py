"""Rows about whole responses, and the one runner of them all.

A row is a body, or a response that another dialect gave. It says what parts the body is read as and what is repaired, what is written of
the response and what is lost, or with which error the body is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import orjson
import pytest
from attrs import evolve, frozen

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Choice, Response
from streamkit.conversation.response_events import response_events
from streamkit.events import Aside
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_response, encode_response
from tests.requests.rows import NONE, Counts, Members, at, check_losses, rows

__all__ = ["NONE", "Dialect", "Row", "rows"]


@frozen
class Row:
    """A whole response, and what becomes of it."""

    given: Mapping[str, Any] | list[Any] | bytes | Response  #: a body that is read, or the response itself
    parts: list[Any] | None = None  #: of the first choice
    said: Members = NONE  #: what stands at these places of the response: ``{"choices[0].stop_reason": "stop"}``
    repairs: Members | None = NONE  #: while the body is read
    written: Any = None  #: the whole body that is written
    at: Members = NONE  #: what stands at these places of the body that is written
    losses: Counts | None = None
    withheld: int | None = None  #: calls that are not written
    refused: tuple[type[Exception], str] | None = None  #: the error, and some of its words
    options: Members = NONE  #: of reading
    target: Members = NONE  #: of writing


def said_at(response: Response, place: str) -> Any:
    """What stands at a place of a response, by attributes and numbers; ``...`` if a list ends before."""
    keys = place.replace("[", ".").replace("]", "").split(".")
    return reduce(
        lambda value, key: dict(enumerate(value)).get(int(key), ...) if key.isdecimal() else getattr(value, key),
        keys,
        response,
    )


def unlabelled(part: Any) -> Any:
    """A part without the label of its block."""
    return (part.vendor, part.kind, part.type, part.raw) if isinstance(part, Aside) else part


@frozen
class Dialect:
    """A dialect whose rows are made by the methods."""

    name: str
    foreign: Response  #: of another dialect, without parts
    normal: Callable[[Any], Any] = lambda body: body  #: a body without what says nothing
    labels: bool = True  #: the labels of blocks count
    reading: Callable[[], Members] = dict  #: options of reading, made anew for each body

    def read(self, body: Any, report: StreamReport | None = None, **options: Any) -> Response:
        whole = body if isinstance(body, bytes) else json.dumps(body).encode()
        return decode_response(whole, self.name, ReadOptions(**{**self.reading(), **options}), report=report)

    def write(self, response: Response, to: str = "", **target: Any) -> tuple[dict[str, Any], StreamReport]:
        report = StreamReport()
        fixed = {"make_id": lambda prefix: f"{prefix}1", "clock": lambda: 1.0}
        return orjson.loads(encode_response(response, to or self.name, report=report, **fixed, **target)), report

    def response(self, *parts: Any, stop: Any = "stop", **members: Any) -> Response:
        return evolve(self.foreign, choices=[Choice(parts=[*parts], stop_reason=stop)], **members)

    def kept(self, body: Any, parts: list[Any] | None, **more: Any) -> Row:
        """A body that is read as these parts, and written as it was."""
        return Row(body, parts, written=body, losses=NONE, **more)

    def mended(self, body: Any, repairs: Members, **said: Any) -> Row:
        """A body that is a clean response after these repairs."""
        return Row(body, None, {"clean": True, **said}, repairs)

    def failed(self, body: Any, kind: str, message: str, repairs: Members = NONE, **more: Any) -> Row:
        """The body of an error."""
        return Row(body, None, {"error.type": kind, "error.message": message, "clean": False}, repairs, **more)

    def refused(self, body: bytes, error: type[Exception], words: str = "") -> Row:
        return Row(body, refused=(error, words))

    def of_another(self, response: Response, written: Any, losses: Counts | None = NONE, **more: Any) -> Row:
        """A response of another dialect, and the body that is written."""
        return Row(response, written=written, losses=losses, **more)

    def check(self, row: Row) -> None:
        """Check all that a row says."""
        report = StreamReport()
        if row.refused is not None:
            error, words = row.refused
            with pytest.raises(error) as caught:
                self.read(row.given, report, **row.options)
            assert words in str(caught.value)
            assert report.error is caught.value
            return
        response = row.given if isinstance(row.given, Response) else self.read(row.given, report, **row.options)
        if row.parts is not None:
            found = response.choices[0].parts
            same = list if self.labels else lambda parts: [unlabelled(part) for part in parts]
            assert same(found) == same(row.parts)
        for place, value in row.said.items():
            assert said_at(response, place) == value, place
        if row.repairs is not None:
            assert report.repairs == row.repairs
        if row.written is not None or row.at or row.losses is not None:
            self.check_written(response, row)
        if response.clean and not isinstance(row.given, Response):
            self.check_replayed(response)

    def check_replayed(self, response: Response) -> None:
        """Check that what passes stages is written as before: in its own dialect and in another one."""
        collector = Collector(response.dialect, StreamReport())
        collector.feed(response_events(response))
        again = collector.finish()
        for to in (response.dialect, "anthropic", "openai-chat"):
            before, after = (self.write(each, to) for each in (response, again))
            assert after[0] == before[0]
            assert after[1].losses == before[1].losses

    def check_written(self, response: Response, row: Row) -> None:
        before = repr(response)
        written, report = self.write(response, **row.target)
        assert repr(response) == before
        if row.written is not None:
            assert self.normal(written) == self.normal(row.written)
        for place, value in row.at.items():
            assert at(written, place) == value, place
        check_losses(report, row.losses)
        if row.withheld is not None:
            assert len(report.withheld) == row.withheld
