"""Approvals: a provider asks the client whether it may run a tool of its own.

Three dialects have a form for this: an item ``mcp_approval_request`` of Responses, a chunk ``tool-approval-request`` of the AI
SDK, and an interrupt of AG-UI. The form between them, and in all other dialects, is a call of ``mcp_approval_request``
(``client_calls.py``). Its result is ``approved``, or says why not. The decoder of a UI protocol emits an aside ``ASKED``, and
``carrier.py`` translates it.

Source: openai 3.57, ``types/responses``; ui-protocols.md §1.2, §2.6; ai 7.0.173; @ag-ui/core 1.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from attrs import frozen

from streamkit.dialects.members.values import json_object
from streamkit.dialects.streams.client_calls import NAMES, SAYING, kind_of_id
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.events import Aside
from streamkit.tool_calls.value_text import lenient_text

APPROVAL: Final = "mcp_approval_request"
ASKED: Final = "approval"  #: the type of the aside
MADE_ID: Final = f"{MADE}_{NAMES[APPROVAL]}_"  #: how the ids of calls for approvals begin
APPROVED, REFUSED = "approved", "not approved"


@frozen
class Approval:
    """A call that a client must approve or refuse. ``arguments`` is JSON text."""

    id: str
    server: str
    tool: str
    arguments: str

    @property
    def call_id(self) -> str:
        """The id of the call for other dialects."""
        return MADE_ID + self.id

    @property
    def call_arguments(self) -> str:
        """The arguments of the call for other dialects."""
        server, tool = orjson.dumps(self.server).decode(), orjson.dumps(self.tool).decode()
        return f'{{"server_label":{server},"name":{tool},"arguments":{self.arguments or "{}"}}}'

    @property
    def item(self) -> dict[str, Any]:
        """The item of Responses."""
        return {
            "type": APPROVAL,
            "id": self.id,
            "server_label": self.server,
            "name": self.tool,
            "arguments": self.arguments,
        }


def asked(vendor: str, native: Mapping[str, Any], approval: Approval | None, **more: Any) -> Aside:
    """Return the aside of a dialect for something that the client has to answer.

    ``native`` is for the encoder of the dialect. ``more`` are further members of the item, which no other dialect has; without
    an ``approval`` they are the ``id``, the ``name`` and the ``arguments`` of a call.
    """
    item = more if approval is None else {**more, **approval.item}
    return Aside(vendor, "client_tool", ASKED, {"item": item, "native": native})


def is_approval(call_id: str, name: str) -> bool:
    """Return whether a call with this id and name is an approval."""
    return name == APPROVAL and call_id.startswith(MADE_ID)


def approval_in(call_id: str, name: str, text: str) -> Approval | None:
    """Return the approval that a call asks for; None for any other call, or if the arguments are not those of an approval."""
    known, arguments = kind_of_id(call_id), json_object(text)
    if name != APPROVAL or known is None or known[0] != APPROVAL or arguments is None:
        return None
    if arguments.keys() != set(SAYING[APPROVAL]):
        return None
    given = arguments["arguments"]
    if not isinstance(given, str):  # keep the exact text, because parsing could change 1.0
        given = lenient_text(text.encode(), "arguments")
    return Approval(known[1], str(arguments["server_label"]), str(arguments["name"]), given)


def answer_text(approved: bool, reason: Any = None) -> str:
    """Return the text of the result with a client's answer."""
    if not isinstance(reason, str) or not reason:
        return APPROVED if approved else REFUSED
    return orjson.dumps({"approve": True, "reason": reason}).decode() if approved else f"{REFUSED}: {reason}"


def answer_in(text: str, *, failed: bool) -> tuple[bool, str]:
    """Return whether a result approves, and the reason. A text that is no plain word of approval is a reason to refuse."""
    value = json_object(text) or {}
    said = [value[name] for name in ("approve", "approved") if name in value]
    is_yes = bool(said) and all(each is True for each in said)
    approved = not failed and (is_yes or text.strip().lower() in {APPROVED, "true"})
    refusal = "" if approved else text.strip().removeprefix(REFUSED).lstrip(": ")
    reason = value.get("reason") if value else refusal
    return approved, reason if isinstance(reason, str) else ""
