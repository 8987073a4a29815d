"""``streamkit import litellm``: the configuration that it writes is accepted, and everything else is a note."""

from __future__ import annotations

import tomllib

import pytest
import tomli_w
import yaml

from streamkit.cli import main
from streamkit.gateway.config import describe
from streamkit.gateway.config_file import ConfigFile
from streamkit.gateway.litellm import ALIASES, PROVIDERS, convert

#: A configuration as people have one: two providers of one model, fallbacks by reason, a literal key, a pattern.
WHOLE = """\
model_list:
  - model_name: gpt-5.2
    litellm_params: {model: openai/gpt-5.2, api_key: os.environ/OPENAI_API_KEY, rpm: 100}
  - model_name: gpt-5.2
    litellm_params:
      model: azure/my-gpt-deployment
      api_base: https://acme.openai.azure.com/
      api_version: "2024-10-21"
      api_key: os.environ/AZURE_API_KEY
      rpm: 300
    model_info: {base_model: azure/gpt-5.2}
  - model_name: claude-sonnet
    litellm_params: {model: anthropic/claude-sonnet-4-6, api_key: sk-ant-1234567890, max_tokens: 8192}
  - model_name: claude-sonnet-bedrock
    litellm_params: {model: bedrock/us.anthropic.claude-sonnet-4-6-v1:0, aws_region_name: us-west-2}
  - model_name: local/*
    litellm_params: {model: hosted_vllm/*, api_base: "http://10.0.0.5:8000/v1", additional_drop_params: ["tools[*].strict"]}
litellm_settings: {drop_params: true, num_retries: 3, request_timeout: 60, callbacks: [prometheus, langfuse]}
router_settings:
  routing_strategy: least-busy
  allowed_fails: 3
  cooldown_time: 30
  fallbacks: [{"gpt-5.2": ["claude-sonnet"]}]
  context_window_fallbacks: [{"claude-sonnet": ["claude-sonnet-bedrock"]}]
  model_group_alias: {"gpt-4o": "gpt-5.2"}
general_settings: {master_key: os.environ/LITELLM_MASTER_KEY, database_url: os.environ/DATABASE_URL}
"""
#: Forty lines, which LiteLLM's router accepts.
FORTY = """\
model_list:
  - model_name: gpt-main
    litellm_params:
      model: openai/gpt-5
      api_key: os.environ/OPENAI_API_KEY
      rpm: 300
  - model_name: gpt-main
    litellm_params:
      model: azure/gpt-5-eu
      api_base: https://acme.openai.azure.com
      api_version: "2025-03-01-preview"
      api_key: os.environ/AZURE_API_KEY
      rpm: 600
    model_info:
      base_model: azure/gpt-5
  - model_name: claude-main
    litellm_params:
      model: anthropic/claude-sonnet-5
      api_key: sk-ant-literal-0123456789
  - model_name: local
    litellm_params:
      model: hosted_vllm/qwen3
      api_base: http://127.0.0.1:8091/v1
      timeout: 30
  - model_name: groq/*
    litellm_params:
      model: groq/*
      api_key: os.environ/GROQ_API_KEY
router_settings:
  routing_strategy: least-busy
  num_retries: 2
  allowed_fails: 3
  fallbacks: [{"gpt-main": ["claude-main"]}]
  context_window_fallbacks: [{"local": ["gpt-main"]}]
litellm_settings:
  drop_params: true
  callbacks: [prometheus, langfuse]
general_settings:
  master_key: os.environ/LITELLM_MASTER_KEY
  database_url: os.environ/DATABASE_URL
"""
KEYS = {"OPENAI_API_KEY", "AZURE_API_KEY", "ANTHROPIC_API_KEY", "LITELLM_MASTER_KEY"}


def read_config(path):
    return ConfigFile(path).load()


def one(**params):
    return {"model_list": [{"model_name": "m", "litellm_params": params}]}


@pytest.fixture
def keys(monkeypatch):
    for name in {*KEYS, *(provider.key for provider in PROVIDERS.values() if provider.key), "AWS_BEARER_TOKEN_BEDROCK"}:
        monkeypatch.setenv(name, f"a-key-for-{name}")


