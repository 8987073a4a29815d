"""What is in use in a loop and its process: compared before and after a test, it is what the test left behind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any


async def in_use() -> set[str]:
    """Other tasks, begun async generators, timers of this package and open sockets, by names that tell them apart."""
    for _ in range(5):  # what was closed a moment ago is taken down in the loop's next turns
        await asyncio.sleep(0)
    loop: Any = asyncio.get_running_loop()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    begun = [generator for generator in list(loop._asyncgens) if generator.ag_frame is not None]
    timers = [handle for handle in loop._scheduled if not handle.cancelled() and _is_ours(handle._callback)]
    names = {f"{task.get_name()}: {task.get_coro()!r}" for task in tasks}
    return names | {repr(generator) for generator in begun} | {repr(timer) for timer in timers} | _sockets()


def _is_ours(callback: Any) -> bool:
    return str(getattr(callback, "__module__", "")).startswith("streamkit")


def _sockets() -> set[str]:
    """Linux only: elsewhere none are seen."""
    folder = Path("/proc/self/fd")
    found = set()
    for entry in folder.iterdir() if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # the one that lists the folder
            name = str(entry.readlink())
            if name.startswith("socket:"):
                found.add(f"{entry.name} {name}")
    return found
