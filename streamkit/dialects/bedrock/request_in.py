"""Bedrock's requests to the neutral conversation: options, tools, the choice among them; ``messages_in.py`` reads messages.

Converse has words of its own for what all models know. What only some know is in ``additionalModelRequestFields``, in the
words of the model's vendor: of these Claude's are read. The model and whether to stream are in the URL; where a client's
``modelId`` stands in the body, it is read.

A body with ``anthropic_version`` is InvokeModel's, for Anthropic's models, and is Anthropic's request from then on.

Source: dialects.md §6.1, §7.3, §7.4.
"""

from __future__ import annotations

from typing import Literal

import orjson

from streamkit.conversation.messages import Options, OutputFormat, Request, Tool, ToolChoice
from streamkit.dialects.anthropic.request_in import decode_request as decode_native_request
from streamkit.dialects.bedrock.messages_in import MessageReader, cache_mark, only_member
from streamkit.dialects.bodies.claude_thinking import read_thinking
from streamkit.dialects.members.fields import Fields
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: The headers of Anthropic's own API, which are members here.
VERSION, BETA = "anthropic_version", "anthropic_beta"


def decode_request(fields: Fields, report: StreamReport) -> Request:
    """Read a request body. Raises BadRequest."""
    if VERSION not in fields:
        return RequestReader().request(fields)
    fields.take(VERSION)
    if fields.take(BETA):
        report.lose("parameter", what=BETA)
    return decode_native_request(fields, report)


class RequestReader(MessageReader):
    def request(self, fields: Fields) -> Request:
        request = Request("bedrock", fields.string("modelId"))
        self.system(fields)
        for message in fields.needed_each("messages"):
            self.message(message)
        request.turns = self.turns
        model = fields.fields("additionalModelRequestFields")
        config = fields.fields("toolConfig")
        if config is not None:
            self._tools(config, request)
        request.tool_choice = self._tool_choice(config, model)
        request.options = self._options(fields, model)
        request.extras = fields.rest()
        return request

    # -- options ---------------------------------------------------------------------------------------------------

    def _options(self, fields: Fields, model: Fields | None) -> Options:
        options = Options(top_k=model.integer("top_k") if model else None)
        if inference := fields.fields("inferenceConfig"):
            options.max_tokens = inference.integer("maxTokens")
            options.temperature = inference.number("temperature")
            options.top_p = inference.number("topP")
            options.stop = inference.strings("stopSequences")
        output = fields.fields("outputConfig")
        options.thinking = read_thinking(model, output.string("effort") if output else None)
        options.output = self._output(output) if output else None
        if tier := fields.fields("serviceTier"):
            options.service_tier = tier.needed("type")
        return options

    def _output(self, output: Fields) -> OutputFormat | None:
        """A schema, which stands here as text."""
        form = output.fields_of_type("textFormat", {"json_schema"})
        if form is None:
            return None
        form.needed("type")
        definition = form.needed_fields("structure").needed_fields("jsonSchema")
        text = definition.needed("schema")
        try:
            schema = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise definition.wrong(f"the schema is no JSON: {error}", "schema") from error
        return OutputFormat("schema", schema, definition.string("name"), definition.string("description"))

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tools(self, config: Fields, request: Request) -> None:
        for tool in config.needed_each("tools"):
            member = only_member(tool)
            last = request.tools[-1] if request.tools else None
            mark = cache_mark(tool) if member == "cachePoint" else None
            if mark is not None and last is not None and last.cache is None:
                last.cache = mark
            elif member == "toolSpec":
                request.tools.append(self._tool(tool.needed_fields("toolSpec")))
            else:
                raw = tool.rest()
                named = raw[member].get("name") if isinstance(raw[member], dict) else None
                request.tools.append(Tool(named if isinstance(named, str) else member, kind="server", raw=raw))

    def _tool(self, spec: Fields) -> Tool:
        schema = spec.needed_fields("inputSchema")
        read = Tool(spec.needed("name"), spec.string("description"), schema.mapping("json"), spec.boolean("strict"))
        if read.parameters is None:
            raise schema.wrong("a schema is needed, and there is none", "json")
        read.extras = spec.rest() or None
        return read

    def _tool_choice(self, config: Fields | None, model: Fields | None) -> ToolChoice | None:
        """The choice; whether calls may be parallel is said in the words of Claude's own ``tool_choice``."""
        choice = self._choice(config) if config else None
        native = model.peek("tool_choice") if model else None
        if model and isinstance(native, dict) and native.get("type") in (None, "auto"):
            claude = model.needed_fields("tool_choice")
            if (serial := claude.boolean("disable_parallel_tool_use")) is not None:
                claude.take("type")
                choice = choice or ToolChoice()
                choice.parallel = not serial
        return choice

    def _choice(self, config: Fields) -> ToolChoice | None:
        choice = config.fields("toolChoice")
        if choice is None:
            return None
        modes: dict[str, Literal["auto", "required"]] = {"auto": "auto", "any": "required", "tool": "required"}
        member = only_member(choice)
        if member not in modes:
            raise choice.wrong(f"'auto', 'any' or 'tool' is needed, not {quoted(member)}")
        chosen = choice.needed_fields(member)
        return ToolChoice(modes[member], (chosen.needed("name"),) if member == "tool" else ())
