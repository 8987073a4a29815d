"""The processes of the gateway: one that serves, or one that keeps several serving.

Workers share a port, not a socket: the kernel deals connections out among them (``SO_REUSEPORT``), so that none takes a burst
alone. Nothing else is shared. The parent holds the port, starts a worker again that died, and serves the private listener.

On SIGTERM or SIGINT a worker accepts nothing more, live streams get the grace time, and those that are left an error in their
dialect; then it exits with 0.

Source: design.md §6; limits.md C16.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from typing import Final, TypeAlias

from aiohttp import web
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.gateway.app import gateway_app, private_app
from streamkit.gateway.config import Config, Server
from streamkit.gateway.demo import demo_config, start_demo
from streamkit.gateway.log import configure, log
from streamkit.gateway.metrics import MULTIPROCESS_DIR, Metrics

_How: TypeAlias = Callable[[Config, Callable[[str], None]], Awaitable[int]]

#: Seconds beyond the grace time after which a worker that still runs is killed.
MARGIN_S: Final = 5.0
#: Seconds between two starts of a worker that keeps dying.
RESTART_S: Final = 1.0
#: How often the parent looks after its workers.
LOOK_S: Final = 0.2
#: An idle connection, and a request whose headers do not come, are closed after this; proxies keep theirs for 60 s.
KEEPALIVE_S: Final = 75.0
#: What aiohttp may take behind the grace time to close what is left.
CLOSE_S: Final = 1.0
#: The system's own queue of connections that nobody accepted yet.
BACKLOG: Final = 1024


def serve(config: Config | None, server: Server, announce: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. ``announce`` gets the URL once clients are accepted.

    Without a ``config`` the embedded replay upstream answers. Raises UsageError where an address can't be had.
    """
    configure(server.log_format, server.log_level)
    if server.workers == 1:
        return asyncio.run(_served(config, server, _alone, announce))
    with tempfile.TemporaryDirectory(prefix="streamkit-metrics-") as directory:
        os.environ[MULTIPROCESS_DIR] = directory  # read by the workers, when they make their counts
        return asyncio.run(_served(config, server, _parent, announce))


async def _served(config: Config | None, server: Server, how: _How, announce: Callable[[str], None]) -> int:
    if config is not None:
        return await how(config, announce)
    demo, base_url = await start_demo()
    try:
        return await how(demo_config(base_url, server), announce)
    finally:
        await demo.cleanup()


async def _alone(config: Config, announce: Callable[[str], None]) -> int:
    stop = stopped()
    metrics = Metrics()
    public, address = gateway_app(config, metrics), (config.server.host, config.server.port)
    async with _private(config, metrics) as private, _listening(public, address) as bound:
        announce(url_of(bound))
        _say(config, bound, private)
        await stop.wait()
        log.info("stopping")
    return 0


async def _parent(config: Config, announce: Callable[[str], None]) -> int:
    stop = stopped()
    with _reserved(config) as held:
        bound = held.getsockname()[:2]
        config = evolve(config, server=evolve(config.server, port=bound[1]))
        async with _private(config, None) as private:
            workers = [_started(config) for _ in range(config.server.workers)]
            announce(url_of(bound))
            _say(config, bound, private)
            while not stop.is_set():
                await _wait(stop, LOOK_S)
                workers = [await _kept(worker, config, stop) for worker in workers]
            log.info("stopping")
            return await _ended(workers, config.server.grace_s + CLOSE_S + MARGIN_S)


# -- workers -----------------------------------------------------------------------------------------------------------


def work(config: Config) -> None:
    """The whole life of a worker's process."""
    configure(config.server.log_format, config.server.log_level)
    asyncio.run(_work(config))


async def _work(config: Config) -> None:
    stop = stopped()
    address = config.server.host, config.server.port
    async with _listening(gateway_app(config, Metrics()), address, shared=True):
        await stop.wait()


def _started(config: Config) -> BaseProcess:
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(config,), daemon=True)
    worker.start()
    return worker


async def _kept(worker: BaseProcess, config: Config, stop: asyncio.Event) -> BaseProcess:
    """The worker, or another in its place."""
    if worker.is_alive():
        return worker
    log.error("a worker died; another is started", extra={"fields": {"pid": worker.pid, "exit": worker.exitcode}})
    await _wait(stop, RESTART_S)
    return worker if stop.is_set() else _started(config)


async def _ended(workers: list[BaseProcess], within_s: float) -> int:
    """Stop the workers; 0 if all of them ended well in time."""
    for worker in workers:
        if worker.is_alive():
            worker.terminate()
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while any(worker.is_alive() for worker in workers) and loop.time() < end:  # noqa: ASYNC110 - processes set no event
        await asyncio.sleep(LOOK_S)
    for worker in workers:
        if worker.is_alive():
            log.error("a worker did not end in time and is killed", extra={"fields": {"pid": worker.pid}})
            worker.kill()
        worker.join()
    return 0 if all(worker.exitcode == 0 for worker in workers) else 1


# -- listening ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _private(config: Config, metrics: Metrics | None) -> AsyncGenerator[tuple[str, int] | None, None]:
    """The private listener, if there is to be one."""
    address = config.server.private_address
    if address is None:
        yield None
        return
    async with _listening(private_app(metrics), address) as bound:
        yield bound


@asynccontextmanager
async def _listening(
    app: web.Application, address: tuple[str, int], *, shared: bool = False
) -> AsyncGenerator[tuple[str, int], None]:
    """Serve ``app`` there; yields the address, with the port that was taken for 0. Leaving ends it as gracefully as it can."""
    runner = web.AppRunner(
        app,
        handler_cancellation=True,  # a client that leaves is heard of at once
        access_log=None,  # the gateway has its own line
        keepalive_timeout=KEEPALIVE_S,
        shutdown_timeout=CLOSE_S,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, *address, reuse_port=shared or None, backlog=BACKLOG).start()
        except OSError as error:
            raise UsageError(f"cannot listen on {url_of(address)}: {error.strerror or error}") from error
        yield runner.addresses[0][:2]
    finally:
        await runner.cleanup()


def _reserved(config: Config) -> socket.socket:
    """The clients' port, bound and never listened on, so that workers can come and go."""
    host, port = config.server.host, config.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
    except OSError as error:
        held.close()
        raise UsageError(f"cannot listen on {url_of((host, port))}: {error.strerror or error}") from error
    return held


def stopped() -> asyncio.Event:
    """Set by SIGTERM and by SIGINT."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, event.set)
    return event


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


def url_of(address: tuple[str, int]) -> str:
    host, port = address
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _say(config: Config, bound: tuple[str, int], private: tuple[str, int] | None) -> None:
    fields = {"url": url_of(bound), "workers": config.server.workers, "private": url_of(private) if private else "off"}
    log.info("serving", extra={"fields": fields})
    for warning in config.warnings:
        log.warning(str(warning))
