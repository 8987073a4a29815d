"""Check the stages that a user gives, and load those that a configuration names.

A stage is an async generator function that takes batches of events, or what ``redact``, ``map_text`` and ``guard`` return.
A configuration names a stage as ``package.module:name``: the stage itself, or a function that returns it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from streamkit.errors import UsageError
from streamkit.events import Event
from streamkit.pipeline import Stage, StageFunction
from streamkit.text.quoting import name_of, quoted, without_secrets

#: A stage for the argument ``stages``: the result of ``redact``, ``map_text`` or ``guard``, or an async generator
#: function of your own that takes and yields batches of events.
EventStage: TypeAlias = StageFunction[list[Event], list[Event]]
_USE: Final = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")
FORM: Final = '"package.module:name"'
_NO_STAGE: Final = (
    "is not a stage; give an async generator function that takes batches of events and yields them, or what redact, map_text "
    "or guard returns"
)
_PLACES: Final = (
    "; modules are found if they are installed, in the working directory, or next to the gateway's configuration"
)


def given_stages(stages: Iterable[EventStage], where: str) -> tuple[EventStage, ...]:
    """Return the stages. Raise UsageError for an object that is not a stage of events; ``where`` begins the message."""
    if callable(stages) or not isinstance(stages, Iterable):
        raise UsageError(f"{where}: stages must be a list of stages; for one stage, write stages=[stage]")
    given = tuple(stages)
    for stage in given:
        if isinstance(stage, Stage) and {stage.takes, stage.gives} - {"events", None}:
            raise UsageError(
                f"{where}: the stage {stage.name} takes {stage.takes} and yields {stage.gives}, not events"
            )
        if not _is_stage(stage):
            raise UsageError(f"{where}: {name_of(stage)} {_NO_STAGE}")
    return given


def _is_stage(stage: Any) -> bool:
    if isinstance(stage, Stage) or _is_generator_function(stage):
        return True
    if not callable(stage) or inspect.iscoroutinefunction(stage):
        return False
    try:  # any other callable may return an async iterator; no generator runs before its first step
        return hasattr(stage(_nothing()), "__anext__")
    except Exception:  # noqa: BLE001 - whatever it raises, it is not a stage
        return False


def _is_generator_function(stage: Any) -> bool:
    return inspect.isasyncgenfunction(stage) or (callable(stage) and inspect.isasyncgenfunction(type(stage).__call__))


async def _nothing() -> AsyncGenerator[list[Event], None]:
    for batch in list[list[Event]]():
        yield batch


def load_stage(given: str | Mapping[str, Any]) -> EventStage:
    """Return the stage that a configuration names, as ``"package.module:name"`` or a table.

    In a table, ``use`` has the name, ``args`` the positional arguments of the function, and each other member is a keyword
    argument. In the arguments, a table ``{ regex = "…" }`` is a compiled regular expression. Modules of the working directory,
    and of the folders that ``find_modules_in`` got, can be imported too. Raises UsageError.
    """
    options = {"use": given} if isinstance(given, str) else dict(given)
    use, args = str(options.pop("use", "")), options.pop("args", list[Any]())
    found = _USE.fullmatch(use)
    if found is None or not isinstance(args, list):
        raise UsageError(f"must be {FORM}, or a table with this name in use and a list of arguments in args")
    made = _imported(*found.groups())
    if args or options or not (isinstance(made, Stage) or _is_generator_function(made)):
        made = _called(
            use, made, [_value(each) for each in args], {name: _value(each) for name, each in options.items()}
        )
    return given_stages([made], use)[0]


def find_modules_in(folder: Path) -> None:
    """Let the modules of ``folder`` be imported, unless an installed module has the same name."""
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))


def _imported(module: str, name: str) -> Any:
    find_modules_in(Path.cwd())
    try:
        found: Any = import_module(module)
    except Exception as error:
        hint = _PLACES if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.") else ""
        raise UsageError(f"{module} can't be imported: {_reason(error)}{hint}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{module} has no {name}")
        found = getattr(found, part)
    return found


def _called(use: str, factory: Any, args: list[Any], options: dict[str, Any]) -> Any:
    if isinstance(factory, Stage) or _is_generator_function(factory):
        raise UsageError(f"{use} is a stage, which takes no arguments")
    if inspect.iscoroutinefunction(factory):
        raise UsageError(f"{use}: {name_of(factory)} {_NO_STAGE}")
    try:
        return factory(*args, **options)
    except Exception as error:
        if not args and not options:
            called = f"called without arguments, it raised {_reason(error)}"
            raise UsageError(f"{use}: {name_of(factory)} {_NO_STAGE}; {called}") from error
        raise UsageError(f"{use} can't be called with these arguments: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    message = str(without_secrets(str(error)))
    return message if isinstance(error, UsageError) else f"{type(error).__name__}: {message}"


def _value(value: Any) -> Any:
    """Return a value of a configuration with its regular expressions compiled."""
    if isinstance(value, list):
        return [_value(each) for each in value]
    if isinstance(value, dict) and value.keys() == {"regex"} and isinstance(value["regex"], str):
        try:
            return re.compile(value["regex"])
        except re.error as error:
            raise UsageError(f"{quoted(value['regex'])} is not a regular expression: {error}") from error
    return value
