"""Items of the input to turns.

A message of the user or the system is one turn. All that the assistant said, thought and called in a row is one turn of its
own, whatever items it came in; so is a row of outputs. What an item says of itself (``id``, ``phase``, a status other than
completed) stays with its first part, as ``item`` among its extras, and its id with all of them, so that they find together
again. Items that only this vendor understands are asides.

An output whose call the server alone knows, by a previous response, a conversation or a reference, is an aside too: nothing
here could pair it.

Source: dialects.md §2.2, §2.3, §7.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

from typing import Any, Final, cast

from streamkit.conversation.messages import (
    Extras,
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_writer import given
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.openai_responses.client_items import ANSWERS, CALLS, answered, call_id_of, call_of, result_of
from streamkit.dialects.openai_responses.content_in import ContentReader
from streamkit.dialects.openai_responses.items import aside_kind
from streamkit.dialects.openai_responses.searches import is_made
from streamkit.dialects.openai_responses.tools_in import LOADING, ToolReader
from streamkit.dialects.openai_responses.wire import CALL_INPUTS, ITEM, OPAQUE_VENDOR, OUTPUTS, TRIGGER, VENDOR
from streamkit.dialects.streams.compactions import INSTEAD, anthropics_in
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, unseal
from streamkit.events import Aside, Opaque, QualifiedName
from streamkit.text.quoting import quoted

#: Items that are the program's, beside messages and outputs.
PROGRAMS: Final = frozenset(
    {
        "additional_tools",
        "apply_patch_call_output",
        "compaction_trigger",
        "computer_call_output",
        "configuration_update",
        "local_shell_call_output",
        "mcp_approval_response",
        "shell_call_output",
    }
)
#: Items that stand for what was said before, and that only the vendor can read.
COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
#: Parts that have a word of ours: of a message of the assistant's, and of reasoning by the list that they stand in.
SAID: Final = frozenset({"output_text", "input_text", "refusal"})
THOUGHTS: Final = {"summary": "summary_text", "content": "reasoning_text"}

#: How clients are told not to lean on what a server keeps.
SETTINGS: Final = "AI SDK: providerOptions.openai.store = false; openai-agents: ModelSettings(store=False)"


class MessageReader(ToolReader, ContentReader):
    """The part of the reader of requests that reads the input."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[Turn] = []
        self.unreadable: list[tuple[str, str, str]] = []  # see ``Request.unreadable``
        self.references: list[tuple[str, str]] = []  # to what the server keeps: see ``Request.stored``
        self.stored = False  #: the server knows more of the conversation than the request says
        self.trigger: dict[str, Any] | None = None  #: the item that asks for nothing but a compaction
        self._answers: Turn | None = None  # the turn that further outputs join
        self._calls: set[str] = set()
        self._said_calls = 0  # calls of the assistant's turn that is being read
        self._answered: set[str] = set()  # calls of other forms that the input answers
        self._text: Text | None = None  # the assistant's last one
        self._signature: Opaque | None = None  # of the next call

    def read_input(self, fields: Fields) -> None:
        """The member ``input``: the user's text, or items."""
        if isinstance(fields.peek("input"), str):
            text = fields.needed("input")
            self.turns.append(Turn("user", [Text(text)] if text else []))
            return
        self._answered = answered(fields.peek("input"))
        items = list(fields.each("input"))
        if items and items[-1].peek("type") == TRIGGER:  # elsewhere the server refuses it
            self.trigger = items.pop().rest()
        for item in items:
            self._item(item)
        self._close()

    def _item(self, item: Fields) -> None:
        kind = item.string("type") or _untyped(item)
        match kind:
            case "message" if _is_said(item):
                self._message(item)
            case "reasoning" if _is_thought(item):
                self._reasoning(item)
            case "function_call" | "custom_tool_call":
                self._call(item, kind)
            case "function_call_output" | "custom_tool_call_output" if self._is_paired(item):
                self._result(item, kind)
            case "compaction" if (block := anthropics_in(item.peek("encrypted_content"))) is not None:
                self._assistants().append(Text(block["content"], item=block))
            case _ if kind in CALLS and call_id_of(item.peek_all()) in self._answered:
                said = self._assistants()
                self._add_call(call_of(item, kind, self._said_calls), said)
            case _ if kind in ANSWERS and call_id_of({"type": kind, **item.peek_all()}) in self._calls:
                self._programs().append(result_of(item, kind))
            case _:
                if kind in COMPACTIONS:
                    self.unreadable.append((item.place, INSTEAD, VENDOR))
                if kind == "item_reference":
                    self.stored = True
                    self.references.append((item.place, f"send the item itself, and store: false ({SETTINGS})"))
                raw = {"type": kind, **item.rest()}
                if kind in LOADING:
                    self.load(Fields(raw, item.path, item.body))
                self._aside(kind, raw)

    # -- turns -----------------------------------------------------------------------------------------------------

    def _message(self, item: Fields) -> None:
        role = item.needed("role")
        if role == "assistant":
            self._said(item)
            return
        self._close()
        match role:
            case "user":
                turn = Turn("user", self.content(item))
            case "system" | "developer":
                turn = Turn("system", self.content(item), native_role=role)
            case _:
                raise item.wrong(f"there is no role {quoted(role)}", "role")
        turn.extras = members(item)
        self.turns.append(turn)

    def _close(self) -> None:
        """Nothing more joins the last turn."""
        if self._signature is not None:  # the call that it signed is gone
            self._assistants().append(RedactedReasoning(self._signature))
        self._signature = self._text = self._answers = None

    def _assistants(self) -> list[Part]:
        """The parts of the assistant's turn that is being read."""
        self._answers = None
        if not self.turns or self.turns[-1].role != "assistant":
            self.turns.append(Turn("assistant"))
            self._said_calls = 0
        return self.turns[-1].parts

    def _programs(self) -> list[Part]:
        """The parts of the turn that answers."""
        if self._answers is None:
            self._close()
            self._answers = Turn("user")
            self.turns.append(self._answers)
        return self._answers.parts

    def _aside(self, kind: str, raw: dict[str, Any]) -> None:
        users = kind in PROGRAMS or kind in OUTPUTS.values()
        vendor = MADE if is_made(raw) else VENDOR
        what = Aside(vendor, aside_kind(kind), f"{ITEM}{kind}", raw)
        if users and self.turns and self.turns[-1].role == "user":
            self.turns[-1].parts.append(what)
        else:
            (self._programs() if users else self._assistants()).append(what)

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _said(self, item: Fields) -> None:
        parts = self.content(item) or [Text("")]
        of_item = members(item)
        for number, part in enumerate(part for part in parts if isinstance(part, Text | Refusal)):
            part.extras = _with_item(part.extras, of_item, first=number == 0)
            self._text = part if isinstance(part, Text) else self._text
        self._assistants().extend(parts)

    def _reasoning(self, item: Fields) -> None:
        blob = item.string("encrypted_content")
        parts: list[Reasoning] = []
        for name, kind in ("summary", "summary"), ("content", "raw"):
            for part in item.each(name):
                part.take("type")
                text = Reasoning(part.needed("text"), cast("Any", kind))
                text.extras = part.rest() or None
                parts.append(text)
        of_item = members(item)
        sealed = unseal(blob) if blob else None
        if sealed is not None:
            self._sealed(sealed.kind, Opaque(sealed.vendor, sealed.blob), parts)
            return
        last = next((part for part in reversed(parts) if part.text), None)
        opaque = Opaque(OPAQUE_VENDOR, blob) if blob else None
        if opaque is not None and last is None:
            self._assistants().append(RedactedReasoning(opaque, _with_item(None, of_item, first=True)))
            return
        if last is not None:
            last.signature = opaque
        for number, thought in enumerate(parts or [Reasoning("", "summary")]):
            thought.extras = _with_item(thought.extras, of_item, first=number == 0)
            self._assistants().append(thought)

    def _sealed(self, kind: str, opaque: Opaque, parts: list[Reasoning]) -> None:
        """What another vendor made, and was carried in a reasoning item that is none of this one's."""
        if kind == "call":
            self._signature = opaque
        elif kind == "text" and self._text is not None:
            self._text.signature = opaque
        elif kind == "opaque":
            self._assistants().append(RedactedReasoning(opaque))
        elif kind == "reasoning":
            parts = parts or [Reasoning("", "summary")]
            parts[-1].signature = opaque
            self._assistants().extend(parts)
        else:
            self._assistants().append(Text("", opaque))

    def _call(self, item: Fields, kind: str) -> None:
        said = self._assistants()
        call_id, name, namespace = item.string("call_id") or "", item.needed("name"), item.string("namespace")
        qualified = None if namespace is None else QualifiedName(namespace, name)
        name = name if qualified is None else self.names.flat(qualified)
        call = ToolCall(self._said_calls, call_id, name, item.string(CALL_INPUTS[kind]) or "", place=item.place)
        call.qualified = qualified
        call.kind = "custom" if kind == "custom_tool_call" else "function"
        call.signature, self._signature = self._signature, None
        call.extras = members(item)
        self._add_call(call, said)

    def _add_call(self, call: ToolCall, said: list[Part]) -> None:
        """Add a call to what the assistant said."""
        self._said_calls += 1
        self._calls.add(call.id)
        said.append(call)

    # -- outputs ---------------------------------------------------------------------------------------------------

    def _is_paired(self, item: Fields) -> bool:
        """Whether an output is one of a call that the request has, or could have."""
        call_id = item.peek("call_id")
        return not self.stored or (isinstance(call_id, str) and call_id in self._calls)

    def _result(self, item: Fields, kind: str) -> None:
        result = ToolResult(item.string("call_id") or "", name=item.string("name"), place=item.place)
        result.kind = "custom" if kind == OUTPUTS["custom"] else "function"
        parts = self.content(item, "output")
        for number, part in enumerate(parts):
            if not isinstance(part, Text | Media | Aside):
                raise item.wrong("a tool can't refuse", f"output[{number}]")
        result.parts = cast("list[Text | Media | Aside]", parts)
        result.extras = members(item)
        self._programs().append(result)


