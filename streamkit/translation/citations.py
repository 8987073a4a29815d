"""Translate citations, and the web searches that a provider ran itself, from one dialect to another.

A citation refers to a place in the model's text, and each dialect counts places differently: Anthropic cites with a whole
text block, Responses counts characters of one part, Chat and Cohere count characters of the whole text, and Gemini counts
bytes and sends all citations at the end. So the text is measured while it passes. A citation of a whole block is held until
the block ends, and one for a dialect that sends all ``at_end`` until the choice ends. A citation whose block is already
closed is a counted loss. So is a citation of a document, where the target dialect can't cite documents, and the text of the
source that a citation quotes, where the target has no member for it. From Cohere to a dialect that cites with blocks, the
text is cut into blocks (``CitedBlocks``).

A client that asked for a search counts searches and lists their pages: Claude Code takes its links only from them. So each
search that has ended is written once, as a whole; its progress is not written. Clients run none of these searches. Where the
source's dialect sends a search in several frames, they are collected; a search without an end is a counted loss.

Source: dialects.md §1.2, §2.1, §2.2, §3.1, §5.2, §6.1, §6.2 (citations and searches of each dialect).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeGuard

from attrs import define, evolve, field

from streamkit.conversation.messages import Citation, Part, Response, Text, Tool
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import CitationForm, Dialect, SearchReader, ToolSearchReader
from streamkit.events import Aside, Event, ResponseFinished, StreamEnded, TextDelta, UsageReported
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport

CONSTANT: Final = frozenset({"metadata", "logprobs"})
#: The most characters in one kept piece of a text. To count a place, one piece is read whole.
PIECE_CHARS: Final = 1024
CITATION_CHARS: Final = 100  #: the size of a citation without its texts, in characters
#: The first label of the blocks into which ``CitedBlocks`` cuts a text: higher than any label of a decoder.
NEW_LABEL: Final = 1 << 20
#: How many characters of a text ``CitedBlocks`` holds in a stream: longer than the spans that models cite.
CITED_CHARS: Final = 600


@define
class _KeptText:
    """A text in short pieces, so that a place is converted between bytes and characters without reading the whole text."""

    _pieces: list[str] = field(factory=lambda: [""])
    _chars: list[int] = field(factory=lambda: [0])  #: characters before each piece
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
        first = bisect_right(self._chars, start) - 1
        last = bisect_right(self._chars, end) - 1
        before = self._chars[first]
        return "".join(self._pieces[first : last + 1])[start - before : end - before]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@define
class _CitedChoice:
    """The text of one choice so far, measured in characters."""

    number: int
    length: int = 0
    begins: dict[int, int] = field(factory=dict)  #: where each block begins in the text
    last: int = 0  #: the block that was written last
    open: bool = False  #: whether the last block may grow
    text: _KeptText | None = None  #: the text itself, if a dialect counts bytes; None if the text is too long
    waiting: list[Citation] = field(factory=list)  #: citations of the whole last block
    held: list[Citation] = field(factory=list)  #: citations to write at the end of the choice


class CitationCarrier(Link):
    """The machine of ``carry_citations``: from events to events with translated citations."""

    _growing: _CitedChoice  #: the choice of the latest text
    #: The number and block of that choice, while the block is open and its text need not be kept; else None.
    _at: tuple[int, int] | None = None

    def __init__(
        self,
        source: CitationForm,
        to: CitationForm,
        *,
        limits: Limits = DEFAULT_LIMITS,
        report: StreamReport | None = None,
    ) -> None:
        if source.read is None:
            raise ValueError(f"streamkit cannot read citations of {source.vendor}")
        self._from, self._to, self._read = source, to, source.read
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._keeps_text = to.has_text or (to.unit != "none" and "bytes" in {source.unit, to.unit})
        self._choices: dict[int, _CitedChoice] = {}
        self._is_open = False  # True if a text block may grow, or a citation waits for the block's end
        self._room = limits.held_chars  #: for citations that wait, in characters
        self._written: set[tuple[Any, ...]] = set()  #: citations written so far
        self._written_room = limits.held_chars
        self._text_room = (
            limits.held_chars if self._keeps_text else 0
        )  #: for the kept texts of all choices, in characters

    def push(self, event: Any, /) -> None:
        kind = type(event)
        if kind is TextDelta:
            self._measure(event.text, event.choice, event.block)
        elif kind is Aside:
            if event.kind == "citation" and event.vendor == self._from.vendor:
                self._is_open = True
                if self._take(event):
                    return
            elif event.kind not in CONSTANT:
                self._close_all()
        elif kind is ResponseFinished or kind is StreamEnded:
            self._end(event)
        elif self._is_open and kind is not UsageReported:
            self._close_all()
        self.emit(event)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        if (choice, block) == self._at:  # as ``_measure``, without its call: most text continues a block
            self._growing.length += len(text)
        else:
            self._measure(text, choice, block)
        self.next.push_text(text, choice, block)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        if self._is_open:
            self._close_all()
        self.next.push_reasoning(text, choice, block, kind)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        if self._is_open:
            self._close_all()
        self.next.push_arguments(call, text, choice)

    def _measure(self, text: str, number: int, block: int) -> None:
        choice = self._choices.get(number) or self._choice(number)
        if block != choice.last or not choice.open:
            self._begin(choice, block)
        if (kept := choice.text) is not None:
            self._keep(choice, kept, text)
        choice.length += len(text)
        self._growing, self._at = choice, (number, block) if choice.text is None else None

    def _begin(self, choice: _CitedChoice, block: int) -> None:
        """Record that the text of ``block`` begins, and end the block before."""
        if choice.waiting and choice.last != block:
            self._close(choice, begins=block)
        choice.begins.setdefault(block, choice.length)
        choice.last, choice.open = block, True
        self._is_open = True

    def _tell(self, asides: Sequence[Aside]) -> None:
        for aside in asides:
            self.emit(aside)

    def _keep(self, choice: _CitedChoice, kept: _KeptText, text: str) -> None:
        """Keep a text while there is room for the whole text of its choice; else drop what was kept."""
        if len(text) > self._text_room:
            self._text_room += choice.length if self._keeps_text else 0
            choice.text = None
        else:
            self._text_room -= len(text)
            kept.add(text)

    def _choice(self, number: int) -> _CitedChoice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _CitedChoice(number, text=_KeptText() if self._keeps_text else None)
        return choice

    # -- input -----------------------------------------------------------------------------------------------------

    def _take(self, event: Aside) -> bool:
        """Read and translate an aside; return False if it has no citation, so that the aside itself is emitted."""
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
            if citation.quote and not self._to.has_quote:
                self._report.lose("metadata", what="cited text")
            if self._to.unit == "none":
                self._tell(self._to.write([citation], choice.number))
            elif citation.start is None:
                self._hold(choice.waiting, evolve(citation, block=event.block))
            else:
                self._place(choice, citation, event.block)
        return True

    def _is_new(self, event: Aside, citation: Citation) -> bool:
        """Return whether a citation was not seen before at this place: Gemini repeats earlier citations in each chunk."""
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
        """Hold a citation, or record a loss if there is no room."""
        needed = _size(citation)
        if needed > self._room:
            self._report.lose("citation")
        else:
            self._room -= needed
            waiting.append(citation)

    def _released(self, waiting: list[Citation]) -> list[Citation]:
        """Empty a list of held citations, free their room, and return them."""
        released = waiting.copy()
        waiting.clear()
        self._room += sum(map(_size, released))
        return released

    def _place(self, choice: _CitedChoice, citation: Citation, block: int) -> None:
        """Write a citation that has a place, converted from the source's unit to characters."""
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
        self._write(choice, [evolve(citation, start=start, end=end, block=choice.last)])

    def _close_all(self) -> None:
        self._is_open, self._at = False, None
        for choice in self._choices.values():
            if choice.waiting:
                self._close(choice)
            choice.open = False

    def _close(self, choice: _CitedChoice, *, begins: int | None = None) -> None:
        """Write the citations of the whole last block, which has ended; keep those of the block that ``begins``."""
        ended = list[Citation]()
        for citation in self._released(choice.waiting):
            if citation.block == begins:  # Anthropic sends some citations before the text that they cite
                self._hold(choice.waiting, citation)
                continue
            begin = choice.begins.get(citation.block)
            if begin is None:
                self._report.lose("citation")
            else:
                ended.append(evolve(citation, start=begin, end=choice.length))
        self._write(choice, ended)

    def _end(self, event: ResponseFinished | StreamEnded) -> None:
        number = None if isinstance(event, StreamEnded) else event.choice
        if number is None and self._is_open:
            self._close_all()
        for choice in self._choices.values():
            if number is None or number == choice.number:
                if choice.waiting:
                    self._close(choice)
                if choice.held:
                    measured = [self._measured(choice, citation) for citation in choice.held]
                    self._released(choice.held)
                    self._tell(self._to.write(measured, choice.number))

    # -- output ----------------------------------------------------------------------------------------------------

    def _write(self, choice: _CitedChoice, citations: Sequence[Citation]) -> None:
        """Write citations whose places are in characters of the choice's text."""
        if self._to.unit == "choice":
            if (text := choice.text) is not None and self._to.has_text:
                citations = [evolve(each, text=text.between(each.start or 0, each.end or 0)) for each in citations]
            self._tell(self._to.write(citations, choice.number))
            return
        for citation in citations:
            begin = choice.begins.get(choice.last, 0)
            if self._to.at_end:
                self._hold(choice.held, citation)
            elif citation.block != choice.last or not choice.open or (citation.start or 0) < begin:
                self._report.lose("citation")  # the block of this citation is closed
            elif self._to.unit == "bytes":
                self._tell(self._to.write([self._measured(choice, citation)], choice.number))
            else:
                moved = evolve(citation, start=(citation.start or 0) - begin, end=(citation.end or 0) - begin)
                self._tell(self._to.write([moved], choice.number))

    def _measured(self, choice: _CitedChoice, citation: Citation) -> Citation:
        """Return a citation with its place in bytes, and a held one with the text at its place if there is room.

        If the text is not kept, the citation has no place.
        """
        text = choice.text
        if text is None:
            return evolve(citation, start=None, end=None)
        start, end = min(citation.start or 0, choice.length), min(citation.end or 0, choice.length)
        cited = None
        if self._to.at_end and end - start <= self._room:
            self._room -= end - start
            cited = text.between(start, end)
        return evolve(citation, start=text.bytes_before(start), end=text.bytes_before(end), text=cited)


