"""Load the configuration file again while the gateway runs: all of it, or nothing.

Requests that begin after a reload use the new configuration, and the others finish with the old one. If the file has an error,
or changes a setting that needs a restart, the old configuration stays, and the log says why. The code of stages is not loaded
again: Python keeps a module that it has imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from attrs import define, fields

from streamkit.gateway.config import Config
from streamkit.gateway.config_file import ConfigFile
from streamkit.gateway.log import log
from streamkit.toml.findings import ConfigError, Finding

#: The settings of ``[server]`` that a reload applies. Everything else outside ``[upstreams]`` and ``[[routes]]`` is used when
#: the processes start: addresses, the store of responses, OpenTelemetry, the recorder.
APPLIED: Final = frozenset({
    "hosts", "cors", "bodies_bytes", "max_streams", "max_sockets", "sockets_bytes", "socket_idle_s", "log_level", "log_format",
    "timings", "check_schemas", "keys", "keyless_listing", "count_tokens", "keep_alive_s", "keep_alive", "whole_keep_alive",
    "unsent_bytes", "stall_s", "linger_s", "stall_report_s", "name_upstreams", "policy",
})  # fmt: skip
TABLES: Final = ("server", "resume", "responses", "telemetry")
NEEDS_RESTART: Final = "can't change while the gateway runs; restart it, or write the earlier value"
WATCH_S: Final = 1.0  #: seconds between two looks at the files

#: Makes all processes use a configuration. Returns the reason if they can't, else an empty text.
Switch: TypeAlias = Callable[[Config], Awaitable[str]]


@define(eq=False)
class Reloader:
    """The configuration that new requests use, and the file to load another one from."""

    config: Config
    file: ConfigFile | None = None  #: None: the built-in demo

    async def reload(self, switch: Switch) -> None:
        """Load the file, and let ``switch`` apply it. Log how that went; never raise."""
        if self.file is None:
            return
        try:
            config = await asyncio.to_thread(self.file.load)
            name = str(self.file.path)
            findings = [Finding(file=name, path=path, reason=NEEDS_RESTART) for path in fixed(self.config, config)]
            if not findings and (reason := await switch(config)):
                findings = [Finding(file=name, reason=reason)]
        except ConfigError as error:
            findings = list(error.findings)
        except Exception:  # noqa: BLE001 - whatever is wrong with a new configuration, the old one must stay in use
            log.exception("loading the configuration again failed; the old one stays in use")
            return
        if findings:
            log.error("the configuration can't be loaded again; the old one stays in use")
            for finding in findings:
                log.error(str(finding))
            return
        self.config = config
        counts = {"upstreams": len(config.upstreams), "routes": len(config.routes)}
        log.info("the configuration is loaded again", extra={"fields": counts})
        for warning in config.warnings:
            log.warning(str(warning))

    async def reload_when(self, asked: asyncio.Event, switch: Switch) -> None:
        """Reload each time that ``asked`` is set, until cancelled."""
        while True:
            await asked.wait()
            asked.clear()
            await self.reload(switch)

    async def watch(self, asked: asyncio.Event) -> None:
        """Set ``asked`` when the file or a key file was changed, if the file is to be watched. Run until cancelled.

        A file must be the same at two looks, because a change may take several writes, also of several files.
        """
        if self.file is None or not self.file.watched:
            return
        seen = self.file.stamps
        while True:
            await asyncio.sleep(WATCH_S)
            present = self.file.present_stamps()
            if present != self.file.stamps and present == seen:
                asked.set()
            seen = present


def fixed(old: Config, new: Config) -> Iterator[str]:
    """Yield the names of the settings that differ and that need a restart."""
    for table in TABLES:
        before, after = getattr(old, table), getattr(new, table)
        for each in fields(type(before)):
            is_applied = table == "server" and each.name in APPLIED
            if not is_applied and getattr(before, each.name) != getattr(after, each.name):
                yield f"{table}.{each.name}"


@asynccontextmanager
async def meanwhile(*work: Coroutine[Any, Any, None]) -> AsyncGenerator[None, None]:
    """Run coroutines as tasks while the block runs, and cancel them at its end."""
    tasks = {asyncio.create_task(each) for each in work}
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
