"""The yardstick: the plainest relay that aiohttp allows, byte for byte: ``python -m benchmarks.gateway.relay UPSTREAM``.

It reads, translates, counts, times and bounds nothing. What the gateway costs more than this is what its work costs. Prints
its port.
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web


async def main(upstream: str) -> None:
    bytes(
        1024 * 1024
    )  # freed at once: glibc maps and unmaps the 256 KiB that each read asks for until it saw a larger block,
    # as it has in the gateway; without this line the yardstick costs an eighth more
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
    asyncio.run(main(sys.argv[1]))
