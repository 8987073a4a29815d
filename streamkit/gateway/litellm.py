"""A configuration of LiteLLM's proxy, as one of this gateway.

``convert`` takes the values of the YAML file. It returns the tables of ``gateway.toml``, and a note for everything that these
tables cannot express or express in another way. Nothing is dropped without a note, except null. No secret is copied: a key in
the file becomes the name of an environment variable.

Source: litellm 1.106.2, types/router.py (``GenericLiteLLMParams``, ``UpdateRouterConfig``), proxy/_types.py
(``ConfigGeneralSettings``), and its ``get_llm_provider`` for the names and base URLs of providers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import define, field, frozen

from streamkit.errors import UsageError
from streamkit.text.quoting import without_secrets

ENV: Final = "os.environ/"  #: what LiteLLM writes before the name of an environment variable


@frozen
class Provider:
    """The counterpart of a provider of LiteLLM. ``base_url`` may have the fields region, host, project and location."""

    dialect: str
    base_url: str = ""  #: empty: the file has to name it (``api_base``)
    key: str = ""  #: the environment variable that LiteLLM reads if the file has no key; empty: there is no key


_CHAT: Final = "openai-chat"
PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider("openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "azure": Provider("azure", "", "AZURE_API_KEY"),
    "azure_ai": Provider("azure-anthropic", "", "AZURE_AI_API_KEY"),
    "gemini": Provider("gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
    "vertex_ai": Provider(
        "vertex-gemini", "https://{host}/v1/projects/{project}/locations/{location}/publishers/google"
    ),
    "bedrock": Provider("bedrock", "https://bedrock-runtime.{region}.amazonaws.com"),
    "ollama": Provider("ollama", "http://127.0.0.1:11434"),
    "cohere": Provider("cohere", "https://api.cohere.com", "COHERE_API_KEY"),
    "mistral": Provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "deepseek": Provider("deepseek", "https://api.deepseek.com/beta", "DEEPSEEK_API_KEY"),
    "openrouter": Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "xai": Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    "together_ai": Provider("together", "https://api.together.ai/v1", "TOGETHERAI_API_KEY"),
    "fireworks_ai": Provider("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_AI_API_KEY"),
    "dashscope": Provider("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    "moonshot": Provider("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "minimax": Provider("minimax", "https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    "zai": Provider("zhipu", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
    "hosted_vllm": Provider("vllm", "", "HOSTED_VLLM_API_KEY"),
    "vllm": Provider("vllm", "", "HOSTED_VLLM_API_KEY"),
    "llamafile": Provider("llama.cpp", "http://127.0.0.1:8080/v1"),
    "lm_studio": Provider(_CHAT, "", "LM_STUDIO_API_KEY"),
    "perplexity": Provider(_CHAT, "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    "cerebras": Provider(_CHAT, "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "nvidia_nim": Provider(_CHAT, "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
    "sambanova": Provider(_CHAT, "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    "deepinfra": Provider(_CHAT, "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "novita": Provider(_CHAT, "https://api.novita.ai/v3/openai", "NOVITA_API_KEY"),
    "vercel_ai_gateway": Provider(_CHAT, "https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
    "litellm_proxy": Provider(_CHAT, "", "LITELLM_PROXY_API_KEY"),
    "openai_like": Provider(_CHAT, "", "OPENAI_LIKE_API_KEY"),
    "custom_openai": Provider(_CHAT, "", "OPENAI_API_KEY"),
}
ALIASES: Final = {
    "ollama_chat": "ollama", "cohere_chat": "cohere", "vertex_ai_beta": "vertex_ai", "bedrock_converse": "bedrock",
}  # fmt: skip
#: Why entries of some providers are left out, although streamkit knows their vendors.
NO_COUNTERPART: Final = {
    "github_copilot": "the gateway does not log in to GitHub; with a token of yours, write an upstream with "
    'dialect = "github-copilot"',
    **dict.fromkeys(("text-completion-openai", "text-completion-codestral"), "text completions are not served"),
}
#: Stands in a URL for what the file does not say. No such host exists (RFC 2606).
MISSING: Final = "missing.invalid"
SCOPE: Final = (
    "streamkit has no accounts, virtual keys, budgets or database; keep LiteLLM in front, or use another tool for it"
)
#: Members of the tables of settings that need no place here: why.
UNNEEDED: Final[Mapping[str, str]] = {
    "drop_params": "always on: parameters that a model refuses are left out and counted",
    "modify_params": "always on: requests are changed to the form that the provider requires, and each change is counted",
    "set_verbose": 'use log_level = "debug" in [server]',
    "json_logs": "the log is JSON unless it goes to a terminal; log_format in [server] sets it",
    "enable_pre_call_checks": 'use next_on = ["default", "context_length"] of a route',
    "use_litellm_proxy": "not needed",
    "stream": "the client decides whether a response is streamed",
    "enable_openai_websocket_passthrough": "not needed: Responses over a WebSocket is served for every upstream",
    "cancel_on_disconnect": "not needed: a client that leaves ends its upstream at once",
    "max_request_size_mb": "use body_bytes in [server]",
    "max_in_flight_requests_per_worker": "use max_streams in [server]",
    "max_parallel_requests": "use max_streams in [server]",
    "global_max_parallel_requests": "use max_streams in [server]",
    "keepalive_seconds": "use keep_alive_s in [server]",
    "redis_host": "not needed: the gateways share no state", "redis_port": "not needed: the gateways share no state",
    "redis_password": "not needed: the gateways share no state", "redis_url": "not needed: the gateways share no state",
    "cache": "responses are not cached; cache = \"auto\" of an upstream marks prompts for the provider's cache",
    "cache_params": "responses are not cached; cache = \"auto\" of an upstream marks prompts for the provider's cache",
    "vertex_credentials": "google-auth finds the credentials: set GOOGLE_APPLICATION_CREDENTIALS",
    "aws_access_key_id": "botocore finds the credentials: set AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "botocore finds the credentials: set AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "botocore finds the credentials: set AWS_SESSION_TOKEN",
    "aws_profile_name": "botocore finds the credentials: set AWS_PROFILE",
    "num_retries": "use retries of the route", "max_retries": "use retries of the route",
    "extra_body": "write its members as `set` of the upstream",
    "model_info": "not expressed: a table of known models has their sizes, and prices are not used",
    "include": "not read: convert each included file as well, and join the tables",
    "alerting": "not expressed: let Prometheus alert, with the rules of docs/grafana/alerts.yml",
    "guardrails": "not expressed: use stages of a route, which change or end responses",
    "organization": 'use headers = { "OpenAI-Organization" = "…" } of the upstream',
    "mock_response": "`streamkit mock` and `streamkit replay` respond without a provider",
    "forward_client_headers_to_llm_api": "headers of clients are passed on by a fixed list",
    "background_health_checks": "not needed: an upstream that fails rests, and is probed by one request (`rest`)",
    "health_check_interval": "not needed: an upstream that fails rests, and is probed by one request (`rest`)",
}  # fmt: skip
#: Callbacks that have a counterpart here.
CALLBACKS: Final = {
    "prometheus": "not needed: /metrics is served at the private port",
    "otel": "use [telemetry] with otlp = true", "langfuse_otel": "use [telemetry] with otlp = true",
    "arize": "use [telemetry] with otlp = true", "arize_phoenix": "use [telemetry] with otlp = true",
}  # fmt: skip
_REGION: Final = r"[a-z]{2}(?:-[a-z]+)+-\d"
#: What LiteLLM reads before a model's name. It is no part of the name.
_BEFORE: Final = {
    "openai": r"^responses/",
    "azure": r"^(responses|o_series|gpt5_series)/",
    "bedrock": rf"^((converse|converse_like|invoke)/)?({_REGION}/)?",
}
#: The region in the path or the ARN of a model of Bedrock.
_REGION_OF_MODEL: Final = re.compile(rf"(?:^|/|arn:aws[a-z-]*:bedrock:)({_REGION})[/:]")
#: The modes of LiteLLM's models that the gateway serves.
MODES: Final = frozenset({None, "chat", "responses"})
#: Names of models for embeddings, images and speech, which entries seldom give a mode.
_OTHER_MODELS: Final = re.compile(r"embed|rerank|dall-e|gpt-image|whisper|tts|moderation", re.IGNORECASE)
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
FALLBACKS: Final = {
    "fallbacks": None,
    "context_window_fallbacks": "context_length",
    "content_policy_fallbacks": "content_filter",
}


@define
class Conversion:
    """A converted configuration: ``tables`` for TOML, and ``notes``, each a path in the YAML file and a sentence."""

    tables: dict[str, Any] = field(factory=dict)
    notes: list[tuple[str, str]] = field(factory=list)
    #: The targets of each name that clients use, in groups of equals.
    targets: dict[str, list[list[dict[str, Any]]]] = field(factory=dict)
    #: Where the file names each fallback, and each model with fallbacks of one kind.
    places: dict[str | tuple[str, str], str] = field(factory=dict)
    #: The environment variables that the tables name. Each has the key that the file contains for it, or None.
    variables: dict[str, str | None] = field(factory=dict, repr=False)

    def note(self, path: str, text: str) -> None:
        self.notes.append((path, text))


def convert(config: Any) -> Conversion:
    """Return the tables and the notes for a configuration of LiteLLM's proxy. Raises UsageError if it has no models."""
    if (
        not isinstance(config, Mapping)
        or not isinstance(config.get("model_list"), Sequence)
        or not config["model_list"]
    ):
        raise UsageError(
            "model_list: missing or empty; write the path of a configuration of LiteLLM's proxy (config.yaml)"
        )
    made = Conversion({"server": {"port": 4000}, "upstreams": {}, "routes": []})
    config = _shaped(made, "", config, FILE)
    tables = {name: config.get(name, {}) for name in SETTINGS}
    entries = [_read_entry(made, f"model_list[{number}]", entry) for number, entry in enumerate(config["model_list"])]
    made.variables = dict.fromkeys(_variables(config, entries))
    nearer, timeouts = (_timeouts(made, table, name) for name, table in tables.items())
    if nearer and timeouts:
        made.note("litellm_settings", "its timeout is not used: that of router_settings is")
    named: dict[str, list[Any]] = {}
    for number, entry in enumerate(entries):
        if target := _target(made, entry, path := f"model_list[{number}]", nearer or timeouts):
            named.setdefault(entry["model_name"], []).append((path, entry["litellm_params"], target))
    made.targets = {name: _groups(made, each) for name, each in named.items()}
    _routes(made, tables)
    _server(made, config.get("general_settings", {}))
    for name in config.get("environment_variables", ()):
        made.note(f"environment_variables.{name}", "set it in the environment of the gateway")
    for name in config.keys() - FILE.members - {"model_list"}:
        made.note(name, UNNEEDED.get(name, "not expressed: the gateway serves models only; keep LiteLLM for this"))
    places = {name: number for number, name in enumerate(config)}
    made.notes.sort(key=lambda note: places.get(re.split(r"[.\[]", note[0])[0], len(places)))
    return made