def test_a_whole_configuration(tmp_path, capfd, keys):
    (tmp_path / "config.yaml").write_text(WHOLE)
    out = tmp_path / "gateway.toml"
    assert main(["import", "litellm", str(tmp_path / "config.yaml"), "-o", str(out)]) == 0
    said = capfd.readouterr().err
    assert "model_list[2].litellm_params.api_key: the file contains the key itself" in said
    assert "general_settings.database_url: streamkit has no accounts" in said
    assert "litellm_settings.callbacks: langfuse: not expressed" in said
    assert "5 upstreams, 4 routes, 13 notes" in said
    assert "sk-ant-1234567890" not in out.read_text() + said
    tables = tomllib.loads(out.read_text())
    first, second, *_ = tables["routes"]
    assert first["models"] == ["gpt-5.2", "gpt-4o"]
    assert first["to"] == [
        [
            {"upstream": "openai", "model": "gpt-5.2", "weight": 100},
            {"upstream": "azure", "model": "my-gpt-deployment", "weight": 300},
        ],
        {"upstream": "anthropic", "model": "claude-sonnet-4-6"},
    ]
    assert first["balance"] == "fewest_open"
    assert second["next_on"] == ["default", "context_length"]
    assert tables["upstreams"]["hosted-vllm"]["drop"] == ["tools.*.strict"]
    assert tables["upstreams"]["azure"]["rest"] == {"failures": 4, "first_s": 30, "max_s": 30}
    config = read_config(out)
    assert [route.models for route in config.routes][-1] == ("local/*",)
    assert main(["import", "litellm", str(tmp_path / "config.yaml"), "-o", str(out)]) == 2  # it exists


def test_forty_lines_give_a_configuration_without_warnings(tmp_path, capfd, keys):
    assert len(FORTY.splitlines()) == 40
    (tmp_path / "config.yaml").write_text(FORTY)
    new = tmp_path / "gateway.toml"
    assert main(["import", "litellm", str(tmp_path / "config.yaml"), "-o", str(new)]) == 0
    config = read_config(new)
    text = describe(config)
    assert (
        "local -> hosted-vllm as qwen3, then one of openai as gpt-5 (weight 300), azure as gpt-5-eu (weight 600)"
        in text
    )
    assert "groq/* -> groq as *" in text
    assert [warning.path for warning in config.warnings] == []
    assert "5 upstreams, 4 routes, 10 notes" in capfd.readouterr().err


