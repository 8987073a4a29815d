"""What a client is told where the way to the upstream failed, and what of its request is for the way alone."""

import orjson
import pytest
from aiohttp import web

from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import SourceFailed
from streamkit.events import ProviderFailed
from streamkit.gateway.metrics import Metrics
from streamkit.http_errors import decode_error, encode_error
from streamkit.web.setup import setup
from streamkit.web.upstream import Secret, Upstream
from streamkit.web.upstream.requests import as_gateway_failure
from tests.gateway.running import Running, asking, behind, in_turn, leg, read
from tests.web.faults import TEXT, answer, as_asked, speech, status
from tests.web.serving import answering, serving
from tests.web.upstream.certificates import Certificates
from tests.web.upstream.proxy import proxy
from tests.web.upstream.recorder import reply

CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini", "gemini-interactions"]
KEY = "sk-of-the-gateway-0123456789"


async def test_a_name_that_nobody_knows_is_a_failure_on_the_way():
    async with behind(as_asked("openai-chat"), upstream={"base_url": "http://nowhere.invalid/v1"}) as running:
        assert (await running.asked("anthropic")).status == 502


@pytest.mark.parametrize("own", [False, True], ids=["the gateway", "an application"])
async def test_the_upstreams_proxy_and_certificates_are_used_and_their_failure_is_one_on_the_way(own, tmp_path):
    made = Certificates(tmp_path)

    async def say(_request):
        return web.Response(body=b"".join(speech("openai-chat")), content_type="text/event-stream")

    async with proxy() as between, serving(answering(say), tls=made.server(asks_client=True)) as port:
        values = {"base_url": f"https://127.0.0.1:{port}/v1", "auth": "none", "proxy": between.url}
        files = {"ca_file": made.path("ca.pem"), "client_cert": made.path("both.pem")}
        upstream = Upstream(name="up", dialect="openai-chat", **values, **files)
        if own:
            app = web.Application()
            setup(app, upstream)
            async with serving(app) as served:
                came = await Running(f"http://127.0.0.1:{served}", Metrics()).asked("anthropic")
        else:
            async with in_turn(upstream) as running:
                came = await running.asked("anthropic")
                between.refuse = lambda _sent: reply(403, connection="close")
            async with in_turn(upstream) as running:
                failed = await running.asked("anthropic")
                assert failed.status == 502
                assert b"the upstream's proxy refused the request (status 403)" in failed.body
                assert await running.outcomes() == {("up", "refused"): 1}
    assert (await read(came, "anthropic")).text == TEXT
    assert between.asked[0] == ("CONNECT", f"127.0.0.1:{port}")


def test_a_fault_of_our_own_is_none():
    assert encode_error(failure_from(RuntimeError()), "anthropic").status == 500
    assert encode_error(failure_from(SourceFailed("gone")), "bedrock").status == 502


#: How providers refuse a key.
REFUSALS = {
    "401": status(401),
    "403": status(403),
    "Gemini's 400": answer(
        400,
        b'{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":'
        b'[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}',
    ),
    "an empty 401": answer(401, b""),
    "a page": answer(403, b"<html><title>Forbidden</title></html>"),
    "in band": answer(200, b'data: {"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}\n\n', {"Content-Type": "text/event-stream"}),
}  # fmt: skip


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_that_the_gateways_own_key_is_refused_is_not_told_as_the_clients_fault(refusal, client, stream):
    dialect = "gemini" if refusal is REFUSALS["Gemini's 400"] else "openai-chat"
    async with behind(
        refusal,
        dialect=dialect,
        upstream={"auth": "bearer", "key": Secret(KEY)},
        server={"keys": (Secret("client-key"),)},
        retries=3,
    ) as running:
        came = await running.asked(client, headers={"x-api-key": "client-key"}, stream=stream)
        assert came.status == 502
        assert b"the upstream refused the gateway's credentials" in came.body
        assert not any(word in came.body for word in (b"authentication_error", b"invalid_api_key", b"Incorrect"))
        assert len(running.evil.requests) == 1  # no round after it, since nothing passes


def test_a_key_of_the_clients_own_and_a_refused_input_stay_what_they_are():
    upstream = Upstream(name="up", dialect="anthropic", base_url="https://a.example", auth="x-api-key", key=Secret(KEY))
    failed = ProviderFailed("auth", "invalid x-api-key", http_status=401)
    flagged = ProviderFailed("permission", "your input was flagged by moderation", http_status=403)
    limited = ProviderFailed("rate_limit", "slow down", http_status=429)
    assert as_gateway_failure(failed, [upstream], {"Authorization": f"Bearer {KEY}"}) is failed
    assert as_gateway_failure(flagged, [upstream], {}) is flagged
    assert as_gateway_failure(limited, [upstream], {}) is limited
    assert as_gateway_failure(failed, [upstream], {"Authorization": "Bearer other"}).code == "upstream_credentials"


async def test_nor_where_tokens_are_counted():
    async with behind(status(401, "anthropic"), dialect="anthropic", server={"count_tokens": "upstream"}) as running:
        path, body = "/v1/messages/count_tokens", asking("anthropic")[1]
        del body["max_tokens"], body["stream"]
        came = await running.ask(path, body=orjson.dumps(body))
    assert (came.status, came.json()["type"]) == (502, "error")


