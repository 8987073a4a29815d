"""OpenAI's words that Chat and Responses have alike, each in members and envelopes of its own.

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

#: Words for the type of an error, or its code.
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
#: Nothing is paid by waiting, but the official client repeats a request at each 429 that does not say this.
NO_RETRY: Final = {"x-should-retry": "false"}


def decode_error(document: dict[str, Any], vendor: str, words: Mapping[str, ErrorType]) -> ProviderFailed | None:
    """An ``error`` object that is neither Anthropic's (a ``type`` beside it) nor Google's (a ``status`` in it)."""
    error = document.get("error")
    if not isinstance(error, dict) or document.get("type") == "error" or isinstance(error.get("status"), str):
        return None
    return provider_failed(error, vendor, words)


# -- tools -------------------------------------------------------------------------------------------------------------

#: What a tool's definition may be. OpenAI's own refusals: "object schema missing properties", and "schema must have type
#: 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
TOOLS: Final = ToolRules(
    names=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    properties=True,
    not_at_root=frozenset({"oneOf", "anyOf", "allOf", "enum", "not"}),
)


def mode_of_choice(mode: str, path: str) -> ToolChoice:
    """A choice among tools in one word, which stands at ``path``. Raises BadRequest."""
    match mode:
        case "auto" | "none" | "required":
            return ToolChoice(mode)
        case _:
            raise BadRequest(path, f"'auto', 'none' or 'required' is needed, not {quoted(mode)}")


def with_parallel(choice: ToolChoice | None, parallel: bool | None) -> ToolChoice | None:
    """A choice among tools that says whether several calls may come at once; None where neither was asked."""
    if choice is None and parallel is not None:
        choice = ToolChoice()
    if choice is not None:
        choice.parallel = parallel
    return choice


def identity(
    answer: ResponseStarted | Response, encoding: Encoding, prefix: str, kind: str, created: str = "created"
) -> dict[str, Any]:
    """The members that an answer of this ``kind`` begins with; what did not come is made."""
    return {
        "id": answer.id or encoding.make_id(prefix),
        "object": kind,
        created: int(encoding.clock()) if answer.created is None else answer.created,
        "model": answer.model or encoding.profile.model,
    }


# -- what is asked for -------------------------------------------------------------------------------------------------

#: Kinds of output, and ours.
OUTPUT_KINDS: Final[Mapping[str, Literal["text", "json", "schema"]]] = {
    "text": "text",
    "json_object": "json",
    "json_schema": "schema",
}
#: A schema must have a name, and other dialects give it none.
SCHEMA_NAME: Final = "response"

# -- content -----------------------------------------------------------------------------------------------------------

#: ``ttl`` of a ``prompt_cache_breakpoint``; without one it is that of the request, whose default is the shorter.
CACHE_SPANS: Final[Mapping[str | None, CacheMark]] = {None: "short", "30m": "short", "12h": "long"}
CACHE_TTLS: Final[Mapping[CacheMark, str]] = {"short": "30m", "long": "12h"}
#: ``format`` of ``input_audio``.
AUDIO_TYPES: Final[Mapping[str, str]] = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS: Final[Mapping[str, str]] = {media_type: form for form, media_type in AUDIO_TYPES.items()}


def read_cache_mark(part: Fields) -> CacheMark | None:
    """The mark that ends a cached prompt at a part. Raises BadRequest."""
    mark = part.fields("prompt_cache_breakpoint")
    if mark is None:
        return None
    mode, ttl = mark.string("mode"), mark.string("ttl")
    if mode != "explicit":
        raise mark.wrong(f"'explicit' is needed, not {quoted(mode)}", "mode")
    if ttl not in CACHE_SPANS:
        raise mark.wrong(f"'30m' or '12h' is needed, not {quoted(ttl)}", "ttl")
    return CACHE_SPANS[ttl]


def write_cache_mark(cache: CacheMark) -> dict[str, Any]:
    """The member of a part that marks it."""
    return {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": CACHE_TTLS[cache]}}


def read_audio(part: Fields) -> Media:
    """A part that is a sound, without what else the part says. Raises BadRequest."""
    audio = part.needed_fields("input_audio")
    form = audio.needed("format")
    return Media("audio", AUDIO_TYPES.get(form, f"audio/{form}"), audio.needed("data"))


def finished_media(media: Media, part: Fields) -> Media:
    """Media with what their part says beside them: a mark, and what nobody took."""
    media.cache = read_cache_mark(part)
    media.extras = part.rest() or None
    return media


def only_of_tools(parts: Sequence[Part], fields: Fields, name: str) -> list[Text | Media | Aside]:
    """The parts of the member ``name`` that a tool said. Raises BadRequest for what a tool can't say."""
    for number, part in enumerate(parts):
        if not isinstance(part, Text | Media | Aside):
            raise fields.wrong("a tool can't refuse", f"{name}[{number}]")
    return cast("list[Text | Media | Aside]", parts)


# -- citations ---------------------------------------------------------------------------------------------------------

#: The type of a citation of a web page.
WEB: Final = "url_citation"


def read_url_citation(raw: Any, quote: Any = None) -> list[Citation]:
    """The citation that these members say; none where they lack an address."""
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
    """The members that say a citation."""
    return {
        "start_index": citation.start,
        "end_index": citation.end,
        "title": citation.title or "",
        "url": citation.url,
    }


def write_annotations(vendor: str, citations: Sequence[Citation], choice: int, *, nested: bool) -> list[Aside]:
    """Asides of ``vendor`` that say citations of web pages; ``nested``: in an object of its own."""
    asides = []
    for citation in citations:
        said = write_url_citation(citation)
        raw = {"type": WEB, WEB: said} if nested else {"type": WEB, **said}
        asides.append(Aside(vendor, "citation", "annotation", raw, choice, citation.block))
    return asides


# -- over HTTP ---------------------------------------------------------------------------------------------------------

#: The header in which clients ask for features, which is a list.
FEATURES: Final[Mapping[str, bool]] = {"openai-beta": True}
#: What clients get of an answer's headers, beside what every vendor sends.
ANSWER_HEADERS: Final = ("openai-processing-ms", "openai-version")


def azure_root(base: str) -> str:
    """Where Azure's resources stand, of a base URL that may name a deployment."""
    return with_root(base.partition("/deployments/")[0], "/openai")


def _model(card: ModelCard) -> dict[str, Any]:
    return {"id": card.id, "object": "model", "created": card.created, "owned_by": card.owner}


#: The models that there are, as the openai package reads them.
MODELS: Final = Models(
    path="/v1/models",
    list=lambda cards, _query: {"object": "list", "data": [_model(card) for card in cards]},
    detail=_model,
)
