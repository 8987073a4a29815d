"""Reading messages where the result of a tool is a message of its own (role ``tool``).

Each message is one turn, but the ``tool`` messages that stand together are one turn of the user.

Source: dialects.md §7.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamkit.conversation.messages import Part, ToolResult, Turn
from streamkit.dialects.bodies.request_reader import RequestReader
from streamkit.dialects.members.fields import Fields
from streamkit.text.quoting import quoted


class TurnReader(RequestReader):
    """Reads the messages of a request into ``turns``. A dialect's own reader of requests says what is in a message."""

    _results: Turn | None = None  #: the turn that further results join

    def content(self, message: Fields, /) -> Sequence[Part]:
        """The parts of a message of the system or the user."""
        raise NotImplementedError

    def assistant(self, message: Fields, /) -> Turn:
        raise NotImplementedError

    def result(self, message: Fields, /) -> ToolResult:
        """A message of role ``tool``."""
        raise NotImplementedError

    def role(self, message: Fields) -> str:
        """The role of a message. Overridden where the server takes it in more than one spelling."""
        return message.needed("role")

    def read_turns(self, fields: Fields) -> None:
        """Read the messages. Raises BadRequest."""
        for message in fields.needed_each("messages"):
            role = self.role(message)
            if (result := self.answer(message, role)) is not None:
                result.extras = message.rest() or None
                self.join(result)
                continue
            self._results = None
            turn = self.turn(message, role)
            turn.extras = message.rest() or None
            self.turns.append(turn)

    def answer(self, message: Fields, role: str) -> ToolResult | None:
        """The result that a message of ``role`` is; None for any other."""
        return self.result(message) if role == "tool" else None

    def join(self, result: ToolResult) -> None:
        """Let a result join those that it stands with."""
        if self._results is None:
            self._results = Turn("user")
            self.turns.append(self._results)
        self._results.parts.append(result)

    def turn(self, message: Fields, role: str) -> Turn:
        """The turn that a message of ``role`` is. Raises BadRequest."""
        match role:
            case "system" | "user":
                return Turn(role, [*self.content(message)])
            case "assistant":
                return self.assistant(message)
        raise message.wrong(f"there is no role {quoted(role)}", "role")