ENTRIES = {
    "a clone": (
        one(model="openai/x", api_base="http://h/v1"),
        {"dialect": "openai-chat", "base_url": "http://h/v1", "auth": "none"},
    ),
    "a name alone": (one(model="gpt-4o"), {"dialect": "openai-responses", "key": {"env": "OPENAI_API_KEY"}}),
    "Claude alone": (one(model="claude-opus-5"), {"dialect": "anthropic"}),
    "Ollama": (one(model="ollama_chat/qwen3:8b"), {"dialect": "ollama", "base_url": "http://127.0.0.1:11434"}),
    "a whole URL": (
        one(model="openai/x", api_base="http://h/v1/chat/completions", api_key="os.environ/K"),
        {"base_url": "http://h/v1"},
    ),
    "a base in the environment": (
        one(model="openai_like/x", api_base="os.environ/B"),
        {"base_url": "https://missing.invalid"},
    ),
    "Azure without a base": (one(model="azure/x"), {"base_url": "https://missing.invalid/openai/v1"}),
    "Azure of a host whose name begins so": (
        one(model="azure/x", api_base="https://openai-eu.openai.azure.com/"),
        {"base_url": "https://openai-eu.openai.azure.com/openai/v1"},
    ),
    "Azure with the path and the version of requests": (
        one(model="azure/x", api_base="https://a.openai.azure.com/openai/deployments/x/chat/completions?api-version=1"),
        {"base_url": "https://a.openai.azure.com/openai/v1"},
    ),
    "Azure behind a proxy": (
        one(model="azure/x", api_base="https://h/azure/openai/v1/"),
        {"base_url": "https://h/azure/openai/v1"},
    ),
    "Claude at Google": (
        one(model="vertex_ai/claude-opus-5", vertex_project="p", vertex_location="global"),
        {"dialect": "vertex-anthropic", "base_url": "https://aiplatform.googleapis.com/v1/projects/p/locations/global"},
    ),
    "Gemini at Google": (
        one(model="vertex_ai/gemini-3-pro", vertex_project="p", vertex_location="us-east5"),
        {
            "dialect": "vertex-gemini",
            "base_url": "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/google",
        },
    ),
    "Claude at Azure": (
        one(model="azure_ai/claude-opus-5", api_base="https://r.services.ai.azure.com/anthropic"),
        {"dialect": "azure-anthropic"},
    ),
    "Bedrock with a token": (
        one(model="bedrock/converse/m", aws_region_name="eu-west-1", api_key="os.environ/T"),
        {"auth": "bedrock-bearer", "key": {"env": "T"}, "base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com"},
    ),
    "Bedrock with the region in the path": (
        one(model="bedrock/converse/us-west-2/anthropic.x"),
        {"region": "us-west-2", "base_url": "https://bedrock-runtime.us-west-2.amazonaws.com"},
    ),
    "Bedrock with the region in the ARN": (
        one(model="bedrock/arn:aws-us-gov:bedrock:us-gov-west-1:123456789012:inference-profile/anthropic.x"),
        {"region": "us-gov-west-1"},
    ),
    "Bedrock with another region in the path": (
        one(model="bedrock/us-west-2/anthropic.x", aws_region_name="eu-west-1"),
        {"region": "eu-west-1"},
    ),
    "Bedrock without a region": (one(model="bedrock/us.anthropic.x"), {"region": "us-west-2"}),
    "an empty base": (one(model="gpt-4o", api_base=""), {"base_url": "https://api.openai.com/v1"}),
    "a base by its other name": (
        one(model="openai/x", base_url="http://h/v1"),
        {"dialect": "openai-chat", "base_url": "http://h/v1", "auth": "none"},
    ),
    "another provider by name": (
        one(model="x", custom_llm_provider="groq"),
        {"dialect": "groq", "key": {"env": "GROQ_API_KEY"}},
    ),
    "headers": (one(model="openrouter/a/b", extra_headers={"X-Title": "t"}), {"headers": {"X-Title": "t"}}),
}


@pytest.mark.parametrize(("config", "expected"), ENTRIES.values(), ids=ENTRIES)
def test_an_entry(config, expected):
    [upstream] = convert(config).tables["upstreams"].values()
    assert {name: upstream[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ("bedrock/us-west-2/anthropic.x", "anthropic.x"),
        ("bedrock/converse/us-gov-west-1/anthropic.x", "anthropic.x"),
        ("bedrock/us.anthropic.x", "us.anthropic.x"),
        ("azure/o_series/deployment", "deployment"),
        ("openai/responses/gpt-5", "gpt-5"),
        ("openai/org/model", "org/model"),
    ],
)
def test_what_litellm_reads_before_a_model_is_no_part_of_its_name(given, model):
    [route] = convert(one(model=given)).tables["routes"]
    assert [target["model"] for target in route["to"]] == [model]


#: Settings that LiteLLM accepts, and the gateway has to accept once they are converted.
ACCEPTED = {
    "a long rest": {"router_settings": {"cooldown_time": 600}},
    "an alias that is its model": {"router_settings": {"model_group_alias": {"m": "m"}}},
    "no length of rests": {"router_settings": {"cooldown_time": 0}},
}


@pytest.mark.parametrize("settings", ACCEPTED.values(), ids=ACCEPTED)
def test_what_litellm_accepts_is_accepted(settings, tmp_path, capfd):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(one(model="gpt-4o") | settings))
    assert main(["import", "litellm", str(tmp_path / "config.yaml")]) == 0


