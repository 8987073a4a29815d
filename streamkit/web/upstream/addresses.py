"""Where an upstream's operations are: the URL of a request, for each dialect.

Paths are those of the official clients, and stand under the base URL that those clients take. Where people disagree whether a
version belongs into it (``https://api.anthropic.com`` or ``…/v1``), both do. A dialect of another package has no path that is
known here: its base URL is the address.

A model's name comes from a client where a route does not rename it. It is percent-encoded. Names have slashes: Bedrock's ARNs,
Gemini's resources. One that climbs as a path does, such as ``../x``, is refused though it is encoded, since what stands in
front of an upstream may decode it: nothing that a client says leads to another path.

Source: openai 3.54, anthropic 2.12, google-genai 3.4, ollama 0.6.3, cohere 7.3.1, mistralai 3.7, botocore 1.44; the tests hold
these clients' own requests against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, unquote

from yarl import URL

from streamkit.errors import BadRequest, UsageError
from streamkit.text.redact import excerpt
from streamkit.web.upstream.value import Upstream

#: What is asked: an answer of the model, or how many tokens the request has.
Operation: TypeAlias = Literal["generate", "count"]

#: Bedrock's longest (an ARN).
MODEL_CHARS: Final = 2048
#: Of a path, in a log: the model may stand in it, which is the client's word.
PATH_CHARS: Final = 300
#: A base URL that says which version, or on Vertex AI whose models: ``…/v1beta``, ``…/publishers/google``.
_VERSIONED: Final = re.compile(r"/v\d\w*$|/publishers/[^/]+$")
#: What stands in a segment as it is (RFC 3986 §3.3), beside letters, digits and `-._~`; botocore encodes it all the same.
_AS_IT_IS: Final = "!$&'()*+,;=:@"
#: On Vertex AI, what stands under a location by a name of its own: other publishers' models, and tuned ones.
_OF_A_LOCATION: Final = frozenset({"publishers", "endpoints"})
#: What parts a name as it parts a path, somewhere on the way.
_PARTS: Final = re.compile(r"[/\\]")
_COUNTS: Final = frozenset({"anthropic", "bedrock", "gemini", "openai-responses"})


def can_count(upstream: Upstream) -> bool:
    """Whether the upstream's dialect has an operation that counts the tokens of a request. Its server may still have none."""
    return upstream.wire.name in _COUNTS and not upstream.has_deployments


def address(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> str:
    """The URL of a request, percent-encoded as it is to be sent.

    Raises BadRequest for a model that can't stand in a path, where the dialect puts it there, and UsageError for a count that
    the dialect has no operation for.
    """
    if operation == "count" and not can_count(upstream):
        raise UsageError(f"{upstream.name} can't count tokens: {upstream.wire.name} has no operation for it there")
    base = str(URL(upstream.base_url)).rstrip("/")
    version = f"?api-version={quote(upstream.api_version, safe='')}" if upstream.api_version else ""
    if upstream.has_deployments:
        return _azure(upstream, base, model) + version
    path = _PATHS.get(upstream.wire.name)
    return base if path is None else path(base, model, "count" if operation == "count" else stream) + version


def path_of(upstream: Upstream, model: str, *, stream: bool, operation: Operation = "generate") -> str:
    """The path of a request, for a log: without the host, the query and what looks like a key. Empty: there is none."""
    try:
        path = URL(address(upstream, model, stream=stream, operation=operation), encoded=True).raw_path
    except (BadRequest, UsageError):
        return ""
    return excerpt(path, PATH_CHARS)


#: What is asked for: whether a stream, or a count.
_Asked: TypeAlias = bool | Literal["count"]


def _chat(base: str, _model: str, _asked: _Asked) -> str:
    return f"{base}/chat/completions"


def _responses(base: str, _model: str, asked: _Asked) -> str:
    return f"{base}/responses/input_tokens" if asked == "count" else f"{base}/responses"


def _anthropic(base: str, _model: str, asked: _Asked) -> str:
    return _under(base, "/v1") + ("/messages/count_tokens" if asked == "count" else "/messages")


def _ollama(base: str, _model: str, _asked: _Asked) -> str:
    return _under(base, "/api") + "/chat"


def _cohere(base: str, _model: str, _asked: _Asked) -> str:
    return _under(base, "/v2") + "/chat"


def _mistral(base: str, _model: str, _asked: _Asked) -> str:
    return _under(base, "/v1") + "/chat/completions"


def _gemini(base: str, model: str, asked: _Asked) -> str:
    """The clients ask v1 (Python) or v1beta (the others); the latter takes all that the former does, and fields in preview."""
    root = base if _VERSIONED.search(base) else f"{base}/v1beta"
    location, _, publisher = base.rpartition("/publishers/")
    if location and publisher and model.partition("/")[0] in _OF_A_LOCATION:
        root = location
    else:
        model = gemini_model(model)
    name = "/".join(_segment(part) for part in model.split("/"))
    if asked == "count":
        return f"{root}/{name}:countTokens"
    return f"{root}/{name}:streamGenerateContent?alt=sse" if asked else f"{root}/{name}:generateContent"


def _bedrock(base: str, model: str, asked: _Asked) -> str:
    operation = "count-tokens" if asked == "count" else "converse-stream" if asked else "converse"
    return f"{base}/model/{_segment(model, safe='')}/{operation}"


_PATHS: Final[dict[str, Callable[[str, str, _Asked], str]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "ollama": _ollama,
    "cohere": _cohere,
    "mistral": _mistral,
    "gemini": _gemini,
    "bedrock": _bedrock,
}


def _azure(upstream: Upstream, base: str, model: str) -> str:
    """Azure OpenAI with a version: the model is the deployment, unless base_url names one. Responses have none."""
    before, _, deployment = base.partition("/deployments/")
    root = _under(before, "/openai")
    if upstream.wire.name == "openai-responses":
        return f"{root}/responses"
    return f"{root}/deployments/{deployment or _segment(model)}/chat/completions"


def gemini_model(model: str) -> str:
    """The resource's name of a model: ``models/gemini-x``, also of one that has it already."""
    collection, _, name = model.partition("/")
    return model if collection in {"models", "tunedModels"} and name else f"models/{model}"


def _under(base: str, root: str) -> str:
    return base if base.endswith(root) else base + root


def _segment(name: str, safe: str = _AS_IT_IS) -> str:
    """A name as one segment of a path. A part that is empty or dots alone could climb out of it (RFC 3986 §5.2.4)."""
    if len(name) > MODEL_CHARS or not all(part.strip(".") for part in _PARTS.split(unquote(name))):
        raise BadRequest("model", f"a name of 1 to {MODEL_CHARS:,} characters is needed, and no part of it dots alone")
    return quote(name, safe=safe, errors="replace")
