"""Items of Responses that the client runs, or approves, in forms of their own: as calls of tools, for other dialects.

A shell, a patch, a computer, a search of tools, the approval of an MCP server's tool: to a program of another dialect such an
item is a call by the name of what is to be run, with what it is to do as arguments. An approval is a call by a name of its
own: the tool that is to be approved is the provider's, and a client that has one of that name must not run it. A search of
tools is the client's where it says so (``execution``).

In an answer the id of the call says what it was, so that the call and its result become the item and its output again when
they come back. A shell's item may be one that the provider ran after all, which its output behind it tells, so it waits.

Source: openai 3.54, ``types/responses``: ``ResponseOutputItem``, ``ResponseInputItem``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.members.values import has_value
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.events import Aside, Event, ToolCallArguments, ToolCallFinished, ToolCallStarted
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed
from streamkit.tool_calls.check import check_arguments

ADDED, DONE = "response.output_item.added", "response.output_item.done"
#: The name of the tool that each is a call of.
NAMES: Final[Mapping[str, str]] = {
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "mcp_approval_request": "mcp_approval_request",
    "shell_call": "shell",
    "tool_search_call": "tool_search",
}
#: The members that say what it is to do. One that is there alone, and is an object, is the arguments itself.
SAYING: Final[Mapping[str, tuple[str, ...]]] = {
    "apply_patch_call": ("operation",),
    "computer_call": ("action", "actions", "pending_safety_checks"),
    "local_shell_call": ("action",),
    "mcp_approval_request": ("server_label", "name", "arguments"),
    "shell_call": ("action",),
    "tool_search_call": ("arguments",),
}
#: The item that says itself who runs it, and its member for that.
SEARCH: Final = "tool_search_call"
EXECUTION: Final = "execution"
#: The aside that lists the items which a whole answer waits for, in forms that are no calls anywhere else.
WAITS: Final = "waits"
#: Members that a call says by being one.
IMPLIED: Final = frozenset({"type", "id", "call_id", "status", EXECUTION})
#: What a provider writes behind one that it ran itself, in a container.
PROVIDERS: Final = {"shell_call": "shell_call_output"}


def is_clients(kind: str, item: Mapping[str, Any] | None) -> bool:
    """Return whether the client runs, or approves, an item of this kind."""
    return kind in NAMES and (kind != SEARCH or (item is not None and item.get(EXECUTION) == "client"))


def waiting_message(kinds: Iterable[str]) -> str:
    """Return the message for a client of a response that waits for items which its dialect has no form for."""
    return (
        f"the model waits for {', '.join(kinds)}, which has no form in this dialect: leave that tool out of the request"
    )


def id_of(item: Mapping[str, Any]) -> str:
    """The id by which a call and its answer know each other; an approval has but its own."""
    found = (item.get(name) for name in ("call_id", "id"))
    return next((name for name in found if isinstance(name, str)), "")


def arguments_of(kind: str, item: Mapping[str, Any], text_of: Callable[[str], str]) -> str:
    """The arguments of the call; ``text_of`` gives the JSON text of a member."""
    names = [name for name in SAYING[kind] if has_value(item.get(name))]
    if kind == "computer_call" and "actions" in names and "action" in names:
        names.remove("action")  # one name for each, as the newer models have it
    texts = {name: text_of(name) for name in names}
    given = item.get("arguments")
    if isinstance(given, str) and "arguments" in texts and check_arguments(given).kind == "complete":
        texts["arguments"] = given
    if len(names) == 1 and kind != "mcp_approval_request" and texts[names[0]].startswith("{"):
        return texts[names[0]]
    members = ",".join(f'"{name}":{text}' for name, text in texts.items())
    return f"{{{members}}}"


def made_id(kind: str, item: Mapping[str, Any]) -> str:
    """The id of the call in an answer, which says what it was."""
    return f"{MADE}_{NAMES[kind]}_{id_of(item) or hashed(orjson.dumps(dict(item)).decode(), 22)}"


def kind_of_id(call_id: str) -> tuple[str, str] | None:
    """What a call was whose id ``made_id`` made: the kind of item, and the id that it had; None for any other."""
    for kind, name in NAMES.items():
        prefix = f"{MADE}_{name}_"
        if call_id.startswith(prefix):
            return kind, call_id.removeprefix(prefix)
    return None


class ClientCallReader:
    """The items of one answer that the client is to run, event by event: calls. What is none of them passes."""

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        self._limits = limits
        self._report = report
        self._left = limits.held_chars
        self._open: dict[int, Mapping[str, Any]] = {}  # items as they began, by their label
        self._held: dict[str, tuple[Mapping[str, Any], int]] = {}  # done, and perhaps the provider's, by their id
        self._calls: dict[str, int] = {}  # the hash of each call's arguments, by its id
        self.cut = False  #: one of them is not whole: nobody can run what the model asked for

    def take(self, aside: Aside) -> list[Event] | None:
        """The calls that an aside of Responses' completes; None if it is none of theirs."""
        raw = aside.raw if isinstance(aside.raw, Mapping) else {}
        item = raw.get("item") if aside.type in {ADDED, DONE} else None
        if not isinstance(item, Mapping):
            return [] if aside.block in self._open and aside.kind == "server_tool" else None
        kind = str(item.get("type"))
        if kind in PROVIDERS.values() and self._held.pop(id_of(item), None) is not None:
            self._report.lose("server_tool", what="shell_call")
        if not is_clients(kind, item):
            return None
        if aside.type == ADDED:
            self._open[aside.block] = item
            return []
        self._open.pop(aside.block, None)
        if kind in PROVIDERS and (size := len(orjson.dumps(dict(item)))) <= self._left:
            self._left -= size
            self._held[id_of(item)] = item, aside.choice
            return []
        return self._call(item, aside.choice)

    def finish(self) -> list[Event]:
        """Nothing more comes: the calls that waited. What is not done is withheld."""
        held, self._held = self._held, {}
        calls = [event for item, choice in held.values() for event in self._call(item, choice)]
        self.abandon()
        return calls

    def abandon(self) -> None:
        """The answer was cut: nothing that waits may be run."""
        waiting = [*self._open.values(), *(item for item, _ in self._held.values())]
        self._open, self._held = {}, {}
        for item in waiting:
            self._withhold(item)

    def _call(self, item: Mapping[str, Any], choice: int) -> list[Event]:
        kind = str(item["type"])
        if item.get("status") == "incomplete":
            self._withhold(item)
            return []
        call_id, text = made_id(kind, item), _arguments(kind, item)
        if self._calls.get(call_id, hash(text)) != hash(text):  # its result could not be told from the first one's
            self._withhold(item)
            return []
        self._report.lose("client_tool", what=kind)
        if call_id in self._calls:  # the same call, in an item with another id
            return []
        for name, value in item.items():
            if name not in IMPLIED and name not in SAYING[kind] and has_value(value):
                self._report.lose("metadata", what=f"{kind}.{name}")
        self._calls[call_id] = hash(text)
        number = -len(self._calls)  # none of the accumulator's
        verdict = check_arguments(text, depth=self._limits.json_depth)
        return [
            ToolCallStarted(number, call_id, NAMES[kind], choice),
            ToolCallArguments(number, text, choice),
            ToolCallFinished(number, call_id, NAMES[kind], text, choice, verdict=verdict),
        ]

    def _withhold(self, item: Mapping[str, Any]) -> None:
        kind = str(item["type"])
        self.cut = True
        self._report.lose("client_tool", what=kind)
        self._report.withhold("call_withheld", made_id(kind, item), NAMES[kind], _arguments(kind, item))


def _arguments(kind: str, item: Mapping[str, Any]) -> str:
    return arguments_of(kind, item, lambda name: orjson.dumps(item[name]).decode())
