"""What clients get of an upstream's answer beside its words: usage if they asked, a model always, the form they asked for."""

import time

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.http_errors import encode_error
from streamkit.recipes import collect
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.web import source
from tests.gateway.running import asking, behind
from tests.web.evil import Script, Send
from tests.web.faults import CALL, END_OF_CHUNKS, TEXT, as_asked, chunk, failure, head, said, speech, whole
from tests.whole_answers import ANSWERING_WHOLE

pytestmark = pytest.mark.usefixtures("no_leaks")
CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]
#: The call, its arguments read: pretty-printing writes an object anew.
SAID = (CALL[0], orjson.loads(CALL[1]))
CHUNKED = {"Transfer-Encoding": "chunked"}
MISTRAL_SDKS = ["mistral-client-python/1.9.11", "ai/5.0.9 ai-sdk/mistral/2.0.4 runtime/node.js/22"]


async def answered(upstream, client, script, *, stream=True, headers=None, **members):
    """What a client of a dialect gets through the gateway from an upstream of a dialect that plays a script."""
    async with behind(script, dialect=upstream) as running:
        return await running.asked(client, members, headers=headers, stream=stream)


def chunks_of(answer):
    lines = bytes(answer.body).decode().splitlines()
    return [orjson.loads(line[6:]) for line in lines if line.startswith("data: {")]


HEAD = b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"up",'
SPOKEN = HEAD + b'"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}\n\n'
STOPPED = HEAD + b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
UNASKED = HEAD + b'"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"


def within(unasked, replace=()):
    """A stream of Chat with chunks before its terminator, and bytes of it replaced."""
    body = b"".join([SPOKEN, STOPPED, *unasked, DONE])
    return whole(
        "openai-chat", body.replace(*replace) if replace else body, headers={"Content-Type": "text/event-stream"}
    )


# -- usage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != "openai-chat"])
@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_obfuscation": False}])
async def test_a_client_of_chat_that_asked_for_no_usage_gets_no_chunk_without_choices(upstream, options):
    """OpenAI's quickstart reads ``chunk.choices[0]`` of every chunk."""
    members = {} if options is None else {"stream_options": options}
    chunks = chunks_of(await answered(upstream, "openai-chat", as_asked(upstream), **members))
    assert all(chunk["choices"] for chunk in chunks)
    assert not any("usage" in chunk for chunk in chunks)


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != "openai-chat"])
async def test_a_client_of_chat_that_asked_for_usage_gets_it_in_a_chunk_of_its_own(upstream):
    members = {"stream_options": {"include_usage": True}}
    *_, last = chunks_of(await answered(upstream, "openai-chat", as_asked(upstream), **members))
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 23


@pytest.mark.parametrize("options", [None, {"include_usage": False}, {"include_usage": True}])
@pytest.mark.parametrize("agent", ["openai-python/2", MISTRAL_SDKS[1]])
async def test_within_chat_a_usage_chunk_goes_to_those_that_asked_for_it(options, agent):
    speech = within([UNASKED])
    members = {} if options is None else {"stream_options": options}
    answer = await answered("openai-chat", "openai-chat", speech, headers={"user-agent": agent}, **members)
    asked = options == {"include_usage": True}
    assert bytes(answer.body) == b"".join([SPOKEN, STOPPED, *([UNASKED] if asked else []), DONE])


@pytest.mark.parametrize("agent", MISTRAL_SDKS)
async def test_mistrals_packages_get_the_usage_beside_the_stop_reason(agent):
    """They have no member to ask for it, and the AI SDK's reads ``value.choices[0].delta`` of every chunk."""
    answer = await answered("anthropic", "openai-chat", as_asked("anthropic"), headers={"user-agent": agent})
    *others, last = chunks_of(answer)
    assert all(chunk["choices"] for chunk in [*others, last])
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["total_tokens"] == 23
    assert not any("usage" in chunk for chunk in others)


async def test_mistrals_packages_may_say_that_they_want_none():
    answer = await answered(
        "anthropic",
        "openai-chat",
        as_asked("anthropic"),
        headers={"user-agent": MISTRAL_SDKS[0]},
        stream_options={"include_usage": False},
    )
    assert not any("usage" in chunk for chunk in chunks_of(answer))