# -- shapes ----------------------------------------------------------------------------------------------------------------


@frozen
class Shape:
    """The shape of a value of the file. ``read`` returns the value, and raises TypeError or ValueError for other shapes."""

    wanted: str
    read: Callable[[Any], Any]
    each: Shape | None = None  #: the shape of each value of a list, or of a mapping from any names
    members: Mapping[str, Shape] = {}  #: the shapes of the members of a table; others are kept as they are
    instead: str | None = None  #: written for a value of another shape


def _shaped(made: Conversion, path: str, value: Any, shape: Shape) -> Any:
    """Return a value without what has another shape, which is noted, and without members that are null or empty texts.

    These set nothing in LiteLLM.
    """
    try:
        value = shape.read(value)
    except (TypeError, ValueError, OverflowError):  # OverflowError: a number that is too large for a float
        text = f"not used, because it is not {shape.wanted}"
        if isinstance(value, str) and value.startswith(ENV):
            text = f"write the value of {value.removeprefix(ENV)} itself: only keys come from the environment"
        made.note(path, f"{text}; {shape.instead} is written, correct it" if shape.instead else text)
        return shape.instead
    if isinstance(value, list) and shape.each:
        items = [_shaped(made, f"{path}[{number}]", each, shape.each) for number, each in enumerate(value)]
        return [each for each in items if each is not None]
    if isinstance(value, dict):
        for name, each in value.items():
            place = f"{path}.{name}".removeprefix(".")
            if shape.each:
                value[name] = _shaped(made, place, each, shape.each)
            elif name in shape.members:
                value[name] = None if each in (None, "") else _shaped(made, place, each, shape.members[name])
        return {name: each for name, each in value.items() if each is not None}
    return value


