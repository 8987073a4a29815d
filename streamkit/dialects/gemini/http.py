"""``generateContent`` over HTTP.

The model and whether to stream stand in the URL, whatever the body says. A stream that is asked for without ``alt=sse`` is one
JSON array (``array.py``).

Source: clients.md §10.1, §10.2; dialects.md §5.1; google-genai 3.4, which sends ``x-goog-api-key`` and never ``?key=``;
ai.google.dev/api/tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from streamkit.conversation.messages import Request
from streamkit.dialects.gemini.array import ARRAY
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
from streamkit.dialects.members.fields import fields_of
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: google-genai writes ``models/x`` or ``tunedModels/y`` and leaves slashes in names as they are.
NAME: Final = "{name:(?:models|tunedModels)/.+}"
#: google-genai 3.4 asks ``/v1``, earlier ones and most programs ``/v1beta``.
VERSIONS: Final = ("v1", "v1beta")
GENERATE: Final = ("generateContent", "streamGenerateContent")
#: The member for a whole request, in a request to count its tokens.
COUNTED: Final = "generateContentRequest"
#: Models on a page that names no size.
PAGE: Final = 50
#: A base URL that says which version, or on Vertex AI whose models: ``…/v1beta``, ``…/publishers/google``.
_VERSIONED: Final = re.compile(r"/v\d\w*$|/publishers/[^/]+$")
#: On Vertex AI, what stands under a location by a name of its own: other publishers' models, and tuned ones.
_OF_A_LOCATION: Final = frozenset({"publishers", "endpoints"})


# -- asking a server ---------------------------------------------------------------------------------------------------


def _place(base: str, model: str) -> str:
    """The clients ask v1 (Python) or v1beta (the others); the latter takes all that the former does, and fields in preview."""
    root = base if _VERSIONED.search(base) else f"{base}/v1beta"
    location, _, publisher = base.rpartition("/publishers/")
    if location and publisher and model.partition("/")[0] in _OF_A_LOCATION:
        root = location
    else:
        model = resource(model)
    return f"{root}/{'/'.join(segment(part) for part in model.split('/'))}"


def resource(model: str) -> str:
    """The resource's name of a model: ``models/gemini-x``, also of one that has it already."""
    collection, _, name = model.partition("/")
    return model if collection in {"models", "tunedModels"} and name else f"models/{model}"


# -- serving clients ---------------------------------------------------------------------------------------------------


def _address(line: RequestLine, _request: Request) -> Address:
    """The name behind ``models/``; a tuned model keeps its prefix, since it may be called as another is."""
    stream = line.path.endswith(":streamGenerateContent")
    alt = line.query.get("alt", "json")
    if alt not in {"json", "sse"}:
        raise BadRequest("alt", f"'sse' or 'json' is needed, not {quoted(alt, SHOWN_CHARS)}")
    return Address(line.match_info["name"].removeprefix("models/"), stream, stream and alt != "sse")


def _counted(body: bytes, report: StreamReport) -> tuple[bytes, str]:
    """Bare contents, or a whole request in a member of its own."""
    outer = StreamReport()
    fields = fields_of(body, outer).spelled(camel_case)
    if COUNTED not in fields:
        return body, ""
    if "contents" in fields:
        raise fields.wrong(f"this stands beside {COUNTED}, and one of them is read", "contents")
    if not isinstance(fields.peek(COUNTED), dict):
        raise fields.wrong("an object is needed", COUNTED)
    report.repairs.update(outer.repairs)  # of the text around it; bare contents are read once more instead
    return fields.text_of(COUNTED).encode(), COUNTED


def _list(models: Sequence[ModelCard], query: Query) -> dict[str, Any]:
    """A page token is the last model of the page before, so that it survives a change of the list."""
    start = place_of(models, query, "pageToken") + 1
    size = page_size(query, "pageSize", PAGE)
    page = models[start : start + size]
    following = {"nextPageToken": page[-1].id} if start + size < len(models) else {}
    return {"models": [_model(card) for card in page], **following}


def _model(card: ModelCard) -> dict[str, Any]:
    methods = [*GENERATE, *(["countTokens"] if card.counts else [])]
    return {"name": f"models/{card.id}", "displayName": card.id, "supportedGenerationMethods": methods}


def _paths(*methods: str) -> tuple[str, ...]:
    return tuple(f"/{version}/{NAME}:{method}" for version in VERSIONS for method in methods)


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
        event_ids=False,  # google-genai fails at any line but ``data``, and @google/genai gives an empty text
        in_words="Gemini's paths, which end in :generateContent, :streamGenerateContent or :countTokens",
        address=_address,
        counted=_counted,
        count_answer=lambda tokens: {"totalTokens": tokens},
        array=ARRAY,
        models=Models(path="/v1beta/models", list=_list, detail=_model),
    ),
)