def _size(citation: Citation) -> int:
    return (
        CITATION_CHARS
        + len(citation.url)
        + sum(map(len, filter(None, (citation.title, citation.quote, citation.text))))
    )


class CitedBlocks(Link):
    """The machine of ``carry_citations`` from Cohere to a dialect that cites with a whole text block.

    The text is cut into blocks, so that the cited span is a block of its own. Cohere sends a citation after its span: with
    ``window``, that many characters of the text are held until it is clear whether they are cited. A citation of text that
    was already written belongs to the block that has the end of that text, which is a loss of the boundary between blocks.
    """

    def __init__(
        self, source: CitationForm, to: CitationForm, *, window: int | None = 0, report: StreamReport | None = None
    ) -> None:
        if source.read is None:
            raise ValueError(f"streamkit cannot read citations of {source.vendor}")
        self._vendor, self._read, self._to = source.vendor, source.read, to
        self._window = window  # None: hold all text until a citation, or the end of the text
        self._report = report if report is not None else StreamReport()
        self._held, self._from = "", 0  # the text, and how much of it was written
        self._choice = self._block = 0  # of the latest text
        self._length = 0  # characters of the choice's text that were written
        self._begin: int | None = None  # where the last block begins; None if it is closed
        self._grows = False  # whether text may be added to the last block: it has no citation
        self._label = 0  # of the last block
        self._blocks: set[int] = set()  # labels of the source that were used
        self._next_label = NEW_LABEL

    def push(self, event: Any, /) -> None:
        kind = type(event)
        if kind is TextDelta:
            self.push_text(event.text, event.choice, event.block)
        elif kind is Aside and event.kind == "citation" and event.vendor == self._vendor:
            self._take(event)
        else:
            if kind is not UsageReported and not (kind is Aside and event.kind in CONSTANT):
                self._flush()
            self.emit(event)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        if (choice, block) != (self._choice, self._block):
            self._flush()
            self._choice, self._block = choice, block
        self._held, self._from = self._held[self._from :] + text, 0
        if self._window is not None and len(self._held) > self._window:
            self._release(len(self._held) - self._window)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        self._flush()
        self.next.push_reasoning(text, choice, block, kind)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        self._flush()
        self.next.push_arguments(call, text, choice)

    def push_end(self) -> None:
        self._flush()

    push_rest = push_end

    def _flush(self) -> None:
        self._release(len(self._held) - self._from)
        self._begin, self._grows = None, False

    def _release(self, chars: int) -> None:
        """Write the first characters of the held text, in the last block or in a new one."""
        if not chars:
            return
        if not self._grows:
            self._begin, self._grows, self._label = self._length, True, self._block
            if self._block in self._blocks:
                self._label, self._next_label = self._next_label, self._next_label + 1
            self._blocks.add(self._block)
        text = self._held[self._from : self._from + chars]
        self._from += chars
        self._length += chars
        self.next.push_text(text, self._choice, self._label)

    def _take(self, event: Aside) -> None:
        read, beyond = self._read(event)
        for name in beyond:
            self._report.lose("metadata", what=name)
        cited = [citation for citation in read if citation.document is None or self._to.documents]
        if not cited:
            self._report.lose("citation", what=event.type)
            return
        start, end = cited[0].start or 0, min(cited[0].end or 0, self._length + len(self._held) - self._from)
        if max(start, self._length) < end:  # at least the end of the cited span is held
            self._release(max(start - self._length, 0))
            self._grows = False
            self._release(end - self._length)
        if self._begin is None or end <= self._begin:  # its block is closed
            self._report.lose("citation", len(cited))
            return
        self._grows = False
        if (self._begin, self._length) != (start, end):
            self._report.lose("block_boundary")
        for aside in self._to.write([evolve(citation, block=self._label) for citation in cited], event.choice):
            self.emit(aside)