def _read_any_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(value)


def _read_text(value: Any) -> str:
    """Return a text that is not a variable of the environment."""
    if (text := _read_any_text(value)).startswith(ENV):
        raise ValueError
    return text


def _read_name(value: Any) -> str:
    if not re.fullmatch(r"[\w.:-]+", text := _read_text(value)):  # it becomes a part of a URL
        raise ValueError
    return text


def _read_number(value: Any) -> float:
    number = float(value) if isinstance(value, str) else value  # LiteLLM accepts "3" for 3
    if isinstance(number, bool) or not math.isfinite(number):
        raise ValueError
    return int(number) if number == int(number) else float(number)


def _read_whole(value: Any) -> int:
    if (number := _read_number(value)) != int(number):
        raise ValueError
    return int(number)


def _read_url(value: Any) -> str:
    url = urlsplit(text := _read_text(value).strip())
    if url.scheme not in {"http", "https"} or not url.hostname or url.port == 0:
        raise ValueError
    return text


def _read_list(value: Any) -> list[Any]:
    if not isinstance(value, list | str):
        raise TypeError
    return [value] if isinstance(value, str) else value  # as in LiteLLM, a text may stand for a list of one


def _read_mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return {str(name): each for name, each in value.items()}


def _read_alias(value: Any) -> dict[str, Any]:
    return _read_mapping(value if isinstance(value, Mapping) else {"model": value})


