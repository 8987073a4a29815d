"""Draw a stream as text: a lane for each growing part, the calls with their verdicts, and the repairs.

The horizontal axis of a lane is time if the stream was live or recorded, else the order of the deltas. The height of a cell
shows how many characters arrived in it. ``table`` shows the time of each stage (``inspect --timings``).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TextIO

from attrs import define, field, frozen

from streamkit.cli.streams import shorten, visible
from streamkit.conversation.messages import Choice, Media, Response, ToolCall
from streamkit.events import Event, ReasoningDelta, RefusalDelta, TextDelta, ToolCallArguments, ToolCallStarted, Verdict
from streamkit.report import LOSSES, REPAIRS, StageTiming, Status, describe
from streamkit.text.terminal import painted, takes_colour
from streamkit.tool_calls.accumulate import says_something

BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = ".:-=+*#@"
LIVE_SECONDS = 0.2  #: raw bytes that arrived within this time were read from a file, so their times are meaningless
#: A longer gap between two outputs, in seconds, is a stall. The gateway's default is the same.
STALL_S = 5.0
COLOURS = {"reasoning": "35", "text": "36", "refusal": "33", "call": "34"}
KINDS: dict[type[Event], str] = {TextDelta: "text", ReasoningDelta: "reasoning", RefusalDelta: "refusal"}
VERDICT_COLOURS = {
    "complete": "32",
    "empty": "32",
    **dict.fromkeys(("truncated", "malformed", "not_an_object", "schema_invalid", "unchecked"), "31"),
}


@frozen
class Palette:
    """How to draw: with or without colour, and with which characters."""

    colour: bool = False
    bars: str = ASCII_BARS

    @classmethod
    def wanted(cls, when: str, output: TextIO) -> Palette:
        """Return the palette for ``--color``. ``auto`` uses colour on a terminal unless NO_COLOR is set."""
        on = when == "always" or (when == "auto" and takes_colour(output))
        encoding = (output.encoding or "ascii").lower().replace("-", "")
        return cls(on, BARS if encoding.startswith("utf") else ASCII_BARS)

    def paint(self, text: str, code: str) -> str:
        return painted(text, code) if self.colour else text


@define
class _Lane:
    name: str
    marks: list[tuple[int, float, int]] = field(factory=list)  #: (delta number, seconds, characters)


@frozen
class Times:
    """Times of the model's outputs in seconds since the stream began, counted as the gateway does (observe.md O17 to O19)."""

    first_output_s: float
    last_output_s: float
    greatest_gap_s: float | None  #: between two outputs; None: there was only one
    stalls: int  #: gaps above ``STALL_S``


