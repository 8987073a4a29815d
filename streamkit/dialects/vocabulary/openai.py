"""What OpenAI's Chat and Responses have in common, although each has its own members and envelopes.

Source: dialects.md §1.3, §1.4, §2.3, §7.3, §7.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from streamkit.conversation.messages import CacheMark, Citation, Media, Part, Response, Text, ToolChoice
from streamkit.conversation.tool_definitions import ToolRules
from streamkit.dialects.http import ModelCard, Models, with_root
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import BadRequest
from streamkit.events import Aside, ErrorType, ProviderFailed, ResponseStarted
from streamkit.text.quoting import quoted

# -- errors ------------------------------------------------------------------------------------------------------------

#: Words for the type or code of an error.
ERROR_TYPES: Final[Mapping[str, ErrorType]] = {
    "invalid_request_error": "invalid_request",
    **dict.fromkeys(("authentication_error", "invalid_api_key"), "auth"),
    **dict.fromkeys(("insufficient_quota", "billing_error"), "billing"),
    "permission_error": "permission",
    **dict.fromkeys(("not_found_error", "model_not_found"), "not_found"),
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "requests", "tokens"), "rate_limit"),
    "server_error": "server",
    **dict.fromkeys(("overloaded", "overloaded_error", "service_unavailable"), "unavailable"),
    "timeout": "timeout",
    "stream_truncated": "truncated",
}
#: The official client retries each 429 unless the response has this header. It is sent if a bill is unpaid, because then
#: retries do not help.
NO_RETRY: Final = {"x-should-retry": "false"}


def decode_error(document: dict[str, Any], vendor: str, words: Mapping[str, ErrorType]) -> ProviderFailed | None:
    """Return the failure in an ``error`` object; None for Anthropic's (a ``type`` next to it) or Google's (a ``status``)."""
    error = document.get("error")
    if not isinstance(error, dict) or document.get("type") == "error" or isinstance(error.get("status"), str):
        return None
    return provider_failed(error, vendor, words)


# -- tools -------------------------------------------------------------------------------------------------------------

#: The rules for a tool's definition. They avoid OpenAI's errors "object schema missing properties", and "schema must have
#: type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
TOOLS: Final = ToolRules(
    names=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    properties=True,
    not_at_root=frozenset({"oneOf", "anyOf", "allOf", "enum", "not"}),
)


def mode_of_choice(mode: str, path: str) -> ToolChoice:
    """Return the tool choice for a single word such as ``auto``, at ``path`` in the request. Raises BadRequest."""
    match mode:
        case "auto" | "none" | "required":
            return ToolChoice(mode)
        case _:
            raise BadRequest(path, f"must be 'auto', 'none' or 'required', not {quoted(mode)}")


def with_parallel(choice: ToolChoice | None, parallel: bool | None) -> ToolChoice | None:
    """Return the tool choice with the setting for parallel calls; None if the request has neither."""
    if choice is None and parallel is not None:
        choice = ToolChoice()
    if choice is not None:
        choice.parallel = parallel
    return choice


def identity(
    answer: ResponseStarted | Response, encoding: Encoding, prefix: str, kind: str, created: str = "created"
) -> dict[str, Any]:
    """Return the first members of a response: id, kind, time and model. Values that the source lacks are made."""
    return {
        "id": answer.id or encoding.make_id(prefix),
        "object": kind,
        created: int(encoding.clock()) if answer.created is None else answer.created,
        "model": answer.model or encoding.profile.model,
    }


# -- the form of the response ------------------------------------------------------------------------------------------

#: OpenAI's words for the form of the output, and the neutral words.
OUTPUT_KINDS: Final[Mapping[str, Literal["text", "json", "schema"]]] = {
    "text": "text",
    "json_object": "json",
    "json_schema": "schema",
}
SCHEMA_NAME: Final = "response"  #: The name for a schema from another dialect, because OpenAI requires a name.

# -- content -----------------------------------------------------------------------------------------------------------

#: The cache mark for each ``ttl`` of a ``prompt_cache_breakpoint``. None: no ``ttl``, which counts as the shorter time.
CACHE_SPANS: Final[Mapping[str | None, CacheMark]] = {None: "short", "30m": "short", "12h": "long"}
CACHE_TTLS: Final[Mapping[CacheMark, str]] = {"short": "30m", "long": "12h"}
#: The media type for each ``format`` of ``input_audio``.
AUDIO_TYPES: Final[Mapping[str, str]] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS: Final[Mapping[str, str]] = {media_type: form for form, media_type in AUDIO_TYPES.items()}


def read_cache_mark(part: Fields) -> CacheMark | None:
    """Return the mark at which a cached prompt ends, from a part. Raises BadRequest."""
    mark = part.fields("prompt_cache_breakpoint")
    if mark is None:
        return None
    mode, ttl = mark.string("mode"), mark.string("ttl")
    if mode != "explicit":
        raise mark.wrong(f"must be 'explicit', not {quoted(mode)}", "mode")
    if ttl not in CACHE_SPANS:
        raise mark.wrong(f"must be '30m' or '12h', not {quoted(ttl)}", "ttl")
    return CACHE_SPANS[ttl]


def write_cache_mark(cache: CacheMark) -> dict[str, Any]:
    """Return the member of a part for a cache mark."""
    return {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": CACHE_TTLS[cache]}}


def read_audio(part: Fields) -> Media:
    """Read the audio in a part. The part's other members are read by ``finished_media``. Raises BadRequest."""
    audio = part.needed_fields("input_audio")
    form = audio.needed("format")
    return Media("audio", AUDIO_TYPES.get(form, f"audio/{form}"), audio.needed("data"))


