"""``streamkit serve``: run the gateway."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
from typing import TYPE_CHECKING

from attrs import evolve

from streamkit.cli.options import add_renamed, port
from streamkit.cli.streams import say, visible
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.report import Status
from streamkit.text.quoting import quoted

if TYPE_CHECKING:
    from streamkit.gateway.serve import Inspection

HELP = "run the gateway: it lets clients use providers that speak other dialects"
CLIENTS = ", ".join(name for name, dialect in DIALECTS.built_in.items() if dialect.http.surface is not None)
KEY_VARIABLE = "STREAMKIT_INSPECT_KEY"
DETAIL = f"""\
Starts the gateway, which sends the requests of clients to the upstreams in a configuration file. The clients get streamed or
whole responses in these dialects: {CLIENTS}. Routes in the file may have `stages`, which change responses: a stage redacts
text, ends a response, or runs your own code. The command needs the extra `gateway`: pip install 'streamkit-llm[gateway]'.

Without a file, a built-in demo upstream responds, which needs no key and no network. The gateway then prints three commands to
try. The demo has these models:
  demo            responds, and calls the offered tools
  demo-reasoning  thinks first
  demo-slow       is silent for a minute
  demo-cut        is interrupted
  demo-error      responds with status 500
Any other model name means the model demo.

The log is on standard error, as text on a terminal and as JSON elsewhere. The setting `log_format` of the file changes the
format.

SIGTERM and SIGINT stop the gateway. Streams in progress then have 30 seconds to end (the setting `grace_s` of the file). After
this time, they end with an error in their dialect. A second signal ends the gateway immediately.

SIGHUP loads the file and its key files again. With --watch, the gateway also loads these files when one of them has changed.
Later requests use the new configuration. Streams in progress finish with the old configuration. If the file has an error, or
changes a setting that needs a restart (such as the port), the old configuration stays in use, and the log has the reason.
Without a file, SIGHUP stops the gateway.

On loopback, the gateway checks the header Host, because a web page could point its own host name to this machine. The gateway
accepts IP addresses, localhost, the names in the setting `hosts` of the file, and the names that containers use for their
machine (host.docker.internal, host.containers.internal). The metrics are at /metrics on a separate
listener, by default on loopback at the next higher port. That listener checks the header Host, too. If a client asks to
resume a response later, the gateway keeps the response in memory, unless the table [resume] of the file says otherwise.

--inspect keeps the last 100 streams in memory, without headers and requests, and serves a page that shows them live. The
gateway prints the address of the page, which contains a token. If the page is not on loopback, you must set the token in
{KEY_VARIABLE}.

examples:
  streamkit serve
  streamkit serve --inspect
  streamkit serve --record recordings
  streamkit serve --config gateway.toml --check-config
  streamkit serve --config gateway.toml --watch
  streamkit serve --config gateway.toml --host 0.0.0.0 --workers 4
"""
#: Matches a token for the inspector that the user chose. Only characters that are valid in a header and in a URL are allowed.
KEY = re.compile(r"[\w-]{16,}", re.ASCII)
EXTRA = "streamkit serve needs the extra `gateway`: pip install 'streamkit-llm[gateway]' (missing: {})"


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit serve``."""
    add = command.add_argument
    add("--config", metavar="FILE", help="the configuration in TOML (default: none, so a demo upstream responds)")
    add(
        "--check-config",
        action="store_true",
        help="print the errors in the configuration, or a description of the configuration, and exit",
    )
    add("--watch", action="store_true", help="load the configuration again when its file or a key file has changed")
    add("--host", help="the interface to listen on (default: as in the file, or 127.0.0.1)")
    add("--port", type=port, metavar="N", help="the port; 0 means any free port (default: as in the file, or 8080)")
    add(
        "--workers",
        type=int,
        metavar="N",
        help="the number of processes that serve the port (default: as in the file, or 1)",
    )
    add("--timings", action="store_const", const=True, help="log the time of each stage, for each stream")
    add_renamed(command, "--profile", "--timings")
    add("--record", metavar="DIR", help="record each exchange with an upstream into DIR (default: as in the file)")
    add(
        "--inspect",
        nargs="?",
        const="127.0.0.1:0",
        metavar="HOST:PORT",
        help="serve a page that shows the streams and their content (default: any free port on loopback)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until a signal, or check the configuration. Raises UsageError if the extra ``gateway`` is missing."""
    if options.config is None or options.check_config:
        return _run(options)
    hangup = {signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, hangup)  # it would end the process until the gateway handles it
    try:
        return _run(options)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, hangup)


