"""Peers are judged before they are timed. No peer is needed here: what stands in for one is a script of a few lines."""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack

import pytest

from benchmarks import against, content, environments, inputs, oracle, tables
from benchmarks import contests as works
from benchmarks.against import Processes, enter, run
from benchmarks.contests import Contest, Peer, contests
from benchmarks.environments import Environment
from benchmarks.recipe import transcoded

WORKER = """
import json, sys
print(json.dumps({{"versions": {{"work": "9.9"}}}}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    {answer}
    print(json.dumps(answer), flush=True)
"""
TIMES = 'answer = {"result": 42} if order["do"] == "prepare" else {"seconds": %s, "floor": 0.5}'


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """Writes a worker and gives its peer."""
    monkeypatch.setattr(against, "PEERS", tmp_path)

    def write(name, answer):
        (tmp_path / f"{name}.py").write_text(WORKER.format(answer=answer) if answer else "1 / 0")
        return Peer(name, "", f"{name}.py", "work")

    return write


@pytest.fixture
def processes():
    with ExitStack() as stack:
        yield Processes(stack)


def contest(*peers, judge=lambda _: None):
    return Contest("some work", "text", "64 KiB", peers, {"cut": 9}, 10, judge, b"body")


def wrong_unless(expected):
    def judge(found):
        if found != expected:
            raise oracle.Wrong(f"{found}, not {expected}")

    return judge


def test_a_ratio_is_of_one_round(scripts, processes, tmp_path):
    peers = scripts("ours", TIMES % 0.001), scripts("other", TIMES % 0.004)
    ours, other = run(contest(*peers), processes, tmp_path / "body", lambda: None)
    assert other["times_streamkit"]["median"] == pytest.approx(4.0)
    assert ours["times_streamkit"]["median"] == 1.0
    assert other["times_floor"]["median"] == pytest.approx(0.008)
    assert (other["version"], other["times_streamkit"]["count"]) == ("9.9", against.ROUNDS)
    assert (tmp_path / "body").read_bytes() == b"body"


def test_slow_work_gets_fewer_rounds(scripts, processes, tmp_path):
    peers = scripts("ours", TIMES % 0.001), scripts("other", TIMES % 4.0)
    rows = run(contest(*peers), processes, tmp_path / "body", lambda: None)
    assert rows[1]["times_streamkit"]["count"] == against.SLOW_ROUNDS


def test_a_wrong_result_is_named_and_not_timed(scripts, processes, tmp_path):
    peers = scripts("ours", TIMES % 0.001), scripts("liar", (TIMES % 0.001).replace("42", "41"))
    ours, liar = run(contest(*peers, judge=wrong_unless(42)), processes, tmp_path / "body", lambda: None)
    assert liar["wrong"] == "41, not 42"
    assert "times_streamkit" not in liar
    assert "times_streamkit" in ours


@pytest.mark.parametrize(("answer", "said"), [
    ('answer = {"error": "ValueError: no"}', "ValueError: no"),
    ("raise SystemExit('gone')", "gone"),
    ("", "ZeroDivisionError"),
])  # fmt: skip
def test_a_peer_that_fails_is_named_with_its_error(scripts, processes, tmp_path, answer, said):
    peers = scripts("ours", TIMES % 0.001), scripts("broken", answer)
    _, broken = run(contest(*peers), processes, tmp_path / "body", lambda: None)
    assert said in broken["error"]
    assert "times_streamkit" not in broken


def test_a_peer_that_is_not_installed_says_how(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "none")
    standing = enter(contest(), Peer("openai", "openai", "time_openai.py", "sse"), processes, tmp_path / "body")
    assert "make bench-peers" in standing.error


def test_an_environment_with_other_versions_is_not_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    one = Environment("one", ("a==1",))
    assert not one.ready
    one.folder.mkdir()
    one.done.write_text(json.dumps(["a==1"]))
    assert one.ready
    assert not Environment("one", ("a==2",)).ready


def test_every_peer_has_its_environment_and_its_script():
    for one in contests():
        assert one.peers[0].name == works.OURS
        for peer in one.peers:
            assert (against.PEERS / peer.script).exists(), peer
            assert not peer.environment or peer.environment in environments.BY_NAME


@pytest.mark.exhaustive  # make bench asks them as well
def test_streamkit_passes_every_judge(tmp_path, monkeypatch):
    """The real worker, on the real inputs, made short."""
    for name in ("SSE_EVENTS", "ACCUMULATE_EVENTS", "REENCODE_EVENTS"):
        monkeypatch.setattr(works, name, 200)
    monkeypatch.setattr(works, "PARTIAL", (600,))
    monkeypatch.setattr(works, "BIG", 2**20)
    with ExitStack() as stack:
        processes = Processes(stack)
        for one in contests():
            (tmp_path / "body").write_bytes(one.body)
            ours = [peer for peer in one.peers if not peer.environment]
            standings = [enter(one, peer, processes, tmp_path / "body") for peer in ours]
            assert [(standing.error, standing.wrong, standing.some_wrong) for standing in standings] == [
                ("", "", "")
            ] * len(ours), one.work


def test_blocks_side_by_side_pass_for_peers_and_mixed_up_ones_do_not():
    """What readers that go by the index can tell apart is right; all arguments in one block are not."""
    stream = inputs.chat("calls", content.calls(600))
    strict = b"".join(transcoded([stream.body], inputs.CHAT, "anthropic"))
    works._judge_anthropic(stream, base64.b64encode(strict).decode())
    starts = [frame for frame in strict.split(b"\n\n") if b"content_block_start" in frame]
    rest = [frame for frame in strict.split(b"\n\n") if b"content_block_start" not in frame]
    side_by_side = b"\n\n".join([rest[0], *starts, *rest[1:]])
    works._judge_anthropic(stream, base64.b64encode(side_by_side).decode())
    with pytest.raises(oracle.Wrong):
        oracle.read_anthropic(oracle.sse_payloads(side_by_side))
    mixed_up = side_by_side.replace(
        b'"type":"content_block_delta","index":1', b'"type":"content_block_delta","index":0'
    )
    assert mixed_up != side_by_side
    with pytest.raises(oracle.Wrong, match="not open"):
        works._judge_anthropic(stream, base64.b64encode(mixed_up).decode())


def test_the_table_names_what_is_wrong():
    row = {
        "work": "w",
        "input": "i",
        "cut": "c",
        "peer": "p",
        "kind": "Rust core",
        "version": "1",
        "error": "",
        "wrong": "x: no",
    }
    found = "\n".join(tables.peers({"peers": {"rows": [row]}}))
    assert "| i | c | p (Rust core) | 1 | wrong |" in found
    assert "- p, in *w*: x: no" in found