@pytest.mark.parametrize("provider", [*PROVIDERS, *ALIASES])
def test_every_provider_gives_a_configuration_that_is_accepted(provider, tmp_path, monkeypatch, keys):
    config = one(
        model=f"{provider}/m", api_base="https://h.example/v1", api_key="os.environ/A_KEY", vertex_project="p", vertex_location="l",
        aws_region_name="us-east-1",
    )  # fmt: skip
    monkeypatch.setenv("A_KEY", "a-key-of-a-provider")
    path = tmp_path / "gateway.toml"
    path.write_text(tomli_w.dumps(convert(config).tables))
    assert [upstream.base_url for upstream in read_config(path).upstreams.values()]


NOTED = {
    "text completions": (
        one(model="text-completion-openai/gpt-3.5-turbo-instruct"),
        "litellm_params.model: text completions",
    ),
    "GitHub's login": (
        one(model="github_copilot/gpt-5"),
        "litellm_params.model: the gateway does not log in to GitHub",
    ),
    "embeddings by name": (
        one(model="openai/text-embedding-3-small"),
        "litellm_params.model: a model for embed is not served",
    ),
    "an extra": (one(model="bedrock/m", aws_region_name="r"), "litellm_params.model: needs the extra aws"),
    "a price": (
        one(model="gpt-4o", input_cost_per_token=1e-6),
        "litellm_params.input_cost_per_token: costs are not counted",
    ),
    "a parameter": (
        one(model="gpt-4o", temperature=0.2),
        "litellm_params.temperature: not expressed; to replace what clients send",
    ),
    "an unknown provider": (
        one(model="replicate/x"),
        "litellm_params.model: the provider replicate has no counterpart",
    ),
    "an unknown setting": (
        one(model="gpt-4o") | {"litellm_settings": {"guardrails": []}},
        "litellm_settings.guardrails: not expressed",
    ),
    "an unknown table": (one(model="gpt-4o") | {"mcp_servers": {}}, "mcp_servers: not expressed"),
    "a strategy": (
        one(model="gpt-4o") | {"router_settings": {"routing_strategy": "latency-based-routing"}},
        "router_settings.routing_strategy: latency-based-routing has no counterpart",
    ),
    "a fallback that is not there": (
        one(model="gpt-4o") | {"router_settings": {"fallbacks": [{"m": ["n"]}]}},
        "router_settings.fallbacks: n is no model_name of the file",
    ),
    "a timeout in the environment": (
        one(model="gpt-4o", timeout="os.environ/T"),
        "litellm_params.timeout: write the value of T",
    ),
    "retries of an entry": (one(model="gpt-4o", num_retries=4), "litellm_params.num_retries: use retries of the route"),
    "a key for Google": (
        one(model="vertex_ai/gemini-3-pro", api_key="os.environ/K"),
        "litellm_params.api_key: google-auth finds the credentials",
    ),
    "a model in the environment": (one(model="os.environ/M"), "litellm_params.model: the provider os.environ has no"),
    "the slower of two timeouts": (
        one(model="gpt-4o", timeout=9, stream_timeout=3),
        "litellm_params.timeout: not used",
    ),
    "a body": (one(model="gpt-4o", extra_body={"a": 1}), "litellm_params.extra_body: write its members as `set`"),
    "any provider": (
        {"model_list": [{"model_name": "*", "litellm_params": {"model": "*"}}]},
        "litellm_params.model: * takes the provider from the client's name",
    ),
    "a pattern for one name": (
        one(model="openai/*"),
        "litellm_params.model: m has no * that could replace the one of *",
    ),
    "another file": (one(model="gpt-4o") | {"include": ["b.yaml"]}, "include: not read: convert each included file"),
    "a fallback of no model": (
        one(model="gpt-4o") | {"router_settings": {"fallbacks": [{"n": ["m"]}]}},
        "router_settings.fallbacks.n: no model_name of the file",
    ),
    "a fallback in the other table": (
        one(model="gpt-4o") | {"litellm_settings": {"fallbacks": [{"m": ["n"]}]}},
        "litellm_settings.fallbacks: n is no model_name of the file",
    ),
    "a fallback of another kind": (
        one(model="gpt-4o") | {"router_settings": {"context_window_fallbacks": [{"m": ["n"]}]}},
        "router_settings.context_window_fallbacks: n is no model_name of the file",
    ),
    "a default fallback": (
        one(model="gpt-4o") | {"router_settings": {"default_fallbacks": ["n"]}},
        "router_settings.default_fallbacks: n is no model_name of the file",
    ),
    "a default fallback that is no name": (
        one(model="gpt-4o") | {"router_settings": {"default_fallbacks": [{"a": ["b"]}]}},
        "router_settings.default_fallbacks[0]: not used, because it is not a text",
    ),
    "a callback that is no name": (
        one(model="gpt-4o") | {"litellm_settings": {"callbacks": [{"a": 1}]}},
        "litellm_settings.callbacks: {'a': 1}: not expressed",
    ),
    "a setting that is always on": (
        one(model="gpt-4o") | {"litellm_settings": {"drop_params": False}},
        "litellm_settings.drop_params: always on",
    ),
    "an alias of no model": (
        one(model="gpt-4o") | {"router_settings": {"model_group_alias": {"a": "n"}}},
        "router_settings.model_group_alias.a: n is no model_name",
    ),
    "two timeouts": (
        one(model="gpt-4o") | {"router_settings": {"timeout": 5}, "litellm_settings": {"request_timeout": 6}},
        "litellm_settings: its timeout is not used",
    ),
    "embeddings": (
        {
            "model_list": [
                {"model_name": "m", "litellm_params": {"model": "openai/e"}, "model_info": {"mode": "embedding"}}
            ]
        },
        "model_info.mode: embedding is not served",
    ),
    "a variable": (
        one(model="gpt-4o") | {"environment_variables": {"A": "b"}},
        "environment_variables.A: set it in the environment",
    ),
}


