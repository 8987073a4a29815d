"""Requests that lean on earlier responses, of any upstream: openai-python, and bodies by hand."""

from __future__ import annotations

import asyncio

import openai
import pytest

from streamkit.dialects.openai_responses.stored import KeptRequest
from streamkit.resume import LogLimits, MemoryStore
from streamkit.web.budget import Hold
from streamkit.web.resume import State
from tests.gateway.agents.scripted import ScriptedModel, saying, word_in
from tests.gateway.clients.in_thread import UPSTREAMS
from tests.web.faults import answer, as_asked
from tests.web.resume.test_background import OWN, ended, served

WORD = "word-0123456789ab"
LOOK_UP = {"type": "function", "name": "look_up", "strict": False, "parameters": {"type": "object", "properties": {}}}


def answers(model):
    """What a client sends that answers each call of a response."""
    return [
        {"type": "function_call_output", "call_id": c.call_id, "output": WORD}
        for c in model.output
        if c.type == "function_call"
    ]


WAYS = ("whole", "stream", "background")
#: By turns; the exhaustive form has all.
LOOPS = [
    pytest.param(dialect, how, marks=[] if (turn + at) % len(WAYS) == 0 else pytest.mark.exhaustive)
    for turn, dialect in enumerate(UPSTREAMS)
    for at, how in enumerate(WAYS)
]


@pytest.mark.parametrize(("dialect", "how"), LOOPS)
async def test_a_tool_loop_sends_new_items_only(dialect, how):
    model = ScriptedModel(dialect, lambda tool: tool.name == "look_up", {"name": "it"})
    async with served(model.play, dialect=dialect, state=State()) as (client, _store, _evil):
        first = await asked(client, how, input="look it up")
        last = await asked(client, how, input=answers(first), previous_response_id=first.id)
        assert last.output_text == saying(WORD)
        assert last.previous_response_id == first.id
    request = model.results[-1]
    assert request.turns[0].parts[0].text == "look it up"
    assert word_in(request) == WORD


async def asked(client, how, **members):
    members = {"model": "m", "tools": [LOOK_UP], **members}
    if how == "whole":
        return await client.responses.create(**members)
    if how == "background":
        return await ended(client, (await client.responses.create(background=True, **members)).id)
    async for event in await client.responses.create(stream=True, **members):
        last = event
    return last.response


async def test_items_are_named_by_their_ids_with_and_without_a_type():
    async with served(as_asked(OWN), state=State()) as (client, _store, evil):
        first = await client.responses.create(model="m", input="one")
        named = [{"type": "item_reference", "id": first.output[0].id}, {"id": first.output[1].id}]
        result = {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "4"}
        await client.responses.create(model="m", input=[{"role": "user", "content": "one"}, *named, result])
    sent = evil.requests[-1].json()["input"]
    assert [item.get("type") for item in sent] == [None, "message", "function_call", "function_call_output"]
    assert sent[2]["arguments"] == first.output[1].arguments


async def test_an_item_is_held_of_the_budget_as_often_as_it_is_named_before_it_is_written(monkeypatch):
    async with served(as_asked(OWN), state=State()) as (client, store, evil):
        first = await client.responses.create(model="m", input="one")
        loaded, load = [], store.load

        async def counting(name):
            loaded.append(name)
            return await load(name)

        monkeypatch.setattr(store, "load", counting)
        monkeypatch.setattr(KeptRequest, "resolved", lambda *_: pytest.fail("it was written"))
        named = [{"type": "item_reference", "id": first.output[0].id}] * 8_000
        with pytest.raises(openai.APIStatusError, match="the responses that it refers to") as raised:
            await client.post("/responses", body={"model": "m", "input": named}, cast_to=object)  # no item is typed
        assert (raised.value.status_code, len(loaded), len(evil.requests)) == (413, 1, 1)


async def test_what_a_request_names_is_asked_of_the_budget(monkeypatch):
    async with served(as_asked(OWN), state=State()) as (client, _store, evil):
        first = await client.responses.create(model="m", input="one")
        monkeypatch.setattr(KeptRequest, "resolved", lambda *_: pytest.fail("it was written"))
        monkeypatch.setattr(Hold, "add", refusing_beyond(100_000))
        named = [{"type": "item_reference", "id": first.output[0].id}] * 500
        with pytest.raises(openai.APIStatusError) as raised:
            post = client.with_options(max_retries=0).post
            await post("/responses", body={"model": "m", "input": named}, cast_to=object)
        assert (raised.value.status_code, len(evil.requests)) == (503, 1)


