"""Writing requests where the result of a tool is a message of its own (role ``tool``).

A turn is one message, and each result in it a message in front. Servers refuse anything between calls and their results, so
those of a request of another dialect stand right behind their calls.

Source: dialects.md §7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from streamkit.conversation.messages import Media, Part, ToolResult, Turn
from streamkit.dialects.bodies.json_members import add_missing
from streamkit.dialects.bodies.request_writer import RequestWriter

Message = dict[str, Any]
#: What stands between texts that become one, unless they are pieces of what a model wrote.
BLANK_LINE: Final = "\n\n"


class MessageWriter(RequestWriter):
    """Writes one request whose results are messages. A dialect's own says what is in each message."""

    def message_of(self, turn: Turn, parts: Sequence[Part]) -> Message:
        """A message of the system or the user, with these ``parts`` of the turn."""
        raise NotImplementedError

    def assistant(self, turn: Turn) -> Message:
        """Return a message of the assistant; an empty one is dropped from a request of another dialect."""
        raise NotImplementedError

    def result(self, result: ToolResult, moved: list[Media]) -> Message:
        """A message of role ``tool``. Media that have no place in it go to ``moved``, for a message behind all results."""
        raise NotImplementedError

    def named(self, message: Message, turn: Turn) -> Message:
        """A message with what the turn says of itself. Overridden where its name has a place."""
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        return add_missing(message, self.extras(turn.extras))

    def messages(self) -> Iterable[Message]:
        """The messages in the order that the server wants."""
        messages = self.turns_as_messages()
        return messages if self.own else self._answered(messages)

    def turns_as_messages(self) -> Iterator[Message]:
        """The messages in the order of the turns. Overridden where several turns become one message."""
        return (message for turn in self.request.turns for message in self.turn_as_messages(turn))

    def turn_as_messages(self, turn: Turn) -> Iterator[Message]:
        """The messages that a turn is."""
        if turn.role == "assistant":
            message = self.assistant(turn)
            if self.own or any(value for name, value in message.items() if name not in {"role", "name"}):
                yield message
            else:
                self.report.repair("turn_empty")
            return
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        if any(not isinstance(part, ToolResult) for part in turn.parts[: len(results)]):
            self.report.repair("result_moved")
        moved: list[Media] = []
        for result in results:
            yield self.result(result, moved)
        parts = [part for part in turn.parts if not isinstance(part, ToolResult)]
        if parts or moved or not results:
            yield self.message_of(turn, [*moved, *parts])

    def joined(self, texts: Iterable[str], join: Callable[[list[str]], str] = "".join) -> str:
        """Return texts as one, without blank ones; the boundaries between them are lost."""
        texts = [text for text in texts if text]
        if len(texts) > 1:
            self.report.lose("block_boundary", len(texts) - 1)
        return join(texts)

    def _answered(self, messages: Iterable[Message]) -> list[Message]:
        """The messages with those of role ``tool`` right behind the assistant's."""
        placed: list[Message] = []
        others: list[Message] = []  # behind the latest of the assistant's: further results go in front of them
        for message in messages:
            if message["role"] == "tool":
                if others:
                    self.report.repair("result_moved")
                placed.append(message)
                continue
            others.append(message)
            if message["role"] == "assistant":
                placed += others
                others = []
        return placed + others
