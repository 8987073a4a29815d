"""Calls end in time, and what fails is told without anything of the address.

Source: resume.md §8.
"""

from __future__ import annotations

import asyncio
import signal

import pytest
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, ResponseError

from streamkit.resume import StoreDown
from streamkit.resume.redis_client import Calls, faults_of, is_passing, is_smaller, patiently
from tests.resume.servers import free_port


@pytest.fixture
async def calls(server):
    made = Calls(server.url, call_s=0.2)
    yield made
    await made.close()


async def test_a_server_that_is_silent_is_given_up_in_time_and_leaves_no_answer_behind(calls, server):
    await calls.call("SET", "a", "1")
    loop = asyncio.get_running_loop()
    server.signal(signal.SIGSTOP)
    try:
        begun = loop.time()
        for ask in (calls.call("GET", "a"), calls.each([("GET", "a")]), calls.blocking("GET", "a", for_s=0.1)):
            with pytest.raises(StoreDown, match="did not respond in time"):
                await ask
        assert loop.time() - begun < 2.0
    finally:
        server.signal(signal.SIGCONT)
    assert calls.errors["timeout"] == 3
    assert [await calls.call("SET", "b", "2"), await calls.call("GET", "a")] == [b"OK", b"1"]


async def test_an_error_is_the_answer_of_its_command_alone(calls):
    await calls.call("SET", "text", "a")
    answers = await calls.each([("SET", "a", "1"), ("XADD", "text", "*", "a", "b"), ("GET", "a")])
    assert (answers[0], answers[2]) == (b"OK", b"1")
    assert isinstance(answers[1], ResponseError)
    assert calls.errors["refused"] == 1
    with pytest.raises(StoreDown, match="WRONGTYPE"):
        await calls.all(("GET", "a"), ("XADD", "text", "*", "a", "b"))
    assert await calls.each([]) == []


async def test_an_id_that_is_not_above_the_last_is_no_error_of_the_server(calls):
    await calls.call("XADD", "k", "5-0", "a", "b")
    with pytest.raises(StoreDown) as raised:
        await calls.call("XADD", "k", "5-0", "a", "b")
    assert is_smaller(raised.value.__cause__)
    assert is_smaller((await calls.each([("XADD", "k", "4-0", "a", "b")]))[0])
    assert sum(calls.errors.values()) == 0


async def test_many_calls_at_once_share_a_few_connections(server):
    calls = Calls(server.url, call_s=60.0)
    assert await asyncio.gather(*(calls.call("SET", "a", "1") for _ in range(500))) == [b"OK"] * 500
    assert len((await calls.call("CLIENT", "LIST")).splitlines()) <= 16
    await calls.close()


async def test_nothing_of_the_address_is_told():
    calls = Calls(f"redis://me:canary-password@127.0.0.1:{free_port()}/0")
    with pytest.raises(StoreDown) as raised:
        await calls.call("PING")
    await calls.close()
    assert str(raised.value) == "the store can't be reached"
    assert "canary" not in repr(raised.value.__cause__)
    assert calls.errors == {"unreachable": 1}


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (NoConnection("refused"), True), (TimeoutError(), True), (ReadOnlyError("a replica"), True),
        (OutOfMemoryError("full"), True), (ResponseError("UNBLOCKED force unblock"), True),
        (NoPermissionError("no"), False), (ResponseError("WRONGTYPE other"), False), (ResponseError("ERR syntax"), False),
    ],
)  # fmt: skip
def test_what_passes_and_what_lasts(error, passes):
    assert is_passing(error) is passes


@pytest.mark.parametrize(("cause", "tries"), [(ReadOnlyError("a replica"), 3), (NoPermissionError("no"), 1)])
async def test_only_what_passes_is_tried_again(cause, tries):
    tried = []

    async def fails():
        tried.append(1)
        raise StoreDown("no") from cause

    with pytest.raises(StoreDown):
        await patiently(fails, 0.15)
    assert len(tried) == tries


async def test_a_user_who_may_not_ask_for_the_policy_is_taken_as_it_is(calls, server):
    allowed = [
        "+xadd",
        "+xread",
        "+xrange",
        "+xrevrange",
        "+exists",
        "+pexpire",
        "+pttl",
        "+del",
        "+set",
        "+get",
        "+multi",
        "+exec",
    ]
    assert server.say("ACL", "SETUSER", "streamkit", "on", ">pw", "~sk:*", *allowed) == "+OK"
    limited = Calls(server.url.replace("//", "//streamkit:pw@"))
    assert await faults_of(limited) == ("", [])
    assert await limited.call("SET", "sk:a", "1") == b"OK"
    with pytest.raises(StoreDown, match="refused the credentials"):
        await limited.call("SET", "other", "1")
    await limited.close()
    assert server.say("ACL", "DELUSER", "streamkit") == ":1"