def refusing_beyond(size):
    def add(self, more):
        self.resize(self._size_bytes + more)
        if self._size_bytes > size:
            self.budget.refuse_beyond(self.budget.limit_bytes)

    return add


UNKNOWN = [
    ({"previous_response_id": "resp_nobodys"}, "previous_response_not_found", "previous_response_id"),
    ({"input": [{"type": "item_reference", "id": "msg_nobodys"}]}, None, "input[0]"),
]


@pytest.mark.parametrize(("members", "code", "param"), UNKNOWN)
async def test_what_is_not_kept_is_400_as_its_server_says_it(members, code, param):
    async with served(as_asked(OWN), state=State()) as (client, _store, evil):
        with pytest.raises(openai.BadRequestError) as raised:
            await client.responses.create(**{"model": "m", "input": "hi", **members})
        assert (raised.value.code, raised.value.param, raised.value.type) == (code, param, "invalid_request_error")
        assert not evil.requests


async def test_another_keys_response_is_as_one_that_never_was():
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        first = await client.responses.create(model="m", input="one")
        other = client.with_options(api_key="other")
        errors = []
        for response_id in (first.id, "resp_nobodys"):
            with pytest.raises(openai.BadRequestError) as raised:
                await other.responses.create(model="m", input="hi", previous_response_id=response_id)
            errors.append(raised.value.body)
            with pytest.raises(openai.NotFoundError):
                await other.responses.retrieve(response_id)
        assert errors[0] == errors[1]
        assert (await client.responses.retrieve(first.id)).output_text == first.output_text


@pytest.mark.parametrize("members", [{"store": False}, {}])
async def test_without_store_or_without_the_setting_nothing_is_kept_and_nothing_changes(members):
    state = State() if members else None
    async with served(as_asked(OWN), state=state) as (client, _store, _evil):
        first = await client.responses.create(model="m", input="one", **members)
        assert first.id == "evil-7"
        with pytest.raises(openai.BadRequestError, match="previous_response_id" if state else r"\[responses\] state"):
            await client.responses.create(model="m", input="hi", previous_response_id=first.id)


async def test_a_conversation_is_refused_all_the_same():
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        with pytest.raises(openai.BadRequestError, match="conversation"):
            await client.responses.create(model="m", input="hi", conversation="conv_1")


async def test_what_is_kept_expires_is_bounded_and_can_be_deleted():
    async with served(as_asked(OWN), state=State(ttl_s=0.3)) as (client, store, _evil):
        first = await client.responses.create(model="m", input="one")
        assert await client.responses.create(model="m", input=answers(first), previous_response_id=first.id)
        assert store.held_bytes > 0
        await asyncio.sleep(0.4)
        assert store.held_bytes == 0
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model="m", input="two", previous_response_id=first.id)
    async with served(as_asked(OWN), state=State(response_bytes=300)) as (client, store, _evil):
        await client.responses.create(model="m", input="one")
        assert store.held_bytes == 0
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        first = await client.responses.create(model="m", input="one")
        await client.responses.delete(first.id)
        for gone in ({"previous_response_id": first.id}, {"input": [{"id": first.output[0].id}]}):
            with pytest.raises(openai.BadRequestError):
                await client.responses.create(**{"model": "m", "input": "two", **gone})
        with pytest.raises(openai.NotFoundError):
            await client.responses.delete(first.id)


async def test_one_that_never_was_in_the_background_can_not_be_cancelled():
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        first = await client.responses.create(model="m", input="one")
        with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
            await client.responses.cancel(first.id)


async def test_a_store_that_is_full_costs_no_answer():
    async with served(as_asked(OWN), state=State(), store=MemoryStore(LogLimits(all_bytes=100))) as (
        client,
        _store,
        _evil,
    ):
        first = await client.responses.create(model="m", input="one")
        assert first.output_text
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model="m", input="one", background=True)


# -- the input of a response -------------------------------------------------------------------------------------------

