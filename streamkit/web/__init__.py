"""Handlers for aiohttp: read an upstream's response as a source, and answer a client with a pipeline.

See docs/how-to/serve-with-aiohttp.md.
"""

from streamkit.dialects.http import ModelCard
from streamkit.web.chat_ui import chat_ui
from streamkit.web.inventory import add_inventory
from streamkit.web.reply import Delivery, end_streams_on_shutdown
from streamkit.web.setup import relay, setup
from streamkit.web.source import Timeouts, iter_upstream
from streamkit.web.upstream import Secret, Upstream

__all__ = [
    "Delivery",
    "ModelCard",
    "Secret",
    "Timeouts",
    "Upstream",
    "add_inventory",
    "chat_ui",
    "end_streams_on_shutdown",
    "iter_upstream",
    "relay",
    "setup",
]
