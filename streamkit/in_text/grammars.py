"""The syntaxes in which models were trained to write calls, as data: the beginning, the name, the arguments and the end.

A call has a *head*, from a marker to its arguments, and a *body*. A head is a few literals with white space and a name between
them, so any text can be tested for being the beginning of a head. A body is a JSON value, an object with ``name`` and
``arguments``, or parameters between tags.

Source: the chat templates on the model cards of Hermes, Qwen3 and Qwen3-Coder, GLM-4.5, Kimi-K2, DeepSeek V3 to V4,
MiniMax-M2, Mistral's and Meta's; the leaked forms of Claude's calls (anthropics/claude-code#77061).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, Literal, TypeAlias

from attrs import evolve, frozen

from streamkit.policy import TextCalls

HEAD_CHARS: Final = 512  #: maximum length of a head in characters
_WORD: Final = "[^\\s<>\"'{}\\[\\]|｜`=]"


@frozen
class Slot:
    """Between ``least`` and ``most`` characters that match ``letters``, as a group with ``name`` if that is set."""

    letters: str
    least: int
    most: int
    name: str = ""

    @property
    def whole(self) -> str:
        pattern = f"{self.letters}{{{self.least},{self.most}}}"
        return f"(?P<{self.name}>{pattern})" if self.name else pattern


HeadPart: TypeAlias = str | Slot
SPACE: Final = Slot(r"\s", 0, 64)
NAME: Final = Slot(_WORD, 1, 128, "name")
CALL_ID: Final = Slot(r"[^\s<>|\[\]{}]", 1, 200, "id")


@frozen
class Tags:
    """The syntax of parameters between tags."""

    begin: str  #: the text before a parameter's name
    rest: str  #: a pattern from the name to the value; the name is its group ``key``
    close: str  #: the end of a value
    end: str  #: the end of the call
    pads: bool = False  #: True if a line end before and after a value is no part of the value

    @cached_property
    def head(self) -> re.Pattern[str]:
        """The pattern before a value."""
        return re.compile(re.escape(self.begin) + self.rest)


Body: TypeAlias = Literal["json", "object", "objects", "tags"]


@frozen
class Head:
    """One form of the beginning of a call."""

    parts: tuple[HeadPart, ...]
    body: Body
    peek: str = ""  #: a literal that must follow the head, and that belongs to the body
    ends: tuple[str, ...] = ()  #: end tags; after a complete body, text or another call ends the call, too
    tags: Tags | None = None
    name_in_id: bool = False  #: True if the tool's name is a part of the call's id: ``functions.NAME:0``
    own_line: bool = False  #: True for markers that are ordinary text, which count only at the start of a line

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        peek = f"(?={re.escape(self.peek)})" if self.peek else ""
        parts = [re.escape(part) if isinstance(part, str) else part.whole for part in self.parts]
        return re.compile("".join(parts) + peek)

    @cached_property
    def beginning(self) -> re.Pattern[str]:
        """The pattern of any beginning of the head, including the whole head."""
        pattern = ""
        for part in reversed((*self.parts, self.peek)):
            if isinstance(part, Slot):
                begun = f"{part.letters}{{0,{part.most}}}"
                pattern = f"(?:{part.letters}{{{part.least},{part.most}}}{pattern}|{begun})" if pattern else begun
            else:
                for letter in reversed(part):
                    pattern = f"(?:{re.escape(letter)}{pattern})?"
        return re.compile(pattern)


@frozen
class Grammar:
    """How one family of models writes calls into its text: the heads that may begin a call."""

    heads: tuple[Head, ...]
    trailers: tuple[str, ...] = ()  #: texts without meaning that may follow calls, such as the end of a section


def _in_sections(sections: Iterable[str], head: Head) -> tuple[Head, ...]:
    """Return a head after each opening of a section, and alone: for a second call, and for models that omit the section."""
    return *(evolve(head, parts=(section, SPACE, *head.parts)) for section in sections), head


def _xml(sections: tuple[str, ...], prefix: str = "", *, own_line: bool = False) -> Grammar:
    """Return the grammar of ``<invoke name="…"><parameter name="…">…</parameter></invoke>``, inside a section or not."""
    tags = Tags(
        f'<{prefix}parameter name="',
        r'(?P<key>[^"<>]{1,128})"(?:\s+string="(?P<string>true|false)")?[^<>]*>',
        f"</{prefix}parameter>",
        f"</{prefix}invoke>",
    )
    head = Head((f'<{prefix}invoke name="', NAME, '"', SPACE, ">"), "tags", tags=tags, own_line=own_line)
    heads = _in_sections([f"<{section}>" for section in sections], head)
    return Grammar(heads, tuple(f"</{section}>" for section in sections))


def _together(*grammars: Grammar) -> Grammar:
    heads = tuple(head for grammar in grammars for head in grammar.heads)
    return Grammar(heads, tuple(trailer for grammar in grammars for trailer in grammar.trailers))


_FUNCTION: Final = Tags("<parameter=", r"(?P<key>[^<>]{1,128})>", "</parameter>", "</function>", pads=True)
_GLM: Final = Tags("<arg_key>", r"(?P<key>[^<>]{1,128})</arg_key>\s{0,64}<arg_value>", "</arg_value>", "</tool_call>")
_KIMI: Final = ("<|tool_call_begin|>", SPACE, CALL_ID, SPACE, "<|tool_call_argument_begin|>")
_DEEPSEEK: Final = ("<｜tool▁calls▁begin｜>",)
_DEEPSEEK_V3: Final = ("<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>", NAME, SPACE, "```json", SPACE)
_DEEPSEEK_V31: Final = ("<｜tool▁call▁begin｜>", NAME, "<｜tool▁sep｜>")
_DEEPSEEK_ENDS: Final = ("<｜tool▁call▁end｜>", "```<｜tool▁call▁end｜>", "```\n<｜tool▁call▁end｜>")

GRAMMARS: Final[Mapping[TextCalls, Grammar]] = {
    "hermes": Grammar((Head(("<tool_call>", SPACE, "{"), "object", ends=("</tool_call>",), own_line=True),)),
    "qwen": Grammar(
        _in_sections(["<tool_call>"], Head(("<function=", NAME, ">"), "tags", tags=_FUNCTION, own_line=True)),
        ("</tool_call>",),
    ),
    "glm": Grammar(
        tuple(
            Head(("<tool_call>", SPACE, NAME, SPACE), "tags", peek, tags=_GLM, own_line=True)
            for peek in ("<arg_key>", "</tool_call>")
        )
    ),
    "kimi": Grammar(
        _in_sections(
            ["<|tool_calls_section_begin|>"], Head(_KIMI, "json", ends=("<|tool_call_end|>",), name_in_id=True)
        ),
        ("<|tool_calls_section_end|>",),
    ),
    "deepseek": _together(
        Grammar(  # V3
            _in_sections(_DEEPSEEK, Head(_DEEPSEEK_V3, "json", ends=_DEEPSEEK_ENDS)), ("<｜tool▁calls▁end｜>",)
        ),
        Grammar(_in_sections(_DEEPSEEK, Head(_DEEPSEEK_V31, "json", ends=_DEEPSEEK_ENDS))),
        _xml(("｜DSML｜function_calls", "｜DSML｜tool_calls"), "｜DSML｜"),  # V3.2 and V4
        _xml(("｜｜DSML｜｜function_calls", "｜｜DSML｜｜tool_calls"), "｜｜DSML｜｜"),  # V4, as seen in practice
    ),
    "minimax": _xml(("minimax:tool_call",), own_line=True),
    "claude": _together(
        _xml(("function_calls",), own_line=True), _xml(("antml:function_calls",), "antml:", own_line=True)
    ),
    "mistral": Grammar(
        (
            Head(("[TOOL_CALLS]", SPACE, "[", SPACE, "{"), "objects"),
            Head(("[TOOL_CALLS]", SPACE, "{"), "object"),
            Head(("[TOOL_CALLS]", SPACE, NAME, "[CALL_ID]", CALL_ID, "[ARGS]"), "json"),
            Head(("[TOOL_CALLS]", SPACE, NAME, "[ARGS]"), "json"),
            Head(("[TOOL_CALLS]", SPACE, NAME, SPACE), "json", "{"),
        )
    ),
    "llama": Grammar(
        (
            Head(("<|python_tag|>", SPACE, "{"), "object", ends=("<|eom_id|>", "<|eot_id|>")),
            Head(("<function=", NAME, ">", SPACE), "json", "{", ends=("</function>",), own_line=True),
        )
    ),
}


@frozen
class GrammarSet:
    """Several grammars that are searched for together."""

    grammars: tuple[Grammar, ...]

    @classmethod
    def named(cls, names: Iterable[TextCalls]) -> GrammarSet:
        """Return the set of these grammars. Raise KeyError for an unknown name."""
        return cls(tuple(GRAMMARS[name] for name in dict.fromkeys(names)))

    @cached_property
    def heads(self) -> Mapping[str, tuple[Head, ...]]:
        """The heads by marker, which is the literal that they begin with, in order of precedence."""
        found: dict[str, list[Head]] = {}
        for grammar in self.grammars:
            for head in grammar.heads:
                found.setdefault(str(head.parts[0]), []).append(head)
        return {marker: tuple(heads) for marker, heads in found.items()}

    @cached_property
    def markers(self) -> tuple[str, ...]:
        return tuple(self.heads)

    @cached_property
    def first_letter(self) -> re.Pattern[str]:
        return re.compile("[" + "".join(re.escape(marker[0]) for marker in self.markers) + "]")

    @cached_property
    def any_marker(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self.markers, key=len, reverse=True))))

    @cached_property
    def trailers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trailer for grammar in self.grammars for trailer in grammar.trailers))
