"""What OpenAI's Chat and Responses have in common, although each has its own members and envelopes.

Source: dialects.md §1.3, §1.4, §2.3, §7.3, §7.4, §7.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from attrs import evolve

from streamkit.conversation.checks import ToolRules
from streamkit.conversation.media import media_type_of
from streamkit.conversation.messages import (
    CacheMark,
    Citation,
    Extras,
    Media,
    OutputFormat,
    Part,
    Request,
    Response,
    Text,
    Thinking,
    ToolChoice,
    Unreadable,
)
from streamkit.dialects.http import ModelCard, Models, with_root
from streamkit.dialects.lowering import Lowering, asked_effort
from streamkit.dialects.members.fields import Fields, without_none
from streamkit.dialects.members.values import others_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.dialects.vocabulary.models import UNKNOWN, ModelInfo
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
URL_MEMBERS: Final = frozenset({"type", "url", "title", "start_index", "end_index"})


def read_url_citation(raw: Any, quoting: str = "") -> tuple[list[Citation], Sequence[str]]:
    """Return the citation in an object of the wire, and the names of other members; both empty if it has no URL.

    ``quoting`` is the name of the member with the text of the page.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("url"), str):
        return [], ()
    title, quote = raw.get("title"), raw.get(quoting)
    citation = Citation(
        raw["url"], title if isinstance(title, str) else None, quote if isinstance(quote, str) else None
    )
    start, end = raw.get("start_index"), raw.get("end_index")
    if type(start) is int and type(end) is int and 0 <= start <= end:
        citation.start, citation.end = start, end
    return [citation], [*others_of(raw, URL_MEMBERS | {quoting})]


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
        if nested and citation.quote:  # OpenRouter's member
            said["content"] = citation.quote
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
    # OpenAI has no members for sizes and media; these are OpenRouter's (and Groq's for the output), which most clients read
    sizes = without_none(context_length=card.context, max_completion_tokens=card.output)
    known = {"id": card.id, "object": "model", "created": card.created, "owned_by": card.owner, **sizes}
    if sizes:
        known["top_provider"] = sizes
    if card.inputs:
        words = ["file" if kind == "pdf" else kind for kind in card.inputs]
        known["architecture"] = {"input_modalities": words}
    return known


#: The list of models, in the form that the openai package reads.
MODELS: Final = Models(
    path="/v1/models",
    list=lambda cards, _query: {"object": "list", "data": [_model(card) for card in cards]},
    detail=_model,
)