def members(item: Fields) -> dict[str, Any] | None:
    """What nobody took of an item; that it is completed goes without saying."""
    return {name: value for name, value in item.rest().items() if (name, value) != ("status", "completed")} or None


def _with_item(extras: Extras | None, of_item: dict[str, Any] | None, *, first: bool) -> Extras | None:
    """The extras of a part, with those of its item: of further parts its id alone, where it has one."""
    if of_item is not None and not first and "id" in of_item:
        of_item = {"id": of_item["id"]}
    return {**(extras or {}), **given(item=of_item)} or None


def _untyped(item: Fields) -> str:
    """The type of an item that does not say it: a message, or a reference, which has an id and nothing else."""
    if "role" in item:
        return "message"
    if item.names == ["id"]:
        return "item_reference"
    raise item.wrong("text is needed, and there is none", "type")


def _is_said(item: Fields) -> bool:
    """Whether a message is not one of the assistant's without any part of a kind that has a word of ours."""
    kinds = _kinds(item, "content")
    return item.peek("role") != "assistant" or not kinds or not SAID.isdisjoint(kinds)


def _is_thought(item: Fields) -> bool:
    """Whether all parts of a reasoning item are of a kind that has a word of ours."""
    return all(_kinds(item, name) <= {kind} for name, kind in THOUGHTS.items())


def _kinds(item: Fields, name: str) -> set[str]:
    """The types in a list of parts, as far as there are any."""
    parts = item.peek(name)
    kinds = (part.get("type") for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return {kind for kind in kinds if isinstance(kind, str)}
