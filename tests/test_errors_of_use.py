"""Each mistake of a caller has one sentence: what is wrong, where, and what to write instead."""

from __future__ import annotations

import inspect
import json

import pytest
from aiohttp import web
from attrs import evolve

from streamkit import (
    TOLERANT,
    BadRequest,
    Limits,
    Observer,
    Policy,
    ReadOptions,
    StreamReport,
    ToolResult,
    UsageError,
    accumulate_tool_calls,
    asgi,
    check_json,
    collect,
    decode,
    decode_request,
    decode_response,
    detect,
    encode,
    encode_request,
    encode_response,
    find_text_calls,
    guard,
    keep_alive,
    map_text,
    parse_sse,
    pipe,
    redact,
    request_with_results,
    response_events,
    split_thinking,
    transcode,
)
from streamkit.conversation.collector import Collector
from streamkit.events import TextDelta, ToolCallDelta
from streamkit.lab.mock import Mock
from streamkit.testing import source_of
from streamkit.web import Secret, Upstream, setup
from tests.vectors.vector import sse

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
BODY = sse({**CHUNK, "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}, b"[DONE]")
ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {**CHUNK, "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}]}
ORDER = "the order is parse_sse (or another framing), decode, accumulate_tool_calls, check_json, encode"
NO_SOURCE = "write an async generator, or streamkit.source_of([…]) for bytes in memory"
NO_STAGE = "a stage must be an async generator function"
EVENTS = "yield lists of events, as in yield [event]"
CALLED = "is not a stage: write an async generator function of one argument, async def with yield; if "
NO_OPTIONS = "write ReadOptions(policy=…, limits=…, tools=…, offered=…, output=…)"
RETURNS = "a check must return a message (str) or True for text that must not be sent, else False or None"
A_RESPONSE = "write decode_response(body, dialect) or await collect(source, dialect)"
GRAMMARS = "'hermes', 'qwen', 'glm', 'kimi', 'deepseek', 'minimax', 'claude', 'mistral', 'llama'"
PATTERN = "each pattern must be a compiled regular expression of text, or a str that is not empty"
PARTS = "'text', 'reasoning', 'refusal', 'arguments', 'asides'"


async def texts():
    yield BODY.decode()


async def bytes_then_text():
    yield BODY[:20]
    yield BODY[20:].decode()


async def nothing():
    yield None


async def one_by_one(batches):
    async for batch in batches:
        for event in batch:
            yield event


async def one_at_the_end(batches):
    async for batch in batches:
        yield batch
    yield TextDelta("!")


async def words_alone(batches):
    async for batch in batches:
        yield [event.text for event in batch if isinstance(event, TextDelta)]


async def word_within(batches):
    async for batch in batches:
        yield [*batch, *(event.text for event in batch if isinstance(event, TextDelta))]


async def none_at_the_end(batches):
    async for batch in batches:
        yield batch
    yield [None]


async def not_begun(batches):
    async for batch in batches:
        yield [*batch, ToolCallDelta(0, None, None, "{", 0)]


def looping(batches):
    return list(batches)


def stage_for_nothing():
    return passed_on


def stage_for_a_word(_word="a"):
    return passed_on


def guarding(reply="refusal"):
    return guard(bool, hold=1, reply=reply)


async def passed_on(batches):
    async for batch in batches:
        yield batch


async def no_yield(batches):
    return batches


def no_async(batches):
    yield batches


def no_return(_batches):
    pass


class Mine:
    async def stage(self, batches):
        async for batch in batches:
            for event in batch:
                yield event


async def later(text):
    return text


def silent(_text):
    return None


async def read(stream):
    async with stream as entered:
        return [batch async for batch in entered]


def piped(*stages, source=None, **options):
    return read(pipe(source or source_of([BODY]), *stages, **options))


def chat(*stages):
    return piped(parse_sse(), decode("openai-chat"), accumulate_tool_calls(), *stages)


def collected(*given, source=None, **options):
    return collect(source or source_of([BODY]), "openai-chat", *given, **options)


def translated(*given, source=None, **options):
    return read(transcode(source or source_of([BODY]), "openai-chat", "anthropic", *given, **options))


def asked(**members):
    return decode_request(json.dumps({**ASKED, **members}).encode(), "anthropic")


def said(content):
    return asked(messages=[{"role": "user", "content": content}])


def answered():
    return decode_response(json.dumps(ANSWER).encode(), "openai-chat")


def with_results(results):
    return request_with_results(asked(), answered(), results)


def upstream(**fields):
    usual = {"name": "a", "dialect": "openai-chat", "base_url": "https://host/v1", "key": Secret("k")}
    return Upstream(**{**usual, **fields})


def served(clients, to=None):
    return setup(web.Application(), to or upstream(), clients=clients)


ROWS = [
    # sources
    (lambda: piped(parse_sse(), source=texts()), "parse_sse takes bytes, but texts before it yields str: encode the text, as in text.encode()"),
    (lambda: piped(parse_sse(), source=bytes_then_text()), "parse_sse takes bytes, but bytes_then_text before it yields str: encode the text, as in text.encode()"),
    (lambda: piped(parse_sse(), source=texts(), timings=True), "parse_sse takes bytes, but texts before it yields str: encode the text, as in text.encode()"),
    (lambda: collected(source=texts()), "parse openai-chat takes bytes, but texts before it yields str: encode the text, as in text.encode()"),
    (lambda: collected(source=nothing()), "parse openai-chat takes bytes, but nothing before it yields NoneType: yield bytes"),
    (lambda: translated(source=texts()), "parse openai-chat takes bytes, but texts before it yields str: encode the text, as in text.encode()"),
    (lambda: translated(source=bytes_then_text()), "parse openai-chat takes bytes, but bytes_then_text before it yields str: encode the text, as in text.encode()"),
    (lambda: read(transcode(texts(), "ollama", "ollama")), "pass ollama through takes bytes, but texts before it yields str: encode the text, as in text.encode()"),
    (lambda: Observer("openai-chat").feed(BODY.decode()), "a chunk must be bytes, not str: write text.encode()"),
    (lambda: detect(texts()), "detect takes bytes, but texts before it yields str: encode the text, as in text.encode()"),
    (lambda: piped(parse_sse(), source=BODY), f"a source must be an async iterable, not bytes: {NO_SOURCE}"),
    (lambda: collected(source=[BODY]), f"a source must be an async iterable, not list: {NO_SOURCE}"),
    (lambda: translated(source=BODY.decode()), f"a source must be an async iterable, not str: {NO_SOURCE}"),
    (lambda: detect(BODY), f"a source must be an async iterable, not bytes: {NO_SOURCE}"),
    (lambda: collected(source=texts), "a source must be an async iterable, not function: write texts(…)"),
    (lambda: collected(source=no_yield(1)), "a source must be an async iterable, not coroutine: await it first"),
    (lambda: read(pipe(parse_sse(), decode("ollama"))), "a source must be an async iterable, not Stage: write a source before the stages"),
    # stages that are missing, or not called
    (lambda: piped(decode("openai-chat")), f"decode openai-chat takes frames, but source_of before it yields bytes: {ORDER}"),
    (lambda: piped(accumulate_tool_calls()), f"accumulate_tool_calls takes wire events, but source_of before it yields bytes: {ORDER}"),
    (lambda: piped(encode("anthropic")), f"encode anthropic takes events, but source_of before it yields bytes: {ORDER}"),
    (lambda: piped(parse_sse(), passed_on, check_json()), f"check_json takes events, but passed_on before it yields lists of Frame: {ORDER}"),
    (lambda: piped(parse_sse, decode("openai-chat")), "parse_sse is not a stage, but makes one: write parse_sse(…)"),
    (lambda: piped(parse_sse(), decode), "decode is not a stage, but makes one: write decode(…)"),
    (lambda: chat(check_json), "check_json is not a stage, but makes one: write check_json(…)"),
    (lambda: chat(encode), "encode is not a stage, but makes one: write encode(…)"),
    (lambda: collected(stages=[redact]), "redact is not a stage, but makes one: write redact(…)"),
    (lambda: collected(stages=redact("a")), "stages must be Sequence, not Stage: write stages=[…]"),
    # stages of a user's own
    (lambda: chat(one_by_one, encode("anthropic")), "encode anthropic takes lists of events, but one_by_one before it yields ResponseStarted: yield a list, as in yield [event]"),
    (lambda: chat(one_at_the_end, encode("anthropic")), "encode anthropic takes lists of events, but one_at_the_end before it yields TextDelta: yield a list, as in yield [event]"),
    (lambda: chat(Mine().stage, check_json()), "check_json takes lists of events, but Mine.stage before it yields ResponseStarted: yield a list, as in yield [event]"),
    (lambda: translated(stages=[one_by_one]), "check_json takes lists of events, but one_by_one before it yields ResponseStarted: yield a list, as in yield [event]"),
    (lambda: collected(stages=[words_alone]), f"check_json takes events, but words_alone before it yields lists of str: {EVENTS}"),
    (lambda: collected(stages=[word_within]), f"check_json takes events, but word_within before it yields lists of str: {EVENTS}"),
    (lambda: collected(stages=[none_at_the_end]), f"check_json takes events, but none_at_the_end before it yields lists of NoneType: {EVENTS}"),
    (lambda: collected(stages=[not_begun]), f"check_json takes events, but not_begun before it yields lists of ToolCallDelta: {ORDER}"),
    (lambda: translated(stages=[none_at_the_end]), f"check_json takes events, but none_at_the_end before it yields lists of NoneType: {EVENTS}"),
    (lambda: collected(stages=[word_within, redact("a")]), f"redact takes events, but word_within before it yields lists of str: {EVENTS}"),
    (lambda: collected(stages=[none_at_the_end, map_text(str, hold=0)]), f"map_text takes events, but none_at_the_end before it yields lists of NoneType: {EVENTS}"),
    (lambda: chat(word_within, encode("anthropic")), f"encode anthropic takes events, but word_within before it yields lists of str: {EVENTS}"),
    (lambda: Collector("ollama", StreamReport()).feed(["a"]), "collect needs the events of accumulate_tool_calls, not 'a'"),
    (lambda: chat(looping), f"looping {CALLED}looping makes one, write looping(…)"),
    (lambda: chat(stage_for_nothing), f"stage_for_nothing {CALLED}stage_for_nothing makes one, write stage_for_nothing(…)"),
    (lambda: chat(stage_for_a_word), f"{NO_STAGE}, async def with yield; stage_for_a_word returned function: write stage_for_a_word(…)"),
    (lambda: collected(stages=[guarding]), f"guarding {CALLED}guarding makes one, write guarding(…)"),
    (lambda: chat(no_yield), f"{NO_STAGE}, async def with yield; no_yield returned coroutine"),
    (lambda: chat(no_async), f"{NO_STAGE}, async def with yield; no_async returned generator"),
    (lambda: chat(no_return), f"{NO_STAGE}, async def with yield; no_return returned NoneType"),
    (lambda: chat(lambda _: check_json()), f"{NO_STAGE}, async def with yield; <lambda> returned Stage"),
    (lambda: chat("check_json"), f"{NO_STAGE}, not 'check_json'"),
    (lambda: chat([check_json()]), f"{NO_STAGE}, not [check_json]; write *stages"),
    # policies and limits
    (lambda: Policy(missing_id="refus"), "missing_id must be one of 'make', 'refuse', not 'refus'; did you mean 'refuse'?"),
    (lambda: evolve(TOLERANT, think_tags="yes"), "think_tags must be one of 'auto', 'on', 'opened', 'off', not 'yes'"),
    (lambda: Policy(text_calls="hermes"), "text_calls must be tuple, not str: write ('hermes',)"),
    (lambda: Policy(text_calls=("hermess",)), f"each of text_calls must be one of {GRAMMARS}, not 'hermess'; did you mean 'hermes'?"),
    (lambda: Policy(refuse_repairs="no"), "refuse_repairs must be bool, not str: write True or False"),
    (lambda: find_text_calls("hermess"), f"a grammar must be one of {GRAMMARS}, not 'hermess'; did you mean 'hermes'?"),
    (lambda: Limits(line_bytes=-1), "line_bytes must be a whole number, 1 or more, not -1"),
    (lambda: Limits(index="9"), "index must be a whole number, 0 or more, not '9'"),
    (lambda: Limits(choices=True), "choices must be a whole number, 1 or more, not True"),
    (lambda: Limits(json_depth=1.5), "json_depth must be a whole number, 1 or more, not 1.5"),
    (lambda: split_thinking(mode="open"), "split_thinking: mode must be one of 'tags', 'opened', not 'open'; did you mean 'opened'?"),
    (lambda: parse_sse(last_event="keeps"), "parse_sse: last_event must be one of 'keep', 'drop', not 'keeps'; did you mean 'keep'?"),
    (lambda: keep_alive("anthropic", "coment"), "keep_alive: form must be one of 'dialect', 'comment', 'event', not 'coment'; did you mean 'comment'?"),
    # options
    (lambda: collected({"policy": TOLERANT}), f"options must be ReadOptions, not dict: {NO_OPTIONS}"),
    (lambda: collected([{"name": "f"}]), f"options must be ReadOptions, not list: {NO_OPTIONS}"),
    (lambda: translated([passed_on, redact("a")]), "options must be ReadOptions, not list: write stages=[…]"),
    (lambda: translated(TOLERANT), f"options must be ReadOptions, not Policy: {NO_OPTIONS}"),
    (lambda: decode_response(b"{}", "openai-chat", Limits()), f"options must be ReadOptions, not Limits: {NO_OPTIONS}"),
    (lambda: ReadOptions(policy="strict"), "policy must be Policy, not str: write TOLERANT, STRICT, LENIENT or Policy(…)"),
    (lambda: ReadOptions(limits={"choices": 1}), "limits must be Limits, not dict: write Limits(…)"),
    (lambda: collected(report={}), "report must be StreamReport, not dict: write StreamReport()"),
    (lambda: translated(profile="claude-code"), "profile must be Profile, not str: write Profile(…)"),
    # names
    (lambda: collect(source_of([]), "opnai-chat"), "no dialect or provider is called 'opnai-chat'; did you mean 'openai-chat'?"),
    (lambda: decode("depseek"), "no dialect or provider is called 'depseek'; did you mean 'deepseek'?"),
    (lambda: encode("claude-cod"), "no dialect or client is called 'claude-cod'; did you mean 'claude-code'?"),
    (lambda: encode("claude"), "no dialect or client is called 'claude'; did you mean 'anthropic'?"),
    (lambda: encode("google"), "no dialect or client is called 'google'; did you mean 'gemini'?"),
    (lambda: decode("claude-code"), "no dialect or provider is called 'claude-code': it is a client; write its dialect, 'anthropic'"),
    (lambda: encode("deepseek"), "no dialect or client is called 'deepseek': it is a provider; write its dialect, 'openai-chat'"),
    (lambda: transcode("openai-chat", source_of([]), "anthropic"), "the name of a dialect must be str, not async_generator: write 'openai-chat', for example"),
    # requests and whole responses
    (lambda: decode_request(json.dumps(ASKED), "anthropic"), "the body must be bytes, not str: write body.encode()"),
    (lambda: decode_request(ASKED, "anthropic"), "the body must be bytes, not dict: write json.dumps(body).encode()"),
    (lambda: decode_response(ANSWER, "openai-chat"), "the body must be bytes, not dict: write json.dumps(body).encode()"),
    (lambda: encode_request(ASKED, "anthropic"), "request must be Request, not dict: write decode_request(body, dialect)"),
    (lambda: encode_request(asked(), "anthropic", max_tokens="9"), "max_tokens must be a whole number, 1 or more, not '9'"),
    (lambda: encode_request(asked(), "anthropic", assistant_first="bridg"), "assistant_first must be one of 'bridge', 'refuse', not 'bridg'; did you mean 'bridge'?"),
    (lambda: encode_response(ANSWER, "anthropic"), f"response must be Response, not dict: {A_RESPONSE}"),
    (lambda: response_events(ANSWER), f"response must be Response, not dict: {A_RESPONSE}"),
    (lambda: with_results({"c1": 7}), "the result of the call 'c1' must be text or a list of parts, not int: write json.dumps(…)"),
    (lambda: with_results({"c1": ["a"]}), "the result of the call 'c1' must be text or a list of parts, not a list of other things: write json.dumps(…)"),
    (lambda: with_results(["a"]), "each of the results must be ToolResult, not str: write ToolResult(call_id, [Text(…)])"),
    (lambda: with_results([ToolResult("c1", "a")]), "the parts of a result must be list, not str: write [Text(…)]"),
    (lambda: said(7), "messages[0].content: must be a string or a list of objects, not an integer"),
    (lambda: said({"text": "Hi"}), "messages[0].content: must be a string or a list of objects, not an object"),
    (lambda: said(["Hi"]), "messages[0].content[0]: must be an object, not a string"),
    # stages that change text
    (lambda: map_text(str, hold="9"), "map_text: hold must be a number of characters, 0 or more, not '9'"),
    (lambda: redact("a", hold="9"), "redact: hold must be at least 1, the length of the longest match, or left out; not '9'"),
    (lambda: redact(["a"]), f"redact: {PATTERN}; write them as separate arguments, redact(*patterns)"),
    (lambda: redact("a", b"b"), f"redact: {PATTERN}"),
    (lambda: redact("a", replacement=None), "redact: replacement must be str, not NoneType: write '[redacted]', for example"),
    (lambda: redact("a", parts="txt"), f"redact: each of parts must be one of {PARTS}, not 'txt'; did you mean 'text'?"),
    (lambda: redact("a", parts=None), f"redact: each of parts must be one of {PARTS}, not None"),
    (lambda: chat(map_text(silent, hold=0)), "silent returned NoneType; a function that changes text must return a str"),
    (lambda: chat(map_text(later, hold=0)), "later returned coroutine; a function that changes text must return a str"),
    (lambda: chat(guard(later, hold=1)), f"guard: later returned coroutine; {RETURNS}"),
    (lambda: chat(guard(str.encode, hold=1)), f"guard: str.encode returned bytes; {RETURNS}"),
    (lambda: guard(bool, hold=1, reply="refuse"), "guard: reply must be one of 'refusal', 'error', not 'refuse'; did you mean 'refusal'?"),
    # serving
    (lambda: served(["claude-code"]), "no dialect is called 'claude-code': it is a client; write its dialect, 'anthropic'"),
    (lambda: served(["claude"]), "no dialect is called 'claude'; did you mean 'anthropic'?"),
    (lambda: upstream(dialect="gpt"), "dialect: no dialect or provider is called 'gpt'; did you mean 'openai-chat'?"),
    (lambda: served(["anthropc"]), "no dialect is called 'anthropc'; did you mean 'anthropic'?"),
    (lambda: served(None, "https://host"), "upstream must be Upstream, not str: write Upstream(name=…, dialect=…, base_url=…, key=…)"),
    (lambda: asgi.relay(source_of([]), transcode, client="anthropc"), "no dialect or client is called 'anthropc'; did you mean 'anthropic'?"),
    (lambda: Secret(None), "the text of a Secret must be str, not NoneType: write the key, as in os.environ[…]"),
    (lambda: upstream(name=7), "name: write a str, not int"),
    (lambda: upstream(base_url=None), "base_url: write a str, not NoneType"),
    (lambda: upstream(dialect="depseek"), "dialect: no dialect or provider is called 'depseek'; did you mean 'deepseek'?"),
    (lambda: upstream(key="sk"), 'key: must be a Secret, which no log shows; write Secret("…")'),
    (lambda: upstream(api_version=7), "api_version: write a str, not int"),
    (lambda: upstream(tools="yes"), "tools: write True or False, not str"),
    (lambda: upstream(timeouts=30), "timeouts: write Timeouts(…), not int"),
    (lambda: upstream(headers=["a"]), "headers: write a dict of names and values, both str"),
    (lambda: upstream(headers={"a": 7}), "headers: write a dict of names and values, both str"),
    (lambda: upstream(max_tokens="9"), "max_tokens: write a number above 0"),
    (lambda: upstream(text_calls="hermes"), "text_calls: write a tuple, not str"),
    (lambda: upstream(linked_media="fetched"), "linked_media: write one of refuse, fetch, drop"),
    # the mock
    (lambda: Mock(quirks=["id_mising"]), "there is no quirk 'id_mising'; did you mean 'id_missing'?"),
    (lambda: Mock(quirks=["foo"]), "there is no quirk 'foo'; streamkit mock --list-quirks lists them"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "sentence"), ROWS, ids=[sentence for _, sentence in ROWS])
async def test_a_mistake_is_told_in_a_sentence(use, sentence):
    with pytest.raises((UsageError, BadRequest)) as told:
        made = use()
        if inspect.isawaitable(made):
            await made
    assert str(told.value) == sentence


async def test_an_unknown_name_that_is_like_no_other_gets_the_known_ones():
    with pytest.raises(UsageError) as told:
        decode("xyz")
    assert str(told.value).startswith(
        "no dialect or provider is called 'xyz'; the dialects are openai-chat, openai-resp"
    )
    assert "ai-sdk; the providers are openai, azure, openrouter, deepseek," in str(told.value)


async def test_a_client_whose_provider_is_read_wrongly_gets_an_error_and_no_end():
    written = []
    with pytest.raises(UsageError, match="texts before it yields str"):
        async with transcode(texts(), "openai-chat", "anthropic") as stream:
            async for chunk in stream:
                written.append(chunk)
    assert b"event: error" in b"".join(written)
    assert b"message_stop" not in b"".join(written)
