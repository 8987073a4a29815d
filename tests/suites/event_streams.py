"""What the tests of eventsource-parser 4.1.3 and of LaunchDarkly's SSE contract tests hold, put to our own inputs.

Each case names the suites that its rule was taken from. ``reads`` are what the network brings; the parser must also give the same events
for every other cut. Left out is what they hold of their own interfaces, of HTTP, and of connecting again.

Source: rexxars/eventsource-parser, ``test/parse.test.ts`` at 0482048; launchdarkly/sse-contract-tests, ``ssetests`` at 049771b,
0b6e57b, 05cdb9a. Rules only: no input of theirs is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

PARSER: Final = "eventsource-parser"
CONTRACT: Final = "sse-contract-tests"
BOTH: Final = (PARSER, CONTRACT)
MARK: Final = b"\xef\xbb\xbf"


@frozen
class Event:
    data: str
    type: str = "message"
    id: str = ""


@frozen
class Case:
    rule: str
    reads: Sequence[bytes]
    events: Sequence[Event]
    suites: Sequence[str] = BOTH
    retry: int | None = None
    unknown: int = 0  #: fields that are passed over, which both parsers report


def cases() -> Iterator[Case]:
    """All of them. Rules that a suite holds of three line ends are held of each."""
    yield from SINGLE
    for name, end in {"LF": "\n", "CRLF": "\r\n", "CR": "\r"}.items():
        yield from ending_with(name, end)


def ending_with(name: str, end: str) -> Iterator[Case]:
    def lines(*said: str) -> list[bytes]:
        return ["".join(line + end for line in said).encode()]

    yield Case(f"{name} ends lines, an empty one an event", lines("data: oak", ""), [Event("oak")])
    yield Case(f"{name} between data lines", lines("data: oak", "data: elm", ""), [Event("oak\nelm")])
    yield Case(
        f"{name}: events of one line and of two",
        lines("data: oak", "", "data: elm", "data: ash", ""),
        [Event("oak"), Event("elm\nash")],
        (CONTRACT,),
    )
    yield Case(f"{name}: an empty data line in front", lines("data:", "data: elm", ""), [Event("\nelm")], (CONTRACT,))
    yield Case(
        f"{name}: an empty data line between",
        lines("data: oak", "data:", "data: ash", ""),
        [Event("oak\n\nash")],
        (CONTRACT,),
    )
    yield Case(
        f"{name}: one empty line too many",
        lines("data: 1", "", "", "data: 2", ""),
        [Event("1"), Event("2")],
        (CONTRACT,),
    )
    yield Case(
        f"{name}: two too many", lines("data: 1", "", "", "", "data: 2", ""), [Event("1"), Event("2")], (CONTRACT,)
    )
    yield Case(f"{name}: an id alone lasts", lines("id: 9", "", "data: x", ""), [Event("x", id="9")], (PARSER,))


SINGLE: Final = (
    # -- fields
    Case("an event in one read", [b"data: one leaf\n\n"], [Event("one leaf")]),
    Case("an event in two", [b"data: one l", b"eaf\n\n"], [Event("one leaf")]),
    Case("two events in one read", [b"data: oak\n\ndata: elm\n\n"], [Event("oak"), Event("elm")]),
    Case("no data behind the colon", [b"data:\n\n"], [Event("")]),
    Case("a type", [b"event: leaf\ndata: oak\n\n"], [Event("oak", "leaf")]),
    Case("an empty type is none", [b"event:\ndata: oak\n\nevent: \ndata: elm\n\n"], [Event("oak"), Event("elm")], (PARSER,)),
    Case("the type is of its event only", [b"event: leaf\ndata: 1\n\ndata: 2\n\n"], [Event("1", "leaf"), Event("2")], suites=(CONTRACT,)),
    Case("an id", [b"id: t-1\ndata: oak\n\n"], [Event("oak", id="t-1")]),
    Case("a type and an id", [b"event: leaf\nid: t-1\ndata: oak\n\n"], [Event("oak", "leaf", "t-1")]),
    Case("fields in another order", [b"data: oak\nid: t-1\nevent: leaf\n\n"], [Event("oak", "leaf", "t-1")], suites=(CONTRACT,)),
    Case("an id lasts", [b"id: t-1\ndata: 1\n\n", b"data: 2\n\n"], [Event("1", id="t-1"), Event("2", id="t-1")], suites=(CONTRACT,)),
    Case("an empty id ends it", [b"id: t-1\ndata: 1\n\nid:\ndata: 2\n\n"], [Event("1", id="t-1"), Event("2")], suites=(CONTRACT,)),
    Case("an id with NUL is none", [b"id: t\x00-2\ndata: oak\n\n"], [Event("oak")]),
    Case("and the one before it stays", [b"id: t-1\nid: t\x00-2\ndata: oak\n\n"], [Event("oak", id="t-1")], (PARSER,)),
    Case("an unknown field", [b"event: leaf\nshape: round\ndata: oak\n\n"], [Event("oak", "leaf")], unknown=1),
    Case("an unknown field without a value", [b"shape\r", b"data: oak\n\n"], [Event("oak")], (PARSER,), unknown=1),
    Case("a name that begins as one we know", [b"dataset: 4\ndata: oak\n\n"], [Event("oak")], (PARSER,), unknown=1),
    Case("no space behind the colon", [b"event:leaf\ndata:oak\n\n"], [Event("oak", "leaf")]),
    Case("two spaces: the second stays", [b"event:  leaf\ndata:  oak\n\n"], [Event(" oak", " leaf")], suites=(CONTRACT,)),
    Case("no colon", [b"data\n\ndata\ndata\n\ndata:oak\n\n"], [Event(""), Event("\n"), Event("oak")]),
    Case("no colon, the line's end cut", [b"data: oak\ndata\r", b"\ndata: elm\n\n"], [Event("oak\n\nelm")], (PARSER,)),
    Case("half a field name in each read", [b"da", b"ta\n\n"], [Event("")], (PARSER,)),
    Case("no blank line at the end: no event", [b"data: oak\n\ndata: elm\n"], [Event("oak")], (PARSER,)),
    Case("no data: no event", [b"event: leaf\nid: t-1\n\n"], [], (PARSER,)),
    # -- characters
    Case("characters of three bytes", ["data: Bäume: 樹木, ½ €\n\n".encode()], [Event("Bäume: 樹木, ½ €")]),
    Case("and of four, byte by byte", [bytes([b]) for b in "data: 🌳樹\n\n".encode()], [Event("🌳樹")], suites=(CONTRACT,)),
    Case("blank lines around them", ["\n\ndata: 樹\n\n\n\nevent: end\ndata: 🌳\n\n".encode()], [Event("樹"), Event("🌳", "end")], suites=(PARSER,)),
    Case("one byte order mark is taken off", [MARK + b"data: oak\n\n"], [Event("oak")]),
    Case("a cut one, too", [MARK[:1], MARK[1:] + b"data: oak\n\n"], [Event("oak")], suites=(PARSER,)),
    Case(
        "another, further on, is part of a name",
        [MARK + b"data: oak\n\n" + MARK + b"data: elm\n\ndata: ash\n\n"],
        [Event("oak"), Event("ash")],
        unknown=1, suites=(PARSER,),
    ),
    # -- line ends
    Case("CRLF cut between reads", [b"data: a\r", b"\ndata: b\r", b"\n\r\ndata: c\r", b"\n", b"\r", b"\n"], [Event("a\nb"), Event("c")]),
    Case("the blank line's CRLF cut", [b"data: a\r", b"\r", b"\n"], [Event("a")], (PARSER,)),
    Case("a CR at the end of a read, no LF", [b"data: a\n:note\r", b"data: b\n\n"], [Event("a\nb")], (PARSER,)),
    Case("a CR at the end of a read, an LF", [b"data: a\n:note\r", b"\ndata: b\n\n"], [Event("a\nb")], (PARSER,)),
    # -- comments
    Case("a comment alone", [b": still here\n"], [], suites=(CONTRACT,)),
    Case("two of them", [b":one\n:two\n"], [], suites=(CONTRACT,)),
    Case("a comment before an event", [b":note\ndata: oak\n\n"], [Event("oak")], suites=(CONTRACT,)),
    Case("behind one", [b"data: oak\n\n:note\n"], [Event("oak")], suites=(CONTRACT,)),
    Case("within one", [b"data: oak\n: note\ndata: elm\n\n"], [Event("oak\nelm")], (PARSER,)),
    Case("empty ones, and one of colons", [b":\n:::::\ndata: oak\n:\n\n"], [Event("oak")], (PARSER,)),
    Case("one that comes in pieces", [b"data: a\n:", b"note\r\ndata: b\n\n"], [Event("a\nb")], (PARSER,)),
    Case("keep-alives between events", [b"data: A\n\n: beat\n\ndata: B\n\n: beat\n\n"], [Event("A"), Event("B")], (PARSER,)),
    # -- reconnection time
    Case("a reconnection time", [b"retry: 250\ndata: oak\n\n"], [Event("oak")], retry=250),
    Case("one that is no number", [b"retry: 250\n\ndata: 1\n\nretry: 99x\n\ndata: 2\n\n"], [Event("1"), Event("2")], (PARSER,), retry=250),
    Case("an empty one", [b"retry: 250\n\nretry:\ndata: oak\n\n"], [Event("oak")], (PARSER,), retry=250),
    # -- sizes
    Case("a hundred events in one read", [b"".join(b"data: leaf %d\n\n" % n for n in range(100))], [Event(f"leaf {n}") for n in range(100)], suites=(CONTRACT,)),
    Case("five megabytes in one event", [b"data: " + b"leaf " * 1_000_000 + b"\n\n"], [Event("leaf " * 1_000_000)]),
)  # fmt: skip
