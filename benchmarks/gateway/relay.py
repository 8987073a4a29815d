"""The yardstick, the plainest relay that aiohttp allows, byte for byte: ``python -m benchmarks.gateway.relay URL [warm]``.

It reads, translates, counts, times and bounds nothing. What the gateway costs more than this is what its work costs. Prints
its port.

asyncio asks for 256 KiB for each read. glibc maps and unmaps them each time, until the process has freed a larger block: an
eighth to a quarter of what this relay costs. ``warm``: it has freed one.
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web


async def main(upstream: str) -> None:
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)) as session:

        async def relay(request: web.Request) -> web.StreamResponse:
            body, headers = await request.read(), {"Content-Type": "application/json"}
            async with session.post(upstream + request.path, data=body, headers=headers) as answer:
                response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response

        app = web.Application()
        app.router.add_post("/{path:.*}", relay)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[2:] == ["warm"]:
        bytes(1024 * 1024)
    asyncio.run(main(sys.argv[1]))
