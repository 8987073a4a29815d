"""Loaded by each process of the gateway that is watched: on SIGUSR1 it writes what it has under way into a file.

The folder for the files is in ``STREAMKIT_SOAK_FOLDER``; a process without that variable is left alone.
"""

import asyncio
import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path


def _write(_number: int, _frame: object) -> None:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # no loop runs yet
        return
    names = Counter(getattr(task.get_coro(), "__qualname__", "?") for task in tasks)
    found = {"tasks": len(tasks), "names": names, "threads": threading.active_count()}
    path = Path(os.environ["STREAMKIT_SOAK_FOLDER"]) / f"{os.getpid()}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found), "ascii")
    part.replace(path)


if "STREAMKIT_SOAK_FOLDER" in os.environ and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGUSR1, _write)
