"""Google's Interactions API, streamed and whole. Source: dialects.md §5.5."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect, ModelPlace
from streamkit.dialects.bodies.google import is_own_uri
from streamkit.dialects.gemini_interactions.asides import CITATIONS
from streamkit.dialects.gemini_interactions.decode import InteractionsBodyDecoder, InteractionsDecoder, recognises
from streamkit.dialects.gemini_interactions.encode import InteractionsEncoder, InteractionsResponseWriter
from streamkit.dialects.gemini_interactions.http import ERRORS, HTTP_HALF
from streamkit.dialects.gemini_interactions.lint import InteractionsLinter
from streamkit.dialects.gemini_interactions.quirks import QUIRKS
from streamkit.dialects.gemini_interactions.requests import InteractionsRequestReader, capabilities, write
from streamkit.dialects.gemini_interactions.tool_searches import TOOL_SEARCHES
from streamkit.dialects.gemini_interactions.wire import TOOLS
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name="gemini-interactions",
    title="Gemini Interactions",
    gen_ai_provider="gcp.gemini",
    decoder=InteractionsDecoder,
    encoder=InteractionsEncoder,
    linter=InteractionsLinter,
    keep_alive={"comment": KEEP_ALIVE},
    recognises=recognises,
    bodies=Bodies.of(
        InteractionsRequestReader, write, InteractionsBodyDecoder, InteractionsResponseWriter, capabilities
    ),
    errors=ERRORS,
    http=HTTP_HALF,
    reads_stored=lambda media, _dialect: is_own_uri(media.url or media.file_id),
    tools=TOOLS,
    citations=CITATIONS,
    tool_searches=TOOL_SEARCHES,
    model_place=ModelPlace("status", within="interaction"),
    quirks=QUIRKS,
)
