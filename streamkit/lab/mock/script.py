"""Scripts: the turns of a scripted provider, and the choice of the turn that answers a request.

A request gets the first turn that fits it and that its conversation has not had. Requests with the same first user message are
one conversation. The conversation starts again if a request has a shorter history than the request before it.

Source: observe.md O31.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Any

from attrs import Attribute, field, frozen

from streamkit.conversation.messages import Request, Text
from streamkit.conversation.messages import Turn as Message
from streamkit.errors import UsageError
from streamkit.lab.mock.steps import BEHIND_THE_END, ENDINGS, Call, Status, Step, Stop, Wait, name_of


def _counts_from_one(_match: Any, _attribute: Attribute[Any], turn: int | None) -> None:
    if turn is not None and turn < 1:
        raise UsageError(f"turn: 1 is the first, so {turn} is none")


@frozen(kw_only=True)
class Match:
    """Conditions that a request must meet for a turn to answer it. All given conditions must hold."""

    #: The turn matches if the user's last message contains this text; empty: any message.
    text: str = ""
    #: The turn matches if the request offers the tool with this name; empty: any tools.
    tool: str = ""
    #: The number of model responses in the history, plus 1: the first request is 1.
    turn: int | None = field(default=None, validator=_counts_from_one)

    def fits(self, request: Request) -> bool:
        if self.text and self.text not in last_said(request):
            return False
        if self.tool and all(tool.name != self.tool for tool in request.tools):
            return False
        return self.turn is None or self.turn == len(answers_in(request)) + 1


def _is_possible(_turn: Any, _attribute: Attribute[Any], steps: tuple[Step, ...]) -> None:
    """Raise UsageError if the steps cannot form one response."""
    if not steps:
        raise UsageError("steps: at least one is needed")
    for number, (before, step) in enumerate(pairwise(steps), 1):
        if isinstance(before, ENDINGS):
            raise UsageError(f"steps: nothing can follow {name_of(before)}, and step {number + 1} does")
        if isinstance(before, Call) and not before.finished and not isinstance(step, (Wait, *ENDINGS)):
            raise UsageError(
                f"steps: an unfinished call is cut, reset, stalled or failed; step {number + 1} is none of it"
            )
    if isinstance(steps[-1], Call) and not steps[-1].finished:
        raise UsageError("steps: an unfinished call is cut, reset, stalled or failed, and nothing follows this one")
    statuses = [step for step in steps if isinstance(step, Status)]
    if statuses and any(not isinstance(step, Wait) for step in steps if step is not statuses[0]):
        raise UsageError("steps: a status is an answer of its own; nothing but wait stands beside it")
    stops = [number for number, step in enumerate(steps) if isinstance(step, Stop)]
    if stops and (late := [step for step in steps[stops[0] + 1 :] if not isinstance(step, BEHIND_THE_END)]):
        raise UsageError(f"steps: {name_of(late[0])} stands behind stop, which ends the answer")


def _steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(steps)


@frozen
class Turn:
    """One response, and the requests that it answers; None: any request."""

    steps: tuple[Step, ...] = field(converter=_steps, validator=_is_possible)
    match: Match | None = None


def _turns(given: Iterable[Turn | Step]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    steps: list[Step] = []
    for each in given:
        if isinstance(each, Turn):
            turns.append(each)
        else:
            steps.append(each)
    if turns and steps:
        raise UsageError("turns: either turns or the steps of one, not both")
    return (Turn(steps),) if steps else tuple(turns)


@frozen
class Script:
    """The turns of a provider, or the steps of its only turn: ``Script([Say("Hello")])``.

    With ``repeat``, a conversation that has had all fitting turns gets them again. Raises UsageError for steps that cannot
    form a response, and if there is no turn.
    """

    turns: tuple[Turn, ...] = field(converter=_turns)
    repeat: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.turns:
            raise UsageError("turns: at least one is needed")

    def next(self, request: Request, had: set[int]) -> int | None:
        """Return the number of the turn that answers a request; None: no turn. ``had``: the numbers already used."""
        fitting = [number for number, turn in enumerate(self.turns) if turn.match is None or turn.match.fits(request)]
        left = [number for number in fitting if number not in had]
        if not left and self.repeat:
            had.difference_update(fitting)
            left = fitting
        return left[0] if left else None


def last_said(request: Request) -> str:
    """Return the text of the user's last message that has text. Tool results do not count as text."""
    texts = (text_of(turn) for turn in reversed(request.turns) if turn.role == "user")
    return next((text for text in texts if text), "")


def first_said(request: Request) -> str:
    """Return the text of the user's first message."""
    return next((text_of(turn) for turn in request.turns if turn.role == "user"), "")


def answers_in(request: Request) -> list[list[Message]]:
    """Return the model's responses in the history. Consecutive assistant messages are one response: some dialects split it."""
    spoken = groupby(request.turns, lambda turn: turn.role == "assistant")
    return [list(turns) for is_answer, turns in spoken if is_answer]


def text_of(turn: Message) -> str:
    """Return all text of a message."""
    return "".join(part.text for part in turn.parts if isinstance(part, Text))