def _list_of(shape: Shape | None) -> Shape:
    return Shape("a list", _read_list, each=shape)


def _by_name(shape: Shape) -> Shape:
    return Shape("a mapping", _read_mapping, each=shape)


def _table(members: Mapping[str, Shape]) -> Shape:
    return Shape("a mapping", _read_mapping, members=members)


_ANY: Final = Shape("", lambda value: value)
_ANY_TEXT: Final = Shape("a text", _read_any_text)
_TEXT: Final = Shape("a text", _read_text)
_NAME: Final = Shape("a name", _read_name)
_NUMBER: Final = Shape("a number", _read_number)
_WHOLE: Final = Shape("a whole number", _read_whole)
_URL: Final = Shape("a URL that begins with https:// or http://", _read_url, instead=f"https://{MISSING}")
_TIMEOUTS: Final = dict.fromkeys(("stream_timeout", "timeout", "request_timeout"), _NUMBER)
CALLBACK_LISTS: Final = dict.fromkeys(("callbacks", "success_callback", "failure_callback"), _list_of(None))
#: The parameters of an entry of ``model_list`` that are read below.
PARAMS: Final[Mapping[str, Shape]] = {
    "model": _ANY_TEXT, "custom_llm_provider": _TEXT,
    **dict.fromkeys(("aws_region_name", "region_name", "vertex_project", "vertex_location"), _NAME),
    **dict.fromkeys(("api_base", "base_url", "aws_bedrock_runtime_endpoint"), _URL),
    "api_key": _ANY_TEXT, "api_version": _ANY, "extra_headers": _by_name(_ANY_TEXT), "max_tokens": _WHOLE, **_TIMEOUTS,
    "additional_drop_params": _list_of(_TEXT), **dict.fromkeys(("weight", "rpm", "tpm"), _NUMBER), "order": _WHOLE,
}  # fmt: skip
ENTRY: Final = _table(
    {"model_name": _TEXT, "litellm_params": _table(PARAMS), "model_info": _table({"mode": _TEXT, "base_model": _TEXT})}
)
#: The settings that are read below. LiteLLM reads those of its router in both tables, and prefers router_settings.
LITELLM_SETTINGS: Final[Mapping[str, Shape]] = {
    "num_retries": _WHOLE, "max_retries": _WHOLE, "allowed_fails": _WHOLE, "cooldown_time": _NUMBER, **_TIMEOUTS,
    "default_fallbacks": _list_of(_TEXT), **dict.fromkeys(FALLBACKS, _list_of(_by_name(_list_of(_TEXT)))),
    **CALLBACK_LISTS,
}  # fmt: skip
SETTINGS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "router_settings": {
        **LITELLM_SETTINGS,
        "routing_strategy": _TEXT,
        "model_group_alias": _by_name(Shape("a text", _read_alias, members={"model": _TEXT})),
    },
    "litellm_settings": LITELLM_SETTINGS,
}
FILE: Final = _table(
    {
        **{name: _table(shapes) for name, shapes in SETTINGS.items()},
        "general_settings": _table({"master_key": _ANY_TEXT}),
        "environment_variables": _table({}),
    }
)


# -- models ----------------------------------------------------------------------------------------------------------------


def _read_entry(made: Conversion, path: str, entry: Any) -> dict[str, Any]:
    """Return an entry of ``model_list`` with its members in their shapes. Raises UsageError if it names no model."""
    read: dict[str, Any] = _shaped(made, path, entry, ENTRY) or {}
    params = read.get("litellm_params", {})
    if "base_url" in params:  # LiteLLM prefers it
        if "api_base" in params:
            made.note(f"{path}.litellm_params.api_base", "not used: base_url is")
        params["api_base"] = params.pop("base_url")
    if "model_name" not in read or "model" not in params:
        raise UsageError(f"{path}: write model_name, and litellm_params with a model")
    for member in read.keys() - ENTRY.members:
        made.note(f"{path}.{member}", "not expressed")
    return read


