"""Quirks of tool calls: changes of the payloads with fragments of call arguments, for tests of repairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from streamkit.dialects.quirks.changes import Change, Changes, Frames, Payload, Where, copied, put, value_at


@frozen(kw_only=True)
class Fragments:
    """The calls of a stream: ``start`` selects payloads that start a call, ``fragment`` those with a fragment of arguments.

    Payloads with the same value at the path ``key`` belong to one call. The text of a fragment is at the path ``text``.
    """

    changes: Changes
    start: Where
    fragment: Where
    key: str
    text: str

    def carry(self, path: str) -> Change:
        """Return a change that repeats the member at ``path`` of a call's start in all fragments of that call."""

        def change(frames: Frames) -> Frames:
            said: dict[Any, Any] = {}

            def edit(payload: Payload) -> tuple[Payload]:
                key = value_at(payload, self.key)
                if self._starts(payload):
                    said[key] = value_at(payload, path)
                elif key in said:
                    put(path, said[key])(payload)
                return (payload,)

            return self.changes.each(self._either, edit)(frames)

        return change

    def whole(self, path: str, make: Callable[[str], Any]) -> Change:
        """Return a change that sets ``path`` of a call's start to ``make(all arguments)``, and drops the fragments."""

        def change(frames: Frames) -> Frames:
            texts = self._texts(frames)

            def edit(payload: Payload) -> tuple[Payload, ...]:
                text = texts.get(value_at(payload, self.key), "")
                if not self._starts(payload):
                    return ()
                put(path, make(text))(payload)
                return (payload,)

            return self.changes.each(self._either, edit)(frames)

        return change

    def one(self, make: Callable[[str], Any]) -> Change:
        """Return a change that replaces all fragments of a call by one with ``make(all arguments)``.

        A call whose arguments ``make`` does not change keeps its fragments.
        """

        def change(frames: Frames) -> Frames:
            made = {key: value for key, text in self._texts(frames).items() if (value := make(text)) != text}
            left = dict(made)

            def edit(payload: Payload) -> tuple[Payload, ...]:
                key = value_at(payload, self.key)
                if key not in made:
                    return (payload,)
                if key not in left:
                    return ()
                put(self.text, left.pop(key))(payload)
                return (payload,)

            return self.changes.each(self.fragment, edit)(frames)

        return change

    def cumulative(self) -> Change:
        """Return a change that puts, into each fragment, all arguments of the call up to that fragment."""

        def change(frames: Frames) -> Frames:
            texts: defaultdict[Any, str] = defaultdict(str)

            def edit(payload: Payload) -> tuple[Payload]:
                key = value_at(payload, self.key)
                texts[key] += value_at(payload, self.text)
                put(self.text, texts[key])(payload)
                return (payload,)

            return self.changes.each(self.fragment, edit)(frames)

        return change

    def again(self) -> Change:
        """Return a change that repeats all arguments of a call after its last fragment, unless they are ``{}``."""

        def change(frames: Frames) -> Frames:
            texts = self._texts(frames)
            left = Counter(value_at(payload, self.key) for payload in self._fragments(frames))

            def edit(payload: Payload) -> tuple[Payload, ...]:
                key = value_at(payload, self.key)
                left[key] -= 1
                if left[key] or texts[key] == "{}":
                    return (payload,)
                return (payload, copied(payload, put(self.text, texts[key])))

            return self.changes.each(self.fragment, edit)(frames)

        return change

    @property
    def _either(self) -> Where:
        return Where("", lambda payload: self._starts(payload) or self.fragment.has(payload))

    def _starts(self, payload: Payload) -> bool:
        return self.start.has(payload)

    def _fragments(self, frames: Frames) -> Iterator[Payload]:
        return self.changes.having(self.fragment, frames)

    def _texts(self, frames: Frames) -> dict[Any, str]:
        texts: defaultdict[Any, str] = defaultdict(str)
        for payload in self._fragments(frames):
            texts[value_at(payload, self.key)] += value_at(payload, self.text)
        return texts
