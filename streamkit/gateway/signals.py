"""Handle the signals to a process of the gateway.

The first SIGTERM or SIGINT stops the gateway, and live streams get the grace time. A second one ends it at once. Programs such
as ``npm run`` pass on an interrupt that the terminal has already sent, so a second one counts only after ``SAME_S`` seconds.

SIGHUP loads the configuration file again, also under ``nohup``. A terminal that is closed sends SIGHUP, too: a gateway whose
log goes to this terminal stops. Without a file, SIGHUP stops the gateway, unless ``nohup`` started it.

Workers handle only SIGTERM. A terminal also signals workers, but they get their orders from the parent process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Final

from attrs import define, field

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  #: the signals that the gateway handles
SAME_S: Final = 0.5  #: a second signal within this many seconds is taken for the first one
QUIT_S: Final = 3.0  #: seconds after the second signal until the process ends, whatever it does
#: The parent ends later than its workers, since it removes their folder.
PARENT_QUIT_S: Final = 2 * QUIT_S


@define(eq=False)
class Signals:
    """The signals that a process has received, as events."""

    reload: asyncio.Event = field(factory=asyncio.Event)  #: load the configuration again
    stop: asyncio.Event = field(factory=asyncio.Event)
    hurry: asyncio.Event = field(factory=asyncio.Event)  #: stop at once
    first: int = 0  #: the signal that stopped the process
    status: int = 0  #: the exit status of an interrupted process, after ``hurry``
    _first_at: float = 0.0

    def stop_by(self, number: int, quit_s: float = QUIT_S) -> None:
        """Stop because of a signal; at the second call, stop at once, and end the process in ``quit_s`` seconds."""
        now = asyncio.get_running_loop().time()
        if not self.stop.is_set():
            self.first, self._first_at = number, now
            self.stop.set()
        elif number != signal.SIGHUP and now - self._first_at >= SAME_S and not self.hurry.is_set():
            self.status = 128 + number
            self.hurry.set()
            end_within(quit_s, self.status)

    def hang_up(self, *, at_terminal: bool) -> None:
        """Load the configuration again, or stop if the terminal of the log is closed."""
        if at_terminal and not _at_terminal():
            self.stop_by(signal.SIGHUP)
        else:
            self.reload.set()


def signals_of_gateway(*, reloads: bool, quit_s: float = QUIT_S) -> Signals:
    """Handle the signals of the gateway's main process. ``reloads``: it has a configuration file that it can load again."""
    signals, loop = Signals(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.stop_by, number, quit_s)
    if reloads:
        at_terminal = _at_terminal()
        loop.add_signal_handler(signal.SIGHUP, lambda: signals.hang_up(at_terminal=at_terminal))
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, signals.stop_by, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return signals


def signals_of_worker() -> Signals:
    """Handle the signals of a worker, which starts with all of them blocked."""
    signals = Signals()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signals.stop.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return signals


def end_within(seconds: float, status: int) -> None:
    """End the process after some seconds, even if its event loop is blocked then."""
    timer = threading.Timer(seconds, os._exit, [status])
    timer.daemon = True
    timer.start()


def _at_terminal() -> bool:
    """Return whether standard error is a terminal that is still open."""
    return sys.stderr is not None and os.isatty(2)
