"""Citations of web pages in the words of another dialect: for a request that offers a search of the web.

What a model quotes from the web is said at a place of its text, and each dialect counts places otherwise: Anthropic cites with
a whole block of text, Responses counts characters of a part, Chat those of all the text, Gemini bytes, all at the end. So the
text is measured while it passes. A citation of a whole block waits for the block's end, and those for Gemini for that of the
choice. What has no place any more, since its block is closed, is a counted loss, as every citation is where this stage is not
asked for.

Source: dialects.md §1.2, §2.2, §3.1, §5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import define, evolve, field

from streamkit.dialects import DIALECTS
from streamkit.dialects.base import CitationForm
from streamkit.events import Aside, Event, ResponseFinished, StreamEnded, TextDelta, UsageReported
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.messages import Citation, Response, Text, Tool
from streamkit.pipeline import Stage
from streamkit.report import StreamReport

#: Events that close no block.
BESIDE: Final = (UsageReported,)


@define
class _Choice:
    """The text of one choice so far, measured in characters."""

    number: int
    length: int = 0
    begins: dict[int, int] = field(factory=dict)  #: of each block
    last: int = 0  #: the block that was written last
    open: bool = False  #: whether it may go on
    kept: list[str] | None = field(factory=list)  #: the text, for dialects that count bytes
    waiting: list[Citation] = field(factory=list)  #: of the whole of the last block
    held: list[Citation] = field(factory=list)  #: for the end

    def grow(self, event: TextDelta, most: int) -> None:
        self.begins.setdefault(event.block, self.length)
        self.last, self.open = event.block, True
        self.length += len(event.text)
        if self.kept is not None:
            self.kept.append(event.text)
            if self.length > most:
                self.kept = None

    @property
    def text(self) -> str | None:
        if self.kept is None:
            return None
        self.kept = ["".join(self.kept)]
        return self.kept[0]


class CitationCarrier:
    """Machine of ``carry_citations``: ``list[Event]`` to ``list[Event]``."""

    fault: Exception | None = None

    def __init__(
        self,
        source: CitationForm,
        to: CitationForm,
        *,
        limits: Limits = DEFAULT_LIMITS,
        report: StreamReport | None = None,
    ) -> None:
        self._from, self._to = source, to
        self._limits = limits
        self._report = report if report is not None else StreamReport()
        self._bytes = "bytes" in {source.unit, to.unit}
        self._choices: dict[int, _Choice] = {}
        self._held = 0
        self._out: list[Any] = []

    def feed(self, events: list[Event], /) -> list[Event]:
        out = self._out = []
        for event in events:
            if isinstance(event, TextDelta):
                choice = self._choice(event.choice)
                if choice.waiting and choice.last != event.block:
                    self._close(choice)
                choice.grow(event, self._limits.held_chars if self._bytes else 0)
            elif isinstance(event, Aside) and event.kind == "citation" and event.vendor == self._from.vendor:
                if self._take(event):
                    continue
            elif isinstance(event, StreamEnded | ResponseFinished):
                self._end(event)
            elif not isinstance(event, BESIDE):
                self._close_all()
            out.append(event)
        return out

    def finish(self) -> list[Event]:
        return []

    def abandon(self) -> list[Event]:
        return []

    def _choice(self, number: int) -> _Choice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = _Choice(number)
        return choice

    # -- what comes ------------------------------------------------------------------------------------------------

    def _take(self, event: Aside) -> bool:
        """Read an aside; False for one that cites no page of the web."""
        read, beyond = self._from.read(event)
        if not read:
            return False
        for name in beyond:
            self._report.lose("metadata", what=name)
        choice = self._choice(event.choice)
        for citation in read:
            self._held += len(citation.url) + len(citation.quote or "")
            if self._held > self._limits.held_chars:
                self._report.lose("citation")
            elif citation.start is None:
                choice.waiting.append(evolve(citation, block=event.block))
            else:
                self._place(choice, citation, event.block)
        return True

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
            data = text.encode()
            start, end = (len(data[:at].decode("utf-8", "ignore")) for at in (start, end))
        self._write(choice, evolve(citation, start=start, end=end, block=choice.last))

    def _close_all(self) -> None:
        for choice in self._choices.values():
            self._close(choice)
            choice.open = False

    def _close(self, choice: _Choice) -> None:
        """The last block is whole, so what cites all of it has its place."""
        waiting, choice.waiting = choice.waiting, []
        for citation in waiting:
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
                held, choice.held = choice.held, []
                if held:
                    self._out += self._to.write([self._measured(choice, citation) for citation in held], choice.number)

    # -- what goes -------------------------------------------------------------------------------------------------

    def _write(self, choice: _Choice, citation: Citation) -> None:
        """Write a citation at a place of the choice's text, in characters."""
        if self._to.unit == "bytes":
            choice.held.append(citation)
        elif self._to.unit == "choice":
            self._out += self._to.write([citation], choice.number)
        elif citation.block != choice.last or not choice.open or (citation.start or 0) < choice.begins[choice.last]:
            self._report.lose("citation")  # the block that it belongs to is closed
        else:
            begin = choice.begins[choice.last]
            moved = evolve(citation, start=(citation.start or 0) - begin, end=(citation.end or 0) - begin)
            self._out += self._to.write([moved], choice.number)

    def _measured(self, choice: _Choice, citation: Citation) -> Citation:
        """A citation with its place in bytes; without one where the text was too long to be kept."""
        text = choice.text
        if text is None:
            return evolve(citation, start=None, end=None)
        start, end = (len(text[:at].encode()) for at in (citation.start or 0, citation.end or 0))
        return evolve(citation, start=start, end=end, quote=citation.quote or text[citation.start : citation.end])


def carries(source: str, to: str, offered: Sequence[Tool]) -> bool:
    """Whether citations of one dialect are to be carried into another: both have them, and the request offers a search."""
    searched = any(tool.search is not None for tool in offered)
    return searched and source != to and None not in {DIALECTS[source].citations, DIALECTS[to].citations}


def carry_citations(source: str, to: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Event], list[Event]]:
    """The stage in front of ``encode`` that writes the citations of one dialect in the words of another."""
    read, write = DIALECTS[source].citations, DIALECTS[to].citations
    if read is None or write is None:
        raise ValueError(f"no citations are known of {source if read is None else to}")
    return Stage("carry_citations", lambda report: CitationCarrier(read, write, limits=limits, report=report))


def carry_citations_of(response: Response, to: str, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """The same for a whole response, in place."""
    read, write = DIALECTS[response.dialect].citations, DIALECTS[to].citations
    if read is None or write is None:
        return
    for choice in response.choices:
        carrier = CitationCarrier(read, write, limits=limits, report=response.report)
        parts: list[Any] = []
        for part in choice.parts:
            fed: Any = TextDelta(part.text, choice.index, part.block) if isinstance(part, Text) else part
            parts += [part if made is fed else made for made in carrier.feed([fed])]
        parts += carrier.feed([ResponseFinished("stop", choice=choice.index)])[:-1]
        choice.parts = parts