@pytest.mark.parametrize(("config", "note"), NOTED.values(), ids=NOTED)
def test_what_has_no_place_is_a_note(config, note):
    assert any(
        f"{path}: {text}".removeprefix("model_list[0].").startswith(note) for path, text in convert(config).notes
    )


#: Values in another shape than LiteLLM's, each with the path and the beginning of the sentence of its note, by the table that they are in.
MISFITS = {
    "": {
        "router_settings: [1]": "router_settings: not used, because it is not a mapping",
        "general_settings: {master_key: [a]}": "general_settings.master_key: not used, because it is not a text",
        "environment_variables: [a]": "environment_variables: not used, because it is not a mapping",
        "4: {}": "4: not expressed",
    },
    "router_settings": {
        "fallbacks: [{m: null}]": "fallbacks[0].m: not used, because it is not a list",
        "fallbacks: [{m: [null]}]": "fallbacks[0].m[0]: not used, because it is not a text",
        "fallbacks: 3": "fallbacks: not used, because it is not a list",
        "fallbacks: {m: [b]}": "fallbacks: not used, because it is not a list",
        "fallbacks: [a, b]": "fallbacks[1]: not used, because it is not a mapping",
        "default_fallbacks: 5": "default_fallbacks: not used, because it is not a list",
        "default_fallbacks: abc": "default_fallbacks: abc is no model_name",
        "model_group_alias: [a]": "model_group_alias: not used, because it is not a mapping",
        "model_group_alias: {x: [a]}": "model_group_alias.x.model: not used, because it is not a text",
        "model_group_alias: {x: null}": "model_group_alias.x: None is no model_name",
        "model_group_alias: {x: {model: m, hidden: true}}": "model_group_alias.x.hidden: not expressed",
        "callbacks: true": "callbacks: not used, because it is not a list",
        "num_retries: many": "num_retries: not used, because it is not a whole number",
        "num_retries: true": "num_retries: not used, because it is not a whole number",
        "num_retries: 2.5": "num_retries: not used, because it is not a whole number",
        "cooldown_time: 0": "cooldown_time: LiteLLM takes 0 for its default",
        "cooldown_time: .inf": "cooldown_time: not used, because it is not a number",
        "{num_retries: 1, max_retries: 2}": "max_retries: not used: router_settings.num_retries is",
        "7: 8": "7: not expressed",
    },
    "litellm_params": {
        "{api_base: http://a, base_url: http://b}": "api_base: not used: base_url is",
        "order: [1]": "order: not used, because it is not a whole number",
        "weight: [3]": "weight: not used, because it is not a number",
        "custom_llm_provider: [a]": "custom_llm_provider: not used, because it is not a text",
        "5: 6": "5: not expressed",
        'api_base: "http://[::1/v1"': "api_base: not used, because it is not a URL",
        "api_base: h/v1": "api_base: not used, because it is not a URL",
        "api_base: os.environ/B": "api_base: write the value of B itself: only keys come from the environment; http",
        "aws_region_name: [a]": "aws_region_name: not used, because it is not a name",
        "vertex_location: '[a'": "vertex_location: not used, because it is not a name",
        "api_base: http://h/v1?a=b": "api_base: what follows ? or # is not copied",
        "max_tokens: many": "max_tokens: not used, because it is not a whole number",
        "extra_headers: abc": "extra_headers: not used, because it is not a mapping",
        "extra_headers: {X: null}": "extra_headers.X: not used, because it is not a text",
        "additional_drop_params: 4": "additional_drop_params: not used, because it is not a list",
        "timeout: [1]": "timeout: not used, because it is not a number",
    },
    "model_info": {"mode: [chat]": "mode: not used, because it is not a text"},
}


