"""Draw the pictures of the documentation: ``python -m tools.drawings``, a part of ``make docs``.

Each drawing is an SVG of boxes, arrows and texts in one style, light or dark as its reader prefers. It has a background of
its own, so that it can be read on any page. A text that does not fit its box is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "drawings"
#: For each color: in light and in dark pages.
COLORS: Final = {
    "page": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "dim": ("#59636e", "#9198a1"),
    "edge": ("#818b98", "#656c76"),
    "box": ("#f6f8fa", "#161b22"),
    "own": ("#ddf4ff", "#12283f"),
    "good": ("#dafbe1", "#12331d"),
    "bad": ("#ffebe9", "#421a1c"),
}
RULES: Final = """\
.page,.box,.own,.good,.bad{{stroke:{edge}}}
.page{{fill:{page}}} .box{{fill:{box}}} .own{{fill:{own}}} .good{{fill:{good}}} .bad{{fill:{bad}}}
text{{fill:{text};font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}}
.strong{{font-weight:600}} .dim{{fill:{dim};font-size:13px}} .code{{font:13px ui-monospace,Menlo,Consolas,monospace}}
.line{{fill:none;stroke:{edge};stroke-width:1.5}} .head{{fill:{edge}}}
"""
#: The widest a character is, in pixels, by the style of its text.
WIDTHS: Final = {"strong": 7.9, "dim": 6.7, "code": 7.9, "": 7.4}
LINE: Final = 19
PAD: Final = 10


class Drawing:
    """Boxes, arrows and texts on a canvas of ``width`` by ``height``. A text that begins with a backquote is code."""

    def __init__(self, title: str, width: int, height: int) -> None:
        self._title, self._width, self._height = title, width, height
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, style: str = "", anchor: str = "start", room: float | None = None
    ) -> None:
        if text.startswith("`"):
            text, style = text[1:], "code"
        wide = len(text) * WIDTHS[style]
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if left < PAD / 2 or left + wide > self._width - PAD / 2 or (room is not None and wide > room):
            raise ValueError(f"{self._title}: no room for {text!r}: {wide:.0f} pixels at {left:.0f}")
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x: float, y: float, wide: float, lines: Sequence[str], kind: str = "box", high: float = 0) -> float:
        """Draw a box, its first line strong, the others dim. Returns its height."""
        high = high or LINE * len(lines) + PAD
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="6" class="{kind}"/>')
        top = y + (high - LINE * len(lines)) / 2 + 14
        for number, line in enumerate(lines):
            self.text(x + wide / 2, top + LINE * number, line, "dim" if number else "strong", "middle", wide - PAD)
        return high

    def frame(self, x: float, y: float, wide: float, high: float, title: str) -> None:
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="8" class="page"/>')
        self.text(x + wide / 2, y + 22, title, "strong", "middle", wide - PAD)

    def arrow(self, *points: tuple[float, float], head: bool = True) -> None:
        """Draw a line along ``points``, with a head at its end."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path d="{path}" class="line"/>')
        (a, b), (x, y) = points[-2:]
        long = max(abs(x - a), abs(y - b)) or 1
        dx, dy = (x - a) / long, (y - b) / long
        if head:
            corners = (x, y), (x - 8 * dx - 4 * dy, y - 8 * dy - 4 * dx), (x - 8 * dx + 4 * dy, y - 8 * dy + 4 * dx)
            self._parts.append(f'<polygon points="{" ".join(f"{p:g},{q:g}" for p, q in corners)}" class="head"/>')

    def cross(self, x: float, y: float) -> None:
        self.arrow((x - 6, y - 6), (x + 6, y + 6), head=False)
        self.arrow((x - 6, y + 6), (x + 6, y - 6), head=False)

    def svg(self) -> str:
        light, dark = (RULES.format(**{name: pair[mode] for name, pair in COLORS.items()}) for mode in (0, 1))
        style = f"<style>\n{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n</style>"
        size = f'viewBox="0 0 {self._width} {self._height}" width="{self._width}" height="{self._height}"'
        page = f'<rect x="0.5" y="0.5" width="{self._width - 1}" height="{self._height - 1}" rx="10" class="page"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(self._title)}</title>'
        return "\n".join([head, style, page, *self._parts, "</svg>", ""])


