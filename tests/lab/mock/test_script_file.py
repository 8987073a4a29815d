"""A script in TOML: what it says, and every fault with its place."""

from __future__ import annotations

import pytest

from streamkit.lab.mock import (
    Call,
    Comment,
    Cut,
    ErrorStatus,
    Match,
    MockTurn,
    Raw,
    Reset,
    Say,
    Script,
    Stall,
    Stop,
    Think,
    Usage,
    Wait,
)
from streamkit.lab.mock.script_file import load_script, parse_script
from streamkit.toml.findings import ConfigError


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_script(text, name="s.toml")
    return [str(finding) for finding in caught.value.findings]


def steps(text: str) -> tuple:
    (turn,) = parse_script(f"[[turn]]\nsteps = [{text}]").turns
    return turn.steps


def test_a_script_has_turns_with_matches():
    text = """
        repeat = true
        [[turn]]
        match = { text = "weather", tool = "get", turn = 1 }
        steps = [{ say = "Let me look." }]
        [[turn]]
        steps = [
            { say = "x" },
        ]
    """
    first = MockTurn([Say("Let me look.")], Match(text="weather", tool="get", turn=1))
    assert parse_script(text) == Script([first, MockTurn([Say("x")])], repeat=True)


def test_a_step_is_its_first_field_a_table_of_fields_or_true():
    assert steps("{ wait = 1 }, { status = 429 }") == (Wait(1.0), ErrorStatus(429))
    assert steps("{ status = { status = 429, retry_after = 2, message = 'no' } }") == (
        ErrorStatus(429, message="no", retry_after=2.0),
    )
    assert steps("{ think = 'a' }, { comment = true }, { stop = 'length' }, { stall = true }") == (
        Think("a"),
        Comment(),
        Stop("length"),
        Stall(),
    )
    assert steps("{ usage = { input = 3 } }, { cut = 'body' }") == (Usage(input=3), Cut("body"))
    assert steps("{ reset = true }") == (Reset(),)


def test_arguments_and_raw_bytes_have_two_forms():
    assert steps(
        "{ call = { name = 'f', arguments = { a = [1, 'x'] } } }, { call = { name = 'g', arguments = '{' } }"
    ) == (Call("f", {"a": [1, "x"]}), Call("g", "{"))
    assert steps("{ raw = 'é' }, { raw = { b64 = '/w==' } }") == (Raw("é"), Raw(b"\xff"))
    assert steps("{ raw = { data = 'é' } }, { raw = { data = { b64 = '/w==' } } }") == (Raw("é"), Raw(b"\xff"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x =", "s.toml:1:4: invalid value; write text in quotes"),
        ("[[turn]]\nsteps = [{ say = }]", "s.toml:2:18: invalid value; write text in quotes"),
        ("", "s.toml:1:1: turn: write at least one, as [[turn]] with steps"),
        ("turn = 1", "s.toml:1:1: turn: write at least one, as [[turn]] with steps"),
        ("repeat = 1\n[[turn]]\nsteps=[{say='x'}]", "s.toml:1:1: repeat: must be true or false, not an integer"),
        ("tern = 1\n[[turn]]\nsteps=[{say='x'}]", 's.toml:1:1: tern: unknown key; did you mean "turn"?'),
        ("[[turn]]", "s.toml:1:3: turn[0].steps: is required"),
        ("[[turn]]\nsteps = []", "s.toml:2:1: turn[0].steps: must not be empty"),
        ("[[turn]]\nsteps = [{ say = 'x' }]\nmach = 1", 's.toml:3:1: turn[0].mach: unknown key; did you mean "match"?'),
        (
            "[[turn]]\nsteps = [{ say = 'x' }]\nmatch = { turns = 1 }",
            's.toml:3:11: turn[0].match.turns: unknown key; did you mean "turn"?',
        ),
        (
            "[[turn]]\nsteps = [{ say = 'x' }]\nmatch = { turn = 0 }",
            "s.toml:3:11: turn[0].match.turn: must be at least 1, not 0",
        ),
        ("[[turn]]\nsteps = [{ cut = true }, { say = 'x' }]", "nothing can follow cut, and step 2 does"),
        ("a = " + "[" * 2000 + "]" * 2000, "s.toml: its arrays or tables are nested too deeply"),
    ],
)
def test_a_fault_of_the_file_has_its_place(text, fault):
    (found,) = faults(text)
    assert fault in found


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ("{ sya = 'x' }", 'sya: unknown step; did you mean "say"?'),
        ("{ say = 1 }", "say: must be a string, not an integer"),
        ("{ say = true }", "say: is required"),
        ("{ wait = -1 }", "wait: must be 0 or more, not -1"),
        ("{ call = 'f' }, { call = {} }", "call.name: is required"),
        ("{ call = { name = 'f', argument = 1 } }", 'call.argument: unknown key; did you mean "arguments"?'),
        ("{ call = { name = 'f', arguments = [1] } }", "must be a table, or the text of the arguments, not an array"),
        ("{ call = { name = 'f', arguments = { a = 123456789012345678901 } } }", "or write its text"),
        ("{ stop = 'lenght' }", "stop: must be one of "),
        ("{ reset = 3 }", "reset: must be true, not an integer"),
        ("{ raw = 1 }", 'raw: must be a string, or bytes as { b64 = "…" }'),
        ("{ raw = { text = 'x' } }", 'raw: must be a string, or bytes as { b64 = "…" }'),
        ("{ raw = { data = 1 } }", 'raw.data: must be a string, or bytes as { b64 = "…" }'),
        ("{ raw = { data = 'x', dat = 1 } }", 'raw.dat: unknown key; did you mean "data"?'),
        ("{ raw = { b64 = '*' } }", "raw.b64: must be base64"),
        ("{ comment = 'a\\nb' }", ""),
        ("{ say = 'x', wait = 1 }", "must be a table with one key, the step's name, not a table with 2 keys"),
        ("3", "must be a table with one key, the step's name, not an integer"),
    ],
)
def test_a_fault_of_a_step_has_its_place(step, fault):
    if not fault:
        step, fault = step.replace("'", '"'), "comment: a comment must be one line"
    (found,) = faults(f"[[turn]]\nsteps = [\n  {step},\n]")
    assert found.startswith("s.toml:3:")
    assert fault in found


def test_a_number_that_python_does_not_read_is_a_fault():
    (found,) = faults(f"[[turn]]\nsteps = [{{ wait = {'9' * 5000} }}]")
    assert "Exceeds the limit (4300 digits)" in found


def test_all_faults_are_found_at_once():
    assert len(faults("[[turn]]\nsteps = [{ say = 1 }, { wiat = 1 }]\n[[turn]]\nsteps = []")) == 3


def test_a_file_is_read_as_utf8(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("\ufeff[[turn]]\nsteps = [{ say = 'é' }]", "utf-8")
    assert load_script(path) == Script([Say("é")])
    path.write_bytes(b"[[turn]]\n\xff")
    with pytest.raises(ConfigError, match=r"s\.toml:2: not UTF-8"):
        load_script(path)
    with pytest.raises(ConfigError, match=r"none\.toml: can't be read: No such file"):
        load_script(tmp_path / "none.toml")
