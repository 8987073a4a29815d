"""``streamkit record``: a reverse proxy that records every exchange with a provider."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, get_args

from attrs import evolve

from streamkit.cli.options import ONE, port, source
from streamkit.cli.streams import say, visible
from streamkit.dialects import source_named
from streamkit.errors import UsageError
from streamkit.lab.recording.headers import Bodies
from streamkit.lab.recording.recorder import Recorder
from streamkit.lab.recording.writer import RecorderLimits
from streamkit.report import Status

if TYPE_CHECKING:
    from streamkit.lab.recorder import Exchanged

HELP = "record the exchanges with a provider through a proxy"
DETAIL = f"""\
Starts a reverse proxy for one provider, and writes each exchange into a file *.stream.jsonl. The file has the request, the
received pieces of the response with their times, and how the response ended. The proxy forwards bytes unchanged, as soon as
they arrive. Configure your client with its usual key, and with the printed address instead of the provider's address. The
proxy forwards keys, but never writes them to disk. Prompts and responses are written to disk.

The command prints one line for each exchange: its status, the number of pieces, bytes and milliseconds, how it ended, and its
file. SIGTERM and SIGINT end the command and close all files.

examples:
  streamkit record --to https://api.example.com --dir recordings
  streamkit record --to https://api.example.com --dir recordings --dialect {ONE} --bodies shape
"""
DEFAULTS = RecorderLimits()


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit record``."""
    add = command.add_argument
    add(
        "--to",
        required=True,
        metavar="URL",
        help="the URL of the provider: the scheme and the host, and optionally a path",
    )
    add(
        "--dir",
        required=True,
        metavar="DIR",
        help="the folder for the recordings, which is created if it does not exist",
    )
    add("--host", default="127.0.0.1", help="the interface to listen on (default: 127.0.0.1)")
    add("--port", type=port, default=8090, metavar="N", help="the port; 0 means any free port (default: 8090)")
    add(
        "--dialect",
        type=source,
        metavar="DIALECT",
        help="the provider's name, or its dialect (default: detected from the path of each request, or from the response)",
    )
    add(
        "--bodies",
        choices=get_args(Bodies),
        default="full",
        help="what to keep of request bodies. full: everything; shape: the names of members, with types instead of values; "
        "none: nothing (default: full)",
    )
    add(
        "--max-file-bytes",
        type=int,
        default=DEFAULTS.file_bytes,
        metavar="N",
        help=f"the size at which a recording ends, even if the response continues (default: {DEFAULTS.file_bytes})",
    )


def line_of(exchanged: Exchanged) -> str:
    """Return the line about an exchange."""
    status = "---" if exchanged.status is None else str(exchanged.status)
    file = "not recorded" if exchanged.file is None else exchanged.file.name
    figures = f"{exchanged.reads} reads, {exchanged.bytes} bytes, {1000 * exchanged.seconds:.0f} ms"
    other = f" ({exchanged.file_end})" if exchanged.file is not None and exchanged.file_end != exchanged.end else ""
    return f"{status} {exchanged.method} {exchanged.path}: {figures}, {exchanged.end}; {file}{other}"


async def run(options: argparse.Namespace) -> Status:
    """Serve the proxy until a signal ends it. Raises UsageError for an invalid address, directory or limit."""
    from streamkit.lab.recorder import Proxy, base_url  # noqa: PLC0415 - imports a server, which most commands do not need
    from streamkit.lab.server import serving, signalled  # noqa: PLC0415
    from streamkit.web.hosts import Hosts  # noqa: PLC0415

    try:
        limits = evolve(DEFAULTS, file_bytes=options.max_file_bytes)
    except ValueError as error:
        raise UsageError("--max-file-bytes must be at least 4096") from error
    dialect, provider = (None, None) if options.dialect is None else source_named(options.dialect)

    def tell(exchanged: Exchanged) -> None:
        print(visible(line_of(exchanged)), flush=True)

    to = base_url(options.to)
    recorder = Recorder(options.dir, bodies=options.bodies, limits=limits, warn=say)
    name, provider_name = None if dialect is None else dialect.name, "" if provider is None else provider.name
    proxy = Proxy(to, recorder, tell, dialect=name, provider=provider_name)
    try:
        app = proxy.app(Hosts((options.host,)))
        async with serving(app, (options.host, options.port), "clients", decompress=False) as url:
            print(f"streamkit records {to} into {options.dir}; use {url} instead. Ctrl-C stops it.", flush=True)
            await signalled()
    finally:
        is_saved = await asyncio.to_thread(recorder.close)
        await asyncio.sleep(0)  # run the callbacks that the recorder's thread has scheduled
    return Status.DONE if is_saved else Status.FAILED
