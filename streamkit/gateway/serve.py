"""The processes of the gateway: one that serves, or a parent that runs several workers.

Workers share a port but not a socket: the kernel distributes connections among them (``SO_REUSEPORT``), so that no worker
takes a whole burst. Each worker can read responses that others keep, through their sockets in a folder of the parent
(``resume``). Workers share nothing else. The parent reserves the port, restarts dead workers, and serves the private listener.

The kernel also gives connections to a worker that is stopped or hangs. So each worker gives signs of life to its parent, from
its event loop. One that is silent for ``worker_silent_s`` is killed and replaced. The parent counts its own looks, not time:
after a pause of the whole group (Ctrl-Z, a paused machine), it kills no worker that had no time to give a sign either.

On SIGTERM or SIGINT a process stops accepting connections. Live streams get the grace time; the remaining ones then get an
error in their dialect. Then the process exits with 0. A second signal ends it at once (``signals.py``). A worker whose parent
is gone, perhaps killed, stops like one that got SIGTERM. SIGHUP loads the configuration again (``reload.py``), and the parent
tells its workers (``orders.py``).

A stream takes two file descriptors, for its client and its upstream. A WebSocket that waits for a message takes one. Many
systems allow a process 1,024 unless it asks for more (the soft limit), up to a fixed maximum (the hard limit).

Source: design.md §6; limits.md C16, T8; getrlimit(2).
"""

from __future__ import annotations

import asyncio
import errno
import gc
import multiprocessing
import os
import resource
import signal
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, TypeAlias

from aiohttp import web
from attrs import define, evolve, field, frozen

from streamkit.errors import UsageError
from streamkit.gateway.app import GATEWAY, Gateway, gateway_app, private_app
from streamkit.gateway.config import Config, Resume, Server, store_of
from streamkit.gateway.config_file import ConfigFile
from streamkit.gateway.demo import demo_config, start_demo
from streamkit.gateway.log import configure, log
from streamkit.gateway.metrics import MULTIPROCESS_DIR, Metrics, forget_live
from streamkit.gateway.orders import Pipes, Streams, hurry_workers, obey, streams_of_workers, switch_workers
from streamkit.gateway.reload import Reloader, meanwhile
from streamkit.gateway.rules import Rules, rules_of
from streamkit.gateway.signals import (
    PARENT_QUIT_S,
    QUIT_S,
    SIGNALS,
    Signals,
    end_within,
    signals_of_gateway,
    signals_of_worker,
)
from streamkit.lab.inspector.app import inspector_app, url_with
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.recording.writer import usable_directory
from streamkit.resume.memory import new_boot
from streamkit.resume.worker_store import PATH_BYTES, socket_path
from streamkit.web.hosts import Hosts, is_loopback
from streamkit.web.listening import CLOSE_S, listening, reserved, url_of
from streamkit.web.reply import LIVE

_How: TypeAlias = Callable[[Config, Callable[[str], None]], Awaitable[int]]

#: Seconds after the grace time (``grace_s``) until the parent process kills a worker that still runs.
MARGIN_S: Final = 5.0
RESTART_S: Final = 1.0  #: seconds before a dead worker is replaced
LOOK_S: Final = 0.2  #: seconds between the parent's checks of its workers
SIGNS: Final = 10  #: how many signs of life a worker gives in the time after which it is killed without one
#: How many collections of the garbage collector's middle generation trigger a full one. Python's default is 10.
FULL_EVERY: Final = 50


@frozen
class Inspection:
    """Where the inspector listens, the token that it requires, and a function that gets its URL."""

    address: tuple[str, int]
    token: str = field(repr=False)
    announce: Callable[[str], None]


