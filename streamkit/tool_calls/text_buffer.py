"""Text that grows by fragments, joined and scanned once, and stored in large pieces instead of thousands of small strings."""

from __future__ import annotations

from streamkit.tool_calls.object_scanner import ObjectScanner

#: Join the fragments when there are this many: a list of 14-character strings takes ten times their text (performance.md §6).
JOIN_EVERY = 512


class TextBuffer:
    """Fragments in order. Each character is copied twice: into a part, and into the whole text."""

    __slots__ = ("_parts", "_tail", "chars")

    def __init__(self, text: str = "") -> None:
        self._parts: list[str] = []
        self._tail: list[str] = [text] if text else []
        self.chars = len(text)

    def append(self, fragment: str) -> None:
        tail = self._tail
        tail.append(fragment)
        self.chars += len(fragment)
        if len(tail) >= JOIN_EVERY:
            self._parts.append("".join(tail))
            tail.clear()

    def whole(self) -> str:
        return "".join(self._parts + self._tail)

    def equals(self, text: str) -> bool:
        """Return whether ``text`` equals the whole text. The parts are joined only if the lengths are equal."""
        return len(text) == self.chars and text == self.whole()

    def take(self) -> str:
        """Return the whole text and empty the buffer."""
        whole = "".join(self._parts + self._tail)
        self._parts.clear()
        self._tail.clear()
        self.chars = 0
        return whole

    def clear(self) -> None:
        self._parts.clear()
        self._tail.clear()
        self.chars = 0


class LazyScanner(TextBuffer):
    """Checks whether a growing text is one complete JSON object. It scans only new text, and only when asked."""

    __slots__ = ("_scanner",)

    def __init__(self, depth: int, text: str = "") -> None:
        super().__init__(text)
        self._scanner = ObjectScanner(depth=depth)

    def append_to_end(self, text: str) -> int | None:
        """Add ``text`` up to the end of the JSON object that it completes. Return the number of characters added.

        Return None if all was added, since no part of ``text`` completes the object.
        """
        scanner, waited = self._scanner, self.take()
        before, was_open = scanner.state, scanner.open
        scanner.feed(waited + text)
        if scanner.open:  # nearly always true; scanning in one piece takes half of the time
            return None
        if waited:
            scanner.state = before
            scanner.feed(waited)
            before, was_open = scanner.state, scanner.open
            scanner.feed(text)
        if not was_open:
            return None
        ends_object = scanner.complete_object
        if ends_object:
            return len(text.rstrip(" \t\n\r"))
        scanner.state = before
        end = _feed_to_end(scanner, text)
        if not scanner.complete_object:  # the text became invalid before the object was complete
            scanner.feed(text[end:])
            return None
        return end

    @property
    def complete_object(self) -> bool:
        if self.chars:
            end = (self._tail or self._parts)[-1].rstrip(" \t\n\r")
            if end and end[-1] != "}":  # nearly always true; the text is then scanned later, in few pieces
                return False
            self._scanner.feed(self.take())
        return self._scanner.complete_object


def _feed_to_end(scanner: ObjectScanner, text: str) -> int:
    """Feed text to an ``open`` scanner until it is not open any more. Return the number of characters fed."""
    still_open, end = 0, len(text)
    while end - still_open > 1:
        before, middle = scanner.state, (still_open + end) // 2
        scanner.feed(text[still_open:middle])
        if scanner.open:
            still_open = middle
        else:
            scanner.state, end = before, middle
    scanner.feed(text[still_open:end])
    return end
