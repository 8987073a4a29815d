"""The table of names: what OpenTelemetry's conventions call the metrics (observe.md F12, F13, O14)."""

from typing import get_args

import pytest

from streamkit.otel.conventions import CALL_BOUNDS, CONVENTIONS, TOKEN_BOUNDS, SemConv

SERVER = {"gen_ai.server.request.duration", "gen_ai.server.time_to_first_token", "gen_ai.server.time_per_output_token"}


def test_there_is_a_table_for_each_version():
    assert tuple(CONVENTIONS) == get_args(SemConv)


def test_1_41_has_its_names():
    assert {metric.name for metric in CONVENTIONS["1.41"].metrics} == SERVER | {
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.token.usage",
    }


def test_genai_has_its_names():
    used = "gen_ai.client.inference.usage"
    assert {metric.name for metric in CONVENTIONS["genai"].metrics} == SERVER | {
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.time_per_output_chunk",
        f"{used}.input_tokens",
        f"{used}.output_tokens",
        f"{used}.cache_read.input_tokens",
        f"{used}.cache_write.input_tokens",
        f"{used}.reasoning.output_tokens",
        "gen_ai.client.inference.operation.input_tokens",
        "gen_ai.client.inference.operation.output_tokens",
    }


@pytest.mark.parametrize("table", CONVENTIONS.values(), ids=CONVENTIONS)
def test_metrics_have_the_units_and_bounds_of_the_conventions(table):
    assert (CALL_BOUNDS[0], round(CALL_BOUNDS[-1], 2), len(CALL_BOUNDS)) == (0.01, 81.92, 14)
    assert (TOKEN_BOUNDS[0], TOKEN_BOUNDS[-1], len(TOKEN_BOUNDS)) == (1, 4**13, 14)
    assert {metric.unit for metric in table.tokens} == {"{token}"}
    assert table.duration.bounds == table.first_chunk.bounds == table.chunk_time.bounds == CALL_BOUNDS
    assert (len(table.server_first_token.bounds), len(table.server_token_time.bounds)) == (16, 13)
    for metric in table.metrics:
        assert list(metric.bounds) == sorted(set(metric.bounds))


def test_counters_of_tokens_say_that_their_modality_is_unknown():
    for metric in CONVENTIONS["genai"].tokens:
        assert metric.attributes == ({} if metric.bounds else {"gen_ai.token.modality": "unknown"})


def test_a_cache_that_is_written_is_called_as_the_registry_of_the_version_has_it():
    gen_ai = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    assert CONVENTIONS["1.41"].usage["input_cache_write"] == gen_ai.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS
    assert CONVENTIONS["genai"].usage["input_cache_write"] == "gen_ai.usage.cache_write.input_tokens"