def _citation_forms(source: Dialect, to: Dialect) -> tuple[CitationForm, CitationForm] | None:
    """Return how both dialects cite, or None where no citations are translated between them.

    The request need not offer a search: some providers search without one, and documents are cited without one.
    """
    read, write = source.citations, to.citations
    if read is None or read.read is None or write is None or source is to:
        return None
    return read, write


def carry_citations(
    source: Dialect, to: Dialect, *, documents: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[Event], list[Event]] | None:
    """Return the stage before ``encode`` that translates citations from ``source`` to ``to``; None if none is needed.

    ``documents``: the request had documents, so that text may be held until it is clear whether it is cited.
    """
    forms = _citation_forms(source, to)
    if forms is None:
        return None
    window = CITED_CHARS if documents else 0
    return stage_within(
        "events", "carry_citations", lambda report: _carrier(*forms, report, limits=limits, window=window)
    )


def _carrier(
    source: CitationForm,
    to: CitationForm,
    report: StreamReport,
    *,
    limits: Limits = DEFAULT_LIMITS,
    window: int | None = None,
) -> CitationCarrier | CitedBlocks:
    if source.documents and source.unit == "choice" and to.documents and to.unit == "block":
        return CitedBlocks(source, to, window=window, report=report)
    return CitationCarrier(source, to, limits=limits, report=report)