def _run(options: argparse.Namespace) -> int:
    try:  # imported here, since other commands do not need the extra
        from streamkit.gateway.config import Server, describe, look_at_store  # noqa: PLC0415
        from streamkit.gateway.config_file import ConfigFile  # noqa: PLC0415
        from streamkit.gateway.demo import welcome  # noqa: PLC0415
        from streamkit.gateway.serve import serve  # noqa: PLC0415
        from streamkit.toml.findings import ConfigError, Finding  # noqa: PLC0415
        from streamkit.toml.tables import faults_of  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError(EXTRA.format(error.name)) from error
    inspection = None if options.inspect is None else inspection_at(options.inspect, os.environ.get(KEY_VARIABLE, ""))
    names = ("host", "port", "workers", "timings", "record")
    named = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.config is None:
        if options.check_config or options.watch:
            raise UsageError(f"{'--check-config' if options.check_config else '--watch'} needs --config FILE")
        for name, value in named.items():
            try:
                Server(**{name: value})
            except ValueError as error:
                raise UsageError(f"--{name}: {next(faults_of(error))[1]}") from error
        server = Server(log_format="text", **named)
        return serve(None, server, lambda url: print(welcome(url), flush=True), inspection=inspection, tell=_tell)
    file = ConfigFile(options.config, named, watched=options.watch)
    try:
        config = file.load()
    except ConfigError as error:
        for finding in error.findings:  # one line for each fault, so that editors can jump to it
            say(str(finding))
        return Status.USAGE
    if options.check_config:
        reason, remarks = asyncio.run(look_at_store(config))
        found = [Finding(file=options.config, path="resume.url", reason=text) for text in (reason, *remarks) if text]
        if reason:
            say(str(found[0]))
            return Status.USAGE
        config = evolve(config, warnings=(*config.warnings, *found))
        print(*map(visible, describe(config).splitlines()), sep="\n")
        return Status.DONE
    # with a configuration, the log states the address, so nothing is printed
    return serve(config, config.server, lambda _url: None, file=file, inspection=inspection, tell=_tell)


def _tell(line: str) -> None:
    print(line, flush=True)


def inspection_at(text: str, key: str) -> Inspection:
    """Return the inspector's address and token. ``key`` is the token; if it is empty, a random one is made.

    Raises UsageError for an invalid address, for a key that is too easy to guess, and for a missing key beyond loopback.
    """
    from streamkit.gateway.config import address_in  # noqa: PLC0415
    from streamkit.gateway.serve import Inspection  # noqa: PLC0415
    from streamkit.lab.inspector.app import new_token  # noqa: PLC0415
    from streamkit.web.hosts import is_loopback  # noqa: PLC0415

    address = address_in(text)
    if address is None:
        raise UsageError(f"--inspect must be host:port, not {quoted(text)}")
    if key and KEY.fullmatch(key) is None:
        raise UsageError(f"{KEY_VARIABLE} must have at least 16 letters, digits, - or _")
    if not key and not is_loopback(address[0]):
        raise UsageError(f"--inspect beyond loopback needs a key: set {KEY_VARIABLE}")
    return Inspection(address, key or new_token(), lambda url: print(f"The inspector is at {url}", flush=True))
