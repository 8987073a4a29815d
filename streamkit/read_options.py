"""Options for reading a stream or a whole response, as one value: the policy, the limits, the offered tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from streamkit.conversation.messages import OutputFormat, Tool
from streamkit.errors import check_type
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import TOLERANT, Policy
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.output import OutputCheck, output_check
from streamkit.tool_calls.schema import Tools, ToolSchemas, compiled


@frozen(kw_only=True)
class ReadOptions:
    """Options for ``transcode``, ``collect`` and ``decode_response``. Use ``attrs.evolve`` to make a changed copy."""

    policy: Policy = TOLERANT  #: Which faults of a provider to tolerate.
    limits: Limits = DEFAULT_LIMITS  #: Limits on the memory that one stream or response may take.
    #: The tools of the request, if arguments are to be checked against the tools' schemas: ``Request.tools``, the
    #: definitions from a request body, or ``ToolSchemas``. If you set this option, you need not set ``offered``. It
    #: needs the extra ``schema``.
    tools: Tools | None = None
    #: The tools of the request, if arguments are not to be checked against the tools' schemas. ``Policy.text_calls``
    #: finds only calls of these tools. If you pass ``Request.tools``, each call also gets the name and kind that its
    #: tool has in the client's request.
    offered: Sequence[Tool] | Sequence[Mapping[str, Any]] | None = None
    #: The output format of the request (``Request.options.output``). If this format is JSON, the text of the response
    #: gets a verdict. A format with a schema needs the extra ``schema``.
    output: OutputFormat | OutputCheck | None = None
    #: Whether the request has documents to cite. In some dialects, a citation is always of a whole block of text. In
    #: these dialects, text is held back until it is clear whether a citation of the text follows
    #: (``translation/citations.py``).
    documents: bool = False
    #: Makes an id with the given prefix, for a call without an id on the wire. Pass a deterministic function in tests.
    make_id: Callable[[str], str] = random_id

    def __attrs_post_init__(self) -> None:
        if self.policy is not TOLERANT:
            check_type("policy", self.policy, Policy, "TOLERANT, STRICT, LENIENT or Policy(…)")
        if self.limits is not DEFAULT_LIMITS:
            check_type("limits", self.limits, Limits, "Limits(…)")

    @property
    def callable_tools(self) -> Tools | None:
        """The tools that the model may call. None: the tools are not known."""
        return self.tools if self.offered is None else self.offered

    @property
    def client_tools(self) -> Sequence[Tool]:
        """The tools as the client defined them. Empty if ``tools`` and ``offered`` have no ``Tool`` objects."""
        known = self.callable_tools
        given = known.definitions if isinstance(known, ToolSchemas) else known or ()
        return [tool for tool in given if isinstance(tool, Tool)]

    def schemas(self) -> ToolSchemas | None:
        """Return the compiled schemas to check arguments against, or None without ``tools``.

        Raise BadToolSchema for an invalid schema, and UsageError for an invalid definition or without the extra ``schema``.
        """
        return None if self.tools is None else compiled(self.tools, self.limits)

    def output_check(self) -> OutputCheck | None:
        """Return the check for the text, or None without ``output``. Raise UsageError as ``check_output`` does."""
        return output_check(self.output, self.limits)


DEFAULT_OPTIONS: Final = ReadOptions()


def check_options(options: object) -> None:
    """Raise UsageError for what is no ``ReadOptions``."""
    if not isinstance(options, ReadOptions):
        is_stages = isinstance(options, list | tuple) and options and all(map(callable, options))
        instead = "stages=[…]" if is_stages else "ReadOptions(policy=…, limits=…, tools=…, offered=…, output=…)"
        check_type("options", options, ReadOptions, instead)