def carry_citations_of(response: Response, to: str) -> None:
    """Translate the citations of a whole response to the dialect ``to``, in place; do nothing within one dialect."""
    forms = _citation_forms(DIALECTS[response.dialect], DIALECTS[to])
    if forms is None:
        return
    for choice in response.choices:
        if any(isinstance(part, Aside) for part in choice.parts):
            choice.parts = carried_parts(choice.parts, *forms, response.report, choice.index)


def carried_parts(
    parts: Sequence[Part], source: CitationForm, to: CitationForm, report: StreamReport, choice: int = 0
) -> list[Part]:
    """Return the parts of a whole message with its citations translated."""
    carrier = _carrier(source, to, report)
    cuts = isinstance(carrier, CitedBlocks)
    #: Citations with positions follow all of the text. Each is read after the text with its end.
    late = sorted((part for part in parts if cuts and _is_citation(part)), key=_end)
    made: list[Any] = []
    chars = taken = 0
    for part in parts:
        if not isinstance(part, Text):
            made += () if cuts and _is_citation(part) else carrier.feed([part])
            continue
        new = carrier.feed([TextDelta(part.text, choice, part.block)])
        if cuts:
            chars += len(part.text)
            first, taken = taken, bisect_right(late, chars, lo=taken, key=_end)
            new += carrier.feed(late[first:taken])
            new += carrier.finish()
        made += _with_texts(part, new)
    made += carrier.feed([*late[taken:], ResponseFinished("stop", choice=choice)])[:-1]
    return made