#: Allowed ids of calls, and allowed ids of users.
IDS: Final = re.compile(r"(?s).{1,64}")
USERS: Final = re.compile(r"[ -~]{1,64}")
#: Members of a request that both dialects have, with the same name.
SHARED: Final = ("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "store", "metadata")
VECTOR_STORE: Final = Unreadable(
    "a vector store by its id", "send the texts that matter, or offer a function that searches them"
)
#: Keywords of a schema, and formats of a string, with which OpenAI does or does not hold a model to the schema.
UNENFORCED: Final = frozenset({
    "allOf", "contains", "default", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "maxProperties",
    "minContains", "minProperties", "not", "oneOf", "patternProperties", "prefixItems", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties", "uniqueItems",
})  # fmt: skip
ENFORCED_FORMATS: Final = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
#: File endings by media type, where they differ from the subtype (``application/pdf`` ends in ``pdf``).
ENDINGS: Final[Mapping[str, str]] = {
    "text/plain": "txt",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/octet-stream": "bin",
}


def takes_marks(model: ModelInfo, *, related: bool) -> bool:
    """Return whether a model takes cache marks. An unknown model gets those that a ``related`` (OpenAI) dialect had."""
    return bool(model.cache_marks) or (related and model is UNKNOWN)


def shared_members(extras: Extras, *, verbosity_in_text: bool) -> tuple[dict[str, Any], Extras]:
    """Split extras into the members that both OpenAI dialects have, in the form of the target, and the rest."""
    written = {name: extras[name] for name in SHARED if extras.get(name) is not None}
    rest = {name: value for name, value in extras.items() if name not in SHARED}
    text = rest.get("text")
    if verbosity_in_text and rest.get("verbosity") is not None:
        written["text"] = {"verbosity": rest.pop("verbosity")}
    elif not verbosity_in_text and isinstance(text, Mapping) and text.get("verbosity") is not None:
        written["verbosity"] = text["verbosity"]
        rest["text"] = {name: value for name, value in text.items() if name != "verbosity"}
    return written, rest


def effort_alone(thinking: Thinking, to: Lowering, *lost: str) -> str | None:
    """Return the amount of thinking as an effort that the model knows. Count as lost the members ``lost``."""
    to.lose_thinking(thinking, *lost)
    if to.own or thinking.enabled is not False:
        to.lose_thinking(thinking, "enabled")
        return to.fit_effort(asked_effort(thinking))
    effort = to.takes.model.fit("none")
    if effort != "none":  # only the effort ``none`` turns thinking off
        to.lose("parameter", "thinking.enabled")
    return effort


def form_fits(request: Request, to: Lowering) -> None:
    """Drop an output format that a model of OpenAI lacks: older ones have no schemas, and the oldest no JSON."""
    model, output = to.takes.model, request.options.output
    if output is not None and output.kind != "text" and model.vendor == "openai" and output.kind not in model.forms:
        to.lose("parameter", "output")
        request.options.output = None


def strict_fits(request: Request, to: Lowering) -> None:
    """Drop ``strict`` from functions and from the output format if OpenAI refuses their schemas; each is a loss.

    Claude enforces schemas with optional properties, for which OpenAI refuses the whole request.
    """
    unfit = {tool.name for tool in request.tools if tool.strict and not enforceable(tool.parameters)}
    for name in unfit:
        to.lose("tool_strict", name)
    if unfit:
        request.tools = [evolve(tool, strict=None) if tool.name in unfit else tool for tool in request.tools]
    output = request.options.output
    if output is not None and output.strict and not enforceable(output.schema):
        to.lose("parameter", "output.strict")
        request.options.output = evolve(output, strict=None)


def enforceable(schema: object) -> bool:
    """Return whether OpenAI can hold a model to a schema.

    Objects must be closed and all their properties required. Only some keywords are known, and none may be next to ``$ref``.
    """
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping) or node.keys() & UNENFORCED or ("$ref" in node and len(node) > 1):
            return False
        kind, items, either = node.get("type"), node.get("items"), node.get("anyOf", [])
        kinds = kind if isinstance(kind, list) else [kind]
        maps = [node.get(name, {}) for name in ("properties", "$defs", "definitions")]
        if not isinstance(either, list) or not all(isinstance(named, Mapping) for named in maps):
            return False
        if "object" in kinds or maps[0] or node is schema:
            required = node.get("required", [])
            required = {name for name in required if isinstance(name, str)} if isinstance(required, list) else {}
            if "object" not in kinds or node.get("additionalProperties") is not False or maps[0].keys() - required:
                return False
        if (items is None and "array" in kinds) or node.get("format", "date") not in ENFORCED_FORMATS:
            return False
        waiting += [
            *either,
            *([] if items is None else [items]),
            *(inner for named in maps for inner in named.values()),
        ]
    return True


def named_file(media: Media, to: Lowering) -> Media:
    """Give a name to a file with content, because the server requires one. Its ending fits the media type."""
    if media.name is not None or media.data is None:
        return media
    to.report.repair("file_named")
    kind = media_type_of(media)
    ending = ENDINGS.get(kind) or kind.partition("/")[2]
    return evolve(media, name=f"file.{ending}" if ending.isalnum() else "file")


def write_form(output: OutputFormat | None, *, nested: bool) -> dict[str, Any] | None:
    """Return the output format; None if none is requested. ``nested``: Chat puts the schema into an inner object."""
    if output is None:
        return None
    if output.kind != "schema":
        return {"type": "json_object" if output.kind == "json" else "text"}
    schema = without_none(
        name=output.name or SCHEMA_NAME, description=output.description, schema=output.schema, strict=output.strict
    )
    return {"type": "json_schema", "json_schema": schema} if nested else {"type": "json_schema", **schema}
