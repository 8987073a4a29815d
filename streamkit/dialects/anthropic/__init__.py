"""Anthropic Messages, streamed and whole. Source: dialects.md §3."""

from __future__ import annotations

from streamkit.dialects.anthropic.asides import CITATIONS, SEARCHES, TOOL_SEARCHES
from streamkit.dialects.anthropic.decode import AnthropicBodyDecoder, AnthropicDecoder, recognises
from streamkit.dialects.anthropic.encode import AnthropicEncoder, AnthropicResponseWriter
from streamkit.dialects.anthropic.http import ERRORS, HTTP_HALF
from streamkit.dialects.anthropic.lint import AnthropicLinter
from streamkit.dialects.anthropic.quirks import QUIRKS
from streamkit.dialects.anthropic.requests import AnthropicRequestReader, capabilities, features_of, write
from streamkit.dialects.anthropic.wire import FOUNDRY, TOOLS, VERTEX
from streamkit.dialects.base import Bodies, Dialect, ModelPlace
from streamkit.dialects.profiles import Prefill, Profile
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name="anthropic",
    title="Anthropic Messages",
    decoder=AnthropicDecoder,
    encoder=AnthropicEncoder,
    linter=AnthropicLinter,
    keep_alive={"event": b'event: ping\ndata: {"type":"ping"}\n\n', "comment": KEEP_ALIVE},
    model_place=ModelPlace("role", within="message"),
    failed_end=None,
    recognises=recognises,
    errors=ERRORS,
    http=HTTP_HALF,
    wants_bytes=lambda media, _in_result: media.kind == "file" and media.media_type not in {None, "application/pdf"},
    tools=TOOLS,
    citations=CITATIONS,
    searches=SEARCHES,
    tool_searches=TOOL_SEARCHES,
    features=features_of,
    bodies=Bodies.of(
        AnthropicRequestReader, write, AnthropicBodyDecoder, AnthropicResponseWriter, capabilities=capabilities
    ),
    prefill=Prefill(),  # Claude 4.6 and newer models refuse it with a 400
    quirks=QUIRKS,
    providers=(VERTEX, FOUNDRY),
    clients=(Profile(name="claude-code", title="Claude Code, and the anthropic package"),),
)
