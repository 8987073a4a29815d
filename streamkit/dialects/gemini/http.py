"""``generateContent`` over HTTP, and Google's error bodies: ``{"error": {code, message, status, details}}``.

The URL has the model, and whether to stream, whatever the body says. A stream without ``alt=sse`` is one JSON array
(``framing.py``).

How long a client must wait is in a ``RetryInfo`` in the details of an error. An error for a wrong API key has the same status
as an error for any wrong argument; only the ``reason`` in an ``ErrorInfo`` shows the difference.

Source: clients.md §10.1, §10.2; dialects.md §5.1, §7.5; google-genai 3.4, which sends ``x-goog-api-key`` and never ``?key=``;
ai.google.dev/api/tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Request
from streamkit.dialects.base import Errors
from streamkit.dialects.bodies.google import ERROR_CODES, ERROR_TYPES, VENDOR, encode_error
from streamkit.dialects.gemini.framing import ARRAY
from streamkit.dialects.gemini.wire import camel_case
from streamkit.dialects.http import (
    HTTP,
    SHOWN_CHARS,
    Address,
    Endpoint,
    ModelCard,
    Models,
    Query,
    RequestLine,
    Surface,
    TokenCount,
    page_size,
    place_of,
    segment,
)
from streamkit.dialects.members.fields import fields_of, without_none
from streamkit.dialects.members.values import objects_in
from streamkit.dialects.vocabulary.error_bodies import gateway_status, provider_failed
from streamkit.errors import BadRequest
from streamkit.events import ErrorType, ProviderFailed
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

NAME: Final = "{name:(?:models|tunedModels)/.+}"  # google-genai does not encode slashes in names
VERSIONS: Final = ("v1", "v1beta")  # google-genai 3.4 uses ``/v1``; earlier versions and most programs use ``/v1beta``
GENERATE: Final = ("generateContent", "streamGenerateContent")
COUNTED: Final = "generateContentRequest"  # the member with the whole request, in a request to count its tokens
PAGE: Final = 50  # the most models in a page of the model list, unless the request has another number
#: A base URL that contains a version, or on Vertex AI a publisher: ``…/v1beta``, ``…/publishers/google``.
_VERSIONED: Final = re.compile(r"/v\d\w*$|/publishers/[^/]+$")
#: Resources with a path directly under a Vertex AI location: other publishers' models, and tuned models.
_OF_A_LOCATION: Final = frozenset({"publishers", "endpoints"})


def _place(base: str, model: str) -> str:
    """Return the URL of a model. ``v1beta`` is used because it accepts everything of ``v1``, and preview fields."""
    root = base if _VERSIONED.search(base) else f"{base}/v1beta"
    location, _, publisher = base.rpartition("/publishers/")
    if location and publisher and model.partition("/")[0] in _OF_A_LOCATION:
        root = location
    else:
        model = resource(model)
    return f"{root}/{'/'.join(segment(part) for part in model.split('/'))}"


def resource(model: str) -> str:
    """Return the resource name of a model, ``models/gemini-x``. A name that has a collection is not changed."""
    collection, _, name = model.partition("/")
    return model if collection in {"models", "tunedModels"} and name else f"models/{model}"


def _address(line: RequestLine, _request: Request) -> Address:
    """Return the model after ``models/``. A tuned model keeps its prefix, because another model may have the same name."""
    stream = line.path.endswith(":streamGenerateContent")
    alt = line.query.get("alt", "json")
    if alt not in {"json", "sse"}:
        raise BadRequest("alt", f"must be 'sse' or 'json', not {quoted(alt, SHOWN_CHARS)}")
    return Address(line.match_info["name"].removeprefix("models/"), stream, stream and alt != "sse")


def _counted(body: bytes, report: StreamReport) -> tuple[bytes, str]:
    """Return the request in a count: bare contents, or a whole request in a separate member."""
    outer = StreamReport()
    fields = fields_of(body, outer).spelled(camel_case)
    if COUNTED not in fields:
        return body, ""
    if "contents" in fields:
        raise fields.wrong(f"a count has either contents or {COUNTED}, not both", "contents")
    if not isinstance(fields.peek(COUNTED), dict):
        raise fields.wrong("must be an object", COUNTED)
    report.repairs.update(outer.repairs)  # only here: bare contents are read once more
    return fields.text_of(COUNTED).encode(), COUNTED


def _list(models: Sequence[ModelCard], query: Query) -> dict[str, Any]:
    """Return a page of models. A page token is the last model of the page before, so it survives a change of the list."""
    start = place_of(models, query, "pageToken") + 1
    size = page_size(query, "pageSize", PAGE)
    page = models[start : start + size]
    following = {"nextPageToken": page[-1].id} if start + size < len(models) else {}
    return {"models": [_model(card) for card in page], **following}


def _model(card: ModelCard) -> dict[str, Any]:
    methods = [*GENERATE, *(["countTokens"] if card.counts else [])]
    sizes = without_none(inputTokenLimit=card.context, outputTokenLimit=card.output, thinking=card.thinks or None)
    return {"name": f"models/{card.id}", "displayName": card.id, "supportedGenerationMethods": methods, **sizes}


def _paths(*methods: str) -> tuple[str, ...]:
    return tuple(f"/{version}/{NAME}:{method}" for version in VERSIONS for method in methods)


REASONS: Final[Mapping[str, ErrorType]] = {"API_KEY_INVALID": "auth"}
RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")  # a duration in protobuf's JSON


def _decode_error(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    error = document.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("status"), str):
        return None
    failed = provider_failed(error, VENDOR, ERROR_TYPES)
    for detail in objects_in(error.get("details")):
        failed.type = REASONS.get(str(detail.get("reason")), failed.type)
        if detail.get("@type") == RETRY_INFO and (delay := _DURATION.fullmatch(str(detail.get("retryDelay")))):
            failed.retry_after_s = float(delay[1])
    return failed


def _error_body(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    own = failed.vendor == VENDOR
    error = encode_error(failed if own else evolve(failed, http_status=gateway_status(failed)), report)
    details = objects_in(error.get("details"))
    if failed.retry_after_s is not None and not any(detail.get("@type") == RETRY_INFO for detail in details):
        wait = {"@type": RETRY_INFO, "retryDelay": f"{failed.retry_after_s:.9f}".rstrip("0").rstrip(".") + "s"}
        error = {**error, "details": [*details, wait]}
    return {"error": error}, {}


ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words={**ERROR_TYPES, **REASONS},
    decode=_decode_error,
    encode=_error_body,
    statuses={kind: code for kind, (_status, code) in ERROR_CODES.items()},
)


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, model, stream: (
            _place(base, model) + (":streamGenerateContent?alt=sse" if stream else ":generateContent")
        ),
        auth="x-goog-api-key",
        streams_arrays=True,
        count=TokenCount(
            url=lambda base, model: f"{_place(base, model)}:countTokens",
            body=lambda members, model: {COUNTED: {"model": resource(model), **members}},
            member="totalTokens",
        ),
    ),
    surface=Surface(
        generate=_paths(*GENERATE),
        count=_paths("countTokens"),
        path=re.compile(
            r"/v1beta(?!(?:/v1beta)?/interactions(?:/|\Z))(?:/.*+)?\Z|(?:^/?|/v1)/tunedModels(?:/.*+)?\Z", re.DOTALL
        ),
        header="x-goog-api-key",
        methods=frozenset({*GENERATE, "countTokens"}),
        event_ids=False,  # google-genai fails at other lines than ``data``, and @google/genai returns an empty text
        in_words="Gemini's paths, which end in :generateContent, :streamGenerateContent or :countTokens",
        address=_address,
        counted=_counted,
        count_answer=lambda tokens: {"totalTokens": tokens},
        array=ARRAY,
        models=Models(path="/v1beta/models", list=_list, detail=_model),
    ),
)