@pytest.mark.parametrize("seconds", ["604800", "2592000"])
async def test_how_long_to_wait_is_passed_on_however_long(seconds):
    refused = answer(429, b'{"error":{"message":"weekly limit","type":"rate_limit_error"}}', {"Retry-After": seconds})
    async with behind(refused) as running:
        came = await running.asked("anthropic")
    assert (came.status, came.headers["retry-after"]) == (429, seconds)


def test_garbage_is_bounded_all_the_same():
    far = decode_error(429, b"{}", "anthropic", {"Retry-After": "9" * 30})
    assert far.retry_after_s == 366 * 86_400
    assert decode_error(429, b"{}", "anthropic", {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}).retry_after_s == 0


BETA = "context-1m-2025-08-07"


@pytest.mark.parametrize("model", ["m[1m]", "M-any[1M]"])
@pytest.mark.parametrize("own", ["", "a-beta", f"a-beta,{BETA}"])
async def test_a_window_that_claude_code_asks_for_in_the_name_is_asked_for_in_the_header(own, model):
    async with behind(as_asked("anthropic"), dialect="anthropic") as running:
        headers = {"anthropic-beta": own} if own else {}
        assert (await running.asked("anthropic", headers=headers, model=model)).status == 200
        assert (await running.asked("openai-chat", model=model)).status == 200
    first, second = running.evil.requests
    assert first.json()["model"] == second.json()["model"] == model[:-4]
    assert first.header("anthropic-beta").split(",") == [*filter(None, own.removesuffix(f",{BETA}").split(",")), BETA]
    assert second.header("anthropic-beta") == BETA


async def test_where_no_such_window_is_the_name_alone_is_read():
    async with behind(as_asked("openai-chat"), models=("claude-x",)) as running:
        assert (await running.asked("anthropic", model="claude-x[1m]")).status == 200
        version = {"anthropic-version": "2023-06-01"}
        found = await running.get("/v1/models/claude-x%5B1m%5D", headers=version)
        assert (found.status, found.json()["id"]) == (200, "claude-x")
    assert running.evil.requests[0].json()["model"] == "claude-x"
    assert running.evil.requests[0].header("anthropic-beta") is None


async def test_an_error_before_a_stream_of_the_ai_sdk_is_one_sentence_since_usechat_shows_the_body():
    body = {
        "id": "c",
        "trigger": "submit-message",
        "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
    }
    async with behind(status(429, message="slow down")) as running:
        limited = await running.ask("/v1/ai-sdk", body=orjson.dumps(body | {"model": "m"}))
        wrong = await running.ask("/v1/ai-sdk", body=b"{}")
        lost = await running.ask("/v1/ai-sdk", method="DELETE")
    assert (limited.status, limited.body) == (429, b"the evil upstream says: slow down")
    assert [each.headers["content-type"] for each in (limited, wrong, lost)] == ["text/plain; charset=utf-8"] * 3
    assert (wrong.status, lost.status) == (400, 405)
    assert b"{" not in wrong.body + lost.body


RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
#: A response that fails before it says anything, under status 200.
FAILS_AT_ONCE = b"".join(
    b"event: response.%b\ndata: %b\n\n"
    % (kind.encode(), orjson.dumps({"type": f"response.{kind}", "response": response}))
    for kind, response in {
        "created": RESPONSE,
        "in_progress": RESPONSE,
        "failed": {**RESPONSE, "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}},
    }.items()
)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_response_that_fails_before_it_says_anything_has_the_status_of_its_error(client):
    fails = answer(200, FAILS_AT_ONCE, {"Content-Type": "text/event-stream"})
    async with behind(fails, dialect="openai-responses") as running:
        came = await running.asked(client)
    assert came.status == 429
    assert b"slow down" in came.body
    async with in_turn(leg(fails, dialect="openai-responses"), as_asked("openai-chat")) as running:
        assert (await running.asked(client)).status == 200


@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "ollama"])
async def test_the_name_of_a_model_keeps_its_slashes_and_an_unknown_vendor_goes_to_nobody(client):
    async with behind(as_asked("openai-chat"), models=("openai/*", "gpt-*")) as running:
        assert (await running.asked(client, model="openai/gpt-oss/20b")).status == 200
        assert (await running.asked(client, model="nosuch/gpt-5")).status == 404
    assert [request.json()["model"] for request in running.evil.requests] == ["openai/gpt-oss/20b"]


async def test_features_that_a_client_asks_for_are_asked_for_with_the_gateways_own_key():
    flags, edits = (
        "context-management-2025-06-27,fast-mode-2026-02-01",
        {"edits": [{"type": "clear_tool_uses_20250919"}]},
    )
    async with behind(
        as_asked("anthropic"), dialect="anthropic", upstream={"auth": "x-api-key", "key": Secret(KEY)}
    ) as running:
        path, body = asking("anthropic")
        body["context_management"] = edits
        headers = {"anthropic-beta": flags}
        assert (await running.ask(path, body=orjson.dumps(body), headers=headers)).status == 200
    assert running.evil.requests[0].header("anthropic-beta") == flags
    assert running.evil.requests[0].json()["context_management"] == edits


@pytest.mark.parametrize("client", CLIENTS)
async def test_an_error_on_a_stream_has_its_status_though_it_ends_without_a_line_end(client):
    refused = answer(429, b'{"error":{"message":"weekly limit"}}', {"Content-Type": "application/json"})
    async with behind(refused) as running:
        came = await running.asked(client, headers={"Accept": "text/event-stream"})
    assert (came.status, came.headers["content-type"].partition(";")[0]) == (429, "application/json")
    assert b"weekly limit" in came.body
