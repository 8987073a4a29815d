"""What a proxy records of a replay is the recording that is replayed (observe.md O27)."""

from __future__ import annotations

from itertools import accumulate

import pytest

from streamkit.lab.recorder import Proxy
from streamkit.lab.recording import read_recording
from streamkit.lab.recording.recorder import Recorder
from streamkit.testing.serving import served
from tests.lab.replayer.recordings import EVENTS, PATH, body, recording, replay_of
from tests.web.raw_client import ask

ERROR = b'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n'


@pytest.mark.parametrize(
    ("reads", "kind", "seen"),
    [
        (EVENTS, "whole", "whole"),
        ([*EVENTS[:2], ERROR], "whole", "whole"),
        ([*EVENTS[:2], EVENTS[2][:20], b"\xc3"], "cut", "cut"),
        (EVENTS[:2], "reset", "reset"),
        (EVENTS[:2], "client_left", "cut"),
    ],
)
async def test_the_recording_of_a_replay_is_the_recording(aiohttp_server, tmp_path, reads, kind, seen):
    made = recording(
        reads, kind=kind, gap_s=0.004, headers={"content-type": "text/event-stream", "x-request-id": "req_1"}
    )
    recorder = Recorder(tmp_path, warn=pytest.fail)
    with served(replay_of(made, speed=1).app, decompress=False) as url:
        proxy = await aiohttp_server(Proxy(url, recorder, tell=lambda _exchanged: None).app())
        await ask(f"http://{proxy.host}:{proxy.port}", PATH, body=body())
    assert recorder.close()
    (file,) = tmp_path.iterdir()
    found = read_recording(file)
    assert (found.ending, found.body, found.response.status) == (seen, made.body, 200)
    assert found.response.headers == made.response.headers | {"transfer-encoding": "chunked"}
    assert (found.request.path, found.request.body) == (PATH, body())
    ends = set(accumulate(len(read.data) for read in made.reads))
    assert ends.issuperset(accumulate(len(read.data) for read in found.reads))
    assert found.reads[-1].t >= made.reads[-1].t - 0.001
    assert found.end.t >= made.end.t - 0.001