# -- the model ---------------------------------------------------------------------------------------------------------

#: The member that names the model, in the frame or body of each dialect.
NAMED = {"gemini": "modelVersion"}


def models_in(answer, client):
    """Every model that an answer names, wherever it stands."""
    text = bytes(answer.body).decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines()]
    documents = [orjson.loads(line) for line in lines if line.startswith("{")]
    found = []
    for document in documents:
        for holder in (document, document.get("message"), document.get("response")):
            if isinstance(holder, dict) and NAMED.get(client, "model") in holder:
                found.append(holder[NAMED.get(client, "model")])
    return found


@pytest.mark.parametrize("blank", [b"", b'"model":"",', b'"model": null,'])
async def test_within_a_dialect_a_stream_names_the_model_asked_for_where_its_upstream_names_none(blank):
    answer = await answered("openai-chat", "openai-chat", within([], (b'"model":"up",', blank)))
    assert models_in(answer, "openai-chat") == ["m", "m"]
    text = b"".join([SPOKEN, STOPPED, DONE])
    assert sorted(bytes(answer.body).replace(b" ", b"")) == sorted(text.replace(b'"up"', b'"m"').replace(b" ", b""))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["cohere", "bedrock"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_the_model_is_the_one_asked_for_where_the_upstream_names_none(upstream, client, stream):
    answer = await answered(upstream, client, as_asked(upstream), stream=stream)
    assert answer.status == 200
    models = models_in(answer, client)
    assert models
    assert set(models) == {"m"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_blank_model_is_none(upstream, client, stream):
    if stream and upstream == client:
        pytest.skip("within one dialect a stream passes byte for byte")
    answer = await answered(upstream, client, unnamed(upstream, stream=stream), stream=stream)
    assert answer.status == 200
    models = models_in(answer, client)
    assert models
    assert set(models) == {"m"}


def unnamed(upstream, *, stream):
    """A sound answer whose model is blank."""
    if stream:
        frames = b"".join(speech(upstream)).replace(b'"evil-1"', b'""')
        return Script(
            (
                Send(
                    head(200, {"Content-Type": DIALECTS[upstream].media_type, **CHUNKED})
                    + chunk(frames)
                    + END_OF_CHUNKS
                ),
            )
        )
    return whole(upstream, encode_response(said(upstream), upstream).replace(b'"evil-1"', b'""'))


# -- the other form than was asked for ---------------------------------------------------------------------------------


def mislabelled(upstream, body, media_type, *, pieces=3, end=True):
    """An answer of status 200 in so many pieces, with this media type."""
    start = head(200, {"Content-Type": media_type, **CHUNKED})
    size = -(-len(body) // pieces)
    parts = [chunk(body[at : at + size]) for at in range(0, len(body), size)]
    return Script((Send(start), *map(Send, parts), *([Send(END_OF_CHUNKS)] if end else [])))


BODIES = {
    "as it is": lambda body: body,
    "pretty-printed": lambda body: orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2),
    "behind blanks": lambda body: b"\n \n" + body + b"\n",
}


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("upstream", ANSWERING_WHOLE)
async def test_a_whole_answer_to_who_asked_for_a_stream_is_streamed(upstream, media_type, form):
    body = BODIES[form](encode_response(said(upstream), upstream))
    for client in ("openai-chat", "anthropic", upstream if upstream in CLIENTS else "gemini"):
        answer = await answered(upstream, client, mislabelled(upstream, body, media_type))
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(DIALECTS[client].media_type)
        read = await collect(source_of([bytes(answer.body)]), client)
        assert read.clean
        assert (read.text, [(call.name, orjson.loads(call.arguments)) for call in read.tool_calls]) == (TEXT, [SAID])


@pytest.mark.parametrize("end", [True, False], ids=["", "left open"])
@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream", "application/octet-stream"])
@pytest.mark.parametrize("upstream", DIALECTS)
async def test_a_stream_to_who_asked_for_a_whole_answer_is_put_together(upstream, media_type, end, monkeypatch):
    monkeypatch.setattr(source, "DRAIN_S", 0.1)  # how long that is in life, the next test says
    if not end and upstream in {"gemini", "bedrock"}:
        pytest.skip("nothing but its end ends it")
    body = b"".join(speech(upstream))
    script = mislabelled(upstream, body, media_type, end=end)
    own = upstream if upstream in {*CLIENTS} & {*ANSWERING_WHOLE} else "gemini"
    for client in ("openai-chat", "anthropic", own):
        answer = await answered(upstream, client, script, stream=False)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("application/json")
        read = decode_response(bytes(answer.body), client)
        assert read.clean
        assert (read.text, [(call.name, call.arguments) for call in read.tool_calls]) == (TEXT, [CALL])


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_body_behind_which_the_connection_stays_open_is_whole_a_second_later(stream):
    body = encode_response(said("anthropic"), "anthropic")
    start = time.monotonic()
    answer = await answered("anthropic", "openai-chat", mislabelled("anthropic", body, "", end=False), stream=stream)
    assert answer.status == 200
    assert TEXT.encode() in answer.body or stream
    assert time.monotonic() - start < 2  # and not the upstream's idle time


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic", "openai-responses", "ollama", "gemini"])
async def test_an_error_body_of_status_200_is_the_clients_error(upstream, client):
    _, _, body = encode_error(failure(429, "too many"), upstream)
    for stream in (True, False):
        answer = await answered(upstream, client, mislabelled(upstream, body, "application/json"), stream=stream)
        assert answer.status >= 400
        assert b"too many" in answer.body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_each_is_a_counted_repair(stream):
    upstream = "anthropic"
    body = encode_response(said(upstream), upstream) if stream else b"".join(speech(upstream))
    script = mislabelled(upstream, body, "application/json")
    async with behind(script, dialect=upstream) as running:
        path, asked = asking("openai-chat", stream=stream)
        assert (await running.ask(path, body=orjson.dumps(asked))).status == 200
        assert await running.outcomes() == {("one", "success"): 1}
        kind = "body_for_stream" if stream else "stream_for_body"
        assert running.counted("repairs_total", kind=kind) == 1


async def test_a_body_that_breaks_off_is_no_answer():
    body = encode_response(said("openai-chat"), "openai-chat")[:-20]
    answer = await answered("openai-chat", "anthropic", mislabelled("openai-chat", body, "application/json"))
    assert answer.status >= 500
    assert TEXT.encode() not in answer.body


async def test_a_stream_that_was_cut_is_no_whole_answer():
    body = b"".join(speech("openai-chat")[:-2])
    script = mislabelled("openai-chat", body, "text/event-stream")
    answer = await answered("openai-chat", "anthropic", script, stream=False)
    assert answer.status >= 500
    assert TEXT.encode() not in answer.body


# -- what the client asks of the conversation --------------------------------------------------------------------------


async def test_anthropic_is_asked_for_a_compaction_under_its_beta_and_gets_its_block_back():
    """A client of Responses, as it sends the next request: the item, without what was said before it."""
    block = {"type": "compaction", "content": "They like pelicans.", "encrypted_content": "E"}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn"}
    content = [block, {"type": "text", "text": TEXT}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = orjson.dumps({**message, "stop_sequence": None, "content": content, "usage": usage})
    async with behind(whole("anthropic", body), dialect="anthropic") as running:
        path, asked = asking("openai-responses", stream=False)
        asked["context_management"] = [{"type": "compaction", "compact_threshold": 90_000}]
        answer = orjson.loads((await running.ask(path, body=orjson.dumps(asked))).body)
        asked["input"] = [answer["output"][0], {"role": "user", "content": "Go on."}]
        del asked["context_management"]
        await running.ask(path, body=orjson.dumps(asked))
        first, second = running.evil.requests
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 90_000}}
    assert orjson.loads(first.body)["context_management"] == {"edits": [edit]}
    assert first.header("anthropic-beta") == second.header("anthropic-beta") == "compact-2026-01-12"
    assert orjson.loads(second.body)["messages"][0] == {"role": "assistant", "content": [block]}
