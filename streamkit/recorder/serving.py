"""The proxy as a server, until a signal ends it: then its exchanges end as ``shut_down``, and their files are closed.

Source: observe.md O24.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from streamkit.gateway.listening import listening, url_of
from streamkit.recorder.proxy import Proxy
from streamkit.web.hosts import Hosts

#: Seconds after which a connection without a request is closed.
IDLE_S = 75.0
#: What ends it.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def serve(proxy: Proxy, address: tuple[str, int], announce: Callable[[str], None]) -> bool:
    """Serve until a signal; ``announce`` gets the URL once clients are accepted. Whether all was recorded in time.

    The proxy's recorder is closed. Raises UsageError where the address can't be had.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        app = proxy.app(Hosts((address[0],)))
        async with listening(app, address, idle_s=IDLE_S, decompress=False) as bound:
            announce(url_of(bound))
            await stop.wait()
    finally:
        is_saved = await asyncio.to_thread(proxy.recorder.close)
        await asyncio.sleep(0)  # what its thread told is still to be heard
    return is_saved
