"""What a program loads: a public name's module when the name is used, and a dialect when it is named."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

import streamkit
from streamkit.cli.commands import parser
from streamkit.dialects import DIALECTS

CORE = "from streamkit import *\nimport streamkit"
#: Modules of the library that all public names may load, and others that none of them may import.
MODULES = 110
#: The modules that users import from, and the names that mean the same in two: an answer under aiohttp, and under ASGI.
PUBLIC = ("streamkit", "streamkit.asgi", "streamkit.lab.mock", "streamkit.plugin", "streamkit.testing", "streamkit.web")
SAME_IN_TWO = {"relay"}
SERVERS = ("aiohttp", "asyncio", "socket")


def loaded(program: str) -> set[str]:
    """The names of the modules that are there behind a program."""
    printed = f"{program}\nimport sys\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", printed], check=True, capture_output=True, text=True).stdout.split()
    )


def test_the_package_alone_loads_no_module():
    assert [name for name in loaded("import streamkit") if name.partition(".")[0] == "streamkit"] == ["streamkit"]


def test_no_public_name_is_a_modules():
    """An import of the module would put it in the place of the name."""
    assert not {module.name for module in iter_modules(streamkit.__path__)} & set(streamkit.__all__)


def test_a_public_name_is_no_command_and_has_one_meaning():
    commands = next(action for action in parser()._actions if action.choices)
    assert not set(commands.choices) & {*streamkit.__all__}
    meanings = {}
    for module in PUBLIC:
        for name in import_module(module).__all__:
            meanings.setdefault(name, set()).add(id(getattr(import_module(module), name)))
    assert {name for name, found in meanings.items() if len(found) > 1} == SAME_IN_TWO


def test_only_public_names_are_attributes():
    assert all(hasattr(streamkit, name) for name in streamkit.__all__)
    assert set(streamkit.__all__) <= set(dir(streamkit))
    assert not hasattr(streamkit, "transcoed")


def test_the_core_is_small_and_has_no_server():
    found = loaded(CORE)
    assert len([name for name in found if name.partition(".")[0] == "streamkit"]) <= MODULES
    assert found.isdisjoint(SERVERS)


@pytest.mark.parametrize("named", ["decode('{}')", "encode('{}')"])
def test_a_dialect_is_loaded_when_it_is_named(named):
    packages = {f"streamkit.dialects.{name.replace('-', '_')}" for name in DIALECTS.built_in}
    name = next(iter(DIALECTS.built_in))
    assert packages.isdisjoint(loaded(CORE))
    found = loaded(f"{CORE}\nstreamkit.{named.format(name)}")
    assert found & packages == {f"streamkit.dialects.{name.replace('-', '_')}"}


def test_the_version_is_told_without_any_command():
    found = loaded("from streamkit.cli import main\nmain(['--version'])")
    assert {name for name in found if name.partition(".")[0] == "streamkit"} == {"streamkit", "streamkit.cli"}
