"""Takes what OpenTelemetry's exporters send and says that it is well: ``python -m benchmarks.gateway.collector`` prints
its port.
"""

from __future__ import annotations

import asyncio

from aiohttp import web


async def take(request: web.Request) -> web.Response:
    """Whatever it is; an empty answer says that all of it was taken (OTLP 1.x, full success)."""
    await request.read()
    return web.Response(content_type="application/x-protobuf")


async def main() -> None:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/{signal}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
