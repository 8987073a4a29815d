"""Reading messages where the result of a tool is a message of its own (role ``tool``).

Each message is one turn, but the ``tool`` messages that stand together are one turn of the user.

Source: dialects.md §7.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamkit.conversation.messages import Part, Tool, ToolResult, Turn
from streamkit.dialects.members.fields import Fields
from streamkit.text.quoting import quoted


class TurnReader:
    """Reads the messages of a request into ``turns``. A dialect's own reader of requests says what is in a message."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._results: Turn | None = None  #: the turn that further results join

    # What a dialect's reader defines.

    def content(self, message: Fields, /) -> Sequence[Part]:
        """The parts of a message of the system or the user."""
        raise NotImplementedError

    def assistant(self, message: Fields, /) -> Turn:
        """A message of the assistant."""
        raise NotImplementedError

    def result(self, message: Fields, /) -> ToolResult:
        """A message of role ``tool``."""
        raise NotImplementedError

    def role(self, message: Fields) -> str:
        """The role of a message. Overridden where the server takes it in more than one spelling."""
        return message.needed("role")

    # What they share.

    def read_turns(self, fields: Fields) -> list[Turn]:
        """The turns of a request. Raises BadRequest."""
        for message in fields.needed_each("messages"):
            self.message(message)
        return self.turns

    def function(self, tool: Fields) -> Tool:
        """A tool that is a function. Raises BadRequest."""
        function = tool.needed_fields("function")
        read = Tool(function.needed("name"), function.string("description"), function.mapping("parameters"))
        read.extras = tool.rest() or None
        return read

    def message(self, message: Fields) -> None:
        """Add a message to the turns. Raises BadRequest."""
        role = self.role(message)
        if role == "tool":
            if self._results is None:
                self._results = Turn("user")
                self.turns.append(self._results)
            self._results.parts.append(self.result(message))
            return
        self._results = None
        match role:
            case "system" | "user":
                turn = Turn(role, [*self.content(message)])
            case "assistant":
                turn = self.assistant(message)
            case _:
                raise message.wrong(f"there is no role {quoted(role)}", "role")
        turn.extras = message.rest() or None
        self.turns.append(turn)