def gateway() -> Drawing:
    drawing = Drawing("streamkit between clients and upstreams", 760, 372)
    clients = (
        ("Claude Code", "Anthropic"),
        ("Codex", "OpenAI Responses"),
        ("SDKs, agents, Zed", "Chat, Gemini, Ollama"),
        ("useChat, CopilotKit", "AI SDK, AG-UI"),
    )
    upstreams = (
        ("OpenAI, Azure", "Chat, Responses"),
        ("Anthropic, Bedrock", "Messages, Converse"),
        ("Google", "Gemini, Vertex AI"),
        ("Ollama, vLLM, …", "your own server"),
    )
    for x, title, boxes in ((20, "clients", clients), (570, "upstreams", upstreams)):
        drawing.text(x + 85, 30, title, "strong", "middle")
        for number, lines in enumerate(boxes):
            top = 48 + 80 * number
            drawing.box(x, top, 170, lines, high=56)
            near, far = (190, 250) if x == 20 else (510, 570)
            drawing.arrow((near + 4, top + 20), (far - 4, top + 20))
            drawing.arrow((far - 4, top + 38), (near + 4, top + 38))
    drawing.frame(250, 16, 260, 340, "streamkit")
    steps = (
        ("choose an upstream", "by model, load and health"),
        ("convert the request", "into the upstream's dialect"),
        ("read the stream", "repair and count mistakes"),
        ("your stages", "redact, drop, count, …"),
        ("check tool calls", "no truncated call looks whole"),
        ("write the stream", "in the client's dialect"),
    )
    for number, lines in enumerate(steps):
        drawing.box(266, 48 + 50 * number, 228, lines, "own" if lines[0] == "your stages" else "box", high=44)
    return drawing


def pipeline() -> Drawing:
    drawing = Drawing("A pipe: its stages, and the types between them", 640, 520)
    stages = (
        ("`parse_sse()", "divides the bytes into frames", "list[Frame]"),
        ('`decode("openai-chat")', "reads what each frame means", "list[WireEvent]"),
        ("`accumulate_tool_calls()", "joins the fragments of each call", "list[Event]"),
        ("your own stages", "redact, drop, count, add", "list[Event]"),
        ("`check_json()", "gives each finished call a verdict", "list[Event]"),
        ('`encode("anthropic")', "writes events in the client's dialect", "bytes"),
    )
    drawing.text(160, 28, "`bytes", anchor="middle")
    drawing.text(310, 28, "one read of the provider's response", "dim")
    for number, (name, what, gives) in enumerate(stages):
        top = 58 + 76 * number
        drawing.arrow((160, top - 24), (160, top - 2))
        drawing.box(30, top, 260, (name,), "box" if name[0] == "`" else "own", high=36)
        drawing.text(310, top + 23, what)
        last = number == len(stages) - 1
        if last:
            drawing.arrow((160, top + 38), (160, top + 56))
        else:
            drawing.arrow((160, top + 38), (160, top + 54), head=False)
            drawing.text(172, top + 60, f"`{gives}")
    drawing.text(160, 508, "`bytes", anchor="middle")
    drawing.text(310, 508, "one write to the client, for the same read", "dim")
    return drawing


def tool_call() -> Drawing:
    drawing = Drawing("The life of a tool call, from delta to verdict", 760, 500)
    deltas = ("`id call_1, name get_weather", '`{"city": "Os', '`lo"}', "`stop reason tool_calls")
    for number, delta in enumerate(deltas):
        drawing.box(20, 38 + 38 * number, 250, (delta,), high=30)
    drawing.text(145, 26, "deltas of the stream", "strong", "middle")
    drawing.arrow((272, 110), (318, 110))
    drawing.box(
        320,
        75,
        420,
        ("`accumulate_tool_calls()", "finds the call by index, id or name, and joins its fragments"),
        high=70,
    )
    questions = (
        ("Did the stream end the call?", "no", "truncated", ""),
        ("Is the text one JSON object?", "no", "malformed, truncated", "or not_an_object"),
        ("Does the schema accept it?", "no", "schema_invalid", "only if the tools are known"),
    )
    drawing.arrow((530, 147), (530, 202), (150, 202), (150, 232))
    for number, (question, answer, verdict, more) in enumerate(questions):
        top = 234 + 66 * number
        drawing.box(20, top, 260, (question,), high=40)
        drawing.arrow((282, top + 20), (378, top + 20))
        drawing.text(322, top + 14, answer, "dim", "middle")
        drawing.box(380, top - 4, 220, [line for line in (f"{verdict}", more) if line], "bad", high=48)
        if number < 2:
            drawing.arrow((150, top + 42), (150, top + 64))
            drawing.text(162, top + 58, "yes", "dim")
    drawing.text(490, 220, "`check_json(), one verdict a call", anchor="middle")
    drawing.arrow((150, 408), (150, 430))
    drawing.text(162, 424, "yes", "dim")
    drawing.box(20, 432, 260, ("complete", "(empty, if the text is blank)"), "good", high=48)
    drawing.arrow((282, 456), (378, 456))
    drawing.box(380, 432, 220, ("run the call", "if the whole stream is clean"), "good", high=48)
    return drawing


