"""What a response says, before any dialect: seeded text, reasoning and tool calls, in the fragments of a model's tokens.

The same arguments give the same content, on any machine.
"""

from __future__ import annotations

import json
import random
from itertools import accumulate, pairwise
from typing import Any

from attrs import frozen

SEED = 20261122
#: The fragment of arguments that the recordings have most often, in characters.
FRAGMENT_CHARS = 14
PROSE = (
    "the stream a of tokens and chunk in to event is parses reads writes middle boundary value response tool call "
    "argument index it block network bytes that delta provider buffer never always while until each line between "
    "größe naïve 東京 → “quoted” don't O(n) foo_bar() https://example.org/a?b=c"
)
WORDS = PROSE.split()
ENDS = (" ", " ", " ", " ", " ", " ", " ", ", ", ". ", ".\n", ":\n\n", ' "', "\t")


@frozen
class Call:
    id: str
    name: str
    fragments: tuple[str, ...]

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)


@frozen
class Content:
    """``order`` names for each fragment of arguments, in the order of the wire, the call that it belongs to."""

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def deltas(self) -> int:
        """How many events of a provider say it: one a fragment, one for each call's start."""
        return len(self.text) + len(self.reasoning) + len(self.order) + len(self.calls)


def words(count: int, seed: int = SEED) -> tuple[str, ...]:
    """``count`` tokens of prose: a word or half a word each, some with an escape or a character of several bytes."""
    dice = random.Random(seed)  # noqa: S311 - reproducible, nothing secret
    found: list[str] = []
    while len(found) < count:
        word = dice.choice(WORDS) + dice.choice(ENDS)
        cut = dice.randrange(1, len(word)) if len(word) > 6 and dice.random() < 0.5 else len(word)
        found += [piece for piece in (word[:cut], word[cut:]) if piece]
    return tuple(found[:count])


def document(size: int, seed: int = SEED) -> str:
    """One JSON object of exactly ``size`` characters (96 at least): half a text of code, half a list of small objects."""
    dice = random.Random(seed)  # noqa: S311
    path = f"src/module_{dice.randrange(10_000, 100_000)}.py"
    line = "    return self._place[at]  # a line of code\n"
    code = ""
    items: list[Any] = []
    if size >= 512:
        code = line * (size // 2 // len(json.dumps(line)))
        length = len(_document(path, code, items, ""))
        while length < size - 256:
            item = {
                "id": dice.randrange(10**9),
                "path": f"src/größe_{dice.randrange(1000)}.py",
                "weight": dice.random(),
            }
            items.append(item)
            length += len(json.dumps(item, ensure_ascii=False)) + 2
    return _document(path, code, items, "x" * (size - len(_document(path, code, items, ""))))


def _document(path: str, code: str, items: list[Any], padding: str) -> str:
    return json.dumps({"path": path, "content": code, "items": items, "padding": padding}, ensure_ascii=False)


def fragments(text: str, dice: random.Random | None = None, chars: int = FRAGMENT_CHARS) -> tuple[str, ...]:
    """``text`` in fragments of ``chars`` characters, or of 1 to twice that less one where there are dice."""
    if dice is None:
        return tuple(text[at : at + chars] for at in range(0, len(text), chars))
    sizes = [dice.randint(1, 2 * chars - 1) for _ in range(len(text) // chars + len(text) // 8 + 8)]
    ends = [0, *(end for end in accumulate(sizes) if end < len(text)), len(text)]
    return tuple(text[a:b] for a, b in pairwise(ends) if a < b)


def text(count: int, seed: int = SEED) -> Content:
    return Content(text=words(count, seed))


def reasoning_then_text(count: int, seed: int = SEED) -> Content:
    return Content(text=words(count - count // 2, seed), reasoning=words(count // 2, seed + 1))


def one_call(size: int, seed: int = SEED) -> Content:
    """One call with ``size`` characters of arguments, in fragments of 14."""
    call = Call("call_0123456789abcdefghijklmn", "write_file", fragments(document(size, seed)))
    return Content(calls=(call,), order=(0,) * len(call.fragments))


def calls(size: int, *, count: int = 4, interleaved: bool = True, seed: int = SEED) -> Content:
    """``count`` calls that share ``size`` characters of arguments; interleaved, their fragments come in random order.

    Calls are numbered as they are first mentioned, as providers do.
    """
    dice = random.Random(seed)  # noqa: S311
    made = tuple(
        Call(f"call_{number}{'abcdefghijklmnopqrstuvw'}", f"tool_{number}", fragments(text, dice))
        for number, text in enumerate(document(size // count, seed + number) for number in range(count))
    )
    order = [number for number, call in enumerate(made) for _ in call.fragments]
    if interleaved:
        dice.shuffle(order)
    places = {number: place for place, number in enumerate(dict.fromkeys(order))}
    return Content(calls=tuple(made[number] for number in places), order=tuple(places[number] for number in order))


def mixture(count: int, seed: int = SEED) -> Content:
    """What every dialect can say: reasoning, text and four calls one after the other, ``count`` fragments in all."""
    share = count // 4
    four = calls(FRAGMENT_CHARS * share, interleaved=False, seed=seed)
    return Content(words(count - 2 * share, seed), words(share, seed + 1), four.calls, four.order)
