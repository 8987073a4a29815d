"""Converse over HTTP, whose clients are not served; and error bodies: ``{"message"}``, and the exception's name elsewhere.

Bedrock's servers have the name in the header ``x-amzn-ErrorType``; a colon and an address may follow it. It may also be in the
body's ``__type``. botocore prefers the header. streamkit writes both.

Source: dialects.md §6.1, §7.5; botocore 1.44.5 ``parsers.py``, ``bedrock-runtime/service-2.json``,
and ``CountTokens``. botocore encodes a whole model name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.bedrock import wire
from streamkit.dialects.http import HTTP, KEY_HEADERS, Endpoint, TokenCount, segment
from streamkit.dialects.members.fields import add_missing
from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.error_bodies import message_in
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport

TYPE: Final = "__type"  # the member with the name of the exception


def decode_exception(document: dict[str, Any], header: str = "") -> ProviderFailed:
    """Return the failure in a body. The name of its exception is in the body or in the header."""
    named = text_of(header) or text_of(document.get(TYPE)) or ""
    name = named.partition(":")[0].rpartition("#")[2]
    native = name[:1].lower() + name[1:]  # as in streams
    error, status = wire.exception_of(name, document)
    message = message_in(document) or "an error without a message: " + (name or orjson.dumps(document).decode())
    return ProviderFailed(error, message, native or None, None, status, document, wire.VENDOR)


def encode_exception(failed: ProviderFailed, report: StreamReport) -> dict[str, Any]:
    """Return an error body. botocore and the other SDKs read the exception's name in it if no header has the name."""
    native = failed.native_type if failed.vendor == wire.VENDOR else None
    name = native if native is not None and native in wire.EXCEPTIONS else wire.BODY_EXCEPTION_NAMES[failed.type]
    body: dict[str, Any] = {TYPE: name[:1].upper() + name[1:], "message": failed.message}
    if native is not None and isinstance(failed.raw, dict):
        return add_missing(body, {member: value for member, value in failed.raw.items() if member != wire.PADDING})
    if failed.type in wire.INEXACT_BODY_ERRORS or (failed.code is not None and failed.type != "truncated"):
        report.lose("error_detail")
    return body


def decode(document: dict[str, Any], headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body and its headers; None if neither names an exception."""
    header = headers.get("x-amzn-errortype", "")
    if not header and TYPE not in document:
        return None
    return decode_exception(document, header)


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the error body, and the header with the name of its exception."""
    body = encode_exception(failed, report)
    return body, {"x-amzn-ErrorType": str(body[TYPE]).partition(":")[0].rpartition("#")[2]}


ERRORS = Errors(
    vendors=frozenset({wire.VENDOR}),
    words={name: kind for name, (kind, _status) in wire.EXCEPTIONS.items()},
    decode=decode,
    encode=encode,
    statuses={
        **STATUSES,
        **{kind: wire.EXCEPTIONS[name][1] or 500 for kind, name in wire.BODY_EXCEPTION_NAMES.items()},
    },
)


def _place(base: str, model: str) -> str:
    return f"{base}/model/{segment(model, safe='')}"


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, model, stream: _place(base, model) + ("/converse-stream" if stream else "/converse"),
        auth="sigv4",
        keys={"bedrock-bearer": KEY_HEADERS["bearer"]},
        aws_service="bedrock",
        count=TokenCount(
            url=lambda base, model: _place(base, model) + "/count-tokens",
            takes=frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"}),
            body=lambda members, _model: {"input": {"converse": members}},
            member="inputTokens",
        ),
    )
)
