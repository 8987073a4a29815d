"""Dialects of other distributions: found when asked for, imported once, and harmless where they are broken."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS, GROUP, Registry, dialect_named
from streamkit.errors import UsageError
from tests.distributions import write_distribution

OLLAMA = DIALECTS["ollama"]
ACME = evolve(OLLAMA, name="acme")


def registry(**values: str) -> Registry:
    """Ollama built in, and the dialects of these entry points."""
    points = [EntryPoint(name, value, GROUP) for name, value in values.items()]
    return Registry({OLLAMA.name: OLLAMA}, lambda: points)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The modules ``acme_wire`` and ``acme_broken`` on the path."""
    (tmp_path / "acme_wire.py").write_text(
        textwrap.dedent(
            """
            from attrs import evolve
            from streamkit.dialects import ollama
            DIALECT = evolve(ollama.DIALECT, name="acme")
            OTHER = evolve(ollama.DIALECT, name="other")
            NONE = 7
            """
        ),
        "utf-8",
    )
    (tmp_path / "acme_broken.py").write_text("raise ZeroDivisionError('a bug at import')\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("acme_wire", None)


pytestmark = pytest.mark.usefixtures("module")


def test_an_installed_dialect_is_in_the_table_behind_the_built_in_ones():
    found = registry(acme="acme_wire:DIALECT")
    assert list(found) == ["ollama", "acme"]
    assert len(found) == 2
    assert found["acme"].name == "acme"
    assert "acme" in found
    assert "nobody" not in found
    assert found["acme"] is found["acme"]


def test_only_the_package_that_is_asked_for_is_imported():
    found = registry(acme="acme_wire:DIALECT", gone="no_such_package:DIALECT")
    assert found["ollama"] is OLLAMA
    assert "nobody" not in found
    assert "acme_wire" not in sys.modules
    assert found["acme"]
    assert "acme_wire" in sys.modules


def test_the_environment_is_searched_once_and_only_when_the_built_in_ones_have_no_answer():
    searches = []
    found = Registry({OLLAMA.name: OLLAMA}, lambda: searches.append(1) or [])
    assert found["ollama"] is OLLAMA
    assert searches == []
    for _ in range(3):
        assert "acme" not in found
    assert list(found) == ["ollama"]
    assert searches == [1]


BROKEN = {
    "no_such_package:DIALECT": "ModuleNotFoundError: No module named 'no_such_package'",
    "acme_wire:NO_SUCH_NAME": "AttributeError: module 'acme_wire' has no attribute 'NO_SUCH_NAME'",
    "acme_broken:DIALECT": "ZeroDivisionError: a bug at import",
    "acme_wire:NONE": "it must be a Dialect, not int",
    "acme_wire:OTHER": "the dialect is named 'other'",
}


@pytest.mark.parametrize("value", BROKEN)
def test_what_can_not_be_used_says_why_and_hurts_no_other(value):
    found = registry(bad=value, acme="acme_wire:DIALECT")
    assert list(found) == ["ollama", "acme"]
    with pytest.raises(KeyError):
        found["bad"]
    (candidate,) = found.named("bad")
    assert candidate.reason == BROKEN[value]
    assert candidate.dialect is None
    assert isinstance(candidate.error(), UsageError)
    assert value in str(candidate.error())
    assert BROKEN[value] in str(candidate.error())


def test_a_built_in_dialect_is_never_replaced():
    found = registry(ollama="acme_wire:DIALECT")
    assert found["ollama"] is OLLAMA
    assert list(found) == ["ollama"]
    assert "acme_wire" not in sys.modules
    (candidate,) = found.candidates()
    assert candidate.reason == "a built-in dialect has that name"


def test_two_distributions_with_one_name_are_both_refused():
    points = [EntryPoint("acme", f"acme_wire:{name}", GROUP) for name in ("DIALECT", "OTHER")]
    found = Registry({OLLAMA.name: OLLAMA}, lambda: points)
    assert "acme" not in found
    assert len(found.candidates()) == 2
    assert all("several distributions" in candidate.reason for candidate in found.candidates())


def test_asking_for_a_broken_one_raises_what_is_wrong_with_it(monkeypatch):
    found = registry(bad="acme_broken:DIALECT")
    monkeypatch.setattr("streamkit.dialects.DIALECTS", found)
    with pytest.raises(UsageError, match="a bug at import") as raised:
        dialect_named("bad")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with pytest.raises(UsageError, match=r"no dialect is called 'nobody'; the dialects are ollama$"):
        dialect_named("nobody")
    assert dialect_named("ollama") is OLLAMA


def python(code: str, *path: object) -> list[str]:
    """The lines that a new interpreter prints."""
    environment = {"PYTHONPATH": ":".join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_importing_streamkit_reads_no_metadata_and_imports_nobody_else(tmp_path):
    write_distribution(tmp_path, "acme-dialects", {"acme": "acme_wire:DIALECT", "bad": "no_such_package:DIALECT"})
    code = """if True:
        import sys
        import streamkit
        from streamkit.dialects import DIALECTS, dialect_named
        dialect_named("anthropic"), "ollama" in DIALECTS
        print("importlib.metadata" in sys.modules, "acme_wire" in sys.modules)
        print(DIALECTS["acme"].name)
        for name in ("bad", "nobody"):
            try:
                streamkit.decode(name)
            except streamkit.UsageError as error:
                print(error)
    """
    before, name, bad, nobody = python(code, tmp_path)
    assert (before, name) == ("False False", "acme")
    assert bad == (
        "the dialect 'bad' of acme-dialects 1.0 (entry point bad = no_such_package:DIALECT) cannot be used: "
        "ModuleNotFoundError: No module named 'no_such_package'"
    )
    assert nobody.startswith(
        f"no dialect or provider is called 'nobody'; the dialects are {', '.join(DIALECTS.built_in)}, acme; the providers are "
    )
