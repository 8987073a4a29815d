"""Create the store of responses that the configuration names.

Code that needs the extra ``redis`` is imported only when it is used.

Source: resume.md §12, §18.4, §18.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from streamkit.errors import UsageError
from streamkit.gateway.config import Config
from streamkit.resume import MemoryStore, Store, StoreDown
from streamkit.resume.memory import new_boot
from streamkit.resume.worker_store import WorkerStore

EXTRA: Final = "resume.store = \"redis\" needs the extra `redis`: pip install 'streamkit-llm[redis]' (missing: {})"


def store_of(config: Config, *, boot: str = "", directory: str = "") -> Store:
    """Return the configured store, not started yet. ``boot`` names this process. Raises UsageError without its extra.

    ``directory`` has the sockets by which the workers of this host read each other's responses; empty: there is one process.
    """
    resume = config.resume
    if resume.url is None and directory:
        return WorkerStore(MemoryStore(resume.limits, boot=boot or new_boot()), Path(directory))
    if resume.url is None:
        return MemoryStore(resume.limits, boot=boot)
    try:
        from streamkit.resume.redis_store import RedisSettings, RedisStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    settings = RedisSettings(
        prefix=resume.prefix,
        lease_s=resume.lease_s,
        flush_s=resume.flush_ms / 1000,
        retry_s=resume.retry_s,
        behind_bytes=resume.behind_bytes,
        all_behind_bytes=resume.all_behind_bytes,
        wait_replicas=resume.wait_replicas,
    )
    return RedisStore(resume.url.reveal(), resume.limits, settings, boot=boot)


async def look_at_store(config: Config) -> tuple[str, list[str]]:
    """Check the configured store. Return why it can't be used, empty if it can, and remarks about it."""
    if config.resume.url is None:
        return "", []
    from streamkit.resume.redis_client import Calls, faults_of  # noqa: PLC0415

    calls = Calls(config.resume.url.reveal())
    try:
        return await faults_of(calls)
    except StoreDown as error:
        return "", [f"{error}; the gateway serves all the same, and goes on trying"]
    finally:
        await calls.close()
