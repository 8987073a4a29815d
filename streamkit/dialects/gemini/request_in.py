"""Gemini's requests to the neutral conversation: options, tools, the choice among them; contents in ``messages_in.py``.

The wire takes each member by two names, its own (``functionCall``) and the protocol's (``function_call``), and so does the
reader. The model, and whether the answer streams, stand in the URL. A schema has two forms, and the older one (``parameters``,
``responseSchema``) is read as the JSON schema that it means and kept beside it.

Source: dialects.md §5.1, §5.3, §7.3, §7.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from streamkit.conversation.messages import Options, OutputFormat, Request, Thinking, Tool, ToolChoice, WebSearch
from streamkit.dialects.bodies.request_writer import given
from streamkit.dialects.gemini.messages_in import MessageReader
from streamkit.dialects.gemini.schemas import json_schema
from streamkit.dialects.gemini.wire import JSON, LEVELS, MODES, PLAIN, VALIDATED, camel_case
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: ``mode``, and ours.
CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    "MODE_UNSPECIFIED": "auto",
    VALIDATED: "auto",
    **{word: ours for ours, word in MODES.items()},
}
#: Members of a tool that let the model search the web, the older one last.
SEARCHES: Final = frozenset({"googleSearch", "googleSearchRetrieval"})
NO_LEVEL: Final = "thinking_level_unspecified"
#: A budget of thinking that is as large as the model likes.
DYNAMIC: Final = -1


def decode_request(fields: Fields, _report: StreamReport) -> Request:
    """Read a request body of ``generateContent``. Raises BadRequest."""
    return RequestReader().request(fields.spelled(camel_case))


class RequestReader(MessageReader):
    def request(self, fields: Fields) -> Request:
        request = Request("gemini", fields.string("model"))
        self.system(fields)
        for content in fields.needed_each("contents"):
            self.content(content)
        self.end()
        request.turns = self.turns
        request.tools = [tool for each in fields.each("tools") for tool in self.tools(each)]
        request.tool_choice = self.tool_choice(fields)
        config = fields.fields("generationConfig")
        request.options = self.options(config) if config else Options()
        request.options.service_tier = fields.string("serviceTier")
        request.extras = fields.rest()
        if request.extras.get("cachedContent") is not None:
            request.stored.append(("cachedContent", "send the contents themselves"))
        return request

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, config: Fields) -> Options:
        return Options(
            max_tokens=config.integer("maxOutputTokens"),
            temperature=config.number("temperature"),
            top_p=config.number("topP"),
            top_k=config.integer("topK"),
            stop=config.strings("stopSequences"),
            seed=config.integer("seed"),
            presence_penalty=config.number("presencePenalty"),
            frequency_penalty=config.number("frequencyPenalty"),
            choices=config.integer("candidateCount"),
            logprobs=config.boolean("responseLogprobs"),
            top_logprobs=config.integer("logprobs"),
            thinking=self._thinking(config),
            output=self._output(config),
        )

    def _thinking(self, config: Fields) -> Thinking | None:
        thinking = config.fields("thinkingConfig")
        if thinking is None:
            return None
        word, budget = thinking.string("thinkingLevel") or "", thinking.integer("thinkingBudget")
        level = word.lower()
        if level not in {*LEVELS, "", NO_LEVEL}:
            raise thinking.wrong(
                f"one of {', '.join(sorted(LEVELS)).upper()} is needed, not {quoted(word)}", "thinkingLevel"
            )
        shown = thinking.boolean("includeThoughts")
        read = Thinking(level if level in LEVELS else None)
        if budget is not None and budget <= 0:
            read.enabled = budget == DYNAMIC
        else:
            read.budget_tokens = budget
        read.summary = None if shown is None else "auto" if shown else "none"
        return read if read != Thinking() else None

    def _output(self, config: Fields) -> OutputFormat | None:
        """How the answer is to be written. One of another type, an enumeration as bare text, is the dialect's own."""
        kind = config.peek("responseMimeType")
        if not isinstance(kind, str | None):
            kind = config.string("responseMimeType")  # which says what is wrong
        older, newer = "responseSchema" in config, "responseJsonSchema" in config
        if kind not in {None, JSON, PLAIN} or not (kind or older or newer):
            return None
        if kind == PLAIN and (older or newer):
            return None
        config.take("responseMimeType")
        if newer:
            return OutputFormat("schema", config.take("responseJsonSchema"))
        if older:
            schema = config.mapping("responseSchema")
            return OutputFormat("schema", json_schema(schema), native_schema=schema)
        return OutputFormat("json" if kind == JSON else "text")

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, tool: Fields) -> Iterator[Tool]:
        """The functions of one ``tool``, and the tools of Google's beside them."""
        for declaration in tool.each("functionDeclarations"):
            yield self._function(declaration)
        for name, value in tool.rest().items():
            search = _search(value) if name in SEARCHES else None
            yield Tool(name, kind="server", raw={name: value}, search=search)

    def _function(self, declaration: Fields) -> Tool:
        tool = Tool(declaration.needed("name"), declaration.string("description"))
        if (older := declaration.mapping("parameters")) is not None:
            tool.parameters, tool.native_parameters = json_schema(older), older
        else:
            tool.parameters = declaration.mapping("parametersJsonSchema")
        tool.extras = declaration.rest() or None
        return tool

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        config = fields.fields("toolConfig")
        calling = config.fields("functionCallingConfig") if config else None
        if calling is None:
            return None
        mode, names = calling.string("mode"), calling.strings("allowedFunctionNames")
        if mode is None and not names:
            return None
        if mode is not None and mode not in CHOICES:
            raise calling.wrong(f"one of {', '.join(CHOICES)} is needed, not {quoted(mode)}", "mode")
        extras = {"mode": VALIDATED} if mode == VALIDATED else None
        return ToolChoice(CHOICES[mode or "AUTO"], names, extras=extras)


def _search(options: Any) -> WebSearch:
    """Google's search, whose options are its own."""
    options = dict(options) if isinstance(options, Mapping) else {}
    excluded = options.pop("excludeDomains", None)
    return read_search(options | given(blocked_domains=excluded))