@pytest.mark.parametrize(
    ("table", "text", "note"), [(table, text, note) for table, texts in MISFITS.items() for text, note in texts.items()]
)
def test_a_value_of_another_shape_is_noted(table, text, note):
    config = one(model="gpt-4o")
    entry, given = config["model_list"][0], yaml.safe_load(text)
    if table == "model_info":
        entry[table] = given
    elif table == "litellm_params":
        entry[table] |= given
    else:
        config |= {table: given} if table else given
    made = convert(config)
    path = f"model_list[0].{table}." if table in entry else f"{table}.".lstrip(".")
    assert [place for place in map(": ".join, made.notes) if place.startswith(path + note)]
    assert tomli_w.dumps(made.tables)


def test_a_key_is_not_sent_to_its_provider_for_a_server_that_is_not_known():
    [upstream] = convert(one(model="openai/x", api_base="os.environ/BASE")).tables["upstreams"].values()
    assert upstream == {"dialect": "openai-chat", "base_url": "https://missing.invalid", "auth": "none"}


def test_a_text_may_be_a_number():
    params = {"max_tokens": "4096", "extra_headers": {4: 5}, "timeout": "2.5", "additional_drop_params": "user"}
    settings = {"num_retries": "3", "allowed_fails": "2", "cooldown_time": "30"}
    made = convert(one(model="gpt-4o", **params) | {"router_settings": settings})
    [upstream], [route] = made.tables["upstreams"].values(), made.tables["routes"]
    assert upstream["max_tokens"] == 4096
    assert upstream["headers"] == {"4": "5"}
    assert upstream["timeouts"] == {"first_byte_s": 2.5, "idle_s": 2.5}
    assert upstream["drop"] == ["user"]
    assert upstream["rest"] == {"failures": 3, "first_s": 30, "max_s": 30}
    assert route["retries"] == 3


def test_null_sets_nothing():
    settings = {"router_settings": {"num_retries": None, "fallbacks": None}, "litellm_settings": {"num_retries": 4}}
    made = convert(one(model="gpt-4o", order=None, timeout=None) | settings)
    assert made.tables["routes"][0]["retries"] == 4
    assert [path for path, _ in made.notes] == ["general_settings.master_key"]


