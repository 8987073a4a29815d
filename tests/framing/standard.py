"""A reader of event streams written a second time, straight from WHATWG HTML §9.2.5 and §9.2.6: the whole text at once,
character by character where it matters, slow on purpose. It shares nothing with the parser that it judges.
"""

from __future__ import annotations


def events_of(stream: bytes) -> list[tuple[str, str, str]]:
    """``(type, data, last event ID)`` of each event that a browser would dispatch."""
    text = stream.decode("utf-8", "replace")
    if text[:1] == "\ufeff":
        text = text[1:]
    events = []
    data, kind, id_buffer = "", "", ""
    for line in lines_of(text):
        if line == "":
            if data != "":
                events.append((kind or "message", data[:-1] if data[-1] == "\n" else data, id_buffer))
            data, kind = "", ""
        elif line[0] != ":":
            colon = line.find(":")
            name = line if colon < 0 else line[:colon]
            value = "" if colon < 0 else line[colon + 1 :]
            if value[:1] == " ":
                value = value[1:]
            if name == "event":
                kind = value
            elif name == "data":
                data += value + "\n"
            elif name == "id" and "\0" not in value:
                id_buffer = value
    return events


def lines_of(text: str) -> list[str]:
    """Lines that have an end; what follows the last one is an event cut off at best, and never dispatched."""
    lines, line, before = [], "", ""
    for char in text:
        if char in "\r\n":
            if not (char == "\n" and before == "\r"):
                lines.append(line)
                line = ""
        else:
            line += char
        before = char
    return lines
