"""A page with ``useChat``, and its routes: each model of the demo has its own path.

python serve.py --upstream http://127.0.0.1:8080/v1
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from streamkit import Tool
from streamkit.resume import MemoryStore
from streamkit.web import Upstream, chat_ui
from streamkit.web.resume import Resuming, add_resuming

HERE = Path(__file__).parent
#: The models of `make run`: one responds, one is interrupted, and one fails.
MODELS = ("demo", "demo-cut", "demo-error")
WEATHER = Tool(
    "get_weather",
    "The weather of a city.",
    {
        "type": "object",
        "required": ["city"],
        "properties": {"city": {"type": "string", "examples": ["Zürich"]}},
    },
)


def application(base_url: str) -> web.Application:
    """Return an application with the page, its script, and a chat route for each model of the server at ``base_url``."""
    app = web.Application()
    add_resuming(app, Resuming(store=MemoryStore()))
    upstream = Upstream(
        name="demo", dialect="openai-chat", base_url=base_url, auth="none"
    )
    for model in MODELS:
        chat_ui(
            app,
            upstream,
            f"/api/{model}",
            model=model,
            system="Be brief.",
            tools=[WEATHER],
        )
    app.router.add_get("/", _file("index.html"))
    app.router.add_get("/page.js", _file("build/page.js"))
    return app


def _file(name: str) -> Callable[[web.Request], Awaitable[web.FileResponse]]:
    async def answer(_request: web.Request) -> web.FileResponse:
        return web.FileResponse(HERE / name)

    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--upstream",
        default="http://127.0.0.1:8080/v1",
        help="the base URL of a server of OpenAI Chat",
    )
    parser.add_argument("--port", type=int, default=3000)
    asked = parser.parse_args()
    web.run_app(
        application(asked.upstream),
        host="127.0.0.1",
        port=asked.port,
        handler_cancellation=True,
    )


if __name__ == "__main__":
    main()