SECRET = "hunter2-hunter2"
SECRETS = {
    "a key": one(model="gpt-4o", api_key=SECRET),
    "a header by its name": one(model="gpt-4o", extra_headers={"Authorization": SECRET}),
    "a header by its value": one(model="gpt-4o", extra_headers={"X-Team": f"sk-ant-api03-{SECRET}-{SECRET}"}),
    "a URL": one(model="openai/x", api_base=f"https://user:{SECRET}@h.example/v1", api_key="os.environ/OPENAI_API_KEY"),
    "a query": one(model="openai/x", api_base=f"https://h.example/v1?key={SECRET}#{SECRET}"),
    "a body": one(model="gpt-4o", extra_body={"token": SECRET}),
    "the master key": one(model="gpt-4o") | {"general_settings": {"master_key": SECRET}},
    "AWS": one(model="bedrock/m", aws_region_name="us-east-1", aws_secret_access_key=SECRET),
    "a variable": one(model="gpt-4o") | {"environment_variables": {"OPENAI_API_KEY": SECRET}},
}


@pytest.mark.parametrize("config", SECRETS.values(), ids=SECRETS)
def test_no_secret_is_copied(config, tmp_path, monkeypatch, keys):
    made = convert(config)
    text = tomli_w.dumps(made.tables)
    assert SECRET not in text + repr(made.notes) + repr(made)
    for name in "AUTHORIZATION", "X_TEAM":
        monkeypatch.setenv(name, "a-value-for-a-header")
    (path := tmp_path / "gateway.toml").write_text(text)
    assert read_config(path).routes


def entries(*models, **more):
    return {"model_list": [{"model_name": name, "litellm_params": params} for name, params in models], **more}


def test_two_keys_of_one_provider_have_two_variables():
    model = {"model": "openai/gpt-5"}
    config = entries(("a", model | {"api_key": "one"}), ("b", model | {"api_key": "two"}), ("c", model))
    env = [upstream["key"]["env"] for upstream in convert(config).tables["upstreams"].values()]
    assert env == ["OPENAI_API_KEY_2", "OPENAI_API_KEY_3", "OPENAI_API_KEY"]


def test_the_special_pattern_comes_first():
    config = entries(("*", {"model": "groq/*"}), ("o/*", {"model": "openai/*"}), ("n", {"model": "gpt-5"}))
    assert [route["models"] for route in convert(config).tables["routes"]] == [["n"], ["o/*"], ["*"]]


def test_equals_stay_equals_as_a_fallback():
    one, other = {"model": "groq/x", "rpm": 3}, {"model": "xai/y", "rpm": 9}
    settings = {"routing_strategy": "least-busy", "fallbacks": [{"n": ["m"]}]}
    config = entries(
        ("n", {"model": "gpt-5", "weight": 2}), ("m", one), ("m", other), ("k", one), router_settings=settings
    )
    routes = {route["models"][0]: route for route in convert(config).tables["routes"]}
    equals = [{"upstream": "groq", "model": "x", "weight": 3}, {"upstream": "xai", "model": "y", "weight": 9}]
    assert routes["n"]["to"] == [{"upstream": "openai", "model": "gpt-5"}, equals]
    assert routes["n"]["balance"] == "fewest_open"
    assert routes["k"] == {"models": ["k"], "to": [{"upstream": "groq", "model": "x"}]}


def test_equals_without_a_weight_are_tried_after_the_others():
    def to(*params):
        made = convert(entries(*(("m", {"model": f"groq/{index}", **more}) for index, more in enumerate(params))))
        [route] = made.tables["routes"]
        groups = [each if isinstance(each, list) else [each] for each in route["to"]]
        return [[(each["model"], each.get("weight")) for each in group] for group in groups]

    assert to({"weight": 0}, {"weight": 2}, {}, {"weight": 3}) == [[("1", 2), ("3", 3)], [("0", None), ("2", None)]]
    assert to({"weight": 0}, {"weight": 0}) == [[("0", None), ("1", None)]]
    assert to({"weight": 1}, {"rpm": 100}) == [[("0", None)], [("1", None)]]
    assert to({"weight": 0, "rpm": 5}, {"rpm": 7}) == [[("0", 5), ("1", 7)]]
    assert to({}, {"order": 2}, {"order": 1}) == [[("2", None)], [("1", None)], [("0", None)]]