def _with_texts(part: Text, events: Sequence[Any]) -> list[Any]:
    """Return the events with a part in place of each text. The last text keeps what else belongs to the whole part."""
    texts = [number for number, event in enumerate(events) if isinstance(event, TextDelta)]
    if not texts:
        return [part, *events] if not part.text else [*events]
    made = list(events)
    for number in texts:
        text = made[number]
        if text.text == part.text and text.block == part.block:
            made[number] = part
        elif number == texts[-1]:
            made[number] = evolve(part, text=text.text, block=text.block)
        else:
            made[number] = Text(text.text, block=text.block)
    return made


def _is_citation(part: Any) -> TypeGuard[Aside]:
    return isinstance(part, Aside) and part.kind == "citation"


def _end(aside: Aside) -> int:
    end = aside.raw.get("end") if isinstance(aside.raw, dict) else None
    return end if type(end) is int else 0


# -- web searches ------------------------------------------------------------------------------------------------------


class SearchCarrier(Link):
    """From events to events with translated searches, of the web or of tools. ``write`` is that of the target's form."""

    def __init__(
        self, reader: SearchReader | ToolSearchReader, vendor: str, write: Callable[[Any, int, int], list[Aside]]
    ) -> None:
        self._reader, self._vendor, self._write = reader, vendor, write
        self._number = 0

    def push(self, event: Event, /) -> None:
        if not isinstance(event, Aside) or event.vendor != self._vendor:
            self.emit(event)
            return
        found, left = self._reader.take(event)
        if left is not None:  # emitted before the search, since its citations belong to the open text block
            self.emit(left)
        for searched in found:
            for aside in self._write(searched, self._number, event.choice):
                self.emit(aside)
            self._number += 1

    def push_end(self) -> None:
        self._reader.finish()


def _search_carrier(
    source: Dialect, to: Dialect, offered: Sequence[Tool], limits: Limits = DEFAULT_LIMITS
) -> Callable[[StreamReport], SearchCarrier] | None:
    """Return what makes the machine that translates searches; None where none are translated: the request must offer one.

    A dialect whose clients read searches in any case (``unasked``) needs no offer.
    """
    read, form = source.searches, to.searches
    if read is None or (reader := read.reader) is None or form is None or (write := form.write) is None or source is to:
        return None
    if not (form.unasked or any(tool.search is not None for tool in offered)):
        return None
    vendor = read.vendor
    return lambda report: SearchCarrier(reader(limits, report), vendor, write)


def carry_searches(
    source: Dialect, to: Dialect, offered: Sequence[Tool], *, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[Event], list[Event]] | None:
    """Return the stage before ``encode`` that translates searches from ``source`` to ``to``; None if none is needed."""
    carrier = _search_carrier(source, to, offered, limits)
    return None if carrier is None else stage_within("events", "carry_searches", carrier)


def carry_searches_of(response: Response, to: str, offered: Sequence[Tool]) -> None:
    """Translate the searches of a whole response to the dialect ``to``, in place."""
    carry_each_choice(response, _search_carrier(DIALECTS[response.dialect], DIALECTS[to], offered))


def carry_each_choice(response: Response, carrier: Callable[[StreamReport], SearchCarrier] | None) -> None:
    """Pass the parts of each choice through a machine of its own, in place; do nothing without one."""
    if carrier is None:
        return
    for choice in response.choices:
        machine = carrier(response.report)
        parts: list[Any] = list(choice.parts)
        choice.parts = [made for part in parts for made in machine.feed([part])]
        machine.finish()
