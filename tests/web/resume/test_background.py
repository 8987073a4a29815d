"""Responses in the background, judged by openai-python: the stream, the object, what cancels and deletes them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import openai
import pytest
from aiohttp import web

from streamkit.resume import MemoryStore, Meta, owner_of
from streamkit.web import setup
from streamkit.web.resume import RESUMING, Resuming, add_resuming
from tests.gateway.running import upstream_at
from tests.gateway.test_cancel import script
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, as_asked, error_midstream, good, speech, status, truncated_chunked
from tests.web.serving import serving

OWN = "openai-responses"


@asynccontextmanager
async def served(play, *, dialect=OWN, **resuming):
    """A client of an application with one upstream."""
    app = web.Application()
    async with EvilUpstream(play) as evil:
        setup(app, upstream_at(evil, dialect))
        settings = {"store": MemoryStore(), "key": lambda request: request.headers.get("Authorization", "")}
        add_resuming(app, Resuming(**{**settings, **resuming}))
        async with (
            serving(app, handler_cancellation=True) as port,
            openai.AsyncOpenAI(
                base_url=f"http://127.0.0.1:{port}/v1",
                api_key="k",
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
            ) as client,
        ):
            yield client, app[RESUMING].store, evil


async def ended(client, response_id):
    """The response once it is over."""
    return await once(client, response_id, lambda status: status not in {"queued", "in_progress"})


async def once(client, response_id, fits):
    """The response once its status fits."""
    async with asyncio.timeout(5):
        found = await client.responses.retrieve(response_id)
        while not fits(found.status):
            await asyncio.sleep(0.02)
            found = await client.responses.retrieve(response_id)
    return found


@pytest.mark.parametrize("dialect", [OWN, "openai-chat"])
async def test_a_client_that_waits_for_nothing_finds_its_response_done(dialect):
    async with served(as_asked(dialect), dialect=dialect) as (client, _store, evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        assert (begun.status, begun.background, begun.output) == ("queued", True, [])
        found = await ended(client, begun.id)
        assert (found.id, found.status, found.background, found.output_text) == (begun.id, "completed", True, TEXT)
        assert evil.requests[0].json()["stream"] is True
        assert "background" not in evil.requests[0].json()


@pytest.mark.parametrize("dialect", [OWN, "openai-chat"])
async def test_one_that_is_being_written_is_in_progress_however_steadily_it_comes(dialect):
    """With an event every 50 ms it is never silent for long, and nobody waits for its end."""
    loop = asyncio.get_running_loop()
    async with served(good(dialect, delay_s=0.05), dialect=dialect) as (client, _store, _evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        seen = []
        async with asyncio.timeout(20):
            while not seen or seen[-1][0] in {"queued", "in_progress"}:
                asked_at = loop.time()
                found = await client.responses.retrieve(begun.id)
                seen.append((found.status, loop.time() - asked_at))
    assert [status for status, _ in seen].count("in_progress") >= 2
    assert max(took for _, took in seen) < 1.0
    assert (seen[-1][0], found.output_text) == ("completed", TEXT)


@pytest.mark.parametrize("dialect", [OWN, "openai-chat"])
async def test_a_stream_is_read_on_behind_any_event_once_its_client_has_left(dialect):
    async with served(good(dialect, delay_s=0.002), dialect=dialect) as (client, store, _evil):
        stream = await client.responses.create(model="m", input="hi", background=True, stream=True)
        first = await anext(aiter(stream))
        await stream.close()
        response_id = first.response.id
        assert response_id.startswith("resp_")
        whole = [event async for event in await client.responses.retrieve(response_id, stream=True)]
        assert [event.sequence_number for event in whole] == [*range(len(whole))]
        assert whole[-1].response.output_text == TEXT
        assert {event.response.id for event in whole if hasattr(event, "response")} == {response_id}
        for after in (0, 5, len(whole) - 2, len(whole) - 1):
            rest = await client.responses.retrieve(response_id, stream=True, starting_after=after)
            assert [event async for event in rest] == whole[after + 1 :]
        async with client.responses.stream(response_id=response_id, starting_after=5) as events:
            assert [event.sequence_number async for event in events] == [*range(6, len(whole))]
            assert (await events.get_final_response()).output_text == TEXT
        assert store.kept == 1


PLAYS = {
    "refused": status(400, OWN),
    "cut": truncated_chunked(OWN),
    "error": error_midstream(OWN),
    "error of another dialect": error_midstream("openai-chat"),
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
async def test_one_that_fails_is_failed_with_an_error(play):
    dialect = "openai-chat" if play is PLAYS["error of another dialect"] else OWN
    async with served(play, dialect=dialect) as (client, _store, _evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        found = await ended(client, begun.id)
        assert (found.id, found.status) == (begun.id, "failed")
        assert found.error.code
        assert found.error.message


async def test_one_that_is_cancelled_is_cancelled_and_again():
    async with served(script("within the response", stream=True), dialect="openai-chat") as (client, _store, evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        request = await evil.request()
        await once(client, begun.id, lambda status: status == "in_progress")
        cancelled = await client.responses.cancel(begun.id)
        async with asyncio.timeout(2):
            await request.left()
        assert (cancelled.id, cancelled.status, cancelled.error) == (begun.id, "cancelled", None)
        assert await client.responses.cancel(begun.id) == cancelled
        assert await client.responses.retrieve(begun.id) == cancelled
        with pytest.raises(openai.APIError):
            [event async for event in await client.responses.retrieve(begun.id, stream=True)]


async def fails_above(client, response_id, after):
    """Whoever reads a response on behind an event is told that it failed, above the number of that event."""
    told = []
    with pytest.raises(openai.APIError):
        async with client.responses.stream(response_id=response_id, starting_after=after) as stream:
            told += [event async for event in stream]
    assert all(event.sequence_number > after for event in told)
    with pytest.raises(openai.APIError):
        [event async for event in await client.responses.retrieve(response_id, stream=True, starting_after=after)]


async def test_a_log_that_nobody_ends_fails_above_every_cursor():
    """R6: openai-python drops an error with a number that it has in silence."""
    events = speech(OWN)
    async with served(good(OWN)) as (client, store, _evil):
        for count in (0, 1, 7):
            response_id = store.new_id("resp_")
            log = await store.create(
                response_id, Meta(dialect=OWN, owner=owner_of("Bearer k", response_id), background=True)
            )
            log.append(b"".join(events[:count]).replace(b'"evil-7"', f'"{response_id}"'.encode()))
            log.end("aborted")
            assert (await client.responses.retrieve(response_id)).status == "failed"
            for after in range(max(count, 1)):
                await fails_above(client, response_id, after)


@pytest.mark.parametrize("how", ["unknown", "foreign", "no id", "expired"])
async def test_what_is_not_there_is_404_in_the_same_words(how):
    async with served(as_asked(OWN)) as (client, store, _evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        await ended(client, begun.id)
        response_id = {"unknown": store.new_id("resp_"), "no id": "resp_1"}.get(how, begun.id)
        responses = client.with_options(api_key="other").responses if how == "foreign" else client.responses
        if how == "expired":
            store.forget(store.find(begun.id))
        told = []
        for ask in (responses.retrieve, responses.cancel, responses.delete):
            with pytest.raises(openai.NotFoundError) as raised:
                await ask(response_id)
            told.append(raised.value.body)
        with pytest.raises(openai.NotFoundError) as raised:
            await responses.retrieve(response_id, stream=True)
        assert [raised.value.body] * 3 == told
        assert told[0]["message"] == "this response does not exist, or has expired"


@pytest.mark.parametrize(
    "query", [{"starting_after": "-1"}, {"starting_after": "x"}, {"starting_after": "900"}, {"stream": "x"}]
)
async def test_a_cursor_that_can_not_be_is_400(query):
    async with served(as_asked(OWN)) as (client, _store, _evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        await ended(client, begun.id)
        with pytest.raises(openai.BadRequestError):
            await client.get(f"/responses/{begun.id}", cast_to=object, options={"params": {"stream": "true", **query}})


async def test_one_that_is_deleted_is_gone_and_its_upstream_left():
    async with served(script("within the response", stream=True), dialect="openai-chat") as (client, _store, evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        request = await evil.request()
        assert (await client.delete(f"/responses/{begun.id}", cast_to=object))["deleted"] is True
        async with asyncio.timeout(2):
            await request.left()
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(begun.id)


@pytest.mark.parametrize("members", [{"store": False}, {"background": "yes"}])
async def test_what_can_not_be_in_the_background_is_400(members):
    async with served(as_asked(OWN)) as (client, _store, evil):
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(**{"model": "m", "input": "hi", "background": True, **members})
        assert not evil.requests


async def test_without_a_store_the_refusal_names_the_setting():
    app = web.Application()
    async with EvilUpstream(as_asked(OWN)) as evil:
        setup(app, upstream_at(evil, OWN))
        async with (
            serving(app) as port,
            openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k") as client,
        ):
            with pytest.raises(openai.BadRequestError, match=r"background: .*\[resume\] store"):
                await client.responses.create(model="m", input="hi", background=True)


async def test_a_response_in_the_background_outlives_the_patience_for_others():
    async with served(good(OWN, delay_s=0.03), unattended_s=0.05) as (client, _store, _evil):
        begun = await client.responses.create(model="m", input="hi", background=True)
        await asyncio.sleep(0.5)
        assert (await ended(client, begun.id)).status == "completed"
