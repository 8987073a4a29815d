"""The AI SDK over HTTP: clients post a chat's messages to one path. Requests to another server's route go to its own URL.

The model's name is in the path or in the body's member ``model``. If both have a name, the path counts. The SDK itself sends
no model, but an application may add the member with the SDK's option ``body``. The body of an error is only the text of the
chunk ``error``, because ``useChat`` displays the whole body.

Source: ui-protocols.md §1.1, §1.8; ai 7.0.173, ``HttpChatTransport``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import Request, ToolResult
from streamkit.dialects.ai_sdk.wire import ANSWER_ID, VENDOR
from streamkit.dialects.base import Errors
from streamkit.dialects.http import HTTP, ChatForm, Endpoint, Surface, model_in_path
from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id

PATH: Final = "/v1/ai-sdk"  # a model's name may follow


def _name_answer(request: Request) -> None:
    """Give the response an id, unless it continues an assistant message, which has one (ui-protocols.md §1.7)."""
    last = request.turns[-1] if request.turns else None
    if last is not None and last.role == "user" and not all(isinstance(part, ToolResult) for part in last.parts):
        request.exchange[ANSWER_ID] = random_id("msg_")


def _decode_error(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    message = text_of(document.get("errorText"))
    if document.get("type") != "error" or message is None:
        return None
    return ProviderFailed("server", message, raw=document, vendor=VENDOR)


def _error_body(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    if has_detail(failed, VENDOR):
        report.lose("error_detail")
    own = failed.raw if failed.vendor == VENDOR and isinstance(failed.raw, dict) else {}
    return {**own, "type": "error", "errorText": failed.message}, {}


ERRORS = Errors(vendors=frozenset({VENDOR}), words={}, decode=_decode_error, encode=_error_body, in_words=True)


HTTP_HALF = HTTP(
    endpoint=Endpoint(url=lambda base, _model, _stream: base),
    surface=Surface(
        generate=(PATH, f"{PATH}/{{model:.+}}"),
        path=re.compile(r"(?:^/?|/v1)/ai-sdk(?:/.*+)?\Z", re.DOTALL),
        in_words=f"{PATH}/MODEL",
        address=model_in_path(PATH, "model", "the body"),
        # headers that the SDK's own server sends; its client ignores them, but other programs read them
        chat=ChatForm(
            resume="/{id}/stream",
            conversation="id",
            name_answer=_name_answer,
            headers={"x-vercel-ai-ui-message-stream": "v1"},
        ),
    ),
)
