"""Mistral's requests to the neutral conversation: Chat's, with other names and words; messages in ``messages_in.py``.

Source: dialects.md §6.3, §7.3; the request types of mistralai 3.7.0, which also have ``top_k`` and log probabilities.
"""

from __future__ import annotations

from streamkit.conversation.messages import Options, Request, Thinking, Tool, ToolChoice
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.mistral.messages_in import MistralMessageReader
from streamkit.dialects.openai_chat.request_in import ChatRequestReader
from streamkit.report import StreamReport


def decode_request(fields: Fields, report: StreamReport) -> Request:
    """Read a request body. Raises BadRequest."""
    return MistralRequestReader(report).request(fields)


class MistralRequestReader(MistralMessageReader, ChatRequestReader):
    dialect = "mistral"

    def stream_usage(self, _fields: Fields, stream: bool | None) -> bool | None:
        """Every stream does, and there is no field for it."""
        return stream or None

    def options(self, fields: Fields) -> Options:
        return Options(
            max_tokens=fields.integer("max_tokens"),
            temperature=fields.number("temperature"),
            top_p=fields.number("top_p"),
            top_k=fields.integer("top_k"),
            stop=self.stop(fields),
            seed=fields.integer("random_seed"),
            presence_penalty=fields.number("presence_penalty"),
            frequency_penalty=fields.number("frequency_penalty"),
            choices=fields.integer("n"),
            logprobs=fields.boolean("logprobs"),
            top_logprobs=fields.integer("top_logprobs"),
            thinking=self.thinking(fields),
            output=self.output(fields),
            service_tier=fields.string("service_tier"),
        )

    def thinking(self, fields: Fields) -> Thinking | None:
        effort = fields.string("reasoning_effort")
        return None if effort is None else Thinking(effort)

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        return [self.tool(tool) for tool in fields.each("tools")]

    def tool(self, tool: Fields) -> Tool:
        """A function, or a tool that Mistral runs; the type of a function need not be said."""
        kind = tool.string("type") or "function"
        if kind == "function":
            return self.function(tool.needed_fields("function"), tool)
        raw = {"type": kind, **tool.rest()}
        return Tool(kind, kind="server", raw=raw)

    def choice(self, fields: Fields, name: str) -> ToolChoice | None:
        if name != "tool_choice":
            return None
        if not isinstance(fields.peek(name), dict):
            return super().choice(fields, name)
        choice = fields.fields_of_type(name, {"function"})
        if choice is None:
            return self.choice_of_hosted(fields, name)
        choice.take("type")
        return ToolChoice("required", (choice.needed_fields("function").needed("name"),))

    def mode(self, mode: str, path: str) -> ToolChoice:
        return super().mode("required" if mode == "any" else mode, path)
