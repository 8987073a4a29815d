"""The neutral conversation to Ollama's chat requests.

A turn is one message, and each result in it a ``tool`` message in front. Content is one text: the assistant's are joined as
they stand, since a model's text may be cut anywhere, others by a blank line. Images stand beside it as bare base64. Some
templates refuse a system message behind the first (ollama#17774): from other dialects all of them are one in front.

No request can make Ollama call a tool: such a choice is refused, or imitated if the target says so, by offering only these
tools. What its types for schemas do not know is dropped by the server, and a counted loss here. It streams where ``stream``
is absent, so that is always written.

Source: dialects.md §4.1, §4.3, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from streamkit.conversation.messages import (
    Media,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.message_writer import BLANK_LINE, MessageWriter
from streamkit.dialects.bodies.request_writer import ERROR
from streamkit.dialects.members.values import DEPTH
from streamkit.dialects.ollama.wire import IMAGES, OPTIONS, THINK_LEVELS, TOOLS, VENDOR
from streamkit.dialects.vocabulary.reasoning_effort import nearest
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.text.one_string import one_string
from streamkit.text.quoting import STEP_CHARS, shortened

#: Options that are not members of ``options``.
BESIDE: Final = frozenset({"choices", "logprobs", "top_logprobs", "thinking", "output"})


class OllamaRequestWriter(MessageWriter):
    """Writes one request."""

    dialect = "ollama"
    text_files = False
    vendor = VENDOR

    def request_body(self) -> dict[str, Any]:
        """The body. Raises BadRequest for more than one choice, and for a tool that must be called."""
        request, options = self.request, self.request.options
        self.one_choice("Ollama")
        body = without_none(model=request.model)
        body["messages"] = list(self.messages())
        body |= without_none(
            tools=self.tools() or None,
            options=self.options(OPTIONS, BESIDE) or None,
            format=self.output(options.output),
            think=self.think(options.thinking),
            logprobs=options.logprobs,
            top_logprobs=options.top_logprobs,
        )
        body["stream"] = bool(request.stream)
        return add_missing(body, self.request_extras())

    # -- options ---------------------------------------------------------------------------------------------------

    def think(self, thinking: Thinking | None) -> bool | str | None:
        """Whether or how much to think; None where nobody asked."""
        if thinking is None:
            return None
        self.lose_thinking(thinking, "budget_tokens", "summary")
        effort = thinking.effort
        if effort == "none" or thinking.enabled is False:
            return False
        if effort is None:
            return True if thinking.enabled or thinking.budget_tokens is not None else None
        if effort not in THINK_LEVELS:
            self.lose("parameter", "thinking.effort")
        return nearest(effort, THINK_LEVELS) or True

    def output(self, output: OutputFormat | None) -> Any:
        """``json`` or a schema, which Ollama always holds the model to."""
        if output is None or output.kind == "text":
            return None
        if output.kind == "json":
            return "json"
        self.lose_members(output, "output", "name", "description", kind="metadata")
        return output.schema if output.schema is not None else "json"

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self) -> list[dict[str, Any]]:
        tools, choice = list(enumerate(self.request.tools)), self.request.tool_choice
        if choice is not None:
            self.extras(choice.extras)
            if choice.mode == "none":
                return []
            if choice.mode == "required":
                if not self.target.emulate:
                    raise BadRequest("tool_choice", "Ollama can't be made to call a tool, only be offered fewer")
                self.lose("tool_choice", "required")
            if choice.parallel is False:
                self.lose("tool_choice", "parallel")
            if choice.names:
                names = {*choice.names}
                tools = [(number, tool) for number, tool in tools if tool.name in names]
        written = (self.tool(tool, f"tools[{number}]") for number, tool in tools)
        return [tool for tool in written if tool is not None]

    def tool(self, tool: Tool, path: str) -> dict[str, Any] | None:
        """A definition; None for a tool that another dialect's provider runs itself."""

        def parameters(schema: Any) -> Any:
            if tool.kind == "function" and tool.strict:
                self.lose("tool_strict", tool.name)
            return schema if self.own else self.schema(schema, f"{path}.parameters")

        return self.function_tool(tool, parameters)

    def schema(self, schema: Any, path: str) -> dict[str, Any]:
        """A schema of another dialect with what the server takes of it."""
        schema = schema if isinstance(schema, Mapping) else {}
        kept = self._kept(schema, path, TOOLS.root_keywords or frozenset())
        if kept.get("type", "object") != "object":  # the server reads one type here, and no list of them
            self.lose("schema_keyword", f"{path}.type")
        return {**kept, "type": "object", "properties": kept.get("properties", {})}

    def _kept(self, schema: Mapping[str, Any], path: str, keywords: frozenset[str], depth: int = 1) -> dict[str, Any]:
        """The keywords of a schema that are taken, and the same of the schemas in it."""
        if depth > DEPTH:
            raise BadRequest(path, f"a schema nested deeper than {DEPTH}")
        kept: dict[str, Any] = {}
        for keyword, value in schema.items():
            where = f"{path}.{shortened(keyword, STEP_CHARS)}"
            if keyword not in keywords:
                self.lose("schema_keyword", where)
            elif keyword == "properties" and isinstance(value, Mapping):
                kept[keyword] = {
                    name: self._property(inner, f"{where}.{name}", depth + 1) for name, inner in value.items()
                }
            elif keyword == "anyOf" and isinstance(value, list):
                kept[keyword] = [
                    self._property(inner, f"{where}[{number}]", depth + 1) for number, inner in enumerate(value)
                ]
            else:
                kept[keyword] = value
        return kept

    def _property(self, schema: Any, path: str, depth: int) -> dict[str, Any]:
        if isinstance(schema, Mapping):
            return self._kept(schema, path, TOOLS.keywords or frozenset(), depth)
        self.lose("schema_keyword", path)  # true or false, which the server refuses
        return {}

    # -- messages --------------------------------------------------------------------------------------------------

    def turns_as_messages(self) -> Iterator[dict[str, Any]]:
        """The messages: what the system says in a request of another dialect is one in front of all others."""
        system = [] if self.own else [turn for turn in self.request.turns if turn.role == "system"]
        if system:
            yield self._system(system)
        for turn in self.request.turns:
            if self.own or turn.role != "system":
                yield from self.turn_as_messages(turn)

    def message_of(self, turn: Turn, parts: Sequence[Part], joint: str = BLANK_LINE) -> dict[str, Any]:
        return self.named({"role": turn.role, **self._content(parts, joint)}, turn)

    def _system(self, turns: list[Turn]) -> dict[str, Any]:
        """One message of all that the system says."""
        leading = len(list(takewhile(lambda turn: turn.role == "system", self.request.turns)))
        for _ in turns[1:leading]:
            self.report.repair("turns_joined")
        for _ in turns[leading:]:
            self.lose("system_place")
        messages = [self.message_of(turn, turn.parts) for turn in turns]
        images = [image for message in messages for image in message.get("images", ())]
        text = BLANK_LINE.join(message["content"] for message in messages)
        return {"role": "system", "content": text, **without_none(images=images or None)}

    def _content(self, parts: Sequence[Part], joint: str) -> dict[str, Any]:
        """``content``, and ``images`` if there are any. The server puts images in front of the text."""
        texts: list[str] = []
        images: list[str] = []
        late = False
        for part in parts:
            match part:
                case Text() | Refusal():
                    self.lose_marks(part)
                    self.extras(part.extras)
                    texts.append(part.text)
                case Media() if part.kind in IMAGES and part.data is not None:
                    self.lose_marks(part)
                    for name in ("detail", "name"):
                        if getattr(part, name) is not None:
                            self.lose("metadata", name)
                    self.extras(part.extras)
                    late = late or any(texts)
                    images.append(part.data)
                case Media():
                    absent = "" if part.data is not None else ", not in the request itself"
                    self.lose("media", f"{part.kind}{absent}")
                case Aside():
                    self.lose(part.kind, part.type)
                case _:
                    raise TypeError(f"content has no {type(part).__name__}")
        if late:
            self.lose("block_order")
        return {"content": self.joined(texts, joint.join), **without_none(images=images or None)}

    def assistant(self, turn: Turn) -> dict[str, Any]:
        content: list[Part] = []
        thinking: list[str] = []
        calls: list[dict[str, Any]] = []
        members: dict[str, Any] = {}
        late = False  # whether a part is written in front of one that came before it
        for part in turn.parts:
            match part:
                case Reasoning():
                    late = late or bool(content or calls)
                    self.lose_marks(part)
                    self.extras(part.extras)
                    thinking.append(part.text)
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                case ToolCall():
                    calls.append(self._call(part))
                case Aside() if self.own and part.vendor == VENDOR and part.type.startswith("message."):
                    members[part.type.removeprefix("message.")] = part.raw
                case Aside():
                    self.lose(part.kind, part.type)
                case _:
                    late = late or bool(calls)
                    content.append(part)
        if late:
            self.lose("block_order")
        message = {**self.message_of(turn, content, ""), **members}
        return message | without_none(thinking=self.joined(thinking, one_string) or None, tool_calls=calls or None)

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> dict[str, Any]:
        self.lose_marks(call)
        function = {"name": self.tool_name(call.name), "arguments": self.object_arguments(call)}
        written = {"id": call.id, "function": function} if self._has_id(call.id) else {"function": function}
        return add_missing(written, self.extras(call.extras))

    def _has_id(self, call_id: str) -> bool:
        return call_id != "" and call_id not in self.made_ids

    def result(self, result: ToolResult, _moved: list[Media]) -> dict[str, Any]:
        """A ``tool`` message. It names the tool, which is all that older servers go by."""
        self.lose_marks(result)
        message = {"role": "tool", **self._content(result.parts, BLANK_LINE)}
        if result.is_error:
            self.lose("result_error", result.call_id)
            message["content"] = f"{ERROR}{message['content']}"
        call_name = self.called.get(result.call_id)
        name = result.name or call_name if self.own else call_name or result.name
        if name is not None:
            message["tool_name"] = self.tool_name(name)
        if self._has_id(result.call_id):
            message["tool_call_id"] = result.call_id
        return add_missing(message, self.extras(result.extras))
