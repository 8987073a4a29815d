"""Turn Responses items that the client runs or approves into tool calls for clients of other dialects.

A shell, a patch, a computer, a tool search, the approval of an MCP tool: for a program of another dialect such an item is a
call of a tool with that name, and its arguments are what to do. An approval is a call of ``mcp_approval_request``: the tool
to approve belongs to the provider, and a client that has a tool of that name must not run it. A tool search belongs to the
client if its member ``execution`` says so. An item of an unknown type belongs to the client if it has the id of a call and the
response has no output for it; no other dialect can express it (``WAITS``).

The id of the call contains the kind of the item, so that a later request turns the call and its result into the item and its
output again. A shell item may have been run by the provider; only an output item after it shows this, so a shell item waits.

Source: openai 3.54, ``types/responses``: ``ResponseOutputItem``, ``ResponseInputItem``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.members.values import has_value
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.events import Aside, Event, ToolCallArguments, ToolCallFinished, ToolCallStarted
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed
from streamkit.tool_calls.check import check_arguments

#: For each type of item, the name of the tool in the call.
NAMES: Final[Mapping[str, str]] = {
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "mcp_approval_request": "mcp_approval_request",
    "shell_call": "shell",
    "tool_search_call": "tool_search",
}
#: For each type of item, the members that become the arguments. A single member that is an object is itself the arguments.
SAYING: Final[Mapping[str, tuple[str, ...]]] = {
    "apply_patch_call": ("operation",),
    "computer_call": ("action", "actions", "pending_safety_checks"),
    "local_shell_call": ("action",),
    "mcp_approval_request": ("server_label", "name", "arguments"),
    "shell_call": ("action",),
    "tool_search_call": ("arguments",),
}
#: The type of item in which a member, ``EXECUTION``, says whether the client or the provider runs the item.
SEARCH: Final = "tool_search_call"
EXECUTION: Final = "execution"
#: The type of the aside in a whole response that lists items for the client to run which no other dialect can express.
WAITS: Final = "waits"
#: Members that need no place in the arguments, because the call itself expresses their content.
IMPLIED: Final = frozenset({"type", "id", "call_id", "status", EXECUTION})
#: Items that a provider may run itself: by their type, the type of the output item that the provider then writes.
PROVIDERS: Final = {"shell_call": "shell_call_output"}
#: Items that only a provider runs. OpenAI gives the id of a call to the first of them only, xAI a blank one to each.
SERVED: Final = frozenset({
    "multi_agent_call", "code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call", "web_search_call",
})  # fmt: skip


def is_clients(kind: str, item: Mapping[str, Any] | None) -> bool:
    """Return whether the client, not the provider, must run or approve an item of this kind."""
    return kind in NAMES and (kind != SEARCH or (item is not None and item.get(EXECUTION) == "client"))


def may_be_clients(kind: str, item: Mapping[str, Any]) -> bool:
    """Return whether the client must run or approve an item of an unknown type, unless an output of the item follows."""
    call_id = item.get("call_id")
    is_call = isinstance(call_id, str) and bool(call_id.strip())
    if kind in NAMES or kind in SERVED:
        return kind == SEARCH and EXECUTION not in item and is_call
    return kind.endswith("_approval_request") or (kind.endswith("_call") and is_call)


def waiting_message(kinds: Iterable[str]) -> str:
    """Return the error message for a response with items that the client must run and its dialect cannot express."""
    return f"the model called {', '.join(kinds)}, which this dialect cannot express: remove that tool from the request"


def id_of(item: Mapping[str, Any]) -> str:
    """Return the id that links a call to its result. An approval has only its ``id``."""
    found = (item.get(name) for name in ("call_id", "id"))
    return next((name for name in found if isinstance(name, str)), "")


def arguments_of(kind: str, item: Mapping[str, Any], text_of: Callable[[str], str]) -> str:
    """Return the arguments of the call. ``text_of`` returns the JSON text of a member."""
    names = [name for name in SAYING[kind] if has_value(item.get(name))]
    if kind == "computer_call" and "actions" in names and "action" in names:
        names.remove("action")  # both contain the same; newer models use ``actions``
    texts = {name: text_of(name) for name in names}
    given = item.get("arguments")
    if isinstance(given, str) and "arguments" in texts and check_arguments(given).kind == "complete":
        texts["arguments"] = given
    if len(names) == 1 and kind != "mcp_approval_request" and texts[names[0]].startswith("{"):
        return texts[names[0]]
    members = ",".join(f'"{name}":{text}' for name, text in texts.items())
    return f"{{{members}}}"


def made_id(kind: str, item: Mapping[str, Any]) -> str:
    """Return the call id to write in a response. It contains the kind of the item, for ``kind_of_id``."""
    return f"{MADE}_{NAMES[kind]}_{id_of(item) or hashed(orjson.dumps(dict(item)).decode(), 22)}"


def kind_of_id(call_id: str) -> tuple[str, str] | None:
    """Return the kind of item and its original id, from an id of ``made_id``; None for any other id."""
    for kind, name in NAMES.items():
        prefix = f"{MADE}_{name}_"
        if call_id.startswith(prefix):
            return kind, call_id.removeprefix(prefix)
    return None


class ClientCallReader:
    """Turns items that the client must run into calls, one aside at a time. Other asides are not changed."""

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        self._limits = limits
        self._report = report
        self._left = limits.held_chars
        self._open: dict[int, Mapping[str, Any]] = {}  # items that began, by their label
        # complete items that the provider may have run, by id
        self._held: dict[str, tuple[Mapping[str, Any], int]] = {}
        self._calls: dict[str, int] = {}  # the hash of each call's arguments, by call id
        self.cut = False  #: whether an item was incomplete, so that a call is missing

    def take(self, aside: Aside) -> list[Event] | None:
        """Return the calls that an aside of Responses completes; None if the aside is not about an item for the client."""
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
        """Return the calls that waited for the end of the stream. Incomplete items are withheld."""
        held, self._held = self._held, {}
        calls = [event for item, choice in held.values() for event in self._call(item, choice)]
        self.abandon()
        return calls

    def abandon(self) -> None:
        """Withhold all items that wait, because the response was interrupted."""
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
        if self._calls.get(call_id, hash(text)) != hash(text):  # an earlier call with other arguments has this id
            self._withhold(item)
            return []
        self._report.lose("client_tool", what=kind)
        if call_id in self._calls:  # the same call, in an item with another id
            return []
        for name, value in item.items():
            if name not in IMPLIED and name not in SAYING[kind] and has_value(value):
                self._report.lose("metadata", what=f"{kind}.{name}")
        return self.call_of(call_id, NAMES[kind], text, choice)

    def call_of(self, call_id: str, name: str, text: str, choice: int) -> list[Event]:
        """Return the events of a call with the arguments ``text``."""
        self._calls[call_id] = hash(text)
        number = -len(self._calls)  # negative, so that it differs from the accumulator's numbers
        verdict = check_arguments(text, depth=self._limits.json_depth)
        return [
            ToolCallStarted(number, call_id, name, choice),
            ToolCallArguments(number, text, choice),
            ToolCallFinished(number, call_id, name, text, choice, verdict=verdict),
        ]

    def _withhold(self, item: Mapping[str, Any]) -> None:
        kind = str(item["type"])
        self.cut = True
        self._report.lose("client_tool", what=kind)
        self._report.withhold("call_withheld", made_id(kind, item), NAMES[kind], _arguments(kind, item))


def _arguments(kind: str, item: Mapping[str, Any]) -> str:
    return arguments_of(kind, item, lambda name: orjson.dumps(item[name]).decode())