class Picture:
    """Collects the data of the lanes while a stream is read, then draws the picture.

    ``clock`` returns the seconds since the stream began. ``is_timed``: the times are valid, however short they are.
    """

    def __init__(self, palette: Palette, clock: Callable[[], float], *, is_timed: bool = False) -> None:
        self.palette = palette
        self._lanes: dict[Any, _Lane] = {}  # by kind, choice and call
        self._clock = clock
        self._least_s = 0.0 if is_timed else LIVE_SECONDS
        self._deltas = 0
        self._outputs: list[float] = []  # time of each read with output of the model

    @property
    def times(self) -> Times | None:
        """The times; None if there was no output, or if the times are meaningless."""
        outputs = self._outputs
        if not outputs or not outputs[-1] or outputs[-1] < self._least_s:
            return None
        gaps = [later - earlier for earlier, later in pairwise(outputs)]
        return Times(outputs[0], outputs[-1], max(gaps, default=None), sum(gap > STALL_S for gap in gaps))

    def feed(self, events: list[Event], *, ended: bool = False) -> None:
        """Add events to the picture. ``ended``: the stream had ended, so they are no output of the model."""
        now = self._clock()
        if not ended and says_something(events) and now not in self._outputs[-1:]:
            self._outputs.append(now)
        for event in events:
            match event:
                case TextDelta() | ReasoningDelta() | RefusalDelta():
                    self._mark((KINDS[type(event)], event.choice), event.text, now)
                case ToolCallStarted():
                    key = ("call", event.choice, event.call)
                    self._lanes.setdefault(key, _Lane(f"call {event.call} {event.name}"))
                    self._mark(key, event.name, now)
                case ToolCallArguments():
                    self._mark(("call", event.choice, event.call), event.fragment, now)

    def draw(self, title: str, response: Response) -> str:
        width = min(100, max(60, shutil.get_terminal_size().columns))
        facts = [visible(fact) for fact in (response.dialect, response.model, response.id) if fact]
        heading = f"{self.palette.paint(visible(title), '1')}  " + self.palette.paint("  ".join(facts), "2")
        lines = [heading, *self._timeline(width)]
        for choice in response.choices:
            lines += self._choice(choice, response, width)
        lines += self._end(response)
        return "\n".join(lines) + "\n\n"

    # -- the lanes -------------------------------------------------------------------------------------------------

    def _mark(self, key: Any, text: str, now: float) -> None:
        kind, choice = key[:2]
        name = kind if choice == 0 else f"{kind} of choice {choice}"
        self._lanes.setdefault(key, _Lane(name)).marks.append((self._deltas, now, len(text)))
        self._deltas += 1

    def _timeline(self, width: int) -> list[str]:
        if not self._lanes:
            return []
        labels = min(28, max(len(visible(lane.name)) for lane in self._lanes.values()))
        cells = max(20, width - labels - 4)
        times = self.times
        elapsed = max(mark[1] for lane in self._lanes.values() for mark in lane.marks)
        span, position = (max(1, self._deltas - 1), 0) if times is None else (elapsed or 1, 1)
        heights = {key: _heights(lane, cells, span, position=position) for key, lane in self._lanes.items()}
        top = max(max(row) for row in heights.values()) or 1
        lines = [""]
        for key, lane in self._lanes.items():
            bar = "".join(self._cell(height, top) for height in heights[key]).rstrip()
            label = shorten(lane.name, labels).ljust(labels)
            lines.append(f"  {label}  {self.palette.paint(bar, COLOURS[key[0]])}")
        end = f"{self._deltas} deltas" if times is None else _seconds(elapsed)
        lines.append(f"  {'':{labels}}  {self.palette.paint('0' + end.rjust(cells - 1), '2')}")
        return lines if times is None else [*lines, f"  {_times_line(times)}"]

    def _cell(self, height: int, top: int) -> str:
        bars = self.palette.bars
        return " " if not height else bars[min(len(bars) - 1, height * len(bars) // (top + 1))]

    # -- words -----------------------------------------------------------------------------------------------------

    def _choice(self, choice: Choice, response: Response, width: int) -> list[str]:
        lines = [f"  choice {choice.index}"] if len(response.choices) > 1 else []
        for name in ("reasoning", "text", "refusal"):
            text = getattr(choice, name)
            if text:
                shown = shorten(text, width - 32)
                lines.append(f"  {self.palette.paint(name, COLOURS[name])} ({len(text):,} characters)  {shown}")
        if choice.verdict is not None:
            kind = choice.verdict.kind
            judged = self.palette.paint(kind, "32" if kind == "complete" else "31")
            lines += [f"  JSON text  {judged}", *self._reason(choice.verdict)]
        lines += [line for call in choice.tool_calls for line in self._call(call, width)]
        lines += [self._media(media, width) for media in choice.media]
        if choice.stop_reason:
            native = f" ({visible(choice.native_stop_reason)})" if choice.native_stop_reason else ""
            lines.append(f"  stop reason {choice.stop_reason}{native}")
        return ["", *lines]

    def _media(self, media: Media, width: int) -> str:
        where = f"({len(media.data):,} characters of base64)" if media.data is not None else media.url or media.file_id
        label = self.palette.paint(media.kind, COLOURS["text"])
        return f"  {label} {visible(media.media_type or '(no type)')}  {shorten(where or '', width - 32)}"

    def _call(self, call: ToolCall, width: int) -> list[str]:
        verdict = call.verdict or Verdict("unchecked")
        label = self.palette.paint(f"call {call.index}", COLOURS["call"])
        judged = self.palette.paint(verdict.kind, VERDICT_COLOURS[verdict.kind])
        return [
            f"  {label} {visible(call.name) or '(no name)'}  {judged}  {visible(call.id)}",
            f"    {shorten(call.arguments, width - 6) or '(no arguments)'}",
            *self._reason(verdict),
        ]

    def _reason(self, verdict: Verdict) -> list[str]:
        if not verdict.reason:
            return []
        where = "" if verdict.position is None else f" at character {verdict.position}"
        return [f"    {self.palette.paint(visible(verdict.reason) + where, '31')}"]

    def _end(self, response: Response) -> list[str]:
        report, usage, paint = response.report, response.usage, self.palette.paint
        lines = [""]
        if usage is not None:
            lines.append(f"  usage  {_count(usage.input_total)} in, {_count(usage.output_total)} out")
        for what, counts, meanings in (("repair", report.repairs, REPAIRS), ("loss", report.losses, LOSSES)):
            for kind, times in counts.items():
                known = f" (known of this provider: {report.habits[kind]})" if kind in report.habits else ""
                lines.append(f"  {paint(what, '33')} {kind} ×{times}  {meanings[kind]}{known}")
        if report.error is not None:
            lines.append("  " + paint(f"failed: {visible(describe(report.error))}", "31"))
        elif response.error is not None:
            status = "" if response.error.http_status is None else f" (status {response.error.http_status})"
            error = f"the provider reported {response.error.type}{status}: {response.error.message}"
            lines.append("  " + paint(visible(error), "31"))
        elif report.status is Status.CUT:
            lines.append("  " + paint("cut: the stream ended before its completion point", "31"))
        else:
            lines.append("  " + paint("clean end", "32"))
        return lines


def _heights(lane: _Lane, cells: int, span: float, *, position: int) -> list[int]:
    """Return the number of characters that arrived in each cell."""
    row = [0] * cells
    for mark in lane.marks:
        row[min(cells - 1, int(mark[position] / span * (cells - 1)))] += max(1, mark[2])
    return row


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.3f} s"


def _times_line(times: Times) -> str:
    line = f"first output after {_seconds(times.first_output_s)}"
    if times.greatest_gap_s is not None:
        line += f", greatest gap {_seconds(times.greatest_gap_s)}"
    return f"{line}, stalls above {STALL_S:g} s: {times.stalls}" if times.stalls else line


def _count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


# -- the time of each stage --------------------------------------------------------------------------------------------


HEADINGS = ("stage", "ms", "share", "items in", "items out", "µs an item")


def table(timings: Sequence[StageTiming]) -> str:
    """Return the table and an empty line. Shares exclude the wait for the source; time per item counts items that went in."""
    source, *stages = timings
    work_s = sum(row.seconds for row in stages)
    waited = (f"{source.name} (waiting)", _ms(source), "", "", f"{source.items_out:,}", "")
    rows = [HEADINGS, waited, *(_cells(row, work_s) for row in stages)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(f"  {_aligned(row, widths)}\n" for row in rows) + "\n"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line, with the name aligned to the left and the numbers to the right."""
    name, *numbers = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join([name.strip().ljust(widths[0]), *numbers]).rstrip()


def timing_rows(timings: Sequence[StageTiming]) -> list[dict[str, Any]]:
    """Return the rows as JSON values, with seconds rounded to nanoseconds."""
    return [
        {"stage": row.name, "seconds": round(row.seconds, 9), "items_in": row.items_in, "items_out": row.items_out}
        for row in timings
    ]


def _cells(row: StageTiming, work_s: float) -> tuple[str, ...]:
    share = f"{row.seconds / work_s:.0%}" if work_s else ""
    per_item = f"{1e6 * row.seconds / row.items_in:,.1f}" if row.items_in else ""
    return visible(row.name), _ms(row), share, f"{row.items_in:,}", f"{row.items_out:,}", per_item


def _ms(row: StageTiming) -> str:
    return f"{1000 * row.seconds:,.3f}"
