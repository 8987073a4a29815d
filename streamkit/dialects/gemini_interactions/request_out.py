"""The neutral conversation to requests for interactions: turns to steps, options, tools and the choice among them.

A user's turn is a ``user_input``, with a step for each result in front. What the model said is a ``model_output`` for each
run of texts and media; requests read in this dialect keep their steps apart. All messages of the system are one
``system_instruction``.

Thoughts, and calls, go back with Google's signature; what other vendors signed is left out, and so are their models'
thoughts. Arguments are objects, and so is a result that came as one. A request of another dialect says ``store: false``,
since Google keeps each interaction otherwise, and its clients send the whole conversation each time.

Source: dialects.md §5.5, §7.3, §7.4; seeds.md S2; the types of google-genai 3.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

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
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.request_writer import RequestWriter
from streamkit.dialects.gemini_interactions.wire import (
    CALL,
    CONTENTS,
    INPUT,
    JSON,
    MEDIA_TYPES,
    MODES,
    OBJECT,
    OF_STEP,
    OPTIONS,
    PLAIN,
    RESULT,
    STEP,
    TEXT,
    THOUGHT,
    THOUGHT_DELTA,
    TOOLS,
    VALIDATED,
    VENDOR,
)
from streamkit.dialects.vocabulary.google import LEVELS, SERVICE_TIERS, is_own_uri
from streamkit.dialects.vocabulary.google import VENDOR as SIGNER
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import effort_of
from streamkit.events import Aside, Opaque

Step: TypeAlias = dict[str, Any]
#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"thinking", "output", "service_tier"})
#: Members of a content that is nothing but text.
PLAIN_TEXT: Final = frozenset({"type", "text"})


class InteractionsRequestWriter(RequestWriter):
    """Writes one request."""

    dialect = "gemini-interactions"
    efforts = LEVELS
    vendor = VENDOR
    most_stops = 5
    names = TOOLS.names
    unknown = evolve(UNKNOWN, form_with_tools=False, media_in_results=False)

    def request_body(self) -> dict[str, Any]:
        request, options = self.request, self.request.options
        self.one_choice("Gemini Interactions")
        instruction, steps = self._conversation()
        if not steps and not self.own:
            self.system_speaks("input", "Gemini Interactions needs a step", words=bool(instruction))
            steps, instruction = [{"type": INPUT, "content": [{"type": "text", "text": instruction}]}], None
        tier = self.service_tier(options.service_tier, SERVICE_TIERS)
        tools = (self._tool(tool) for tool in request.tools)  # their losses are counted where they are written
        body = without_none(
            model=request.model,
            input=_short(steps) if steps or not self.own else None,
            system_instruction=instruction,
            tools=[tool for tool in tools if tool is not None] or None,
            generation_config=self._generation_config() or None,
            service_tier=tier if self.own or tier is None else SERVICE_TIERS[tier],
            store=None if self.own else False,
            stream=request.stream,
            **self._format(options.output),
        )
        return add_missing(body, self.request_extras())

    # -- steps -----------------------------------------------------------------------------------------------------

    def _conversation(self) -> tuple[str | None, list[Step]]:
        """The instruction of the system, and the steps."""
        instructions: list[str] = []
        steps: list[Step] = []
        in_front = True
        for turn in self.request.turns:
            self.count_turn(turn)
            in_front = in_front and turn.role == "system"
            match turn.role:
                case "system":
                    if not in_front:
                        self.lose("system_place")
                    instructions += self._instruction(turn)
                case "user":
                    steps += self._of_user(turn)
                case _:
                    steps += self._of_model(turn)
        return "\n\n".join(instructions) or None, steps

    def _instruction(self, turn: Turn) -> Iterator[str]:
        """The texts of a message of the system."""
        self.extras(turn.extras)
        for part in turn.parts:
            if isinstance(part, Text | Refusal):
                self.lose_marks(part)
                self.extras(part.extras)
                yield part.text
            elif isinstance(part, Media):
                self.lose("media", part.media_type or part.kind)
            elif isinstance(part, Aside):
                self.lose(part.kind, part.type)

    def _of_user(self, turn: Turn) -> list[Step]:
        """The results of a turn, each a step, and what the user says."""
        results: list[Step] = []
        spoken: list[Part] = []
        for part in turn.parts:
            if isinstance(part, ToolResult):
                others, media = self._media_apart(part)
                results.append(self._result(others))
                spoken += media
            elif isinstance(part, Aside) and part.type == STEP:
                results += [dict(part.raw)] if self.aside(part) else []
            else:
                spoken.append(part)
        content = [written for part in spoken if (written := self._content(part)) is not None]
        extras = self.extras(turn.extras)
        if not content and not extras and (results or not self.own):
            return results
        return [*results, add_missing(without_none(type=INPUT, content=content or None), extras)]

    def _of_model(self, turn: Turn) -> list[Step]:
        """What the model said, thought and called, in its order."""
        steps: list[Step] = []
        last: tuple[str, int] | None = None  # the kind and the label of the step that may go on
        self.extras(turn.extras)
        for part in turn.parts:
            kind = _kind_of(part)
            label = (kind, getattr(part, "block", 0) if self.own else 0)
            if isinstance(part, Aside) and part.type == OF_STEP and self.aside(part) and steps:
                add_missing(steps[-1], part.raw)
            elif kind in {TEXT, THOUGHT}:
                goes_on = label == last and (kind == TEXT or self.own)
                if self._add(part, kind, steps, goes_on=goes_on):
                    last = label
            elif isinstance(part, ToolCall):
                steps += self._call(part)
                last = None
            elif isinstance(part, Aside) and self.aside(part):
                steps.append(dict(part.raw))
                last = None
        return steps

    def _add(self, part: Part, kind: str, steps: list[Step], *, goes_on: bool) -> bool:
        """Write a part of an output or a thought into the step that goes on, or a new one; False for what is left out."""
        if kind == THOUGHT:
            written = self._thought(part)
            if written is None:
                return False
            summary = written.get("summary")
            if goes_on and summary is not None:
                steps[-1].setdefault("summary", []).extend(summary)
                add_missing(steps[-1], written)
            else:
                steps.append(written)
            return True
        content = self._content(part)
        if content is None and not (self.own and isinstance(part, Text)):
            return False
        if not goes_on:
            steps.append({"type": TEXT})
        if content is not None:
            steps[-1].setdefault("content", []).append(content)
        return True

    # -- contents --------------------------------------------------------------------------------------------------

    def _content(self, part: Part) -> dict[str, Any] | None:
        """A content; None for what has no place, and for a text that says nothing."""
        match part:
            case Text() | Refusal():
                return self._text(part)
            case Media():
                return self._media(part)
            case Aside() if self.aside(part):
                return dict(part.raw)
        return None

    def _text(self, part: Text | Refusal) -> dict[str, Any] | None:
        self.lose_marks(part)
        written = add_missing({"type": "text", "text": part.text}, self.extras(part.extras))
        if part.text or len(written) > len(PLAIN_TEXT):
            return written
        if not self.own:
            self.report.repair("turn_empty")
        return None

    def _media(self, media: Media) -> dict[str, Any] | None:
        self.lose_cache(media.cache)
        self.lose_of_media(media, name=not self.own)
        kind = media.media_type
        if media.data is not None:
            where: dict[str, Any] = {"data": media.data}
            kind = kind if self.own else media_type_of(media)
        elif (uri := media.url or media.file_id) and (self.own or is_own_uri(uri) or uri.startswith("http")):
            where = {"uri": uri}
        else:  # another provider's ids mean nothing here
            where = {}
        if not where or not (self.own or kind is None or kind in MEDIA_TYPES[media.kind]):
            self.lose("media", media.media_type or media.kind)
            return None
        written = without_none(type=CONTENTS[media.kind], mime_type=kind, **where)
        return add_missing(written, self.extras(media.extras))

    # -- thoughts --------------------------------------------------------------------------------------------------

    def _thought(self, part: Part) -> Step | None:
        """A thought of Google's; None for any other."""
        if isinstance(part, Aside):
            return {"type": THOUGHT, "summary": [dict(part.raw)]} if self.aside(part) else None
        if not isinstance(part, Reasoning):
            if isinstance(part, RedactedReasoning):
                self.lose("reasoning_opaque", part.opaque.vendor)
            return None
        signature = self._signed(part.signature)
        if signature is None and not (self.own and part.signature is None):
            if part.text:
                self.lose("reasoning_history")
            return None
        extras = self.extras(part.extras)
        summary = [add_missing({"type": "text", "text": part.text}, extras)] if part.text or extras else None
        return without_none(type=THOUGHT, summary=summary, signature=signature)

    def _signed(self, signature: Opaque | None) -> str | None:
        if signature is None:
            return None
        if signature.vendor == SIGNER:
            return signature.blob
        self.lose("reasoning_signature", signature.vendor)
        return None

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> list[Step]:
        """A call, and in front of it a thought with its signature, which the client's types have no place for in the call."""
        self.lose_cache(call.cache)
        signature = self._signed(call.signature)
        written = without_none(
            type=CALL,
            id=self.call_id(call.id),
            name=self.tool_name(call.name),
            arguments=self.object_arguments(call),
            signature=signature if self.own else None,
        )
        thought = [] if self.own or signature is None else [{"type": THOUGHT, "signature": signature}]
        return [*thought, add_missing(written, self.extras(call.extras))]

    def _media_apart(self, result: ToolResult) -> tuple[ToolResult, list[Media]]:
        """Return a result without its media, and the media: the user shows them after all results."""
        media = [part for part in result.parts if isinstance(part, Media)]
        if not media or self.own or self.model.media_in_results:
            return result, []
        for part in media:
            self.lose("media", f"{part.kind}, moved behind the result {result.call_id}")
        return evolve(result, parts=[part for part in result.parts if not isinstance(part, Media)]), media

    def _result(self, result: ToolResult) -> Step:
        self.lose_cache(result.cache)
        named = (result.name if self.own else None) or self.called.get(result.call_id, result.name)
        written = without_none(
            type=RESULT,
            call_id=self.call_id(result.call_id),
            name=named and self.tool_name(named),
            result=self._result_contents(result),
            is_error=result.is_error or None,
        )
        return add_missing(written, self.extras(result.extras))

    def _result_contents(self, result: ToolResult) -> Any:
        """What a tool said: an object as it came, text, or a list of contents."""
        only = result.parts[0] if len(result.parts) == 1 else None
        if self.own and result.native == OBJECT and isinstance(only, Text):
            return orjson.Fragment(only.text)
        contents = [written for part in result.parts if (written := self._content(part)) is not None]
        if not contents:
            return ""
        if len(contents) == 1 and contents[0].keys() == PLAIN_TEXT:
            return contents[0]["text"]
        return contents

    # -- options ---------------------------------------------------------------------------------------------------

    def _generation_config(self) -> dict[str, Any]:
        options = self.request.options
        config = self.options(OPTIONS, BESIDE) | self._thinking(options.thinking)
        choice = self._tool_choice(self.request.tool_choice)
        return config | without_none(tool_choice=choice)

    def _thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        if thinking is None:
            return {}
        level = thinking.effort
        if level == "none" or (thinking.enabled is False and level is None):  # no word says that
            self.lose("parameter", "thinking.enabled")
            level = next(iter(self.model.efforts), None)
        elif level is None and thinking.budget_tokens is not None:
            self.lose("parameter", "thinking.budget_tokens")
            level = effort_of(thinking.budget_tokens)
        elif thinking.budget_tokens is not None:
            self.lose("parameter", "thinking.budget_tokens")
        level = self.fit_effort(level)
        summary = thinking.summary
        if summary not in {None, "none", "auto"} and not self.own:
            self.lose("parameter", "thinking.summary")
            summary = "auto"
        return without_none(thinking_level=level, thinking_summaries=summary)

    def _format(self, output: OutputFormat | None) -> dict[str, Any]:
        if output is None:
            return {}
        if output.kind != "schema":
            mime_type = JSON if output.kind == "json" else PLAIN
            return {"response_format": {"type": "text", "mime_type": mime_type}}
        self.lose_output(output, "name", "description")
        if self.own and output.native_schema is not None and output.native_schema == output.schema:
            return {"response_format": output.native_schema, "response_mime_type": JSON}
        return {"response_format": {"type": "text", "mime_type": JSON, "schema": output.schema}}

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tool(self, tool: Tool) -> dict[str, Any] | None:
        if tool.kind == "server":
            return self.hosted(tool)
        tool, extras = self.plain_tool(tool)
        function = without_none(
            type="function",
            name=self.tool_name(tool.name),
            description=tool.description,
            parameters=tool.parameters if self.own else tool.parameters or None,
        )
        return add_missing(function, extras)

    def _tool_choice(self, choice: ToolChoice | None) -> Any:
        """The choice among functions; arguments that must match their schemas are asked for once for all tools."""
        functions = [tool for tool in self.request.tools if tool.kind != "server"]
        strict = any(tool.strict for tool in functions)
        if choice is None:
            return VALIDATED if strict else None
        if choice.parallel is False:
            self.lose("tool_choice", "parallel")
        extras: Mapping[str, Any] = self.extras(choice.extras, "tool_choice")
        if not functions and not self.own:
            if choice.mode == "required":
                self.lose("tool_choice", "required")
            return None
        mode = MODES[choice.mode]
        if choice.mode == "auto" and not self.own and strict:
            mode = VALIDATED
        mode = extras.get("mode", mode)
        if not choice.names:
            return mode
        allowed = {"mode": mode, "tools": [self.tool_name(name) for name in choice.names]}
        left = {name: value for name, value in extras.items() if name != "mode"}
        return add_missing({"allowed_tools": allowed}, left)


def _kind_of(part: Part) -> str:
    """The type of the step that a part of the model's belongs into; "" for a step of its own."""
    match part:
        case Text() | Refusal() | Media():
            return TEXT
        case Reasoning() | RedactedReasoning():
            return THOUGHT
        case Aside() if part.type == THOUGHT_DELTA:
            return THOUGHT
        case Aside() if part.type not in {STEP, OF_STEP}:
            return TEXT
    return ""


def _short(steps: list[Step]) -> str | list[Step]:
    """An input of one plain text as that text."""
    if len(steps) == 1 and steps[0].keys() == {"type", "content"} and steps[0]["type"] == INPUT:
        content = steps[0]["content"]
        if len(content) == 1 and content[0].keys() == PLAIN_TEXT:
            return str(content[0]["text"])
    return steps
