from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from streamkit.errors import SourceFailed
from streamkit.web.upstream import Secret, Upstream, redactor
from streamkit.web.upstream.requests import authorised

CANARY = "canary-0123456789"
URL, BODY = "https://h/model/a%3Ab/converse", b"{}"


def upstream(auth: str = "bearer", **values: Any) -> Upstream:
    return Upstream(
        **{"name": "up", "dialect": "bedrock", "base_url": "https://h", "key": Secret(CANARY), "auth": auth, **values}
    )


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ("bearer", {"authorization": f"Bearer {CANARY}"}),
        ("bedrock-bearer", {"authorization": f"Bearer {CANARY}"}),
        ("x-api-key", {"x-api-key": CANARY}),
        ("x-goog-api-key", {"x-goog-api-key": CANARY}),
        ("azure", {"api-key": CANARY}),
    ],
)
async def test_a_key_is_in_its_header_and_nowhere_else(auth: str, header: dict[str, str]):
    given = {"content-type": "application/json"}
    assert await authorised(upstream(auth), "POST", URL, given, BODY) == {**given, **header}
    assert given == {"content-type": "application/json"}


async def test_without_a_key_nothing_is_added():
    assert await authorised(upstream("none", key=None), "POST", URL, {"a": "b"}, BODY) == {"a": "b"}


SIGV4: dict[str, Any] = {"auth": "sigv4", "key": None, "region": "eu-west-1"}


async def test_a_signature_covers_what_will_not_change_and_has_the_sessions_token(aws: pytest.MonkeyPatch):
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    aws.setenv("AWS_SESSION_TOKEN", "token")
    given = {"content-type": "application/json", "accept": "a", "user-agent": "b"}
    signed = await authorised(upstream(**SIGV4), "POST", URL, given, BODY)
    assert {name: signed[name] for name in given} == given
    assert (
        "/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
        in signed["authorization"]
    )
    assert signed["x-amz-security-token"] == "token"
    assert CANARY not in str(signed)
    other = await authorised(upstream(**SIGV4), "POST", URL, given, b"[]")
    assert other["authorization"] != signed["authorization"]


async def test_credentials_that_are_nowhere_are_an_error_until_they_are_there(aws: pytest.MonkeyPatch):
    given = {"content-type": "application/json"}
    with pytest.raises(SourceFailed, match="found no AWS credentials; set AWS_ACCESS_KEY_ID"):
        await authorised(upstream(**SIGV4), "POST", URL, given, BODY)
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    assert "authorization" in await authorised(upstream(**SIGV4), "POST", URL, given, BODY)


async def test_credentials_are_looked_for_once(aws: pytest.MonkeyPatch):
    from botocore.session import Session  # noqa: PLC0415 - it comes with the extra

    looked: list[Session] = []
    look = Session.get_credentials
    aws.setattr(Session, "get_credentials", lambda session: looked.append(session) or look(session))
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    for _ in range(3):
        await authorised(upstream(**SIGV4), "POST", URL, {"content-type": "a"}, BODY)
    assert len(looked) == 1


async def test_credentials_that_fail_are_the_gateways_fault(aws: pytest.MonkeyPatch):
    aws.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(SourceFailed, match="could not get its AWS credentials"):
        await authorised(upstream(**SIGV4), "POST", URL, {"content-type": "application/json"}, BODY)


async def test_looking_for_credentials_does_not_hold_up_the_loop(aws: pytest.MonkeyPatch):
    from botocore.credentials import Credentials  # noqa: PLC0415 - it comes with the extra

    from streamkit.web.upstream import sigv4  # noqa: PLC0415 - it needs the extra

    free = threading.Event()

    def slow() -> Credentials:
        assert free.wait(10)
        return Credentials("a", "b")

    aws.setattr(sigv4, "_chain", slow)
    task = asyncio.create_task(authorised(upstream(**SIGV4), "POST", URL, {"content-type": "a"}, BODY))
    await asyncio.sleep(0.01)  # the loop turns while the thread waits
    free.set()
    assert "authorization" in await task


def test_an_upstreams_own_key_is_cut_out_of_what_it_says():
    cut = redactor(
        [
            upstream("bearer", key=Secret("plain words")),
            upstream("x-api-key", key=Secret("a+b/c=0123456789"), headers={"X-Portkey-Api-Key": "portkey-000"}),
            upstream("x-api-key", headers={"Authorization": "Basic Zm9vOmJhcg==", "HTTP-Referer": "https://mine"}),
        ]
    )
    said = f"no plain words: {CANARY}{CANARY} a+b/c=0123456789 a%2Bb%2Fc%3D0123456789 portkey-000 Zm9vOmJhcg== https://mine"
    assert cut(said) == "no [removed]: [removed][removed] [removed] [removed] [removed] [removed] https://mine"


def test_a_key_that_begins_with_another_is_cut_whole():
    cut = redactor([upstream(key=Secret("0123456789")), upstream(key=Secret("0123456789-more"))])
    assert cut("0123456789-more 0123456789") == "[removed] [removed]"


def test_a_placeholder_is_no_key():
    assert redactor([upstream(key=Secret("ollama"))])("ollama: not found") == "ollama: not found"
    assert redactor([])("nothing") == "nothing"
