"""What the gateway records of its exchanges with upstreams: one file an attempt, and nothing changed for the client."""

from __future__ import annotations

import asyncio
import json
import stat

import orjson
import pytest

from streamkit.gateway.app import gateway_app
from streamkit.gateway.config import describe
from streamkit.gateway.metrics import Metrics
from streamkit.lab.recording import read_recording
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.configuring import GOOD, parse
from tests.gateway.processes import config_file
from tests.gateway.processes import serving as process
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import Delay, EvilUpstream, Fin, Hang, Rst, Script, Send
from tests.web.faults import END_OF_CHUNKS, as_asked, chunk, good, head, redirect, refuse, speech, status, whole
from tests.web.raw_client import RawClient, ask
from tests.web.serving import serving
from tests.web.socket_upstream import events, saying, socket_upstream

pytestmark = pytest.mark.usefixtures("no_leaks")
STREAM = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
QUICK = Timeouts(connect_s=1.0, first_byte_s=0.1, idle_s=0.1)
KEY, CLIENT_KEY, HEADER = "upstream-planted-1f2e", "client-planted-3d4c", "header-planted-5b6a"
DIALECT = "openai-chat"


async def asked(url, *, headers=None, content=None, members=(), **how):
    path, body = asking(DIALECT, **how)
    body.update(members)
    if content is not None:
        body["messages"][0]["content"] = content
    return await ask(url, path, body=orjson.dumps(body), headers=headers)


def files(directory):
    return sorted(directory.iterdir())


async def recorded(tmp_path, *scripts, server=None, timeouts=None, **how):
    """What a client got, and the recordings in the order they were begun, once the gateway has ended."""
    values = {} if timeouts is None else {"timeouts": timeouts}
    async with EvilUpstream(*scripts) as evil:
        config = config_of([upstream_at(evil, DIALECT, **values)], server={"record": str(tmp_path), **(server or {})})
        async with gateway(config) as running:
            answer = await asked(running.url, **how)
    return answer, [read_recording(path) for path in files(tmp_path)]


async def test_a_stream_is_recorded_read_by_read(tmp_path):
    answer, (found,) = await recorded(tmp_path, good(DIALECT, delay_s=0.002))
    assert answer.status == 200
    assert [read.data for read in found.reads] == list(speech(DIALECT))
    assert (found.dialect, found.ending, found.request.path) == (DIALECT, "whole", "/v1/chat/completions")
    assert json.loads(found.request.body)["stream"] is True
    times = [read.t for read in found.reads]
    assert times == sorted(times)
    assert found.response.t <= times[0]


async def test_what_is_put_back_and_read_again_is_recorded_once(tmp_path):
    """A form of an answer is told by its beginning, which is read again (``forms.py``)."""
    parts = [b": hi\n\n", b" \n", b"data: ", *speech(DIALECT)]
    parts[2:4] = [b"data: ", parts[3].removeprefix(b"data: ")]
    pieces = [step for part in parts for step in (Send(chunk(part)), Delay(0.004))]
    _, (found,) = await recorded(tmp_path, Script((Send(head(200, STREAM)), *pieces, Send(END_OF_CHUNKS))))
    assert [read.data for read in found.reads] == parts


async def test_a_whole_answer_is_recorded(tmp_path):
    _, (found,) = await recorded(tmp_path, whole(DIALECT), stream=False)
    assert (found.body, found.ending) == (b"".join(speech(DIALECT, whole=True)), "whole")


@pytest.mark.parametrize(
    ("script", "code", "kind"),
    [
        (status(503, DIALECT), 503, "whole"),
        (redirect("https://elsewhere.example/"), 307, "whole"),
        (Script((Send(head(200, STREAM) + chunk(speech(DIALECT)[0])), Delay(0.02), Fin())), 200, "cut"),
        (Script((Send(head(200, STREAM) + chunk(speech(DIALECT)[0])), Delay(0.02), Rst())), 200, "reset"),
        (Script((Send(head(200, STREAM) + chunk(speech(DIALECT)[0])), Hang())), 200, "timeout:idle"),
        (Script((Send(head(200, STREAM)), Hang())), 200, "timeout:first_byte"),
        (Script((Send(head(500, {"Content-Length": "9"}) + b"abc"), Delay(0.02), Fin())), 500, "cut"),
        (Script((Hang(),)), None, "timeout:first_byte"),
        (Script((Rst(),)), None, "unreachable"),
        (refuse(), None, "unreachable"),
        (
            Script((Send(head(200, {"Content-Encoding": "compress", "Content-Length": "2"}) + b"ab"),)),
            200,
            "client_left",
        ),
    ],
)
async def test_every_way_to_fail_is_recorded_as_what_it_was(tmp_path, script, code, kind):
    answer, (found,) = await recorded(tmp_path, script, timeouts=QUICK if kind.startswith("timeout") else None)
    assert found.ending == kind
    assert (found.response.status if found.response else None) == code
    assert answer.status >= 400 or answer.body


