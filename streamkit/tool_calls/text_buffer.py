"""Text that grows by fragments: joined once, walked once, and in memory as text, not as thousands of small strings."""

from __future__ import annotations

from streamkit.tool_calls.object_scanner import ObjectScanner

#: Fragments are joined every so often: a list of 14-character strings takes ten times their text (performance.md §6).
JOIN_EVERY = 512


class TextBuffer:
    """Fragments in order. Each character is copied into a part once and into the whole once."""

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
        """Return whether ``text`` is the whole; the parts are joined only for a text of the same length."""
        return len(text) == self.chars and text == self.whole()

    def take(self) -> str:
        """The whole, leaving the buffer empty."""
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
    """Whether a growing text is one complete JSON object: read only when asked, and then only what is new, which is kept."""

    __slots__ = ("_scanner",)

    def __init__(self, depth: int, text: str = "") -> None:
        super().__init__(text)
        self._scanner = ObjectScanner(depth=depth)

    def append_to_end(self, text: str) -> int | None:
        """Add ``text``, or what of it makes a complete object of what was no whole value: so many characters.

        None if all was added, and no beginning of it completes the object.
        """
        scanner, waited = self._scanner, self.take()
        before, was_open = scanner.state, scanner.open
        scanner.feed(waited + text)
        if scanner.open:  # nearly always: read in one piece, which takes half of the time
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
        if not scanner.complete_object:  # it became no JSON before it was complete
            scanner.feed(text[end:])
            return None
        return end

    @property
    def complete_object(self) -> bool:
        if self.chars:
            end = (self._tail or self._parts)[-1].rstrip(" \t\n\r")
            if end and end[-1] != "}":  # as nearly always; so the text is read in few pieces
                return False
            self._scanner.feed(self.take())
        return self._scanner.complete_object


def _feed_to_end(scanner: ObjectScanner, text: str) -> int:
    """Feed as much of ``text`` as it takes until an ``open`` scanner is open no more; gives how much. All of it is enough."""
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