def finished_media(media: Media, part: Fields) -> Media:
    """Add to media the cache mark and the unread members of the part that contains the media."""
    media.cache = read_cache_mark(part)
    media.extras = part.rest() or None
    return media


def only_of_tools(parts: Sequence[Part], fields: Fields, name: str) -> list[Text | Media | Aside]:
    """Return the parts of a tool's result, if they are allowed there. Raises BadRequest for a refusal in it."""
    for number, part in enumerate(parts):
        if not isinstance(part, Text | Media | Aside):
            raise fields.wrong("a tool result must not contain a refusal", f"{name}[{number}]")
    return cast("list[Text | Media | Aside]", parts)


# -- citations ---------------------------------------------------------------------------------------------------------

WEB: Final = "url_citation"  #: the type of a citation of a web page


def read_url_citation(raw: Any, quote: Any = None) -> list[Citation]:
    """Return the citation in an object of the wire; empty if the object has no URL."""
    if not isinstance(raw, dict) or not isinstance(raw.get("url"), str):
        return []
    title = raw.get("title")
    citation = Citation(
        raw["url"], title if isinstance(title, str) else None, quote if isinstance(quote, str) else None
    )
    start, end = raw.get("start_index"), raw.get("end_index")
    if type(start) is int and type(end) is int and 0 <= start <= end:
        citation.start, citation.end = start, end
    return [citation]


def write_url_citation(citation: Citation) -> dict[str, Any]:
    """Return the members that express a citation of a web page."""
    return {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": citation.title or "",
        "url": citation.url,
    }


def write_annotations(vendor: str, citations: Sequence[Citation], choice: int, *, nested: bool) -> list[Aside]:
    """Return asides of ``vendor`` for citations of web pages. ``nested``: the form of Chat, with an inner object."""
    asides = []
    for citation in citations:
        said = write_url_citation(citation)
        raw = {"type": WEB, WEB: said} if nested else {"type": WEB, **said}
        asides.append(Aside(vendor, "citation", "annotation", raw, choice, citation.block))
    return asides


# -- over HTTP ---------------------------------------------------------------------------------------------------------

#: The header with which clients request features. Its value is a list (True).
FEATURES: Final[Mapping[str, bool]] = {"openai-beta": True}
#: Response headers of OpenAI that are forwarded to clients, in addition to those of all vendors.
ANSWER_HEADERS: Final = ("openai-processing-ms", "openai-version")


def azure_root(base: str) -> str:
    """Return the root of an Azure resource, from a base URL that may name a deployment."""
    return with_root(base.partition("/deployments/")[0], "/openai")


def _model(card: ModelCard) -> dict[str, Any]:
    return {"id": card.id, "object": "model", "created": card.created, "owned_by": card.owner}


#: The list of models, in the form that the openai package reads.
MODELS: Final = Models(
    path="/v1/models",
    list=lambda cards, _query: {"object": "list", "data": [_model(card) for card in cards]},
    detail=_model,
)