def serve(
    config: Config | None,
    server: Server,
    announce: Callable[[str], None],
    *,
    file: ConfigFile | None = None,
    inspection: Inspection | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> int:
    """Serve until a signal ends this. Return the exit status. ``announce`` gets the URL once clients are accepted.

    Without a ``config``, the built-in demo upstream responds. ``file`` is where to load the configuration from again, and
    ``tell`` gets the line for the person who presses Ctrl-C while streams are in progress. Raises UsageError if an address
    can't be used, and for an ``inspection`` with several workers, because each worker would show only its own streams.
    """
    if inspection is not None and server.workers > 1:
        raise UsageError("the inspector shows the streams of one process: use --inspect with one worker")
    if server.record:
        # raise here if it is unusable, or each worker would fail and be restarted forever
        usable_directory(server.record)
    configure(server.log_format, server.log_level)
    if server.workers == 1:
        return asyncio.run(
            _served(config, server, partial(_alone, inspection=inspection, file=file, tell=tell), announce)
        )
    with _shared_folder(Resume() if config is None else config.resume) as directory:
        os.environ[MULTIPROCESS_DIR] = directory  # the workers read this when they create their metrics
        return asyncio.run(
            _served(config, server, partial(_parent, directory=directory, file=file, tell=tell), announce)
        )


@contextmanager
def _shared_folder(resume: Resume) -> Iterator[str]:
    """Create the folder for the workers' metrics and, if responses are kept, their sockets. Only this user can access it.

    Raises UsageError if that fails: without the folder ``/metrics`` would be empty.
    """
    where = os.environ.get("TMPDIR") or "a folder for temporary files"
    try:
        folder = tempfile.TemporaryDirectory(prefix="streamkit-")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"can't make a folder for the metrics of several workers in {where}: {reason}; "
            "set TMPDIR to a writable folder, or use one worker"
        ) from error
    with folder as directory:
        path = socket_path(Path(directory), new_boot())
        if resume.store == "memory" and len(os.fsencode(path)) > PATH_BYTES:
            raise UsageError(
                f"the names of the workers' sockets in {where} would exceed {PATH_BYTES} bytes; "
                'set TMPDIR to a shorter path, use one worker, or set resume.store to "off"'
            )
        yield directory


async def _served(config: Config | None, server: Server, how: _How, announce: Callable[[str], None]) -> int:
    if config is not None:
        return await how(config, announce)
    demo, base_url = await start_demo()
    try:
        return await how(demo_config(base_url, server), announce)
    finally:
        await demo.cleanup()


async def _alone(
    config: Config,
    announce: Callable[[str], None],
    *,
    tell: Callable[[str], None],
    file: ConfigFile | None = None,
    inspection: Inspection | None = None,
) -> int:
    signals, metrics, reloader = signals_of_gateway(reloads=file is not None), Metrics(), Reloader(config, file)
    async with (
        _private(reloader, metrics, signals.stop) as private,
        _inspected(config, inspection) as captures,
        _public(config, metrics, captures=captures, hurry=signals.hurry) as (app, bound),
    ):
        gateway = app[GATEWAY]

        async def switch(new: Config) -> str:
            _apply(gateway, await asyncio.to_thread(rules_of, new, gateway.rules))
            return ""

        announce(url_of(bound))
        _log_start(config, bound, private)
        async with meanwhile(reloader.watch(signals.reload), reloader.reload_when(signals.reload, switch)):
            await signals.stop.wait()
        _log_stop(signals, len(app[LIVE]), config.server.grace_s, tell)
    return signals.status


async def _parent(
    config: Config,
    announce: Callable[[str], None],
    *,
    directory: str,
    tell: Callable[[str], None],
    file: ConfigFile | None = None,
) -> int:
    signals = signals_of_gateway(reloads=file is not None, quit_s=PARENT_QUIT_S)
    stop, reloader, workers = signals.stop, Reloader(config, file), list[_Worker]()
    with reserved((config.server.host, config.server.port)) as held:
        bound = held.getsockname()[:2]

        def theirs(each: Config) -> Config:
            # the parent process serves the private port
            return evolve(each, server=evolve(each.server, port=bound[1], private="off"))

        def start() -> _Worker:
            return _started(theirs(reloader.config), directory)

        async def switch(new: Config) -> str:
            reason = await switch_workers(_pipes(workers), theirs(new), stop)
            if not reason:
                configure(new.server.log_format, new.server.log_level)
            return reason

        async with _private(reloader, None, stop) as private, meanwhile(reloader.watch(signals.reload)):
            workers += [start() for _ in range(config.server.workers)]
            announced = False
            while not stop.is_set():
                for worker in workers:
                    worker.look(config.server.worker_silent_s)
                if not announced and all(worker.listens for worker in workers):
                    announced = True
                    announce(url_of(bound))
                    _log_start(config, bound, private)
                await _wait(stop, LOOK_S)
                workers[:] = await _kept(workers, start, stop)
                if signals.reload.is_set():  # here, so that no worker starts meanwhile
                    signals.reload.clear()
                    await reloader.reload(switch)
            sending_s = config.telemetry.shutdown_s if config.telemetry.otlp else 0.0
            within_s = config.server.grace_s + CLOSE_S + sending_s + MARGIN_S
            status = await _ended(
                workers, within_s, signals, partial(_log_stop, grace_s=config.server.grace_s, tell=tell)
            )
    return signals.status or status


