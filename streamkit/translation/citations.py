"""Citations of web pages, and of documents, in the words of another dialect.

What a model quotes is said at a place of its text, and each dialect counts places otherwise: Anthropic cites with
a whole block of text, Responses counts characters of a part, Chat those of all the text, Gemini bytes, all at the end. So the
text is measured while it passes. A citation of a whole block waits for the block's end, and those for Gemini for that of the
choice. A citation that has no place any more, since its block is closed, is a counted loss, as is one of a document where a
dialect has none.

Source: dialects.md §1.2, §2.2, §3.1, §5.2.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from streamkit.conversation.messages import Citation, Response, Text
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import CitationForm
from streamkit.events import Aside, Event, ResponseFinished, StreamEnded, TextDelta, UsageReported
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.tool_calls.event_machine import EventMachine, stage_within

#: Events that close no block.
BESIDE: Final = (UsageReported,)
CONSTANT: Final = frozenset({"metadata", "logprobs"})
#: The longest piece of a text that is kept: all of it is read to count a place in it.
PIECE_CHARS: Final = 1024
#: What a citation takes beside its texts, counted as characters.
CITATION_CHARS: Final = 100


@define
class _KeptText:
    """A text in short pieces, so that a place in it is counted in bytes and in characters without all of it being read."""

    _pieces: list[str] = field(factory=lambda: [""])
    _chars: list[int] = field(factory=lambda: [0])  #: in front of each piece
    _bytes: list[int] = field(factory=lambda: [0])

    def add(self, text: str) -> None:
        for start in range(0, len(text), PIECE_CHARS):
            piece, last = text[start : start + PIECE_CHARS], self._pieces[-1]
            if len(last) + len(piece) <= PIECE_CHARS:
                self._pieces[-1] = last + piece
            else:
                self._chars.append(self._chars[-1] + len(last))
                self._bytes.append(self._bytes[-1] + len(_encoded(last)))
                self._pieces.append(piece)

    def bytes_before(self, char: int) -> int:
        number = bisect_right(self._chars, char) - 1
        return self._bytes[number] + len(_encoded(self._pieces[number][: char - self._chars[number]]))

    def chars_before(self, byte: int) -> int:
        number = bisect_right(self._bytes, byte) - 1
        begun = _encoded(self._pieces[number])[: byte - self._bytes[number]]
        return self._chars[number] + len(begun.decode("utf-8", "ignore"))

    def between(self, start: int, end: int) -> str:
        """The text from one character to another."""
        first = bisect_right(self._chars, start) - 1
        last = bisect_right(self._chars, end) - 1
        before = self._chars[first]
        return "".join(self._pieces[first : last + 1])[start - before : end - before]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@define
class _Choice:
    """The text of one choice so far, measured in characters."""

    number: int
    length: int = 0
    begins: dict[int, int] = field(factory=dict)  #: of each block
    last: int = 0  #: the block that was written last
    open: bool = False  #: whether it may go on
    text: _KeptText | None = field(factory=_KeptText)  #: for dialects that count bytes; None: too long
    waiting: list[Citation] = field(factory=list)  #: of the whole of the last block
    held: list[Citation] = field(factory=list)  #: for the end

    def grow(self, event: TextDelta) -> None:
        self.begins.setdefault(event.block, self.length)
        self.last, self.open = event.block, True
        self.length += len(event.text)


class CitationCarrier(EventMachine):
    """Machine of ``carry_citations``: ``list[Event]`` to ``list[Event]``."""

    def __init__(
        self,
        source: CitationForm,
        to: CitationForm,
        *,
        limits: Limits = DEFAULT_LIMITS,
        report: StreamReport | None = None,
    ) -> None:
        if source.read is None:
            raise ValueError(f"no citations of {source.vendor} are read")
        self._from, self._to, self._read = source, to, source.read
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._bytes = to.unit != "none" and "bytes" in {source.unit, to.unit}
        self._choices: dict[int, _Choice] = {}
        self._room = limits.held_chars  #: for citations that wait, in characters
        self._written: set[tuple[Any, ...]] = set()  #: citations so far
        self._written_room = limits.held_chars
        self._text_room = limits.held_chars if self._bytes else 0  #: for the texts of all choices
        self._out: list[Any] = []

    def feed(self, events: list[Event], /) -> list[Event]:
        out = self._out = []
        for event in events:
            if isinstance(event, TextDelta):
                choice = self._choice(event.choice)
                if choice.waiting and choice.last != event.block:
                    self._close(choice, begins=event.block)
                self._keep(choice, event.text)
                choice.grow(event)
            elif isinstance(event, Aside) and event.kind == "citation" and event.vendor == self._from.vendor:
                if self._take(event):
                    continue
            elif isinstance(event, StreamEnded | ResponseFinished):
                self._end(event)
            elif not (isinstance(event, BESIDE) or (isinstance(event, Aside) and event.kind in CONSTANT)):
                self._close_all()
            out.append(event)
        return out

    def noting(self, like: Event, beside: Sequence[Any]) -> Callable[[str], None] | None:
        """Return a function that notes the text of another delta like ``like``; None if this machine must see the delta.

        ``beside``: the other events of each delta.
        """
        if any(isinstance(event, Aside) and event.kind == "citation" for event in beside):
            return None
        if not isinstance(like, TextDelta):
            return None if any(choice.open or choice.waiting for choice in self._choices.values()) else _pass
        choice = self._choices.get(like.choice)
        if choice is None or not choice.open or choice.waiting or choice.last != like.block:
            return None

        def note(text: str) -> None:
            self._keep(choice, text)
            choice.length += len(text)

        return note

    def _keep(self, choice: _Choice, text: str) -> None:
        """Keep a text as long as there is room for all of its choice."""
        if choice.text is None:
            return
        if len(text) > self._text_room:
            self._text_room += choice.length if self._bytes else 0
            choice.text = None
        else:
            self._text_room -= len(text)
            choice.text.add(text)

    def _choice(self, number: int) -> _Choice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(number)
        return choice

    # -- what comes ------------------------------------------------------------------------------------------------

    def _take(self, event: Aside) -> bool:
        """Read an aside; False for one that cites no page of the web."""
        read, beyond = self._read(event)
        if not read:
            return False
        for name in beyond:
            self._report.lose("metadata", what=name)
        choice = self._choice(event.choice)
        for citation in read:
            if not self._is_new(event, citation):
                continue
            if citation.document is not None and not self._to.documents:
                self._report.lose("citation")
                continue
            if self._to.unit == "none":
                self._out += self._to.write([citation], choice.number)
            elif citation.start is None:
                self._hold(choice.waiting, evolve(citation, block=event.block))
            else:
                self._place(choice, citation, event.block)
        return True

    def _is_new(self, event: Aside, citation: Citation) -> bool:
        """Whether it was not told of this place before: Gemini says with each chunk what it said so far."""
        block = event.block if self._from.unit == "block" else None
        place = citation.document and (citation.document.kind, citation.document.index, citation.document.start)
        key = (event.choice, block, citation.url, citation.title, citation.quote, citation.start, citation.end, place)
        if key in self._written:
            return False
        needed = _size(citation)
        if needed <= self._written_room:
            self._written_room -= needed
            self._written.add(key)
        return True

    def _hold(self, waiting: list[Citation], citation: Citation) -> None:
        """Let a citation wait, if there is room."""
        needed = _size(citation)
        if needed > self._room:
            self._report.lose("citation")
        else:
            self._room -= needed
            waiting.append(citation)

    def _released(self, waiting: list[Citation]) -> list[Citation]:
        """Those that waited, which nothing holds any more."""
        released = waiting.copy()
        waiting.clear()
        self._room += sum(map(_size, released))
        return released

    def _place(self, choice: _Choice, citation: Citation, block: int) -> None:
        """Write a citation whose place is told, in the source's unit."""
        start, end = citation.start or 0, citation.end or 0
        if self._from.unit == "block":
            begin = choice.begins.get(block, choice.length)
            start, end = start + begin, end + begin
        elif self._from.unit == "bytes":
            text = choice.text
            if text is None:
                self._report.lose("citation")
                return
            start, end = text.chars_before(start), text.chars_before(end)
        self._write(choice, evolve(citation, start=start, end=end, block=choice.last))

    def _close_all(self) -> None:
        for choice in self._choices.values():
            self._close(choice)
            choice.open = False

    def _close(self, choice: _Choice, *, begins: int | None = None) -> None:
        """The last block is whole, so what cites all of it has its place; what cites the block that ``begins`` waits on."""
        for citation in self._released(choice.waiting):
            if citation.block == begins:  # Anthropic says some of them in front of the text
                self._hold(choice.waiting, citation)
                continue
            begin = choice.begins.get(citation.block)
            if begin is None:
                self._report.lose("citation")
            else:
                self._write(choice, evolve(citation, start=begin, end=choice.length))

    def _end(self, event: ResponseFinished | StreamEnded) -> None:
        if isinstance(event, StreamEnded):
            self._close_all()
        for choice in self._choices.values():
            if isinstance(event, StreamEnded) or event.choice == choice.number:
                self._close(choice)
                if choice.held:
                    measured = [self._measured(choice, citation) for citation in choice.held]
                    self._released(choice.held)
                    self._out += self._to.write(measured, choice.number)

    # -- what goes -------------------------------------------------------------------------------------------------

    def _write(self, choice: _Choice, citation: Citation) -> None:
        """Write a citation at a place of the choice's text, in characters."""
        if self._to.unit == "bytes":
            self._hold(choice.held, citation)
        elif self._to.unit == "choice":
            self._out += self._to.write([citation], choice.number)
        elif citation.block != choice.last or not choice.open or (citation.start or 0) < choice.begins[choice.last]:
            self._report.lose("citation")  # the block that it belongs to is closed
        else:
            begin = choice.begins[choice.last]
            moved = evolve(citation, start=(citation.start or 0) - begin, end=(citation.end or 0) - begin)
            self._out += self._to.write([moved], choice.number)

    def _measured(self, choice: _Choice, citation: Citation) -> Citation:
        """A citation with its place in bytes, and its text if there is room; with neither where the text was not kept."""
        text = choice.text
        if text is None:
            return evolve(citation, start=None, end=None)
        start, end = min(citation.start or 0, choice.length), min(citation.end or 0, choice.length)
        quote = citation.quote
        if not quote and end - start <= self._room:
            self._room -= end - start
            quote = text.between(start, end)
        return evolve(citation, start=text.bytes_before(start), end=text.bytes_before(end), quote=quote)


