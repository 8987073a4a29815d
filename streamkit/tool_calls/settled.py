"""The short way for calls of which everything is settled: what a fragment adds to them is text and nothing else.

Nearly all fragments are of such calls. What a fragment means otherwise says ``accumulate.py``, which also says when a call is
settled: it was announced, its text is handed on as it comes, and no other call waits for it.
"""

from __future__ import annotations

from typing import Any, cast

from streamkit.events import ToolCallArguments, ToolCallDelta
from streamkit.limits import Limits
from streamkit.tool_calls.call import Call, Choice
from streamkit.tool_calls.cumulative import may_repeat
from streamkit.tool_calls.delta_run import DeltaRun


class SettledCalls:
    """``calls`` by index, at whose fragments nothing is to be decided until anything else comes that is said of a call.

    ``careful``: each fragment is to be looked at by itself.
    """

    def __init__(self, limits: Limits, *, careful: bool) -> None:
        self.chars = 0  #: of all arguments of the stream
        self._limits = limits
        self._careful = careful
        self.calls: dict[int | None, tuple[Choice, Call]] = {}

    def settles(self, choice: Choice, call: Call, size: int) -> bool:
        """Whether there is nothing to decide about a fragment of ``size`` characters that says nothing of identity.

        Whether it repeats what came is another question (``may_repeat``).
        """
        chars, limits = call.text.chars, self._limits
        return (
            call.sent
            and not call.ended
            and not self._careful
            and not call.cumulative
            and call.doubt is None
            and not call.unsent.chars  # or a later fragment would overtake it
            and choice.announced == len(choice.calls)  # none waits for this one to be heard of
            and chars + size <= limits.arguments_chars
            and self.chars + size <= limits.stream_arguments_chars
        )

    def add(self, choice: Choice, delta: ToolCallDelta) -> ToolCallArguments | None:
        """The same as ``grown``, of a call that is not known to be settled yet; the fragment has neither an id nor a name."""
        if not delta.arguments or delta.index is None:
            return None
        call = choice.by_index.get(delta.index)
        if call is None or not call.sent or not self.settles(choice, call, len(delta.arguments)):
            return None
        self.calls[delta.index] = choice, call
        return self.grown(delta)

    def grown(self, delta: ToolCallDelta) -> ToolCallArguments | None:
        """What a fragment of a settled call becomes; None if it is no such fragment. Gain: three quarters of its time.

        Of what ``settles`` asks, only what a fragment can change is asked again.
        """
        settled, fragment = self.calls.get(delta.index), delta.arguments
        if settled is None or delta.id is not None or delta.name is not None or not fragment or delta.snapshot:
            return None
        if delta.signature is not None or delta.extras is not None:
            return None
        choice, call = settled
        ordinal, size, chars, limits = call.ordinal, len(fragment), call.text.chars, self._limits
        if (
            ordinal is None
            or delta.choice != call.choice
            or (size >= chars and may_repeat(fragment, chars))
            or chars + size > limits.arguments_chars
            or self.chars + size > limits.stream_arguments_chars
        ):
            return None
        choice.last = call
        self.chars += size
        call.text.append(fragment)  # as ``Call.grow``, which is a call more
        if call.scanner is not None:
            call.scanner.append(fragment)
        return ToolCallArguments(ordinal, fragment, call.choice)

    def grown_together(self, choice: Choice, run: DeltaRun, *, join: bool) -> list[Any] | None:
        """What the fragments of a run become, all of a call at once; None, and nothing is done, if one may be more than text.

        Gain: nine tenths of the time of accumulating runs of one call, half of it where calls interleave.
        """
        by_call = run.by_call()
        texts = {index: "".join(fragments) for index, fragments in by_call.items()}
        total = sum(map(len, texts.values()))
        calls: dict[int, Call] = {}
        for index in texts:
            call = choice.by_index.get(index)
            if call is None or not self.settles(choice, call, total):
                return None
            # a fragment that is as long as all before it may repeat it: none is
            if call.text.chars <= total and call.text.chars <= max(map(len, run.texts)):
                return None
            calls[index] = call
        if len(set(map(id, calls.values()))) != len(
            calls
        ):  # one call at two indices: its fragments stay in their order
            return None
        for index, call in calls.items():
            call.grow(texts[index])
        self.chars += total
        ordinals = {index: cast("int", call.ordinal) for index, call in calls.items()}
        first = next(iter(calls))
        choice.last = calls[first if run.indices is None else run.indices[-1]]
        if join:
            return [ToolCallArguments(ordinals[index], texts[index], call.choice) for index, call in calls.items()]
        like = ToolCallArguments(ordinals[first], "", choice.last.choice)
        whose = None if run.indices is None else [ordinals[index] for index in run.indices]
        return [DeltaRun(like, run.texts, whose, {ordinals[index]: texts for index, texts in by_call.items()})]
