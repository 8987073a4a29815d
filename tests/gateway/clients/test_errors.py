"""What each official client raises through the running gateway: its own classes, with words that say what to do.

Before the stream an error is a status; in the stream it is the dialect's own event. In neither form does a client take what it
has for an answer.
"""

from __future__ import annotations

import pkgutil
from typing import Any, Final

import pytest
from attrs import evolve

from streamkit.events import ErrorType, ProviderFailed
from streamkit.http_errors import decode_error, encode_error
from tests.clients.readers import READERS, Reader
from tests.clients.test_http_errors import JUDGES, KINDS, MESSAGE
from tests.clients.test_http_errors import Judge as ErrorJudge
from tests.clients.test_official_clients import raised_by
from tests.clients.vectors import BEGUN, FAILURES
from tests.gateway.clients.conftest import ENTER
from tests.gateway.clients.in_thread import CLIENTS, NO_TOOLS, UPSTREAMS, GatewayThread, listed
from tests.gateway.clients.judging import Clients
from tests.gateway.clients.programs import TOOLS, schema
from tests.gateway.clients.read_whole import WHOLE_READERS
from tests.gateway.clients.recorded import Stream
from tests.gateway.clients.recorded import script as played
from tests.web.evil import Script
from tests.web.faults import WHY, answer, error_first, reset_mid_line, truncated_chunked

STREAMED: Final = [reader for reader in READERS if reader.dialect in CLIENTS]
EVERY: Final = [*STREAMED, *WHOLE_READERS]
READING: Final[dict[str, ErrorJudge]] = {judge.dialect: judge for judge in JUDGES if judge.dialect in CLIENTS}


#: The others are as these, each with a class and a status of its own.
SOME_KINDS: Final[tuple[ErrorType, ...]] = ("invalid_request", "auth", "rate_limit", "unavailable")


def named(reader: Any) -> str:
    return reader.name.replace(" ", "-")


def status_of(error: Any) -> int:
    return getattr(error, "status_code", None) or error.code


def class_for(dialect: str, kind: ErrorType) -> type[Exception]:
    """What the client of a dialect raises for a kind of error."""
    judge = READING[dialect]
    pytest.importorskip(judge.package)
    place, _, name = f"{judge.module}.{judge.raised[kind]}".rpartition(".")
    return pkgutil.resolve_name(f"{place}:{name}")


# -- what is wrong with the request ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", EVERY, ids=named)
def test_a_wrong_key_is_an_authentication_error(reader: Reader, served: GatewayThread):
    refused = pytest.raises(class_for(reader.dialect, "auth"), match="not valid here")
    with ENTER[reader.package](served.url, "another-key") as client, refused as caught:
        reader.read(client, listed("anthropic"))
    assert status_of(caught.value) == 401
    assert "another-key" not in str(caught.value)


@pytest.mark.parametrize("reader", EVERY, ids=named)
def test_an_unknown_model_is_not_found(reader: Reader, client: Clients):
    with pytest.raises(class_for(reader.dialect, "not_found"), match="the model 'nobody' does not exist") as caught:
        reader.read(client(reader.package), "nobody")
    assert status_of(caught.value) == 404


@pytest.mark.parametrize(
    "asked", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}], ids=lambda asked: next(iter(asked))
)
def test_what_leans_on_state_is_a_bad_request_that_says_what_to_send(asked: dict[str, str], client: Clients):
    openai = pytest.importorskip("openai")
    with pytest.raises(
        openai.BadRequestError, match=r"(stateless|no conversations).*send the whole input.*store: false"
    ):
        client("openai").responses.create(model=listed("anthropic"), input="?", **asked)


def test_a_response_that_nobody_kept_is_not_found(client: Clients):
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.NotFoundError, match="this response does not exist"):
        client("openai").responses.retrieve("resp_1")


