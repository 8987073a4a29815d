"""The official clients as oracles: what they send to a base URL, ``send`` sends there too."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import product
from typing import Any

import orjson
import pytest

from streamkit.dialects.http import Operation
from streamkit.translation.bodies import decode_request, encode_request
from streamkit.web.upstream import Secret, Upstream, client_session, count_request, send
from tests.clients.conftest import WHY
from tests.web.upstream.recorder import Recorder, Sent, answer, reply, serving

KEY = "canary-0123456789"
SAID = [{"role": "user", "content": "hi"}]
#: Whatever a header may show a key in.
SHOWS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
AZURE_VERSION = "2024-10-21"


def drain(answered: Any) -> None:
    """A stream is asked for when it is read, in some clients."""
    if hasattr(answered, "__iter__"):
        list(answered)


def openai_client(url: str) -> Any:
    openai = pytest.importorskip("openai", reason=WHY)
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, http_client=http)


def azure_client(**where: Any) -> Any:
    openai = pytest.importorskip("openai", reason=WHY)
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.AzureOpenAI(**where, api_key=KEY, api_version=AZURE_VERSION, max_retries=0, http_client=http)


def anthropic_client(url: str) -> Any:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    http = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0, http_client=http)


def foundry_client(url: str, **more: Any) -> Any:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    http = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.AnthropicFoundry(base_url=url, max_retries=0, http_client=http, **more)


def gemini_client(url: str, version: str | None = None) -> Any:
    genai = pytest.importorskip("google.genai", reason=WHY)
    options = genai.types.HttpOptions(base_url=url, api_version=version, client_args={"trust_env": False})
    return closing(genai.Client(api_key=KEY, http_options=options))


def ollama_client(url: str) -> Any:
    ollama = pytest.importorskip("ollama", reason=WHY)
    return ollama.Client(host=url, trust_env=False, headers={"Authorization": f"Bearer {KEY}"})


def cohere_client(url: str) -> Any:
    cohere = pytest.importorskip("cohere", reason=WHY)
    httpx = pytest.importorskip("httpx", reason=WHY)
    return cohere.ClientV2(base_url=url, api_key=KEY, httpx_client=httpx.Client(trust_env=False))


@contextmanager
def mistral_client(url: str) -> Iterator[Any]:
    """It does not close a transport that it was given."""
    mistral = pytest.importorskip("mistralai.client", reason=WHY)
    httpx2 = pytest.importorskip("httpx2", reason=WHY)
    with httpx2.Client(trust_env=False) as transport:
        yield mistral.Mistral(server_url=url, api_key=KEY, client=transport)


def chat(client: Any, model: str, stream: bool) -> Any:
    return client.chat.completions.create(model=model, messages=SAID, stream=stream)


def responses(client: Any, model: str, stream: bool) -> Any:
    return client.responses.create(model=model, input="hi", stream=stream)


def messages(client: Any, model: str, stream: bool) -> Any:
    return client.messages.create(model=model, messages=SAID, max_tokens=1, stream=stream)


def gemini(client: Any, model: str, stream: bool) -> Any:
    ask = client.models.generate_content_stream if stream else client.models.generate_content
    return ask(model=model, contents="hi")


def ollama(client: Any, model: str, stream: bool) -> Any:
    return client.chat(model=model, messages=SAID, stream=stream)


def cohere(client: Any, model: str, stream: bool) -> Any:
    return (client.chat_stream if stream else client.chat)(model=model, messages=SAID)


def mistral(client: Any, model: str, stream: bool) -> Any:
    return (client.chat.stream if stream else client.chat.complete)(model=model, messages=SAID)


#: What a user gives the official client, how it is asked, and what the same user writes for an upstream.
CASES: dict[str, tuple[Callable[[str], Any], Callable[[Any, str, bool], Any], dict[str, Any]]] = {
    "chat": (lambda url: openai_client(f"{url}/v1"), chat, {"dialect": "openai-chat", "base_url": "/v1"}),
    "chat, no version": (openai_client, chat, {"dialect": "deepseek", "base_url": ""}),
    "responses": (
        lambda url: openai_client(f"{url}/v1/"),
        responses,
        {"dialect": "openai-responses", "base_url": "/v1/"},
    ),
    "azure": (
        lambda url: azure_client(azure_endpoint=url),
        chat,
        {"dialect": "azure", "base_url": "", "auth": "azure", "api_version": AZURE_VERSION},
    ),
    "azure, a deployment": (
        lambda url: azure_client(azure_endpoint=url, azure_deployment="a b"),
        chat,
        {"dialect": "azure", "base_url": "/openai/deployments/a%20b", "auth": "azure", "api_version": AZURE_VERSION},
    ),
    "azure, its base URL": (
        lambda url: azure_client(base_url=f"{url}/openai"),
        chat,
        {"dialect": "azure", "base_url": "/openai", "auth": "azure", "api_version": AZURE_VERSION},
    ),
    "azure, responses": (
        lambda url: azure_client(azure_endpoint=url),
        responses,
        {"dialect": "openai-responses", "base_url": "", "auth": "azure", "api_version": AZURE_VERSION},
    ),
    "azure without versions": (
        lambda url: openai_client(f"{url}/openai/v1/"),
        chat,
        {"dialect": "azure", "base_url": "/openai/v1/"},
    ),
    "anthropic": (anthropic_client, messages, {"dialect": "anthropic", "base_url": ""}),
    "anthropic, a path": (
        lambda url: anthropic_client(f"{url}/anthropic"),
        messages,
        {"dialect": "anthropic", "base_url": "/anthropic"},
    ),
    "gemini": (gemini_client, gemini, {"dialect": "gemini", "base_url": "/v1", "auth": "x-goog-api-key"}),
    "gemini, beta": (
        lambda url: gemini_client(url, "v1beta"),
        gemini,
        {"dialect": "gemini", "base_url": "", "auth": "x-goog-api-key"},
    ),
    "ollama": (ollama_client, ollama, {"dialect": "ollama", "base_url": ""}),
    "cohere": (cohere_client, cohere, {"dialect": "cohere", "base_url": ""}),
    "mistral": (mistral_client, mistral, {"dialect": "mistral", "base_url": ""}),
}


async def asked(recorder: Recorder, ask: Callable[[], Any]) -> Sent:
    """What an official client sent; what it makes of the answer is its own affair."""

    def run() -> None:
        with suppress(Exception):
            drain(ask())

    await asyncio.to_thread(run)
    return recorder.last


async def ours(
    recorder: Recorder, values: dict[str, Any], model: str, stream: bool, operation: Operation = "generate"
) -> Sent:
    values = {"key": Secret(KEY), **values, "base_url": recorder.url + values["base_url"]}
    upstream = Upstream(name="up", **values)
    async with client_session() as session:
        (await send(session, upstream, b"{}", model=model, stream=stream, operation=operation)).close()
    return recorder.last


def shown(sent: Sent) -> dict[str, str]:
    return {name: sent.headers[name] for name in (*SHOWS, "anthropic-version", "content-type") if name in sent.headers}


@pytest.fixture
async def recorder():
    async with serving(answer(reply(400, b"{}", content_type="application/json"))) as recorder:
        yield recorder


@pytest.mark.parametrize("case", CASES)
async def test_the_same_path_and_the_same_authorisation(recorder: Recorder, case: str):
    connect, ask, values = CASES[case]
    models = ["a-model.1"]
    if case.startswith(("azure", "gemini")):  # there it may stand in the path
        models += ["models/x", "a model: (other)"]
    if case.startswith("azure"):  # Gemini's client leaves the slash, which makes it another path
        models.append("of/others")
    with connect(recorder.url) as client:
        for model, stream in product(models, (True, False)):
            recorder.sent.clear()
            theirs = await asked(recorder, lambda model=model, stream=stream: ask(client, model, stream))
            mine = await ours(recorder, values, model, stream)
            assert len(recorder.sent) == 2
            assert (mine.method, mine.path) == (theirs.method, theirs.path)
            assert shown(mine) == shown(theirs)


@pytest.mark.parametrize(
    ("auth", "given"),
    [
        ("x-api-key", {"api_key": KEY}),
        ("azure", {"api_key": KEY}),
        ("bearer", {"azure_ad_token_provider": lambda: KEY}),
    ],
)
async def test_foundry_gets_what_its_client_sends(recorder: Recorder, auth: str, given: dict[str, Any]):
    values = {"dialect": "azure-anthropic", "base_url": "/anthropic/", "auth": auth}
    with foundry_client(f"{recorder.url}/anthropic/", **given) as client:
        for operation, ask in {
            "generate": lambda: messages(client, "a-deployment", True),
            "count": lambda: client.messages.count_tokens(model="a-deployment", messages=SAID),
        }.items():
            theirs = await asked(recorder, ask)
            mine = await ours(recorder, values, "a-deployment", True, operation)
            assert mine.path == theirs.path
            # it sends a key in two headers, and Foundry reads either
            assert shown(mine).items() <= shown(theirs).items()
            assert given == {"api_key": KEY} or shown(mine) == shown(theirs)
        assert client.models is client.messages.batches is None  # neither does streamkit ask for lists or batches


@pytest.mark.parametrize(
    ("connect", "ask", "values"),
    [
        (
            anthropic_client,
            lambda client: client.messages.count_tokens(model="m", messages=SAID),
            {"dialect": "anthropic", "base_url": ""},
        ),
        (
            lambda url: openai_client(f"{url}/v1"),
            lambda client: client.responses.input_tokens.count(model="m", input="hi"),
            {"dialect": "openai-responses", "base_url": "/v1"},
        ),
        (
            gemini_client,
            lambda client: client.models.count_tokens(model="m", contents="hi"),
            {"dialect": "gemini", "base_url": "/v1", "auth": "x-goog-api-key"},
        ),
    ],
    ids=["anthropic", "openai-responses", "gemini"],
)
async def test_tokens_are_counted_at_the_same_place(recorder: Recorder, connect: Any, ask: Any, values: dict[str, Any]):
    with connect(recorder.url) as client:
        theirs = await asked(recorder, lambda: ask(client))
    mine = await ours(recorder, values, "m", False, "count")
    assert mine.path == theirs.path
    assert shown(mine) == shown(theirs)


# -- Google's Vertex AI ------------------------------------------------------------------------------------------------


def vertex_client(url: str) -> Any:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    http = anthropic.DefaultHttpxClient(trust_env=False)
    return anthropic.AnthropicVertex(
        base_url=f"{url}/v1", project_id="p", region="us-east5", access_token=KEY, max_retries=0, http_client=http
    )


@pytest.fixture
def vertex(google: pytest.MonkeyPatch) -> dict[str, Any]:
    """An upstream's values; its credentials have the client's token."""

    async def token(_upstream: Upstream) -> str:
        return KEY

    google.setattr("streamkit.web.upstream.google.token", token)
    return {"auth": "google", "key": None}


@pytest.mark.parametrize("root", ["", "/publishers/anthropic"])
@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-4-5@20250929", "a;b"])
@pytest.mark.parametrize("stream", [True, False])
async def test_claude_on_vertex_gets_what_its_client_sends(
    recorder: Recorder, vertex: dict[str, Any], root: str, model: str, stream: bool
):
    with vertex_client(recorder.url) as client:
        theirs = await asked(recorder, lambda: messages(client, model, stream))
    request = decode_request(
        orjson.dumps({"model": model, "messages": SAID, "max_tokens": 1, "stream": stream}), "anthropic"
    )
    body = encode_request(request, "vertex-anthropic")
    base_url = f"{recorder.url}/v1/projects/p/locations/us-east5{root}"
    upstream = Upstream(name="up", dialect="vertex-anthropic", base_url=base_url, **vertex)
    async with client_session() as session:
        (await send(session, upstream, body, model=model, stream=stream)).close()
    mine = recorder.last
    assert mine.path == theirs.path
    assert shown(mine) == shown(theirs)
    assert orjson.loads(mine.body) == orjson.loads(theirs.body)


async def test_claude_on_vertex_counts_where_its_client_does(recorder: Recorder, vertex: dict[str, Any]):
    with vertex_client(recorder.url) as client:
        theirs = await asked(recorder, lambda: client.messages.count_tokens(model="m", messages=SAID))
    body = encode_request(
        decode_request(orjson.dumps({"model": "m", "messages": SAID}), "anthropic"), "vertex-anthropic"
    )
    base_url = f"{recorder.url}/v1/projects/p/locations/us-east5"
    upstream = Upstream(name="up", dialect="vertex-anthropic", base_url=base_url, **vertex)
    async with client_session() as session:
        counted = count_request(upstream, body, "m")
        (await send(session, upstream, counted, model="m", stream=False, operation="count")).close()
    mine = recorder.last
    assert (mine.path, orjson.loads(mine.body)) == (theirs.path, orjson.loads(theirs.body))


# -- bedrock -----------------------------------------------------------------------------------------------------------

ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.a-b~c d"
CONVERSED = [{"role": "user", "content": [{"text": "hi"}]}]


def bedrock_client(url: str, **more: Any) -> Any:
    boto3 = pytest.importorskip("boto3", reason=WHY)
    from botocore.config import Config  # noqa: PLC0415 - it comes with the client

    config = Config(proxies={}, retries={"max_attempts": 0}, **more)
    return closing(boto3.client("bedrock-runtime", "us-east-1", endpoint_url=url, config=config))


def converse(client: Any, model: str, operation: str) -> Any:
    if operation == "count":
        return client.count_tokens(modelId=model, input={"converse": {"messages": CONVERSED}})
    return getattr(client, operation)(modelId=model, messages=CONVERSED)


@pytest.fixture
def signing(aws: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    aws.setenv("AWS_SESSION_TOKEN", "a-token")
    return aws


@pytest.mark.parametrize("model", ["us.anthropic.claude-v1:0", ARN])
@pytest.mark.parametrize("operation", ["converse_stream", "converse", "count"])
async def test_bedrock_gets_boto3s_own_signature(
    recorder: Recorder, signing: pytest.MonkeyPatch, operation: str, model: str
):
    """At the same second the whole header is the same: path, host, type, token and body are signed alike."""
    now = dt.datetime(2026, 11, 22, 4, 5, 6, tzinfo=dt.UTC)
    signing.setattr("botocore.auth.get_current_datetime", lambda: now)
    with bedrock_client(recorder.url) as client:
        theirs = await asked(recorder, lambda: converse(client, model, operation))
    upstream = Upstream(name="up", dialect="bedrock", base_url=recorder.url, auth="sigv4", region="us-east-1")
    what: Operation = "count" if operation == "count" else "generate"
    async with client_session() as session:
        stream = operation == "converse_stream"
        (await send(session, upstream, theirs.body, model=model, stream=stream, operation=what)).close()
    mine = recorder.last
    assert (mine.path, mine.body) == (theirs.path, theirs.body)
    for name in ("authorization", "x-amz-date", "x-amz-security-token", "content-type", "host"):
        assert mine.headers[name] == theirs.headers[name], name
    assert mine.headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261122/us-east-1/bedrock/"
    )


def mantle_anthropic(url: str) -> Any:
    anthropic = pytest.importorskip("anthropic", reason=WHY)
    http = anthropic.DefaultHttpxClient(trust_env=False)
    where = {"base_url": f"{url}/anthropic", "aws_region": "us-east-1", "aws_access_key": "AKIDEXAMPLE"}
    return anthropic.AnthropicBedrockMantle(
        **where, aws_secret_key=KEY, aws_session_token="a-token", max_retries=0, http_client=http
    )


def mantle_openai(url: str) -> Any:
    openai = pytest.importorskip("openai", reason=WHY)
    bedrock = pytest.importorskip("openai.providers.bedrock", reason=WHY).bedrock
    http = openai.DefaultHttpxClient(trust_env=False)
    mantle = bedrock(region="us-east-1", base_url=f"{url}/openai/v1", endpoint="mantle")
    return openai.OpenAI(provider=mantle, max_retries=0, http_client=http)


def signed_again(sent: Sent, url: str, service: str) -> str:
    """The signature that botocore makes of a request as it arrived, over the headers that its signature names."""
    request = pytest.importorskip("botocore.awsrequest").AWSRequest
    signer = pytest.importorskip("botocore.auth").SigV4Auth
    credentials = pytest.importorskip("botocore.credentials").Credentials("AKIDEXAMPLE", KEY, "a-token")
    names = sent.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    unsigned = {"host", "x-amz-date", "x-amz-security-token"}  # botocore adds these
    headers = {name: sent.headers[name] for name in names if name not in unsigned}
    asked = request(method=sent.method, url=url + sent.path, data=sent.body, headers=headers)
    signer(credentials, service, "us-east-1").add_auth(asked)
    return str(asked.headers["authorization"])


@pytest.mark.parametrize(
    ("connect", "ask", "values"),
    [
        (mantle_anthropic, messages, {"dialect": "anthropic", "base_url": "/anthropic"}),
        (mantle_openai, responses, {"dialect": "openai-responses", "base_url": "/openai/v1"}),
        (mantle_openai, chat, {"dialect": "openai-chat", "base_url": "/openai/v1"}),
    ],
    ids=["anthropic", "openai-responses", "openai-chat"],
)
async def test_mantle_gets_what_is_signed_for_its_service(
    recorder: Recorder, signing: pytest.MonkeyPatch, connect: Any, ask: Any, values: dict[str, Any]
):
    now = dt.datetime(2026, 11, 22, 4, 5, 6, tzinfo=dt.UTC)
    signing.setattr("botocore.auth.get_current_datetime", lambda: now)
    with connect(recorder.url) as client:
        theirs = await asked(recorder, lambda: ask(client, "anthropic.claude-x", True))
    aws = {"auth": "sigv4", "key": None, "region": "us-east-1", "service": "bedrock-mantle"}
    mine = await ours(recorder, {**values, **aws}, "anthropic.claude-x", True)
    assert (mine.method, mine.path) == (theirs.method, theirs.path)
    scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261122/us-east-1/bedrock-mantle/aws4_request, "
    for sent in (mine, theirs):
        assert sent.headers["authorization"].startswith(scope)
        assert sent.headers["authorization"] == signed_again(sent, recorder.url, "bedrock-mantle")
    assert mine.headers.get("anthropic-version") == theirs.headers.get("anthropic-version")


async def test_bedrocks_own_keys_are_sent_as_boto3_sends_them(recorder: Recorder, aws: pytest.MonkeyPatch):
    """boto3 sends no such key without TLS: its request is caught before it leaves."""
    aws.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    caught: list[Any] = []

    def catch(request: Any, **_: Any) -> None:
        caught.append(request)
        raise ConnectionError

    with bedrock_client("https://127.0.0.1:9") as client:
        client.meta.events.register("before-send.bedrock-runtime.ConverseStream", catch)
        with suppress(Exception):
            client.converse_stream(modelId=ARN, messages=CONVERSED)
    (theirs,) = caught
    mine = await ours(recorder, {"dialect": "bedrock", "base_url": "", "auth": "bedrock-bearer"}, ARN, True)
    assert f"https://127.0.0.1:9{mine.path}" == theirs.url
    authorization = theirs.headers["Authorization"]
    assert mine.headers["authorization"] == (
        authorization.decode() if isinstance(authorization, bytes) else authorization
    )