def interrupted() -> Drawing:
    drawing = Drawing("What happens when a stream is interrupted", 760, 420)
    drawing.text(20, 32, "provider", "strong")
    for number, text in enumerate(("text", "text", "half a call")):
        drawing.box(110 + 140 * number, 14, 120, (text,), high=30)
    drawing.arrow((512, 29), (560, 29), head=False)
    drawing.cross(572, 29)
    drawing.text(590, 34, "connection lost", "dim")
    drawing.arrow((310, 46), (310, 76))
    drawing.box(
        150, 78, 320, ("Was the completion point reached?", "such as a stop reason; the dialect defines it"), high=52
    )
    drawing.arrow((472, 104), (528, 104))
    drawing.text(500, 98, "yes", "dim", "middle")
    drawing.box(530, 78, 210, ("a whole response", "status DONE"), "good", high=52)
    drawing.arrow((310, 132), (310, 162))
    drawing.text(322, 152, "no", "dim")
    drawing.box(150, 164, 320, ("Did the client get any output?", "only the gateway can try again"), high=52)
    drawing.arrow((472, 190), (528, 190))
    drawing.text(500, 184, "no", "dim", "middle")
    drawing.box(530, 164, 210, ("ask the next upstream", "the client notices nothing"), "good", high=52)
    drawing.arrow((310, 218), (310, 248))
    drawing.text(322, 238, "yes", "dim")
    drawing.box(150, 250, 320, ('on_cut = "continue", and a text?',), high=40)
    drawing.arrow((472, 270), (528, 270))
    drawing.text(500, 264, "yes", "dim", "middle")
    drawing.box(530, 244, 210, ("another upstream", "writes the rest of the text"), "good", high=52)
    drawing.arrow((310, 292), (310, 322))
    drawing.text(322, 312, "no", "dim")
    drawing.box(
        20,
        324,
        345,
        ("the client gets", "all that arrived, then an error of its dialect,", "and no sign of success"),
        "bad",
        high=76,
    )
    drawing.box(
        385,
        324,
        355,
        ("the report says", "status CUT; clean is False;", "the unfinished call has the verdict truncated"),
        "bad",
        high=76,
    )
    return drawing


def resuming() -> Drawing:
    drawing = Drawing("Resuming a stream", 760, 446)
    lanes = {"client": 100, "gateway": 310, "log": 500, "provider": 670}
    for name, x in lanes.items():
        drawing.box(x - 80, 14, 160, (name,), high=32)
        drawing.arrow((x, 46), (x, 408), head=False)
    client, server, log, provider = lanes.values()

    def message(y: float, start: float, end: float, text: str, more: str = "") -> None:
        side = 3 if end > start else -3
        drawing.arrow((start + side, y), (end - side, y))
        middle = (min(start, end) + min(max(start, end), log)) / 2
        drawing.text(middle, y - 7, text, "dim", "middle", 190)
        if more:
            drawing.text(middle, y + 17, more, "dim", "middle", 200)

    message(76, client, server, "`POST …/messages", "x-streamkit-resumable: 1")
    message(104, server, provider, "request")
    message(132, provider, server, "events")
    message(158, server, log, "every byte is kept")
    message(186, server, client, "events up to id ID.412")
    drawing.cross(client + 48, 212)
    drawing.text(client + 62, 217, "connection lost", "dim")
    message(244, provider, server, "the response goes on")
    message(270, server, log, "every byte is kept")
    message(304, client, server, "`GET /v1/streams/ID", "Last-Event-ID: ID.412")
    message(336, server, log, "from byte 412")
    message(364, log, server, "the rest")
    message(392, server, client, "the rest, then new events")
    drawing.text(client - 80, 430, "The client has every byte once: no gap, and nothing twice.", "strong")
    return drawing


DRAWINGS: Mapping[str, Callable[[], Drawing]] = {
    "gateway": gateway,
    "pipeline": pipeline,
    "tool-call": tool_call,
    "interrupted": interrupted,
    "resuming": resuming,
}


def files() -> Iterator[tuple[Path, str]]:
    for name, draw in DRAWINGS.items():
        yield FOLDER / f"{name}.svg", draw().svg()


def main() -> int:
    for path, text in files():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
