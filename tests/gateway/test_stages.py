"""Stages of a route: loaded by name in each process, over every upstream, and no reason to ask the next one."""

from __future__ import annotations

import pickle
import sys

import pytest

from streamkit import redact
from streamkit.gateway.config import describe
from streamkit.gateway.config_file import ConfigFile
from streamkit.gateway.routing import RouteStage
from streamkit.toml.findings import Refusal
from tests.gateway.configuring import GOOD, parse
from tests.gateway.running import in_turn, leg, read, told
from tests.gateway.test_continuing import SAID, WORDS, answer, broken, rest
from tests.web.faults import as_asked, status

STAGES = "tests.web.test_stages"
HIDE = '{ use = "streamkit:redact", args = ["Oslo", { regex = "[0-9]{1,9}" }], replacement = "there" }'


def stages(*names):
    return tuple(RouteStage(f"{STAGES}:{name}") for name in names)


def test_a_configuration_names_stages():
    config = parse(f'{GOOD}stages = [{HIDE}, "{STAGES}:HIDE", "{STAGES}:raises_late"]\n')
    assert f"m -> a, through streamkit:redact, through {STAGES}:HIDE, through {STAGES}:raises_late" in describe(config)
    (route,) = config.routes
    again = pickle.loads(pickle.dumps(route)).stages  # as a worker gets it
    assert again == route.stages
    assert [each.stage for each in again[1:]] == [each.stage for each in route.stages[1:]]
    assert again[0].stage.name == redact("x").name


def test_a_stage_is_found_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "stages_of_mine.py").write_text("async def mine(batches):\n    yield []\n", "utf-8")
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(Refusal, match="stages_of_mine can't be imported"):
        RouteStage("stages_of_mine:mine")
    monkeypatch.chdir(tmp_path)
    assert RouteStage("stages_of_mine:mine").stage.__qualname__ == "mine"


def test_a_stage_is_found_next_to_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setenv("KEY", "k")
    (tmp_path / "stages_next_to_it.py").write_text("async def mine(batches):\n    yield []\n", "utf-8")
    (tmp_path / "gateway.toml").write_text(f'{GOOD}stages = ["stages_next_to_it:mine"]\n', "utf-8")
    (stage,) = ConfigFile(tmp_path / "gateway.toml").load().routes[0].stages
    assert stage.stage.__qualname__ == "mine"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("stage", ["raises_at_once", "one_by_one", "words_alone"])
async def test_no_other_upstream_is_asked_after_a_stage_raised(stage, stream):
    plays = [as_asked("openai-chat")] * 2
    async with in_turn(*plays, stages=stages(stage), retries=1) as running:
        failed = await running.asked("anthropic", stream=stream)
        assert (failed.status, running.seen) == (500, [1, 0])
        assert b"secret text" not in failed.body
        assert await running.outcomes() == {("one", "stage_failed"): 1}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_response_that_a_stage_distrusts_is_a_fault_of_its_upstream(stream):
    plays = [as_asked("openai-chat")] * 2
    async with in_turn(*plays, stages=stages("distrusts")) as running:
        failed = await running.asked("anthropic", stream=stream)
        assert (failed.status, running.seen) == ((200, [1, 0]) if stream else (502, [1, 1]))
        assert b"the model spoke of Oslo" in failed.body
        assert b"message_stop" not in failed.body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_guard_that_fails_a_response_is_counted_as_such(stream):
    plays = [as_asked("openai-chat")] * 2
    async with in_turn(*plays, stages=stages("fails")) as running:
        failed = await running.asked("anthropic", stream=stream)
        assert running.seen == [1, 0]
        assert b"not there" in failed.body
        assert await running.outcomes() == {("one", "blocked"): 1}


async def test_the_next_upstreams_response_passes_the_same_stages():
    async with in_turn(status(500), as_asked("openai-chat"), stages=stages("HIDE")) as running:
        response = await read(await running.asked("anthropic"), "anthropic")
    assert (response.clean, "there" in response.text, "Oslo" in response.text) == (True, True, False)


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
async def test_what_two_upstreams_say_together_is_found(client):
    """The first one breaks off within the word."""
    words = [*WORDS[:2], " Os"]
    first = leg(broken("mistral", answer(SAID, words)[: 2 + len(words)]), dialect="mistral")
    second = leg(rest("mistral"), dialect="mistral")
    async with in_turn(first, second, stages=stages("HIDE"), on_cut="continue") as running:
        response = await read(await running.asked(client), client)
        assert running.seen == [1, 1]
    assert (response.clean, response.text.count("there"), "Oslo" in response.text) == (True, 1, False)


async def test_a_stage_that_raises_in_a_continued_stream_ends_it():
    first = leg(broken("mistral", answer(SAID, WORDS)[:4]), dialect="mistral")
    second = leg(rest("mistral"), dialect="mistral")
    async with in_turn(first, second, stages=stages("raises_late"), on_cut="continue") as running:
        failed = await running.asked("anthropic")
        assert (failed.status, running.seen) == (200, [1, 0])
        assert b"message_stop" not in failed.body
        assert told(failed, "anthropic") is not None
        assert await running.outcomes() == {("one", "stage_failed"): 1}
