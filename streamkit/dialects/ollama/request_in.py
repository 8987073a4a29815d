"""Ollama's chat requests to the neutral conversation.

Ids of calls are optional here, and making them is no repair: ``bodies/tool_results.py`` says which call a result without one
answers. A request that does not say ``stream`` is one for a stream, which ends with token counts. Images have no place within
the text; the server puts them in front of it, and so does the reader.

Source: dialects.md §4.1, §7.3, §7.4; quirks.md 35.
"""

from __future__ import annotations

from typing import Any

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_reader import TurnReader, Waiting, function_tool, read_options, server_tool
from streamkit.dialects.members.fields import Fields, base64_of, kind_of
from streamkit.dialects.ollama.wire import OPTIONS, THINK_LEVELS
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted


class OllamaRequestReader(TurnReader):
    """Reads one request."""

    dialect = "ollama"

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._waiting = Waiting()  #: the calls of the latest turn

    def begun(self, fields: Fields) -> Request:
        if "messages" not in fields and "prompt" in fields:
            raise fields.wrong("requests to /api/generate are not read; those to /api/chat have messages", "prompt")
        stream = fields.boolean("stream") is not False
        return Request(self.dialect, fields.needed("model"), stream=stream)

    def options(self, fields: Fields) -> Options:
        others: dict[str, Any] = {
            "logprobs": fields.boolean("logprobs"),
            "top_logprobs": fields.integer("top_logprobs"),
            "thinking": self._thinking(fields),
            "output": self._output(fields),
        }
        model = fields.fields("options")
        if model is None:
            return Options(**others)
        bound = model.peek("num_predict")
        if isinstance(bound, int | float) and bound < 0:  # no bound, or the rest of the context: Ollama's own
            others["max_tokens"] = None
        return read_options(model, OPTIONS, **others)

    def _thinking(self, fields: Fields) -> Thinking | None:
        match fields.take("think"):
            case None:
                return None
            case True:
                return Thinking(enabled=True)
            case False:
                return Thinking("none")
            case str(level) if level in THINK_LEVELS:
                return Thinking(level)
            case think:
                shown = quoted(think) if isinstance(think, str) else kind_of(think)
                raise fields.wrong(f"true, false or one of {', '.join(THINK_LEVELS)} is needed, not {shown}", "think")

    def _output(self, fields: Fields) -> OutputFormat | None:
        match fields.take("format"):
            case None | "":
                return None
            case "json":
                return OutputFormat("json")
            case dict(schema):
                return OutputFormat("schema", schema)
            case form:
                shown = quoted(form) if isinstance(form, str) else kind_of(form)
                raise fields.wrong(f"'json' or a JSON schema is needed, not {shown}", "format")

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type") or "function"
        if kind != "function":
            return server_tool(kind, tool)
        return function_tool(tool.needed_fields("function"), tool)

    def role(self, message: Fields) -> str:
        """The role, which the server takes in capitals, too."""
        return super().role(message).lower()

    def content(self, message: Fields) -> list[Text | Media]:
        """The images of a message, and its text behind them."""
        images: list[Text | Media] = [
            Media("image", data=base64_of(image, f"{message.at('images')}[{number}]"))
            for number, image in enumerate(message.strings("images"))
        ]
        content = message.string("content")
        return [*images, Text(content)] if content else images

    def assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        if thinking := message.string("thinking"):
            parts.append(Reasoning(thinking))
        parts += self.content(message)
        calls = [self._call(call, number, message) for number, call in enumerate(message.each("tool_calls"))]
        self._waiting = Waiting(calls)
        return Turn("assistant", [*parts, *calls])

    def _call(self, call: Fields, number: int, message: Fields) -> ToolCall:
        function = call.needed_fields("function")
        text = function.object_text("arguments") or ""
        read = ToolCall(number, call.string("id") or "", function.needed("name"), text, place=call.place)
        if not read.id:
            read.id, read.id_made = f"call_{message.path[-1]}_{number}", True
        if function.peek("index") == number:
            function.take("index")
        if call.peek("type") == "function":
            call.take("type")
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """A result, with the id of the call that it answers."""
        call_id, name = message.string("tool_call_id") or "", message.string("tool_name")
        return ToolResult(self._waiting.answer(call_id, name), [*self.content(message)], name, place=message.place)