def _target(
    made: Conversion, entry: Mapping[str, Any], path: str, timeouts: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Add the upstream of an entry of ``model_list``, and return the entry's target; None: the entry is left out."""
    name, params, info = entry["model_name"], entry["litellm_params"], entry.get("model_info", {})
    where = f"{path}.litellm_params"
    provider, model = _provider(params)
    if provider not in PROVIDERS:
        why = NO_COUNTERPART.get(provider, f"the provider {provider} has no counterpart here")
        made.note(f"{where}.model", f"{why}; the entry is left out")
        return None
    mode = info.get("mode")
    if mode not in MODES:
        made.note(f"{path}.model_info.mode", f"{mode} is not served; the entry is left out, keep LiteLLM for it")
        return None
    if mode is None and (found := _OTHER_MODELS.search(model)):
        made.note(
            f"{where}.model", f"a model for {found[0]} is not served; the entry is left out, unless its mode is chat"
        )
        return None
    if "*" in model and "*" not in name:
        made.note(f"{where}.model", f"{name} has no * that could replace the one of {model}; the entry is left out")
        return None
    if model == "*" and not params.get("api_base") and "/" not in params["model"]:
        made.note(
            f"{where}.model",
            f"* takes the provider from the client's name; {provider} is written: add a route for each other",
        )
    upstream = _upstream(made, provider, model, params, where, timeouts)
    if provider == "azure" and "base_model" in info:
        upstream["model_like"] = info["base_model"].rpartition("/")[2]
    elif info:
        made.note(f"{path}.model_info", UNNEEDED["model_info"])
    for limit in "rpm", "tpm":
        if limit in params:
            made.note(f"{where}.{limit}", "requests are not limited by rate; it is used as a weight among equals")
    for member in params.keys() - PARAMS:
        made.note(f"{where}.{member}", _why(member, params[member]))
    return {"upstream": _named(made, provider, upstream), "model": model}


def _groups(made: Conversion, entries: Sequence[tuple[str, Mapping[str, Any], dict[str, Any]]]) -> list[Any]:
    """Return the groups of a name's entries. As in LiteLLM, an entry without ``order`` comes after those that have it.

    The weights of equals are those of the first of ``weight``, ``rpm`` and ``tpm`` that one of them has. LiteLLM chooses an
    equal without that weight only if all others rest, so these are a group of their own.
    """
    groups = []
    for order in sorted({params.get("order", math.inf) for _, params, _ in entries}):
        equals = [entry for entry in entries if entry[1].get("order", math.inf) == order]
        kinds = (kind for kind in ("weight", "rpm", "tpm") if any(params.get(kind, 0) > 0 for _, params, _ in equals))
        kind = next(kinds, "weight")
        heavy = [{**target, "weight": params[kind]} for _, params, target in equals if params.get(kind, 0) > 0]
        light = [target for _, params, target in equals if params.get(kind, 0) <= 0]
        for path in (path for path, params, _ in equals if heavy and params.get(kind, 0) <= 0):
            made.note(f"{path}.litellm_params.{kind}", "missing or not above 0: the target is tried after its equals")
        groups += [list(map(dict, dict.fromkeys(tuple(each.items()) for each in group))) for group in (heavy, light)]
    return [group for group in groups if group]


def _why(member: str, value: Any) -> str:
    if member in UNNEEDED:
        return UNNEEDED[member]
    if "cost" in member or "budget" in member or member == "tiered_pricing":
        return "costs are not counted; tokens are, in the log and in /metrics"
    shown = value if isinstance(value, int | float | bool) else "…"
    return f"not expressed; to replace what clients send, write set = {{ {member} = {shown} }} of the upstream, in its dialect"


def _provider(params: Mapping[str, Any]) -> tuple[str, str]:
    """Return the provider of an entry and the model's name there."""
    model = params["model"]
    head, slash, rest = model.partition("/")
    if given := params.get("custom_llm_provider"):
        provider, model = given, rest if head == given else model
    elif slash:
        provider, model = head, rest
    elif model.startswith("claude"):
        provider = "anthropic"
    elif params.get("api_base") or re.match(r"gpt-|o\d|chatgpt-|\*$", model):
        provider = "openai"
    else:
        provider, model = model, ""
    provider = ALIASES.get(provider, provider)
    return provider, re.sub(_BEFORE.get(provider, ""), "", model)


def _upstream(
    made: Conversion, provider: str, model: str, params: Mapping[str, Any], where: str, timeouts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the table of the upstream that an entry needs."""
    known = PROVIDERS[provider]
    upstream = _place(made, provider, model, params, where)
    base = upstream["base_url"] or known.base_url
    if not base:
        base = f"https://{MISSING}{'/openai/v1' if provider == 'azure' else '/v1'}"
        made.note(f"{where}.api_base", f"missing, or not written in the file: {base} is written; correct it")
    url = urlsplit(base)
    if "@" in url.netloc:
        made.note(
            f"{where}.api_base",
            'user and password are not copied: write auth = "none", and Authorization as a key in `headers`',
        )
    if url.query or url.fragment:
        made.note(f"{where}.api_base", "what follows ? or # is not copied: /openai/v1 of Azure needs no version")
    base = url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
    upstream["base_url"] = re.sub(r"/(chat/completions|messages|responses)/?$", "", base)
    upstream |= _key(made, upstream, provider, params, where)
    own = {**timeouts, **_timeouts(made, params, where)}
    if own:
        upstream["timeouts"] = own
    if headers := params.get("extra_headers"):
        upstream["headers"] = {
            name: _header(made, name, value, f"{where}.extra_headers.{name}") for name, value in headers.items()
        }
        if "key" in upstream and "authorization" in map(str.lower, headers):
            upstream["auth"] = "none"  # the header is sent in place of the key
            made.note(
                f"{where}.extra_headers", f"Authorization is sent instead of the key {upstream.pop('key')['env']}"
            )
    if "max_tokens" in params:
        upstream["max_tokens"] = params["max_tokens"]
        made.note(f"{where}.max_tokens", "sent only if the provider requires a limit and the client sends none")
    if dropped := params.get("additional_drop_params"):
        upstream["drop"] = [re.sub(r"\[\*?\]", ".*", each) for each in dropped]
        made.note(
            f"{where}.additional_drop_params",
            f"written as `drop`: check that the paths are those of {upstream['dialect']}",
        )
    return upstream


def _place(made: Conversion, provider: str, model: str, params: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the dialect and the base URL of an entry, and the region for AWS."""
    dialect = PROVIDERS[provider].dialect
    base = params.get("api_base", "")
    more: dict[str, Any] = {}
    if provider == "openai" and base:
        dialect = _CHAT  # another server with OpenAI's dialect: few have Responses
    elif provider == "azure":
        if base:
            url = urlsplit(base)
            base = url._replace(path=re.sub(r"/openai(/.*)?$|/$", "", url.path) + "/openai/v1").geturl()
        if "/deployments/" in params.get("api_base", ""):
            made.note(f"{where}.api_base", f"/openai/v1 of Azure is written, where {model} is the deployment: check it")
        if "api_version" in params:
            made.note(f"{where}.api_version", "not needed: /openai/v1 of Azure has no version")
    elif provider == "azure_ai" and "claude" not in model:
        dialect = _CHAT
    elif provider == "vertex_ai":
        base = base or _vertex(made, params, where)
        if "claude" in model:
            dialect, base = "vertex-anthropic", base.removesuffix("/publishers/google")
    elif provider == "bedrock":
        region = params.get("aws_region_name") or params.get("region_name")
        if not region and (found := _REGION_OF_MODEL.search(params["model"])):
            region = found[1]
        if not region:
            region = "us-west-2"  # as LiteLLM does, if the environment has none
            made.note(
                f"{where}.aws_region_name", f"missing, or not written in the file: {region} is written; correct it"
            )
        more["region"] = region
        base = base or params.get("aws_bedrock_runtime_endpoint") or PROVIDERS["bedrock"].base_url.format(**more)
    return {"dialect": dialect, "base_url": base, **more}


def _vertex(made: Conversion, params: Mapping[str, Any], where: str) -> str:
    for name in "vertex_project", "vertex_location":
        if not params.get(name):
            made.note(f"{where}.{name}", "missing, or not written in the file: correct base_url")
    project, location = params.get("vertex_project"), params.get("vertex_location") or "us-central1"
    host = "aiplatform.googleapis.com" if location == "global" else f"{location}-aiplatform.googleapis.com"
    return PROVIDERS["vertex_ai"].base_url.format(host=host, project=project or "PROJECT", location=location)


def _key(
    made: Conversion, upstream: dict[str, Any], provider: str, params: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return how requests to an upstream show their key."""
    value, known = params.get("api_key"), PROVIDERS[provider]
    if provider in {"vertex_ai", "bedrock"}:
        if value and provider == "bedrock":
            upstream.pop("region")  # which only signatures need
            return {
                "auth": "bedrock-bearer",
                "key": _secret(made, value, f"{where}.api_key", "AWS_BEARER_TOKEN_BEDROCK"),
            }
        if value:
            made.note(f"{where}.api_key", UNNEEDED["vertex_credentials"])
        if provider == "bedrock":
            made.note(f"{where}.model", "needs the extra aws: pip install 'streamkit-llm[aws]'")
        return {}
    if not value and (not known.key or params.get("api_base")):
        if provider != "ollama":
            made.note(f"{where}.api_key", 'missing: auth = "none" is written')
        return {} if provider == "ollama" else {"auth": "none"}
    key = _secret(made, value, f"{where}.api_key", known.key) if value else {"env": known.key}
    return {"auth": "bearer", "key": key} if provider == "ollama" else {"key": key}


def _variables(config: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the environment variables that the file names, and those that LiteLLM reads for entries without a key."""
    found = set(re.findall(rf"{re.escape(ENV)}(\w+)", str(config)))
    for params in (entry["litellm_params"] for entry in entries):
        known = PROVIDERS.get(_provider(params)[0])
        if known and known.key and not params.get("api_key") and not params.get("api_base"):
            found.add(known.key)
    return found


def _header(made: Conversion, name: str, text: str, where: str) -> Any:
    """Return a header's value, or its environment variable if it is or may be secret."""
    if text.startswith(ENV) or _SECRET_HEADER.search(name) or without_secrets(text) != text:
        return _secret(made, text, where, re.sub(r"\W", "_", name).upper())
    return text


def _secret(made: Conversion, text: str, where: str, name: str) -> dict[str, str]:
    """Return a key's environment variable. A key that the file contains is not copied. Two keys have two variables."""
    if text.startswith(ENV):
        made.variables.setdefault(text.removeprefix(ENV))
        return {"env": text.removeprefix(ENV)}
    names = (name, *(f"{name}_{number}" for number in range(2, len(made.variables) + 3)))
    name = next(each for each in names if made.variables.get(each, text) == text)
    made.variables[name] = text
    made.note(where, f"the file contains the key itself, which is not copied: set the environment variable {name}")
    return {"env": name}


def _named(made: Conversion, provider: str, upstream: Mapping[str, Any]) -> str:
    """Return the name of an upstream, and add it if it is new."""
    tables = made.tables["upstreams"]
    for name, table in tables.items():
        if table == upstream:
            return str(name)
    stem = provider.replace("_", "-")
    name = next(n for n in (stem, *(f"{stem}-{number}" for number in range(2, len(tables) + 3))) if n not in tables)
    tables[name] = upstream
    return name


def _timeouts(made: Conversion, params: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the time limits. LiteLLM's ``timeout`` bounds each wait for bytes; ``stream_timeout`` does so for streams."""
    found: dict[str, Any] = {}
    for name in _TIMEOUTS:
        value = params.get(name)
        if value is not None and found:
            made.note(f"{where}.{name}", "not used: the other time-out of this table bounds streams")
        elif value is not None:
            made.note(f"{where}.{name}", "written as first_byte_s and idle_s: the waits before and between bytes")
            found = {"first_byte_s": value, "idle_s": value}
    return found


# -- routes ----------------------------------------------------------------------------------------------------------------


def _routes(made: Conversion, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the routes: one for each name of ``model_list``, with the targets of its fallbacks after its own."""
    routing = tables["router_settings"]
    _, retries = _first(made, tables, "num_retries", "max_retries")
    shared: dict[str, Any] = {} if retries is None else {"retries": retries}
    strategy = routing.get("routing_strategy", "simple-shuffle")
    if strategy == "least-busy":
        shared["balance"] = "fewest_open"
    elif strategy != "simple-shuffle":
        made.note("router_settings.routing_strategy", f"{strategy} has no counterpart: equals are chosen by weight")
    _rest(made, tables)
    aliases = _aliases(made, routing)
    orders = {reason: _fallbacks(made, name, tables) for name, reason in FALLBACKS.items()}
    for kind, model in [(kind, model) for kind, reason in FALLBACKS.items() for model in orders[reason]]:
        if model != "*" and model not in made.targets:
            if found := _groups_of(made, model):
                made.targets[model] = found
            else:
                made.note(
                    f"{made.places[kind, model]}.{model}", "no model_name of the file; its fallbacks are left out"
                )
    defaults: list[str] = []
    for table, given in tables.items():
        defaults += _names(made, f"{table}.default_fallbacks", given.get("default_fallbacks", ()))
    # names first, then the more special pattern before the more general one, which would cover it
    for name, groups in sorted(made.targets.items(), key=lambda item: ("*" in item[0]) * (1000 - len(item[0]))):
        # an alias wins over a model_name
        models = [each for each in dict.fromkeys((name, *aliases)) if aliases.get(each, each) == name]
        if not models:
            made.note(f"router_settings.model_group_alias.{name}", f"the entries of {name} are fallbacks only")
            continue
        following = {reason: order.get(name) or order.get("*", []) for reason, order in orders.items()}
        following[None] = following[None] or defaults
        route: dict[str, Any] = {"models": models, **shared}
        reasons = [reason for reason, others in following.items() if others and reason]
        if reasons:
            route["next_on"] = ["default", *reasons]
        if len([others for others in following.values() if others]) > 1:
            kinds = [(kind, model) for kind in FALLBACKS for model in (name, "*") if (kind, model) in made.places]
            made.note(made.places[kinds[0]], f"{name}: its fallbacks are tried in one order, for all reasons")
        to = [_equals(targets) for targets in [*groups, *_others(made, following, groups)]]
        if not any(isinstance(each, list) for each in to):
            route.pop("balance", None)  # there are no equals to choose from
        made.tables["routes"].append({**route, "to": to})
    for table, given in tables.items():
        _unread(made, table, given)


def _aliases(made: Conversion, routing: Mapping[str, Any]) -> dict[str, str]:
    """Return the model of each alias whose model the file has."""
    found = {}
    for alias, each in routing.get("model_group_alias", {}).items():
        place, model = f"router_settings.model_group_alias.{alias}", each.get("model")
        if model in made.targets:
            found[alias] = model
        else:
            made.note(place, f"{model} is no model_name of the file; it is left out")
        for member in each.keys() - {"model"}:
            made.note(f"{place}.{member}", "not expressed")
    return found


def _equals(targets: list[dict[str, Any]]) -> Any:
    """Return a group of equals; one target alone has no weight."""
    if len(targets) > 1:
        return targets
    return {member: value for member, value in targets[0].items() if member != "weight"}


def _others(
    made: Conversion, following: Mapping[str | None, Sequence[str]], groups: Sequence[Sequence[Any]]
) -> list[list[dict[str, Any]]]:
    """Return the groups of a model's fallbacks, each target once and without the model's own."""
    seen = [target for group in groups for target in group]
    found = []
    for other in dict.fromkeys(name for names in following.values() for name in names):
        if not (others := _groups_of(made, other)):
            made.note(made.places[other], f"{other} is no model_name of the file; it is left out")
        for targets in others:
            if new := [target for target in targets if target not in seen]:
                found.append(new)
                seen += new
    return found


def _groups_of(made: Conversion, name: str) -> list[list[dict[str, Any]]]:
    """Return the targets of a name. If only a pattern has it, its ``*`` is replaced in the targets' models."""
    if name in made.targets:
        return made.targets[name]
    fitting = [pattern for pattern in made.targets if "*" in pattern and fnmatchcase(name, pattern)]
    if not fitting:
        return []
    before, _, after = max(fitting, key=len).partition("*")
    part = name.removeprefix(before).removesuffix(after)
    return [
        [{**target, "model": target["model"].replace("*", part)} for target in targets]
        for targets in made.targets[max(fitting, key=len)]
    ]


def _unread(made: Conversion, name: str, table: Mapping[str, Any]) -> None:
    """Note each member of a table of settings that is not read above."""
    for member in table.keys() - SETTINGS[name]:
        made.note(f"{name}.{member}", UNNEEDED.get(member, "not expressed"))
    for member in table.keys() & CALLBACK_LISTS:
        for each in table[member]:
            text = CALLBACKS.get(
                str(each), "not expressed; the log has a line of JSON for each request; stages see responses"
            )
            made.note(f"{name}.{member}", f"{each}: {text}")


def _first(made: Conversion, tables: Mapping[str, Mapping[str, Any]], *names: str) -> tuple[str, Any]:
    """Return the first of these settings that the file has, with its place, and note the others; None: there is none."""
    found = [(f"{table}.{name}", given[name]) for table, given in tables.items() for name in names if name in given]
    for place, _ in found[1:]:
        made.note(place, f"not used: {found[0][0]} is")
    return found[0] if found else ("", None)


def _rest(made: Conversion, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the rest of upstreams after failures (``allowed_fails``, ``cooldown_time``)."""
    rest: dict[str, Any] = {}
    _, fails = _first(made, tables, "allowed_fails")
    if fails is not None:
        rest["failures"] = fails + 1
    place, seconds = _first(made, tables, "cooldown_time")
    if seconds == 0:
        made.note(place, "LiteLLM takes 0 for its default; to let no upstream rest, write rest = { failures = 0 }")
    elif seconds is not None:
        rest |= {"first_s": seconds, "max_s": seconds}  # each rest of LiteLLM has the same length
    for upstream in made.tables["upstreams"].values() if rest else ():
        upstream["rest"] = dict(rest)


def _fallbacks(made: Conversion, name: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the fallbacks of each model for one reason."""
    found: dict[str, list[str]] = {}
    for table, given in tables.items():
        for model, following in (pair for each in given.get(name, ()) for pair in each.items()):
            place = made.places.setdefault((name, model), f"{table}.{name}")
            found.setdefault(model, []).extend(_names(made, place, following))
    return found


def _names(made: Conversion, place: str, names: Sequence[str]) -> Sequence[str]:
    """Remember the place of fallbacks in the file, and return them."""
    for other in names:
        made.places.setdefault(other, place)
    return names


def _server(made: Conversion, general: Mapping[str, Any]) -> None:
    """Write the server's table: LiteLLM's port, and its master key as the only key of clients."""
    server = made.tables["server"]
    if key := general.get("master_key"):
        server["host"] = "0.0.0.0"  # noqa: S104 - as LiteLLM's, and with a key
        server["keys"] = [_secret(made, key, "general_settings.master_key", "LITELLM_MASTER_KEY")]
    else:
        made.note("general_settings.master_key", "missing: the gateway listens on loopback only; with keys, set host")
    for member in general.keys() - {"master_key"}:
        made.note(f"general_settings.{member}", UNNEEDED.get(member, SCOPE))