def _log_stop(signals: Signals, streams: Streams, grace_s: float, tell: Callable[[str], None]) -> None:
    """Log that the gateway stops, and how many streams it waits for. After Ctrl-C, also print this."""
    fields = {"streams": streams, "grace_s": grace_s} if streams else {}
    log.info("stopping", extra={"fields": fields})
    if streams and signals.first == signal.SIGINT:
        waits = f"waiting for {streams} stream{'' if streams == 1 else 's'}, at most {grace_s:g} s"
        with suppress(OSError):  # nobody reads standard output
            tell(f"{waits}; press Ctrl-C again to quit")


# -- workers -----------------------------------------------------------------------------------------------------------


@define(eq=False)
class _Worker:
    process: BaseProcess
    signs: Connection  #: receives a byte for each sign of life, the first one when the worker listens
    orders: Connection  #: the orders to the worker while it runs, and its replies
    listens: bool = False
    _silent_looks: int = 0

    def look(self, silent_s: float) -> None:
        """Read the signs since the last look. Kill the worker if it listened, and was silent for ``silent_s`` since then."""
        gave_sign = self.signs.poll() and bool(os.read(self.signs.fileno(), 4096))  # empty if it has died
        self.listens |= gave_sign
        self._silent_looks = 0 if gave_sign else self._silent_looks + 1
        silence_s = self._silent_looks * LOOK_S
        if self.listens and silence_s >= silent_s and self.process.is_alive():
            fields = {"pid": self.process.pid, "silent_s": round(silence_s, 1)}
            log.error("a worker is stopped or hangs, and is killed", extra={"fields": fields})
            self.process.kill()
            self.listens = False  # it is not killed twice


def work(config: Config, signs: Connection, orders: Connection, directory: str) -> None:
    """Run a worker's process. It writes to ``signs`` once it listens, and then regularly, and does what ``orders`` says.

    All workers share ``directory``.
    """
    configure(config.server.log_format, config.server.log_level)
    asyncio.run(_work(config, signs, orders, directory))


async def _work(config: Config, signs: Connection, orders: Connection, directory: str) -> None:
    signals = signals_of_worker()
    _stop_with_parent(signals.stop)

    def hurry() -> None:
        signals.hurry.set()
        end_within(QUIT_S, 1)

    async with _public(config, Metrics(), directory=directory, hurry=signals.hurry) as (app, _):
        gateway = app[GATEWAY]
        os.set_blocking(signs.fileno(), False)
        _give_sign(signs, config.server.worker_silent_s / SIGNS)
        obeying = asyncio.create_task(obey(orders, lambda: gateway.rules, partial(_apply, gateway), hurry))
        await signals.stop.wait()
        with suppress(OSError):
            orders.send(len(app[LIVE]))
    obeying.cancel()  # not earlier, because the parent may order to stop at once
    # A service manager may signal every process, and the parent then signals its workers again. Block the signals, so that the
    # second one does not change the exit status.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _give_sign(signs: Connection, every_s: float) -> None:
    """Show the parent that the event loop runs, now and every ``every_s`` seconds."""
    with suppress(BlockingIOError, BrokenPipeError):  # the parent is stopped, and reads nothing; or it has ended
        os.write(signs.fileno(), b".")
    asyncio.get_running_loop().call_later(every_s, _give_sign, signs, every_s)


