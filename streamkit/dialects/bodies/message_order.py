"""The order of messages whose results of tools stand in the user's: neighbours as one, results in front.

Source: dialects.md §3.2, §5.3, §7.3; seeds.md S2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from attrs import define, field

from streamkit.conversation.messages import Extras
from streamkit.report import StreamReport

Block: TypeAlias = dict[str, Any]
#: Whether a block is the result of a call.
IsResult: TypeAlias = Callable[[Block], bool]


@define
class Message:
    """A message whose blocks can still be moved."""

    role: str
    blocks: list[Block]
    extras: Extras = field(factory=dict)


def joined(messages: Sequence[Message], is_result: IsResult, report: StreamReport) -> Message:
    """Neighbours as one. Results and what follows them are two turns in some dialects and one here, which is no repair."""
    with_content = sum(not all(map(is_result, message.blocks)) for message in messages)
    for _ in range(with_content - 1):
        report.repair("turns_joined")
    extras = {name: value for message in messages for name, value in message.extras.items()}
    return Message(messages[0].role, [block for message in messages for block in message.blocks], extras)


def results_first(messages: list[Message], is_result: IsResult, report: StreamReport) -> list[Message]:
    """The messages between two of the assistant, with all results in front in the first of the user's."""
    first = next((message for message in messages if message.role == "user"), None)
    if first is None:
        return messages
    in_place = len(list(takewhile(is_result, first.blocks)))
    results = [block for message in messages for block in message.blocks if is_result(block)]
    for _ in results[in_place:]:
        report.repair("result_moved")
    for message in messages:
        message.blocks = [block for block in message.blocks if not is_result(block)]
    first.blocks = [*results, *first.blocks]
    return [message for message in messages if message.blocks]
