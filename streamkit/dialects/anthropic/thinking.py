"""How Claude is told to think: the member ``thinking``, which Bedrock passes on to the same model.

An effort alone asks this server for effort only, while in other dialects it asks the model to think: then ``adaptive`` is
written with it.

Source: dialects.md §3.2, §7.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from streamkit.dialects.anthropic.wire import DISPLAYS, LEAST_BUDGET
from streamkit.dialects.writing import RequestWriter, given
from streamkit.errors import BadRequest
from streamkit.messages import Thinking, ToolChoice

#: What asks for thinking, with which a tool can't be forced.
THINKS: Final = frozenset({"enabled", "adaptive"})
SHOWN: Final[Mapping[str, str]] = {ours: word for word, ours in DISPLAYS.items()}


class ThinkingWriter(RequestWriter):
    def thinking(
        self, thinking: Thinking | None, choice: ToolChoice | None, *, unsigned: bool
    ) -> dict[str, Any] | None:
        """``unsigned``: the answer goes on with a turn that called tools and does not begin with thinking.

        With a budget the server then demands what it had thought before the calls.
        """
        if thinking is None:
            return None
        enabled = thinking.enabled
        if not self.own and enabled is None and thinking.budget_tokens is None and thinking.effort is not None:
            forced = choice is not None and choice.mode == "required"
            if forced and thinking.effort != "none":
                self.lose("parameter", "thinking")  # the effort is written, and the tool is what was asked for
                return None
            enabled = thinking.effort != "none"
        if enabled is False or (thinking.effort == "none" and not self.own):
            return {"type": "disabled"}
        if thinking.budget_tokens is not None:
            return self._budget(thinking, thinking.budget_tokens, unsigned=unsigned)
        if enabled is None:
            if thinking.summary is not None:
                self.lose("parameter", "thinking.summary")
            return None
        return given(type="adaptive", display=self._display(thinking.summary))

    def _budget(self, thinking: Thinking, budget: int, *, unsigned: bool) -> dict[str, Any] | None:
        if not self.own and unsigned:
            self.lose("parameter", "thinking")
            return None
        if not self.own and budget < LEAST_BUDGET:
            self.lose("parameter", "thinking.budget_tokens")
            budget = LEAST_BUDGET
        return given(type="enabled", budget_tokens=budget, display=self._display(thinking.summary))

    def _display(self, summary: str | None) -> str | None:
        if summary in {"concise", "detailed"}:
            self.lose("parameter", "thinking.summary")
        return None if summary is None else SHOWN.get(summary, "summarized")

    def with_thinking(self, choice: ToolChoice | None, thinking: Mapping[str, Any] | None) -> ToolChoice | None:
        """The choice, if thinking does not forbid it (§3.2)."""
        if choice is None or choice.mode != "required" or thinking is None or thinking.get("type") not in THINKS:
            return choice
        if not self.target.emulate:
            raise BadRequest("tool_choice", "Claude can't be told to call a tool while thinking is enabled")
        self.lose("tool_choice", "required")
        return evolve(choice, mode="auto", names=())
