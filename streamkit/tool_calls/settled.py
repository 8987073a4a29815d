"""Add fragments to settled calls, a shortcut for calls in which a fragment can only be more argument text.

Nearly all fragments belong to settled calls; ``accumulate.py`` handles the rest. A call is settled once it is announced, its
text is emitted as it arrives, and no other call waits for it.
"""

from __future__ import annotations

from typing import cast

from attrs import define

from streamkit.events import ToolCallArguments, ToolCallDelta
from streamkit.limits import Limits
from streamkit.tool_calls.call import Call, ChoiceState
from streamkit.tool_calls.cumulative import may_repeat


@define
class FragmentRun:
    """The fragments of calls in one read, each with the index of its call. Used between two machines; no stage yields it."""

    indices: list[int]
    texts: list[str]
    choice: int = 0


class SettledCalls:
    """The settled calls, keyed by index in ``calls``. The accumulator clears ``calls`` when a frame has other data of a call.

    ``careful``: every fragment needs the full check, so no call is ever settled.
    """

    def __init__(self, limits: Limits, *, careful: bool) -> None:
        self.chars = 0  #: number of characters of all arguments of the stream
        self._limits = limits
        self._careful = careful
        self.calls: dict[int | None, tuple[ChoiceState, Call]] = {}

    def settles(self, choice: ChoiceState, call: Call, size: int) -> bool:
        """Return whether a fragment of ``size`` characters, without an id or a name, only adds text to ``call``.

        Call ``may_repeat`` too: it tells whether the fragment may repeat earlier text.
        """
        chars, limits = call.text.chars, self._limits
        return (
            call.sent
            and not call.ended
            and not self._careful
            and not call.cumulative
            and call.doubt is None
            and not call.unsent.chars  # else this fragment would be emitted before the held text
            and choice.announced == len(choice.calls)  # no later call waits to be announced
            and chars + size <= limits.arguments_chars
            and self.chars + size <= limits.stream_arguments_chars
        )

    def add(self, choice: ChoiceState, delta: ToolCallDelta) -> ToolCallArguments | None:
        """Do the same as ``grown`` for a call that is not yet known as settled. The fragment has no id and no name."""
        if not delta.arguments or delta.index is None:
            return None
        call = choice.by_index.get(delta.index)
        if call is None or not call.sent or not self.settles(choice, call, len(delta.arguments)):
            return None
        self.calls[delta.index] = choice, call
        return self.grown(delta)

    def grown(self, delta: ToolCallDelta) -> ToolCallArguments | None:
        """Add a fragment to its settled call and return the event to emit; None if the fragment needs the full check."""
        if delta.id is not None or delta.name is not None or not delta.arguments or delta.snapshot:
            return None
        if delta.signature is not None or delta.extras is not None:
            return None
        call = self.grow(delta.index, delta.arguments, delta.choice)
        return None if call is None else ToolCallArguments(call, delta.arguments, delta.choice)

    def grow(self, index: int | None, fragment: str, number: int) -> int | None:
        """Add a fragment to the settled call at ``index`` of the choice ``number``. Return the call's ordinal, or None.

        None means that nothing was added. Only the conditions of ``settles`` that a fragment can change are checked, which
        saves three quarters of the time.
        """
        settled = self.calls.get(index)
        if settled is None:
            return None
        choice, call = settled
        size, chars, limits = len(fragment), call.text.chars, self._limits
        if (
            number != call.choice
            or (size >= chars and may_repeat(fragment, chars))
            or chars + size > limits.arguments_chars
            or self.chars + size > limits.stream_arguments_chars
        ):
            return None
        choice.last = call
        self.chars += size
        call.text.append(fragment)  # same as ``Call.grow``, inlined to save a call
        if call.scanner is not None:
            call.scanner.append(fragment)
        return call.ordinal

    def grown_together(self, choice: ChoiceState, run: FragmentRun) -> list[ToolCallArguments] | None:
        """Add many fragments and return one event for each call. If a fragment may be more than text, return None instead."""
        longest, total = max(map(len, run.texts)), sum(map(len, run.texts))
        by_index: dict[int, list[str]] = {index: [] for index in dict.fromkeys(run.indices)}
        if len(by_index) == 1:
            by_index[run.indices[0]] = run.texts
        else:
            append = {index: texts.append for index, texts in by_index.items()}
            for index, text in zip(run.indices, run.texts, strict=True):
                append[index](text)
        calls = {}
        for index in by_index:
            call = choice.by_index.get(index)
            # a fragment as long as all text before it may repeat that text; here every fragment is shorter
            if call is None or call.text.chars <= longest or not self.settles(choice, call, total):
                return None
            calls[index] = call
        if len({*map(id, calls.values())}) != len(calls):  # one call at two indices: keep its fragments in order
            return None
        self.chars += total
        choice.last = calls[run.indices[-1]]
        grown = []
        for index, call in calls.items():
            text = "".join(by_index[index])
            call.grow(text)
            grown.append(ToolCallArguments(cast("int", call.ordinal), text, call.choice))
        return grown