def test_an_alias_wins_over_a_model():
    settings = {"model_group_alias": {"a": "b", "c": {"model": "b"}}, "fallbacks": [{"b": ["a"]}]}
    made = convert(entries(("a", {"model": "groq/a"}), ("b", {"model": "groq/b"}), router_settings=settings))
    targets = [{"upstream": "groq", "model": name} for name in "ba"]
    assert made.tables["routes"] == [{"models": ["b", "a", "c"], "to": targets}]
    assert ("router_settings.model_group_alias.a", "the entries of a are fallbacks only") in made.notes


def test_a_fallback_may_be_in_a_pattern():
    fallbacks = {"fallbacks": [{"*": ["o/mini"]}, {"o/big": ["n"]}]}
    config = entries(("n", {"model": "groq/n"}), ("o/*", {"model": "openai/*"}), router_settings=fallbacks)
    routes = {route["models"][0]: route["to"] for route in convert(config).tables["routes"]}
    mini, big = {"upstream": "openai", "model": "mini"}, {"upstream": "openai", "model": "big"}
    assert routes["n"] == [{"upstream": "groq", "model": "n"}, mini]
    assert routes["o/big"] == [big, {"upstream": "groq", "model": "n"}]


REFUSED = {
    "no YAML": ("a: [", "not YAML"),
    "no models": ("litellm_settings: {}", "model_list: missing or empty"),
    "no model": ("model_list: [{model_name: a}]", "model_list[0]: write model_name, and litellm_params with a model"),
    "no date": ("a: 2026-13-01", "not YAML: month must be in 1..12"),
    "a number that Python does not read": ("a: " + "9" * 5000, "not YAML: Exceeds the limit"),
    "deep": ("[" * 5000, "nested too deeply"),
    "half a character": (
        'model_list: [{model_name: "\\ud800", litellm_params: {model: gpt-4o}}]',
        "a text has half a surrogate pair",
    ),
}


@pytest.mark.parametrize(("text", "error"), REFUSED.values(), ids=REFUSED)
def test_another_file_is_refused(text, error, tmp_path, capfd):
    (tmp_path / "config.yaml").write_text(text)
    assert main(["import", "litellm", str(tmp_path / "config.yaml")]) == 2
    assert error in capfd.readouterr().err


REFUSED_BY_THE_GATEWAY = {
    "retries": (one(model="gpt-4o") | {"router_settings": {"num_retries": -1}}, "17:1: routes[0].retries: must be >="),
    "a variable without a name": (
        one(model="gpt-4o", api_key="os.environ/"),
        "11:1: upstreams.openai.key.env: the env",
    ),
    "two stars": (entries(("a*b*", {"model": "openai/*"})), "18:5: routes[0].to[0]: may have a * only if"),
    "a header": (one(model="gpt-4o", extra_headers={"a b": "c"}), "13:19: upstreams.openai.headers: 'a b' is not"),
}


@pytest.mark.parametrize(("config", "error"), REFUSED_BY_THE_GATEWAY.values(), ids=REFUSED_BY_THE_GATEWAY)
def test_what_the_gateway_refuses_is_named_and_fails(config, error, tmp_path, capfd):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    new = tmp_path / "gateway.toml"
    assert main(["import", "litellm", str(tmp_path / "config.yaml"), "-o", str(new)]) == 1
    said = capfd.readouterr().err
    assert f"the gateway refuses {new}:{error}" in said
    assert "1 upstream, 1 route, 1 note\n" in said
    assert new.exists()  # to be corrected


def test_nothing_is_written_without_a_model(tmp_path, capfd):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(one(model="replicate/x")))
    new = tmp_path / "gateway.toml"
    assert main(["import", "litellm", str(tmp_path / "config.yaml"), "-o", str(new)]) == 1
    assert "nothing is written" in capfd.readouterr().err
    assert not new.exists()


def test_every_member_of_the_file_is_read_or_noted():
    config = yaml.safe_load(WHOLE)
    config["litellm_settings"] |= {f"unknown_{number}": 1 for number in range(3)}
    notes = {path for path, _ in convert(config).notes}
    assert {f"litellm_settings.unknown_{number}" for number in range(3)} <= notes
