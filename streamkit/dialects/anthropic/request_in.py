"""Anthropic's requests to the neutral conversation: options, tools, the choice among them; messages in ``messages_in.py``.

``thinking`` and ``output_config`` say together how much to think. What has no word of ours, in thinking ``between_tools``,
stays among the members that only this dialect knows. A tool of a versioned type is the server's definition, whoever runs it.

Source: dialects.md §3.0, §3.2, §7.3, §7.4.
"""

from __future__ import annotations

from typing import Final

from streamkit.conversation.messages import Options, OutputFormat, Request, Thinking, Tool, ToolChoice
from streamkit.dialects.anthropic.compaction import read_compaction
from streamkit.dialects.anthropic.messages_in import MessageReader, cache_mark
from streamkit.dialects.anthropic.wire import DISPLAYS, WEB_SEARCH
from streamkit.dialects.members.fields import Fields, kind_of
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: The ``service_tier`` that other vendors have, too; any other stays this dialect's own.
SERVICE_TIERS: Final = ("auto",)
#: Kinds of ``thinking`` that have a word of ours.
THINKING: Final = frozenset({"enabled", "adaptive", "disabled"})


def decode_request(fields: Fields, _report: StreamReport) -> Request:
    """Read a request body. Raises BadRequest."""
    return RequestReader().request(fields)


class RequestReader(MessageReader):
    def request(self, fields: Fields) -> Request:
        request = Request("anthropic", fields.string("model"), stream=fields.boolean("stream"))
        self.system(fields)
        for message in fields.needed_each("messages"):
            self.message(message)
        request.turns = self.turns
        request.tools = [self.tool(tool) for tool in fields.each("tools")]
        request.tool_choice = self.tool_choice(fields)
        request.options = self.options(fields)
        request.stream_usage = request.stream or None  # a stream always says it here
        request.extras = fields.rest()
        request.unreadable = self.unreadable
        return request

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, fields: Fields) -> Options:
        config = fields.fields("output_config")
        metadata = fields.fields("metadata")
        return Options(
            max_tokens=fields.integer("max_tokens"),
            temperature=fields.number("temperature"),
            top_p=fields.number("top_p"),
            top_k=fields.integer("top_k"),
            stop=self._stop(fields),
            thinking=self._thinking(fields, config.string("effort") if config else None),
            compaction=read_compaction(fields),
            output=self._output(config, "format") or self._output(fields, "output_format"),
            service_tier=fields.string("service_tier") if fields.peek("service_tier") in SERVICE_TIERS else None,
            user=metadata.string("user_id") if metadata else None,
        )

    def _stop(self, fields: Fields) -> tuple[str, ...]:
        stops = fields.listed("stop_sequences")
        for number, stop in enumerate(stops):
            if not isinstance(stop, str):
                raise fields.wrong(f"text is needed, not {kind_of(stop)}", f"stop_sequences[{number}]")
        return tuple(stops)

    def _thinking(self, fields: Fields, effort: str | None) -> Thinking | None:
        thinking = fields.fields("thinking")
        kind = thinking.peek("type") if thinking else None
        if thinking is None or (isinstance(kind, str) and kind not in THINKING):
            return Thinking(effort) if effort else None
        kind = thinking.needed("type")
        read = Thinking(effort, enabled=kind != "disabled")
        if kind == "enabled":
            read.budget_tokens = thinking.integer("budget_tokens")
            if read.budget_tokens is None:
                raise thinking.wrong("a whole number is needed, and there is none", "budget_tokens")
        display = thinking.peek("display")
        if isinstance(display, str) and display in DISPLAYS:
            read.summary = DISPLAYS[thinking.needed("display")]
        return read

    def _output(self, fields: Fields | None, name: str) -> OutputFormat | None:
        """The form of the answer: in ``output_config``, or where the beta had it."""
        form = None if fields is None else fields.fields(name)
        if form is None or form.peek("type") != "json_schema":
            return None
        form.take("type")
        if "schema" not in form:
            raise form.wrong("a schema is needed, and there is none", "schema")
        return OutputFormat("schema", form.take("schema"))

    # -- tools -----------------------------------------------------------------------------------------------------

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type")
        if kind not in {None, "custom"}:
            raw = {"type": kind, **tool.rest()}
            name = raw.get("name")
            read = Tool(name if isinstance(name, str) else str(kind), kind="server", raw=raw)
            if str(kind).startswith(WEB_SEARCH):
                read.search = read_search({key: value for key, value in raw.items() if key not in {"type", "name"}})
            return read
        read = Tool(
            tool.needed("name"),
            tool.string("description"),
            tool.mapping("input_schema"),
            tool.boolean("strict"),
            cache=cache_mark(tool),
        )
        read.extras = tool.rest() or None
        return read

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        choice = fields.fields("tool_choice")
        if choice is None:
            return None
        serial = choice.boolean("disable_parallel_tool_use")
        parallel = None if serial is None else not serial
        match choice.needed("type"):
            case "auto":
                return ToolChoice("auto", parallel=parallel)
            case "none":
                return ToolChoice("none", parallel=parallel)
            case "any":
                return ToolChoice("required", parallel=parallel)
            case "tool":
                return ToolChoice("required", (choice.needed("name"),), parallel)
            case kind:
                raise choice.wrong(f"'auto', 'any', 'tool' or 'none' is needed, not {quoted(kind)}", "type")