async def test_a_request_that_is_sent_again_without_a_member_has_its_own_file(tmp_path):
    refusal = status(400, message="Unsupported parameter: 'temperature' is not supported with this model.")
    answer, found = await recorded(tmp_path, refusal, good(DIALECT), members={"temperature": 1})
    assert answer.status == 200
    assert [(each.response.status, each.ending) for each in found] == [(400, "whole"), (200, "whole")]
    assert ["temperature" in json.loads(each.request.body) for each in found] == [True, False]


async def test_a_second_request_that_gets_no_response_is_recorded_as_that(tmp_path):
    refusal = status(400, message="Unsupported parameter: 'temperature' is not supported with this model.")
    _, found = await recorded(tmp_path, refusal, Script((Rst(),)), members={"temperature": 1})
    assert [each.ending for each in found] == ["whole", "unreachable"]


async def test_each_attempt_has_a_file(tmp_path):
    async with EvilUpstream(status(503, DIALECT)) as first, EvilUpstream(good("anthropic")) as second:
        upstreams = [upstream_at(first, "deepseek"), upstream_at(second, "anthropic", "two")]
        async with gateway(config_of(upstreams, server={"record": str(tmp_path)})) as running:
            answer = await asked(running.url)
        assert running.counted("recorder_files") == 2
        assert running.counted("recorder_bytes") == sum(path.stat().st_size for path in files(tmp_path))
    found = [read_recording(path) for path in files(tmp_path)]
    assert answer.status == 200
    assert [(each.dialect, each.provider) for each in found] == [(DIALECT, "deepseek"), ("anthropic", "")]
    assert [each.response.status for each in found] == [503, 200]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files(tmp_path))


async def test_a_client_that_leaves_and_a_gateway_that_ends_are_told_apart(tmp_path):
    script = Script((Send(head(200, STREAM) + chunk(speech(DIALECT)[0] + speech(DIALECT)[1])), Hang()))
    path, body = asking(DIALECT)
    async with EvilUpstream(script) as evil:
        config = config_of([upstream_at(evil, DIALECT)], server={"record": str(tmp_path), "grace_s": 0.0})
        async with gateway(config) as running:
            async with RawClient(running.url) as client:
                await client.send("POST", path, body=orjson.dumps(body))
                await client.read_until(b"data")
                client.leave("rst")
            await (await evil.request()).left()
            asked_again = asyncio.create_task(asked(running.url))
            await evil.request(1)
            await asyncio.sleep(0.05)
        await asked_again
    assert [read_recording(file).ending for file in files(tmp_path)] == ["client_left", "shut_down"]


async def test_a_gateway_that_ends_before_an_upstream_answers_says_so(tmp_path):
    async with EvilUpstream(Script((Hang(),))) as evil:
        config = config_of([upstream_at(evil, DIALECT)], server={"record": str(tmp_path), "grace_s": 0.0})
        async with gateway(config) as running:
            waiting = asyncio.create_task(asked(running.url))
            await evil.request()
        await waiting
    (found,) = [read_recording(file) for file in files(tmp_path)]
    assert (found.ending, found.response) == ("shut_down", None)


async def test_planted_keys_stand_in_no_file(tmp_path):
    echo = Script((Send(head(200, STREAM) + chunk(b"data: x\n\n" + KEY.encode()) + END_OF_CHUNKS),))
    told = f"no such key: {KEY} {HEADER}".encode()
    error = Script((Send(head(401, {"Content-Length": str(len(told))}) + told),))
    async with EvilUpstream(good(DIALECT), echo, error) as evil:
        upstream = upstream_at(evil, DIALECT, auth="bearer", key=Secret(KEY), headers={"x-own": HEADER})
        server = {"record": str(tmp_path), "keys": (Secret(CLIENT_KEY),)}
        async with gateway(config_of([upstream], server=server)) as running:
            for _ in range(3):
                headers = {"Authorization": f"Bearer {CLIENT_KEY}", "Cookie": "cookie-planted-7890"}
                await asked(running.url, headers=headers, content=f"{KEY} {CLIENT_KEY} {HEADER} 18446744073709551616")
    found = [read_recording(path) for path in files(tmp_path)]
    assert [each.ending for each in found] == ["whole", "withheld", "withheld"]
    assert b"planted" not in b"".join(path.name.encode() + path.read_bytes() for path in files(tmp_path))
    assert b"[removed] [removed] [removed] 18446744073709551616" in found[0].request.body
    assert set(found[0].removed) >= {"request.headers", "request.body"}


