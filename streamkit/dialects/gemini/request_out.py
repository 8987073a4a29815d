"""The neutral conversation to Gemini's requests: contents, options, tools, the choice among them.

A turn is one content, and each part of it a part. All results of the calls of a turn stand first in the one content behind it.
All messages of the system, wherever they stand, are one instruction. Neighbours of one role are joined, but requests read in
this dialect keep those of the user as they came. The server wants the user to speak first.

A signature stands on the very part that it came with; one that is not Google's is left out, and none is made up: where the
server demands one, a word of its own says that there is none. Thoughts of other models are left out, too.

The model, and whether the answer streams, stand in the URL and not here. A schema is written as JSON schema, without the
keywords that Gemini does not take, or in the older form if it came so. Arguments that must match their schemas are asked for
once for all tools (``VALIDATED``), and so is a choice among some of them that leaves it to the model whether to call.

Source: dialects.md §5.3, §7.3, §7.4; seeds.md S2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.messages import (
    Extras,
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
    WebSearch,
)
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.message_order import Message, joined, results_first
from streamkit.dialects.bodies.request_writer import RequestWriter
from streamkit.dialects.gemini.schemas import cut_schema, json_schema
from streamkit.dialects.gemini.wire import DYNAMIC, JSON, MODES, OPTIONS, PLAIN, TOOLS, VALIDATED
from streamkit.dialects.members.values import has_member
from streamkit.dialects.vocabulary.google import LEVELS, SERVICE_TIERS, VENDOR, is_own_uri
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import COMMON, NO_SIGNATURE, budget_of
from streamkit.events import Aside, Opaque
from streamkit.tool_calls.check import check_arguments

PartBody: TypeAlias = dict[str, Any]
#: Types of media that are taken.
MEDIA_TYPES: Final = re.compile(
    r"(?:image|audio|video|text)/.+|application/(?:pdf|json|rtf|(?:x-)?(?:java|type)script)"
)
#: Options that are written by methods of their own.
BESIDE: Final = frozenset({"thinking", "output", "service_tier"})
#: The members for a schema, the older form first.
PARAMETER_FORMS: Final = ("parameters", "parametersJsonSchema")
RESPONSE_FORMS: Final = ("responseSchema", "responseJsonSchema")


class GeminiRequestWriter(RequestWriter):
    """Writes one request."""

    dialect = "gemini"
    most_stops = 5
    vendor = VENDOR
    names = TOOLS.names
    search_options = frozenset()
    unknown = evolve(UNKNOWN, efforts=("none", *COMMON), form_with_tools=False, media_in_results=False)
    efforts = LEVELS | {"none"}

    def request_body(self) -> dict[str, Any]:
        request = self.request
        instruction, contents = self._conversation()
        if not contents and not self.own:
            self.system_speaks("contents", "Gemini needs a content", words=instruction is not None)
            contents = [{"role": "user", "parts": instruction["parts"]}] if instruction else []
            instruction = None
        tools = self._tools()
        tier = self.service_tier(request.options.service_tier, SERVICE_TIERS)
        body = without_none(
            contents=contents,
            systemInstruction=instruction,
            tools=tools or None,
            toolConfig=self._tool_config(request.tool_choice),
            generationConfig=self._generation_config() or None,
            serviceTier=tier if self.own or tier is None else SERVICE_TIERS[tier],
        )
        return add_missing(body, self.request_extras())

    # -- contents ------------------------------------------------------------------------------------------------------

    def _conversation(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """The instruction of the system, and the contents."""
        instruction: dict[str, Any] = {"parts": []}
        contents: list[Message] = []
        in_front = True
        for turn in self.request.turns:
            content = self._content(turn)
            in_front = in_front and turn.role == "system"
            if turn.role == "system":
                if not in_front:
                    self.lose("system_place")
                if turn.native_role is not None and self.own:
                    instruction["role"] = turn.native_role
                instruction["parts"] += content.blocks
            elif content.blocks:
                contents.append(content)
        arranged = [
            add_missing({"role": content.role, "parts": content.blocks}, content.extras)
            for content in self._arranged(contents)
        ]
        self._vouch(arranged)
        if (text := self.opening(arranged[0]["role"] if arranged else None, "contents")) is not None:
            arranged.insert(0, {"role": "user", "parts": [{"text": text}]})
        return (instruction if instruction["parts"] else None), arranged

    def _vouch(self, contents: list[dict[str, Any]]) -> None:
        """Say of calls of other models, or whose signature a client did not keep, that they have none.

        Since version 3 the server refuses a history in which the first call of a turn lacks its signature, and takes this word
        for one (ai.google.dev, "Thought signatures", questions). Requests of this dialect stay as they came.
        """
        if self.own or not self.model.signatures:
            return
        for content in contents:
            first = next((part for part in content["parts"] if "functionCall" in part), None)
            if first is not None and "thoughtSignature" not in first:
                first["thoughtSignature"] = NO_SIGNATURE
                self.report.repair("signature_excused")

    def _content(self, turn: Turn) -> Message:
        self.count_turn(turn)
        parts: list[PartBody] = []
        beside: list[PartBody] = []
        for part in self._by_call(turn.parts):
            if isinstance(part, ToolResult):
                parts.append(self._result(part, beside))
            else:
                self._part(part, parts)
        last = max((number for number, part in enumerate(parts, 1) if _is_result(part)), default=0)
        parts[last:last] = beside
        return Message("model" if turn.role == "assistant" else "user", parts, self.extras(turn.extras))

    # -- the order of contents -------------------------------------------------------------------------------------

    def _by_call(self, parts: list[Part]) -> list[Part]:
        """The parts with results in the order of their calls, where the wire's only other word for them is the name."""
        results = [part for part in parts if isinstance(part, ToolResult)]
        if not all(result.call_id in self.made_ids for result in results):
            return parts
        ordered = iter(sorted(results, key=lambda result: self.made_ids[result.call_id]))
        changed = [next(ordered) if isinstance(part, ToolResult) else part for part in parts]
        for before, after in zip(parts, changed, strict=True):
            if before is not after:
                self.report.repair("result_moved")
        return changed

    def _arranged(self, contents: list[Message]) -> Iterator[Message]:
        """The contents, with results first in the one behind their calls."""
        for role, run in groupby(contents, key=lambda content: content.role):
            several = list(run)
            if role == "model" or not self.own:
                several = [joined(several, _is_result, self.report)]
            yield from results_first(several, _is_result, self.report)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _part(self, part: Part, parts: list[PartBody]) -> None:
        written: PartBody | None
        match part:
            case Text() | Refusal():
                written = self._text(part)
            case Reasoning() | RedactedReasoning():
                written = self._thought(part)
            case Media():
                written = self._media(part)
            case ToolCall():
                written = self._call(part)
            case Aside():
                self._aside(part, parts)
                return
        if written is not None:
            parts.append(written)

    def _aside(self, part: Aside, parts: list[PartBody]) -> None:
        """What only this dialect knows: a part, or a member of the part in front of it."""
        if not self.aside(part):
            return
        if part.type == "part" and isinstance(part.raw, Mapping):
            parts.append(dict(part.raw))
        elif part.type.startswith("part.") and parts:
            add_missing(parts[-1], {part.type.removeprefix("part."): part.raw})
        else:
            self.lose(part.kind, part.type)

    def _text(self, part: Text | Refusal) -> PartBody | None:
        written: PartBody = {"text": part.text}
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        else:
            self.lose_cache(part.cache)
            written |= self._signed(part.signature)
        add_missing(written, self.extras(part.extras))
        if written != {"text": ""}:
            return written
        if isinstance(part, Refusal) or part.signature is None:
            self.report.repair("turn_empty")
        return None

    def _thought(self, part: Reasoning | RedactedReasoning) -> PartBody | None:
        """A thought of Google's; None for any other."""
        if isinstance(part, RedactedReasoning):
            self.lose("reasoning_opaque", part.opaque.vendor)
            return None
        signature = self._signed(part.signature)
        if signature or (self.own and part.signature is None):
            return add_missing({"text": part.text, "thought": True, **signature}, self.extras(part.extras))
        if part.text:
            self.lose("reasoning_history")
        return None

    def _signed(self, signature: Opaque | None) -> PartBody:
        if signature is None:
            return {}
        if signature.vendor == VENDOR:
            return {"thoughtSignature": signature.blob}
        self.lose("reasoning_signature", signature.vendor)
        return {}

    # -- media -----------------------------------------------------------------------------------------------------

    def _media(self, media: Media, *, links: bool = True) -> PartBody | None:
        """Media as a part; None for what can't be carried. ``links``: whether they may be somewhere else."""
        self.lose_cache(media.cache)
        members = self._linked(media) if media.data is None and (links or self.own) else self._inline(media)
        if members is None:
            self.lose("media", media.media_type or media.kind)
            return None
        self.lose_of_media(media, name=not self.own)  # a member that only one of Google's two servers takes
        member = without_none(**members, displayName=media.name if self.own else None)
        return add_missing({"fileData" if "fileUri" in member else "inlineData": member}, self.extras(media.extras))

    def _inline(self, media: Media) -> dict[str, Any] | None:
        kind = media.media_type if self.own else media_type_of(media)
        taken = media.data is not None and (self.own or MEDIA_TYPES.fullmatch(kind or ""))
        return {"mimeType": kind, "data": media.data} if taken else None

    def _linked(self, media: Media) -> dict[str, Any] | None:
        uri = media.url or media.file_id
        taken = uri is not None and (self.own or is_own_uri(uri) or uri.startswith(("http:", "https:")))
        return {"mimeType": media.media_type, "fileUri": uri} if taken else None

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> PartBody:
        self.lose_cache(call.cache)
        body = without_none(id=self._id(call.id), name=self.tool_name(call.name), args=self.object_arguments(call))
        return {"functionCall": add_missing(body, self.extras(call.extras)), **self._signed(call.signature)}

    def _id(self, call_id: str) -> str | None:
        return None if call_id in self.made_ids else call_id or None

    def _result(self, result: ToolResult, beside: list[PartBody]) -> PartBody:
        """Return a result. Its media go to ``beside`` for a model that takes none in a result."""
        self.lose_cache(result.cache)
        media = self._inner_parts(result)
        if media and not self.own and not self.model.media_in_results:
            for _ in media:
                self.lose("media", f"moved behind the result {result.call_id}")
            beside += media
            media = []
        called = self.called.get(result.call_id, result.name) or ""
        body = without_none(
            id=self._id(result.call_id),
            name=self.tool_name((result.name if self.own else None) or called),
            response=self._response(result),
            parts=media or None,
        )
        return {"functionResponse": add_missing(body, self.extras(result.extras))}

    def _response(self, result: ToolResult) -> Any:
        """A tool's output as an object: its own if it is one, else under the member that says what it is.

        Gemini takes a ``$ref`` at any depth for the name of one of the result's ``parts``, and answers 400 where there is
        none: such an object, which may be a JSON schema, is text.
        """
        texts = [part for part in result.parts if isinstance(part, Text)]
        for text in texts:
            self.lose_cache(text.cache)
            self.extras(text.extras)
        native = result.native if self.own else None
        if not texts and native is None and self.own:
            return {}
        only = texts[0].text if len(texts) == 1 else ""
        bare = native is None and (self.own or not result.is_error)
        if bare and only.lstrip()[:1] == "{" and check_arguments(only).kind == "complete":
            if self.own or not has_member(only, "$ref"):
                return orjson.Fragment(only)
            self.report.repair("result_as_text")
        output = [text.text for text in texts] if len(texts) > 1 else only
        return {native or ("error" if result.is_error else "output"): output}

    def _inner_parts(self, result: ToolResult) -> list[PartBody]:
        """Media that a tool gave, which must be in the request itself."""
        parts: list[PartBody] = []
        for part in result.parts:
            if isinstance(part, Aside):
                self._aside(part, parts)
            elif isinstance(part, Media) and (media := self._media(part, links=False)) is not None:
                parts.append(media)
        return parts

    # -- options ---------------------------------------------------------------------------------------------------

    def _generation_config(self) -> dict[str, Any]:
        options = self.request.options
        config = self.options(OPTIONS, BESIDE) | self._output(options.output)
        return config | without_none(thinkingConfig=self._thinking(options.thinking) or None)

    def _thinking(self, thinking: Thinking | None) -> dict[str, Any]:
        if thinking is None:
            return {}
        if not self.own and not self.model.efforts:
            if thinking.enabled is not False:
                self.lose("parameter", "thinking")
            return {}
        level, budget = thinking.effort, thinking.budget_tokens
        if level == "none" or (thinking.enabled is False and level is None):
            level, budget = None, 0
        elif thinking.enabled and level is None and budget is None:
            budget = DYNAMIC
        elif level is not None and budget is not None and not self.own:  # the server takes one of them
            self.lose("parameter", "thinking.budget_tokens")
            budget = None
        if not self.own:
            level, budget = self._for_model(level, budget)
        if thinking.summary not in {None, "none", "auto"}:
            self.lose("parameter", "thinking.summary")
        shown = None if thinking.summary is None else thinking.summary != "none"
        level = self.fit_effort(level)
        return without_none(thinkingLevel=level and level.upper(), thinkingBudget=budget, includeThoughts=shown)

    def _for_model(self, level: str | None, budget: int | None) -> tuple[str | None, int | None]:
        """The two as the model takes them: budgets within its bounds up to 2.5, levels from 3 on, which is never without."""
        model = self.model
        if budget == 0 and model.words and "none" not in model.efforts:
            self.lose("parameter", "thinking.enabled")
            return model.efforts[0], None
        if level is not None and not model.words:
            self.lose("parameter", "thinking.effort")
            level, budget = None, budget_of(level)
        if budget is None or model.budget is None or budget == DYNAMIC or (budget == 0 and "none" in model.efforts):
            return level, budget
        least, most = model.budget
        fits = int(min(max(budget, least), most))
        if fits != budget:
            self.lose("parameter", "thinking.budget_tokens")
        return level, fits

    def _output(self, output: OutputFormat | None) -> dict[str, Any]:
        if output is None:
            return {}
        if output.kind != "schema":
            return {"responseMimeType": JSON if output.kind == "json" else PLAIN}
        self.lose_output(output, "name", "description")
        schema = self._schema(output.schema, output.native_schema, RESPONSE_FORMS, "output.schema")
        return {"responseMimeType": JSON, **schema}

    def _schema(self, schema: Any, came: Extras | None, forms: tuple[str, str], path: str) -> dict[str, Any]:
        """A schema under the name of its form: the older as it came, unless the schema is another by now."""
        older, newer = forms
        if not self.own:
            return without_none(**{newer: cut_schema(schema, path, lambda where: self.lose("schema_keyword", where))})
        is_older = came is not None and json_schema(came) == schema
        return without_none(**({older: came} if is_older else {newer: schema}))

    # -- tools -----------------------------------------------------------------------------------------------------

    def _tools(self) -> list[dict[str, Any]]:
        """The functions, in one tool at the place of the first, and Google's own tools, each in one."""
        functions: list[dict[str, Any]] = []
        tools: list[dict[str, Any]] = []
        must_search = self._must_search
        for number, tool in enumerate(self.request.tools):
            if tool.kind != "server":
                if must_search:
                    self.lose("tool_definition", tool.name)
                    continue
                if not functions:
                    tools.append({"functionDeclarations": functions})
                functions.append(self._function(tool, f"tools[{number}].parameters"))
            elif (hosted := self.hosted(tool)) is not None:
                tools.append(hosted)
        return tools

    def can_search(self, tool: Tool) -> bool:
        """Whether Google's search is offered for a tool: beside functions it is refused, so one of both must do without."""
        choice = self.request.tool_choice
        if choice is not None and choice.mode == "none":  # which is no word about searches here
            return False
        named = choice is not None and choice.mode == "required" and choice.names == (tool.name,)
        return super().can_search(tool) and (not self.functions or (named and tool.name not in self.functions))

    def search_tool(self, _search: WebSearch) -> dict[str, Any]:
        return {"googleSearch": {}}

    @property
    def _must_search(self) -> bool:
        """Whether the search, and no function, is demanded."""
        choice = self.request.tool_choice
        return choice is not None and choice.mode == "required" and [*map(self.is_search, choice.names)] == [True]

    def _function(self, tool: Tool, path: str) -> dict[str, Any]:
        extras = self.extras(tool.extras)
        self.lose_cache(tool.cache)
        if tool.kind == "custom":
            tool = self.as_function(tool)
        parameters = tool.parameters if self.own else tool.parameters or None
        declaration = without_none(name=self.tool_name(tool.name), description=tool.description)
        return add_missing(
            declaration | self._schema(parameters, tool.native_parameters, PARAMETER_FORMS, path), extras
        )

    def _tool_config(self, choice: ToolChoice | None) -> dict[str, Any] | None:
        functions = [] if self._must_search else [tool for tool in self.request.tools if tool.kind != "server"]
        strict = any(tool.strict for tool in functions)
        if choice is None:
            return {"functionCallingConfig": {"mode": VALIDATED}} if strict else None
        if choice.parallel is False:
            self.lose("tool_choice", "parallel")
        extras = self.extras(choice.extras, "tool_choice")
        if not functions and not self.own:  # such a choice is refused
            if choice.mode == "required":
                self.lose("tool_choice", "required")
            return None
        mode = MODES[choice.mode]
        if choice.mode == "auto" and not self.own and (strict or choice.names):
            mode = VALIDATED
        names = [self.tool_name(name) for name in choice.names]
        calling = without_none(mode=extras.get("mode", mode), allowedFunctionNames=names or None)
        return {"functionCallingConfig": add_missing(calling, extras)}


def _is_result(part: PartBody) -> bool:
    return "functionResponse" in part