def _apply(gateway: Gateway, rules: Rules) -> None:
    """Let a process serve new requests by other rules."""
    server = rules.config.server
    configure(server.log_format, server.log_level)
    streams, gateway.connections = _fitting(server)
    gateway.load(rules, streams)


def _fitting(server: Server) -> tuple[int, int]:
    """Raise the limit on file descriptors as needed. Return how many streams and connections fit into it."""
    descriptors = raise_descriptor_limit(server.max_streams, server.max_sockets)
    streams = streams_that_fit(server.max_streams, descriptors)
    if streams < server.max_streams:
        fields = {"descriptors": descriptors, "streams": streams, "max_streams": server.max_streams}
        log.warning("the limit on file descriptors allows fewer streams", extra={"fields": fields})
    return streams, connections_that_fit(server.max_streams, descriptors)


def _stop_with_parent(stop: asyncio.Event) -> None:
    """Set ``stop`` when the parent process ends, which the worker sees because the pipe from its parent closes."""
    loop, parent = asyncio.get_running_loop(), multiprocessing.parent_process()

    def orphaned(pipe: int) -> None:
        loop.remove_reader(pipe)
        log.error("the parent is gone; its worker stops")
        stop.set()

    if parent is not None:
        loop.add_reader(parent.sentinel, orphaned, parent.sentinel)


def _started(config: Config, directory: str) -> _Worker:
    """Start a worker's process. Signals that arrive before it handles them stay pending until then."""
    spawn = multiprocessing.get_context("spawn")
    read, written = spawn.Pipe(duplex=False)
    orders, theirs = spawn.Pipe()
    process = spawn.Process(target=work, args=(config, written, theirs, directory), daemon=True)
    # start it now: the first worker's start would start it later and unblock the signals (CPython 3.11)
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # the new process inherits the blocked signals
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    written.close()
    theirs.close()
    return _Worker(process, read, orders)


def _pipes(workers: list[_Worker]) -> Pipes:
    return {number: worker.orders for number, worker in enumerate(workers)}


async def _kept(workers: list[_Worker], start: Callable[[], _Worker], stop: asyncio.Event) -> list[_Worker]:
    """Return the workers, with new ones in place of those that died."""
    dead = [worker for worker in workers if not worker.process.is_alive()]
    if not dead or stop.is_set():
        return workers
    for process in (worker.process for worker in dead):
        log.error("a worker died; another is started", extra={"fields": {"pid": process.pid, "exit": process.exitcode}})
        forget_live(process.pid)
    await _wait(stop, RESTART_S)
    return workers if stop.is_set() else [start() if worker in dead else worker for worker in workers]


async def _ended(
    workers: list[_Worker], within_s: float, signals: Signals, log_stop: Callable[[Signals, Streams], None]
) -> int:
    """Stop the workers. Return 0 if all of them ended in time without an error."""
    processes, pipes = [worker.process for worker in workers], _pipes(workers)
    for process in processes:
        if process.is_alive():
            process.terminate()
    # one that does not listen yet has no streams, and would report this late
    log_stop(signals, await streams_of_workers(_pipes([worker for worker in workers if worker.listens])))
    loop = asyncio.get_running_loop()
    end, hurries = loop.time() + within_s, False
    while any(process.is_alive() for process in processes) and loop.time() < end:
        if signals.hurry.is_set() and not hurries:
            hurries, end = True, loop.time() + QUIT_S
            await hurry_workers(pipes)
        await asyncio.sleep(LOOK_S)
    for process in processes:
        if process.is_alive():
            log.error("a worker did not end in time and is killed", extra={"fields": {"pid": process.pid}})
            process.kill()
        process.join()
    return 0 if all(process.exitcode == 0 for process in processes) else 1