PARTS = [{"type": "input_text", "text": "three"}]
MORE = {"role": "user", "content": "more"}
#: An item of the request, and what its list says of it without the id: a message gets a type and parts.
LISTED = [
    (
        {"role": "user", "content": 'o"ne'},
        {"type": "message", "role": "user", "content": [{**PARTS[0], "text": 'o"ne'}]},
    ),
    (
        {"role": "assistant", "content": "two"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "two", "annotations": []}],
        },
    ),
    ({"type": "message", "role": "user", "content": PARTS}, {"type": "message", "role": "user", "content": PARTS}),
    *(
        [{"type": "function_call", "call_id": "c", "name": "look_up", "arguments": "{}"}] * 2,
        [{"type": "function_call_output", "call_id": "c", "output": WORD}] * 2,
    ),
]


async def test_the_input_of_a_response_is_listed_in_pages():
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        response = await client.responses.create(model="m", input=[sent for sent, _ in LISTED])
        pages = client.responses.input_items
        newest = [item async for item in pages.list(response.id, limit=2)]
        assert [item.to_dict() for item in newest][::-1] == [
            {"id": item.id, **listed} for item, (_, listed) in zip(newest[::-1], LISTED, strict=True)
        ]
        assert [item.id.partition("_")[0] for item in newest[::-1]] == ["msg", "msg", "msg", "fc", "fco"]
        assert len({item.id for item in newest}) == len(LISTED)
        oldest = await pages.list(response.id, order="asc", after=newest[-1].id)
        assert [item.id for item in oldest.data] == [item.id for item in newest[::-1]][1:]
        assert (oldest.has_more, oldest.first_id, oldest.last_id) == (False, newest[-2].id, newest[0].id)
        full = await pages.list(response.id, limit=len(LISTED))
        assert (len(full.data), full.has_more) == (len(LISTED), False)
        last = await client.responses.create(
            model="m", input=[*answers(response), MORE], previous_response_id=response.id
        )
        whole = [item async for item in pages.list(last.id, order="asc")]
        assert [item.id for item in whole[len(LISTED) : -2]] == [item.id for item in response.output]
        assert whole[-1].content[0].text == "more"


@pytest.mark.parametrize(
    ("query", "name"), [({"limit": 101}, "limit"), ({"order": "up"}, "order"), ({"after": "msg_nobodys"}, "after")]
)
async def test_a_page_that_is_none_is_refused(query, name):
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        response = await client.responses.create(model="m", input="one")
        with pytest.raises(openai.BadRequestError, match=name):
            await client.responses.input_items.list(response.id, extra_query=query)


@pytest.mark.parametrize(("state", "why"), [(State(), "does not exist"), (None, r"\[responses\] state")])
async def test_the_input_of_what_is_not_kept_is_not_found(state, why):
    async with served(as_asked(OWN), state=state) as (client, _store, _evil):
        background = await client.responses.create(model="m", input="one", background=True)
        await ended(client, background.id)
        for key, response_id in (("k", "resp_nobodys"), ("other", background.id)):
            with pytest.raises(openai.NotFoundError, match=why):
                await client.with_options(api_key=key).responses.input_items.list(response_id)


async def test_an_item_that_is_repeated_is_listed_as_often():
    item = {"id": "msg_1", "type": "message", "role": "user", "content": PARTS}
    async with served(as_asked(OWN), state=State()) as (client, _store, _evil):
        response = await client.responses.create(model="m", input=[item] * 3)
        ids = [each.id async for each in client.responses.input_items.list(response.id, limit=1, order="asc")]
    assert (len(ids), len(set(ids)), ids[0]) == (3, 3, "msg_1")


async def test_an_earlier_response_is_compacted():
    def play(request):
        compacts = answer(200, b'{"id":"cmp_1","object":"response.compaction","created_at":1,"output":[]}')
        return compacts if request.path.endswith("/compact") else as_asked(OWN)(request)

    async with served(play, state=State()) as (client, store, evil):
        first = await client.responses.create(model="m", input="one")
        held = store.held_bytes
        await client.responses.compact(model="m", previous_response_id=first.id, input=answers(first))
        assert store.held_bytes == held
    sent = evil.requests[-1].json()
    kinds = [item.get("type", "message") for item in sent["input"]]
    assert kinds == ["message", *(item.type for item in first.output), "function_call_output"]
    assert "previous_response_id" not in sent