def _pass(_text: str) -> None:
    """Note nothing: no citation has a place in reasoning or in arguments."""


def _size(citation: Citation) -> int:
    """What it takes to hold a citation, in characters."""
    return CITATION_CHARS + len(citation.url) + len(citation.title or "") + len(citation.quote or "")


def carries(source: str, to: str) -> bool:
    """Return whether citations of one dialect are carried into another: both have them.

    The request need not offer a search: some providers search without one, and documents are cited without one.
    """
    read, write = DIALECTS[source].citations, DIALECTS[to].citations
    return read is not None and read.read is not None and write is not None and source != to


def carry_citations(source: str, to: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Event], list[Event]]:
    """The stage in front of ``encode`` that writes the citations of one dialect in the words of another."""
    read, write = DIALECTS[source].citations, DIALECTS[to].citations
    if read is None or write is None:
        raise ValueError(f"no citations are known of {source if read is None else to}")
    return stage_within(
        "events", "carry_citations", lambda report: CitationCarrier(read, write, limits=limits, report=report)
    )


def carry_citations_of(response: Response, to: str) -> None:
    """Carry the citations of a whole response, in place; nothing within one dialect."""
    read, write = DIALECTS[response.dialect].citations, DIALECTS[to].citations
    if read is None or write is None or not carries(response.dialect, to):
        return
    for choice in response.choices:
        carrier = CitationCarrier(read, write, report=response.report)
        parts: list[Any] = []
        for part in choice.parts:
            fed: Any = TextDelta(part.text, choice.index, part.block) if isinstance(part, Text) else part
            parts += [part if made is fed else made for made in carrier.feed([fed])]
        parts += carrier.feed([ResponseFinished("stop", choice=choice.index)])[:-1]
        choice.parts = parts