# -- listening ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _public(
    config: Config, metrics: Metrics, *, hurry: asyncio.Event, directory: str = "", captures: Captures | None = None
) -> AsyncGenerator[tuple[web.Application, tuple[str, int]], None]:
    """Run the application and the listener for clients. Other workers that share a ``directory`` listen on the same port."""
    server, loop = config.server, asyncio.get_running_loop()
    loop.set_exception_handler(OncePerSecond(loop.time))
    streams, connections = _fitting(server)
    store = store_of(config, directory=directory)
    app = gateway_app(config, metrics, streams=streams, store=store, captures=captures, hurry=hurry)
    gateway = app[GATEWAY]
    gateway.connections = connections
    address, idle_s = (server.host, server.port), server.idle_connection_s
    shared, most = bool(directory), lambda: gateway.connections
    async with listening(app, address, idle_s=idle_s, shared=shared, connections=most) as bound:
        # Objects that exist once the process listens are permanent, so the garbage collector should not scan them again. A
        # full collection stops all streams: with 500 of them for 26 to 38 ms, and for 65 to 100 ms without this. It also runs
        # rarely.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], FULL_EVERY)
        yield app, bound


@asynccontextmanager
async def _private(
    reloader: Reloader, metrics: Metrics | None, stop: asyncio.Event
) -> AsyncGenerator[tuple[str, int] | None, None]:
    config = reloader.config
    address = config.server.private_address
    if address is None:
        yield None
        return
    what = "/metrics (at the port after the gateway's, or at server.private)"
    app = private_app(metrics, lambda: reloader.config.server.private_hosts, stopping=stop.is_set)
    async with listening(app, address, idle_s=config.server.idle_connection_s, what=what) as bound:
        yield bound


@asynccontextmanager
async def _inspected(config: Config, inspection: Inspection | None) -> AsyncGenerator[Captures | None, None]:
    """Run the inspector; yields the streams that it shows, or None if it is off."""
    if inspection is None:
        yield None
        return
    captures, host = Captures(), inspection.address[0]
    # on loopback only loopback names are allowed, not the host names of the gateway's configuration
    hosts = Hosts() if is_loopback(host) else Hosts((host, *config.server.hosts))
    app = inspector_app(captures, inspection.token, hosts)
    what, idle_s = "the inspector (--inspect)", config.server.idle_connection_s
    async with listening(app, inspection.address, idle_s=idle_s, what=what) as bound:
        captures.url = url_of(bound)
        inspection.announce(url_with(captures.url, inspection.token))
        yield captures


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _log_start(config: Config, bound: tuple[str, int], private: tuple[str, int] | None) -> None:
    fields = {"url": url_of(bound), "workers": config.server.workers, "private": url_of(private) if private else "off"}
    log.info("serving", extra={"fields": fields})
    for warning in config.warnings:
        log.warning(str(warning))


# -- file descriptors --------------------------------------------------------------------------------------------------


#: File descriptors reserved for the process itself: standard streams, log, metrics files, name resolution, and a burst of
#: connections.
RESERVED: Final = 128
#: Idle connections to expect for each allowed stream: clients keep connections open for their next requests.
IDLE_SHARE: Final = 2
#: Error numbers that mean that no further file or socket can be opened: the limit of the process or of the system is
#: reached, or memory is lacking.
EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
LOG_S: Final = 1.0


def raise_descriptor_limit(max_streams: int, max_sockets: int) -> int:
    """Raise the soft limit for these streams and sockets, at most to the hard limit. Return the limit that applies now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = RESERVED + (2 + IDLE_SHARE) * max_streams + max_sockets
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


def streams_that_fit(max_streams: int, descriptors: int) -> int:
    """Return how many streams may be in progress: each takes two descriptors, in addition to the reserve."""
    return max(1, min(max_streams, (descriptors - RESERVED) // 2))


def connections_that_fit(max_streams: int, descriptors: int) -> int:
    """Return how many clients may be connected while that many streams use connections to upstreams."""
    return max(1, descriptors - RESERVED - streams_that_fit(max_streams, descriptors))


class OncePerSecond:
    """An event loop's exception handler. It logs once a second that nothing can be opened, and how often that happened.

    asyncio reports each connection that it can't accept, with a traceback, a thousand times in one turn.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged_at: float | None = None
        self._unlogged = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in EXHAUSTED:
            loop.default_exception_handler(context)
            return
        now = self._clock()
        if self._logged_at is not None and now - self._logged_at < LOG_S:
            self._unlogged += 1
            return
        fields = {"reason": error.strerror, "times": self._unlogged + 1}
        log.error("no connection can be accepted", extra={"fields": fields})
        self._logged_at, self._unlogged = now, 0
