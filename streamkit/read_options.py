"""Options for reading a stream or a whole response, as one value: the policy, the limits, the offered tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from streamkit.conversation.messages import Tool
from streamkit.errors import check_type
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import TOLERANT, Policy
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.schema import Tools, ToolSchemas, compiled


@frozen(kw_only=True)
class ReadOptions:
    """Options for ``transcode``, ``collect`` and ``decode_response``. Use ``attrs.evolve`` for a changed copy."""

    policy: Policy = TOLERANT  #: Which deviations of a provider to tolerate.
    limits: Limits = DEFAULT_LIMITS  #: Limits on the memory that one stream or response may take.
    #: The tools of the request, in one of three forms. With ``Request.tools``, calls get back the client's tool names and
    #: kinds where the request had to change them, and ``Policy.text_calls`` looks for calls of these tools alone. With the
    #: definitions from a request body, or with ``ToolSchemas``, arguments are checked against the schemas (needs the extra
    #: ``schema``). ``ToolSchemas(request.tools)`` does both.
    tools: Tools | None = None
    #: Makes an id with the given prefix for a call that has none on the wire. Pass a deterministic function for tests.
    make_id: Callable[[str], str] = random_id

    def __attrs_post_init__(self) -> None:
        check_type("policy", self.policy, Policy, "TOLERANT, STRICT, LENIENT or Policy(…)")
        check_type("limits", self.limits, Limits, "Limits(…)")

    @property
    def offered(self) -> Sequence[Tool]:
        """The tools as the client offered them; empty if only definitions are known."""
        given = self.tools.definitions if isinstance(self.tools, ToolSchemas) else self.tools or ()
        return [tool for tool in given if isinstance(tool, Tool)]

    def schemas(self) -> ToolSchemas | None:
        """Return the compiled schemas to check arguments against, or None if there is nothing to check.

        Raise BadToolSchema for an invalid schema, and UsageError for an invalid definition or without the extra ``schema``.
        """
        if not self.tools or (not isinstance(self.tools, ToolSchemas) and self.offered):
            return None
        return compiled(self.tools, self.limits)


DEFAULT_OPTIONS: Final = ReadOptions()
INSTEAD: Final = "ReadOptions(policy=…, limits=…, tools=…)"  #: what to write instead of other ``options``
