"""``streamkit replay``: serve recordings."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from streamkit.cli.options import port
from streamkit.cli.streams import visible
from streamkit.report import Status

if TYPE_CHECKING:
    from streamkit.lab.replayer.app import Outcome
    from streamkit.lab.replayer.loading import Loaded

HELP = "serve recordings as they were recorded"
DETAIL = """\
Serves the responses in recordings (*.stream.jsonl, written by `streamkit record`) to requests that match the
recorded requests. A response has the recorded status and headers. Its pieces arrive at the recorded times, and it ends like
the recorded response, even if this was an interruption, a reset or silence. The command does not contact the provider.

A request matches a recording if the method, the path and the body are equal. With --match canonical (the default), the order
of the members in JSON bodies does not matter, and the values at the paths of --ignore are not compared. With --match exact,
the bodies must have the same bytes. If several recordings match the same request, repeated requests get these recordings one
after the other, in the order of their times. After that, the last recording is sent again, unless --once is set. If no
recording matches, the client gets an error in its dialect. The error has the first difference from the most similar recording.

PATH may also be a file with the bytes of a stream (recording.sse). The command sends these bytes as the response to each POST
that no recording matches. The bytes are sent in one piece, or in the pieces of --cut.

With --speed 2, responses are twice as fast. With --speed 0, the command never waits. --cut says where responses are split: as
recorded (`reads`), after each event (`events`), into pieces of N bytes (`bytes=N`), or at random places (`random=SEED`).

The command prints its address and its recordings, and then one line for each request. It serves until Ctrl-C. On loopback, the
command accepts only IP addresses and localhost in the header Host, because a web page could point its own host name to this
machine.

examples:
  streamkit replay recordings/
  streamkit replay hello.stream.jsonl --speed 0 --cut bytes=7
  streamkit replay recordings/ --ignore metadata.user_id --ignore 'messages[*].id' --once
"""
PORT = 8090


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``streamkit replay``."""
    add = command.add_argument
    add("paths", nargs="+", metavar="PATH", help="recordings, or folders with them")
    add("--host", default="127.0.0.1", help="the interface to listen on (default: 127.0.0.1)")
    add("--port", type=port, default=PORT, metavar="N", help=f"the port; 0 means any free port (default: {PORT})")
    add(
        "--speed",
        type=float,
        default=1.0,
        metavar="N",
        help="the speed: 2 is twice as fast, and 0 never waits (default: 1)",
    )
    add("--cut", default="reads", metavar="CUT", help="where to split responses: reads, events, bytes=N or random=SEED")
    add(
        "--match",
        choices=["exact", "canonical"],
        default="canonical",
        help="how bodies are compared (default: canonical)",
    )
    add(
        "--ignore",
        action="append",
        default=[],
        metavar="PATH",
        help="a path in JSON bodies that is not compared, such as messages[*].id; may be repeated",
    )
    add("--once", action="store_true", help="send each recording only once")
    add(
        "--silence",
        type=float,
        default=600.0,
        metavar="S",
        help="the seconds of silence where a timeout was recorded, unless the client leaves earlier (default: 600)",
    )


async def run(options: argparse.Namespace) -> Status:
    """Serve until an interrupt. Raises UsageError, and SourceFailed or OSError for a file that cannot be read."""
    from streamkit.lab.recording.matching import pattern_in  # noqa: PLC0415
    from streamkit.lab.replayer.app import Replay, ReplayOptions  # noqa: PLC0415
    from streamkit.lab.replayer.loading import cut_in, load  # noqa: PLC0415
    from streamkit.lab.server import serving  # noqa: PLC0415 - imports a server, which most commands do not need
    from streamkit.web.hosts import Hosts, is_loopback  # noqa: PLC0415

    settings = ReplayOptions(
        speed=options.speed,
        cut=cut_in(options.cut),
        exact=options.match == "exact",
        ignored=[pattern_in(path) for path in options.ignore],
        once=options.once,
        silence_s=options.silence,
    )
    recordings = load(options.paths)
    app = Replay(recordings, settings, notify=_show).app(Hosts() if is_loopback(options.host) else None)
    async with serving(app, (options.host, options.port), "replay", decompress=False) as url:
        print(url, *map(_described, recordings), sep="\n", flush=True)
        await asyncio.Event().wait()
    return Status.DONE


def _described(loaded: Loaded) -> str:
    recording, request = loaded.recording, loaded.request
    answer = "no response" if recording.response is None else str(recording.response.status)
    seconds = recording.end.t if recording.end is not None else max((read.t for read in recording.reads), default=0.0)
    asked = "any POST" if request is None else f"{request.method} {request.path.partition('?')[0]}"
    what = f"{answer}, {len(recording.reads):,} reads in {seconds:.1f} s, {recording.ending}"
    return visible(f"  {asked}  {loaded.name}  {what}")


def _show(outcome: Outcome) -> None:
    found = f"hit   {outcome.method} {outcome.path}  {outcome.name}"
    line = found if outcome.name else f"miss  {outcome.method} {outcome.path}  {outcome.reason}"
    print(visible(line), flush=True)
