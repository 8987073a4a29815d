"""The official clients raise the right exception for every status and body that ``encode_error`` writes, with its message.

Also that they wait and try again as they are told, which is the part that no look at the bytes shows.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable
from typing import Any, get_args

import pytest
from attrs import frozen

from streamkit.events import ErrorType, ProviderFailed
from streamkit.http_errors import decode_error, encode_error
from tests.clients.replay import ReplayServer
from tests.clients.shapes import ASK

KINDS: tuple[ErrorType, ...] = get_args(ErrorType)
MESSAGE = "Nein: „grün“"
WAIT_S = 7.0
Clients = Callable[[str], Any]


@frozen
class Judge:
    """``ask(client, name)`` must raise, for each kind, the exception of that name in ``module``."""

    dialect: str
    package: str
    module: str
    ask: Callable[[Any, str], object]
    raised: dict[ErrorType, str]
    #: What the exception says: its status, its message, how long to wait.
    read: Callable[[Any], tuple[int, str, str | None]]


def ask_openai(client: Any, name: str) -> object:
    return client.chat.completions.create(model=name, messages=ASK)


def ask_responses(client: Any, name: str) -> object:
    return client.responses.create(model=name, input="?")


def ask_anthropic(client: Any, name: str) -> object:
    return client.messages.create(model=name, max_tokens=9, messages=ASK)


def ask_ollama(client: Any, name: str) -> object:
    return client.chat(model=name, messages=ASK)


def ask_cohere(client: Any, name: str) -> object:
    return client.chat(model=name, messages=ASK, request_options={"max_retries": 0})


def ask_mistral(client: Any, name: str) -> object:
    return client.chat.complete(model=name, messages=ASK)


def ask_gemini(client: Any, name: str) -> object:
    return list(client.models.generate_content_stream(model=name, contents="?"))


def ask_interactions(client: Any, name: str) -> object:
    return client.interactions.create(model=name, input="?")


def ask_bedrock(client: Any, name: str) -> object:
    return client.converse(modelId=name, messages=[{"role": "user", "content": [{"text": "?"}]}])


def read_stainless(error: Any) -> tuple[int, str, str | None]:
    said = error.body.get("error", error.body)
    assert said["message"] in str(error)
    return error.status_code, said["message"], error.response.headers.get("retry-after")


def read_ollama(error: Any) -> tuple[int, str, str | None]:
    return error.status_code, error.error, None


def read_cohere(error: Any) -> tuple[int, str, str | None]:
    return error.status_code, error.body["message"], error.headers["retry-after"]


def read_mistral(error: Any) -> tuple[int, str, str | None]:
    return error.status_code, json.loads(error.body)["message"], error.headers["retry-after"]


def read_gemini(error: Any) -> tuple[int, str, str | None]:
    details = error.details["error"]["details"]
    return error.code, error.message, details[0]["retryDelay"].removesuffix("s")


def read_bedrock(error: Any) -> tuple[int, str, str | None]:
    head = error.response["ResponseMetadata"]
    return head["HTTPStatusCode"], error.response["Error"]["Message"], head["HTTPHeaders"]["retry-after"]


def each(default: str, **others: str) -> dict[ErrorType, str]:
    return {kind: others.get(kind, default) for kind in KINDS}


OPENAI = each(
    "InternalServerError", invalid_request="BadRequestError", auth="AuthenticationError", billing="RateLimitError",
    permission="PermissionDeniedError", not_found="NotFoundError", too_large="APIStatusError", rate_limit="RateLimitError",
)  # fmt: skip
ANTHROPIC = each(
    "InternalServerError", invalid_request="BadRequestError", auth="AuthenticationError", billing="PaymentRequiredError",
    permission="PermissionDeniedError", not_found="NotFoundError", too_large="ContentTooLargeError", rate_limit="RateLimitError",
    unavailable="OverloadedError", timeout="GatewayTimeoutError",
)  # fmt: skip
COHERE = each(
    "core.api_error:ApiError", invalid_request="errors:BadRequestError", auth="errors:UnauthorizedError", permission="errors:ForbiddenError",
    not_found="errors:NotFoundError", rate_limit="errors:TooManyRequestsError", server="errors:InternalServerError",
    unavailable="errors:ServiceUnavailableError", timeout="errors:GatewayTimeoutError",
)  # fmt: skip
GEMINI = each(
    "ClientError", server="ServerError", unavailable="ServerError", timeout="ServerError", truncated="ServerError"
)
BEDROCK = each(
    "ClientError", invalid_request="ValidationException", billing="ValidationException", too_large="ValidationException",
    permission="AccessDeniedException", not_found="ResourceNotFoundException", rate_limit="ThrottlingException",
    server="InternalServerException", unavailable="ServiceUnavailableException", timeout="ModelTimeoutException",
    truncated="ModelErrorException",
)  # fmt: skip

JUDGES = [
    Judge("openai-chat", "openai", "openai", ask_openai, OPENAI, read_stainless),
    Judge("openai-responses", "openai", "openai", ask_responses, OPENAI, read_stainless),
    Judge("anthropic", "anthropic", "anthropic._exceptions", ask_anthropic, ANTHROPIC, read_stainless),
    Judge("ollama", "ollama", "ollama", ask_ollama, each("ResponseError"), read_ollama),
    Judge("cohere", "cohere", "cohere", ask_cohere, COHERE, read_cohere),
    Judge("mistral", "mistralai.client", "mistralai.client.errors", ask_mistral, each("SDKError"), read_mistral),
    Judge("gemini", "google.genai", "google.genai.errors", ask_gemini, GEMINI, read_gemini),
    Judge(
        "gemini-interactions",
        "google.genai.interactions",
        "google.genai._interactions",
        ask_interactions,
        {**OPENAI, "billing": "APIStatusError"},
        read_stainless,
    ),
    Judge("bedrock", "boto3", "", ask_bedrock, BEDROCK, read_bedrock),
]


def raised(judge: Judge, client: Any, name: str) -> Any:
    with pytest.raises(Exception) as caught:
        judge.ask(client, name)
    return caught.value


def served(replay: ReplayServer, failed: ProviderFailed, dialect: str) -> str:
    status, headers, body = encode_error(failed, dialect)
    return replay.register(body, headers["content-type"], status=status, headers=headers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.dialect)
def test_the_right_exception(judge: Judge, kind: ErrorType, replay: ReplayServer, client: Clients):
    asking = client(judge.package)
    failed = ProviderFailed(kind, MESSAGE, "their_word", vendor="someone", retry_after_s=WAIT_S)
    error = raised(judge, asking, served(replay, failed, judge.dialect))
    expected = judge.raised[kind]
    if judge.dialect == "bedrock":
        code = "UnrecognizedClientException" if kind == "auth" else expected
        assert error.response["Error"]["Code"] == code
        assert type(error).__name__ == expected
    else:
        place, _, name = f"{judge.module}.{expected}".replace(":", ".").rpartition(".")
        assert type(error) is pkgutil.resolve_name(f"{place}:{name}")
    status, message, wait = judge.read(error)
    assert (status, message) == (encode_error(failed, judge.dialect).status, MESSAGE)
    assert wait in {None, "7"}


def test_openais_code_and_type_are_attributes(replay: ReplayServer, client: Clients):
    error = raised(JUDGES[0], client("openai"), served(replay, ProviderFailed("billing", "no"), "openai-chat"))
    assert (error.code, error.type, error.param) == ("insufficient_quota", "insufficient_quota", None)


def test_anthropics_type_is_an_attribute(replay: ReplayServer, client: Clients):
    error = raised(JUDGES[2], client("anthropic"), served(replay, ProviderFailed("unavailable", "no"), "anthropic"))
    assert (error.status_code, error.body["error"]["type"]) == (529, "overloaded_error")


def test_mistrals_own_validation_error_stays_one(replay: ReplayServer, client: Clients):
    asking = client("mistralai.client")
    from mistralai.client.errors import HTTPValidationError  # noqa: PLC0415 - it may be missing

    detail = [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing"}]
    failed = decode_error(422, json.dumps({"detail": detail}).encode(), "mistral")
    error = raised(JUDGES[5], asking, served(replay, failed, "mistral"))
    assert isinstance(error, HTTPValidationError)
    assert error.data.detail[0].msg == "Field required"


@pytest.mark.parametrize(
    ("failed", "times"),
    [
        (ProviderFailed("rate_limit", "no", retry_after_s=0.01), 3),
        (ProviderFailed("unavailable", "no", retry_after_s=0.01), 3),
        (ProviderFailed("billing", "no", retry_after_s=0.01), 1),
        (ProviderFailed("invalid_request", "no", retry_after_s=0.01), 1),
    ],
    ids=lambda value: value.type if isinstance(value, ProviderFailed) else "",
)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_clients_try_again_where_it_may_help(
    number: int, failed: ProviderFailed, times: int, replay: ReplayServer, client: Clients
):
    """openai-python waits as ``retry-after-ms`` says and repeats each 429, but for one that tells it not to."""
    judge = JUDGES[number]
    name = served(replay, failed, judge.dialect)
    raised(judge, client(judge.package).with_options(max_retries=2), name)
    assert replay.times[name] == times