async def test_an_answer_over_a_web_socket_is_recorded_as_the_stream_that_it_becomes(tmp_path):
    refusal = {"type": "error", "status": 429, "error": {"type": "rate_limit_error", "message": "slow down"}}
    path, body = asking("openai-responses")
    for play in (saying(events()), saying([json.dumps(refusal)])):
        async with socket_upstream(play) as sockets:
            upstream = upstream_at(sockets, "openai-responses", transport="websocket")
            async with gateway(config_of([upstream], server={"record": str(tmp_path)})) as running:
                await ask(running.url, path, body=orjson.dumps(body))
    sound, refused = (read_recording(file) for file in files(tmp_path))
    assert (sound.exact, sound.ending, sound.request.method, sound.response.status) == (False, "whole", "GET", 200)
    payloads = [line[6:] for line in sound.body.decode().splitlines() if line.startswith("data: ")]
    assert payloads == events()
    assert json.loads(sound.request.body)["input"]
    assert (refused.ending, refused.response.status) == ("whole", 429)
    assert b"slow down" in refused.body


async def test_only_the_shape_of_requests_is_recorded_where_that_is_wanted(tmp_path):
    _, (found,) = await recorded(tmp_path, good(DIALECT), server={"record_bodies": "shape"}, content="private")
    assert json.loads(found.request.body)["messages"] == [{"role": "string", "content": "string"}]
    assert b"private" not in files(tmp_path)[0].read_bytes()


async def test_a_client_gets_the_same_though_nothing_can_be_recorded(tmp_path, monkeypatch):
    def full(_descriptor, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streamkit.lab.recording.writer.os.write", full)
    async with EvilUpstream(good(DIALECT)) as evil:
        config = config_of([upstream_at(evil, DIALECT)], server={"record": str(tmp_path)})
        async with gateway(config) as running:
            answer = await asked(running.url)
    assert running.counted("recorder_unrecorded", why="disk_error") == 1
    assert (answer.status, answer.end) == (200, "complete")
    assert bytes(answer.body).endswith(b"data: [DONE]\n\n")


async def test_a_directory_that_can_not_be_written_is_refused_as_the_gateway_starts(tmp_path):
    (tmp_path / "file").write_text("")
    async with EvilUpstream(good(DIALECT)) as evil:
        config = config_of([upstream_at(evil, DIALECT)], server={"record": str(tmp_path / "file")})
        with pytest.raises(Exception, match="for recordings can't be made"):
            async with serving(gateway_app(config, Metrics())):
                pass


def test_a_configuration_says_that_it_records():
    config = parse('[server]\nrecord = "kept"\nrecord_bodies = "none"\n' + GOOD)
    assert "exchanges with upstreams are recorded in kept, request bodies: none" in describe(config)
    assert "recorded" not in describe(parse(GOOD))


@pytest.mark.exhaustive
async def test_two_workers_record_into_one_directory(tmp_path):
    kept = tmp_path / "recordings"
    async with EvilUpstream(as_asked(DIALECT)) as evil:
        file = config_file(tmp_path, evil.url, workers=2, record=str(kept), private="127.0.0.1:0")
        async with process(tmp_path, "--config", str(file)) as running:
            await asyncio.gather(*(asked(running.url) for _ in range(40)))
            for _ in range(200):
                if await running.counted("recorder_files") == 40:
                    break
                await asyncio.sleep(0.05)
            assert await running.counted("recorder_files") == 40
            assert await running.counted("recorder_bytes") == sum(path.stat().st_size for path in files(kept))
    found = [read_recording(path) for path in files(kept)]
    assert len(found) == 40
    assert {each.ending for each in found} == {"whole"}
    assert {each.body for each in found} == {b"".join(speech(DIALECT))}
