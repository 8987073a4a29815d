"""``streamkit import litellm``: the configuration that it writes is accepted, and everything else is a note."""

from __future__ import annotations

import tomllib

import pytest
import tomli_w
import yaml

from streamkit.cli import main
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
    assert "5 upstreams, 4 routes, 12 notes" in said
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
    assert tables["upstreams"]["azure"]["rest"] == {"failures": 4, "first_s": 30}
    config = read_config(out)
    assert [route.models for route in config.routes][-1] == ("local/*",)
    assert main(["import", "litellm", str(tmp_path / "config.yaml"), "-o", str(out)]) == 2  # it exists


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
        {"base_url": "https://missing.invalid/v1"},
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


REFUSED = {
    "no YAML": ("a: [", "not YAML"),
    "no models": ("litellm_settings: {}", "model_list: missing or empty"),
    "no model": ("model_list: [{model_name: a}]", "model_list[0]: write model_name, and litellm_params with a model"),
    "a list for a table": (
        "model_list: [{model_name: a, litellm_params: {model: gpt-4o}}]\nrouter_settings: [1]",
        "router_settings: write a mapping",
    ),
}


@pytest.mark.parametrize(("text", "error"), REFUSED.values(), ids=REFUSED)
def test_another_file_is_refused(text, error, tmp_path, capfd):
    (tmp_path / "config.yaml").write_text(text)
    assert main(["import", "litellm", str(tmp_path / "config.yaml")]) == 2
    assert error in capfd.readouterr().err


def test_every_member_of_the_file_is_read_or_noted():
    config = yaml.safe_load(WHOLE)
    config["litellm_settings"] |= {f"unknown_{number}": 1 for number in range(3)}
    notes = {path for path, _ in convert(config).notes}
    assert {f"litellm_settings.unknown_{number}" for number in range(3)} <= notes
