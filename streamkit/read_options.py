"""How a stream or a whole response is read, as one value: what is tolerated, what may be held, which tools were offered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from streamkit.conversation.messages import Tool
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import TOLERANT, Policy
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.schema import Tools, ToolSchemas, compiled


@frozen(kw_only=True)
class ReadOptions:
    """What ``transcode``, ``collect`` and ``decode_response`` read by. A copy is made with ``attrs.evolve``."""

    #: What is tolerated of a provider.
    policy: Policy = TOLERANT
    limits: Limits = DEFAULT_LIMITS
    #: The tools of the request. ``Request.tools``: calls get the names and kinds back that the client gave them, where the
    #: request had to be written otherwise, and in the text only these are looked for (``Policy.text_calls``). Definitions as
    #: they stand in a body, or ``ToolSchemas``: arguments are checked against their schemas (extra ``schema``).
    #: ``ToolSchemas(request.tools)``: both.
    tools: Tools | None = None
    #: Makes an id, with that prefix, for what came without one; a fixed maker gives reproducible output.
    make_id: Callable[[str], str] = random_id

    @property
    def offered(self) -> Sequence[Tool]:
        """The tools as the client offered them; none where only definitions are known."""
        given = self.tools.definitions if isinstance(self.tools, ToolSchemas) else self.tools or ()
        return [tool for tool in given if isinstance(tool, Tool)]

    def schemas(self) -> ToolSchemas | None:
        """The schemas to check arguments against, compiled; None where none are to be checked.

        Raises BadToolSchema, and UsageError without the extra or for what is no definition.
        """
        if not self.tools or (not isinstance(self.tools, ToolSchemas) and self.offered):
            return None
        return compiled(self.tools, self.limits)


DEFAULT_OPTIONS: Final = ReadOptions()