def test_tools_for_a_model_that_takes_none_are_a_bad_request(client: Clients):
    anthropic = pytest.importorskip("anthropic")
    tools = [{"name": name, "description": name, "input_schema": schema(name)} for name in TOOLS]
    with pytest.raises(anthropic.BadRequestError, match="supports tools; leave `tools` out"):
        client("anthropic").messages.create(
            model=listed(NO_TOOLS), max_tokens=1, messages=[{"role": "user", "content": "?"}], tools=tools
        )


def test_a_request_that_cannot_be_is_a_bad_request_with_the_path_to_the_fault(client: Clients):
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.BadRequestError, match=r"messages\[0\]"):
        client("openai").chat.completions.create(model=listed("anthropic"), messages=[{"role": "nobody", "content": 1}])


# -- before the stream -------------------------------------------------------------------------------------------------


def refusal(upstream: str, kind: ErrorType) -> tuple[Script, ProviderFailed]:
    """An upstream's error over HTTP, and what it says in the words that its dialect has."""
    status, headers, body = encode_error(ProviderFailed(kind, MESSAGE), upstream)
    return answer(status, body, headers), decode_error(status, body, upstream, headers)


@pytest.mark.parametrize(
    "kinds", [pytest.param(SOME_KINDS, id="some"), pytest.param(KINDS, id="all", marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("dialect", CLIENTS)
def test_what_an_upstream_refuses_with_raises_the_clients_own_class(
    dialect: str, upstream: str, kinds: tuple[ErrorType, ...], served: GatewayThread, client: Clients
):
    judge = READING[dialect]
    for kind in kinds:
        script, failure = refusal(upstream, kind)
        passed = script.steps[0].data.split()[1] if dialect == upstream else b""
        status, message = int(passed or encode_error(failure, dialect).status), MESSAGE
        if failure.type in {"auth", "permission"}:  # the key is the gateway's, and no client can renew it
            failure, status, message = evolve(failure, type="server"), 502, "refused the gateway's credentials"
        # a prompt that is too long is a bad request in most dialects
        raised = class_for(
            dialect, "invalid_request" if failure.type == "too_large" and status == 400 else failure.type
        )
        with pytest.raises(raised, match=message) as caught:
            judge.ask(client(judge.package), served.register(upstream, script))
        assert (status_of(caught.value), type(caught.value)) == (status, raised), kind


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("reader", EVERY, ids=named)
def test_an_error_as_first_event_is_a_status_still(
    reader: Reader, upstream: str, served: GatewayThread, client: Clients
):
    script = error_first(upstream, whole=reader in WHOLE_READERS)
    with pytest.raises(raised_by(reader.package), match=WHY) as caught:
        reader.read(client(reader.package), served.register(upstream, script))
    assert status_of(caught.value) >= 500


# -- in the stream -----------------------------------------------------------------------------------------------------


#: In the stream; or, where the one event there was is torn, before it.
CUT: Final = "truncated|ended before its completion point"


def broken(upstream: str) -> dict[str, tuple[Script, str]]:
    """By how it breaks behind some text and half a call: the script, and what the client is told."""
    return {
        "the provider fails": (played(Stream("", upstream, (BEGUN[upstream], FAILURES[upstream]))), "all busy"),
        "it is cut inside an event": (played(Stream("", upstream, (BEGUN[upstream][:-9],))), CUT),
        "the connection is reset": (reset_mid_line(upstream), "connection to the upstream broke"),
        "the last chunk is torn": (truncated_chunked(upstream), "connection to the upstream broke"),
    }


def in_short(reader: Reader) -> Any:
    """A client's own accumulator stands on what its fold reads, and is tried in the full run only."""
    return pytest.param(reader, marks=[pytest.mark.exhaustive] if "helper" in reader.name else [])


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("reader", [in_short(reader) for reader in STREAMED], ids=named)
def test_what_breaks_in_the_stream_raises_with_what_happened(
    reader: Reader, upstream: str, served: GatewayThread, client: Clients
):
    for how, (script, message) in broken(upstream).items():
        model = served.register(upstream, script)
        with pytest.raises(raised_by(reader.package), match=message):
            reader.read(client(reader.package), model)
        assert served.record(model).ending in {"broken", "error"}, how
