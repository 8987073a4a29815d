"""Google's Gemini: `generateContent`, streamed, as events or as a JSON array, and whole. Source: dialects.md §5."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect
from streamkit.dialects.bodies.google import is_own_uri
from streamkit.dialects.gemini.asides import CITATIONS, SEARCHES
from streamkit.dialects.gemini.decode import GeminiDecoder, recognises
from streamkit.dialects.gemini.encode import GeminiEncoder, GeminiResponseWriter
from streamkit.dialects.gemini.framing import EVENT_END, GeminiParser, continued
from streamkit.dialects.gemini.http import ERRORS, HTTP_HALF
from streamkit.dialects.gemini.lint import GeminiLinter
from streamkit.dialects.gemini.quirks import QUIRKS
from streamkit.dialects.gemini.requests import GeminiRequestReader, capabilities, write
from streamkit.dialects.gemini.wire import TOOLS
from streamkit.dialects.profiles import Profile, Provider

DIALECT = Dialect(
    name="gemini",
    title="Google Gemini",
    gen_ai_provider="gcp.gemini",
    gen_ai_operation="generate_content",
    media_type="text/event-stream",
    frame_end=EVENT_END,
    parser=lambda limits, report: GeminiParser(limits=limits, report=report),
    decoder=GeminiDecoder,
    encoder=GeminiEncoder,
    linter=GeminiLinter,
    # the google-genai client can't read comments (dialects.md §0.4)
    keep_alive={"event": b'data: {"candidates":[{"content":{"parts":[],"role":"model"},"index":0}]}' + EVENT_END},
    failed_end=b'data: {"error":',  # SSE readers drop an unfinished event, Google's older ones raise
    recognises=recognises,
    bodies=Bodies.of(GeminiRequestReader, write, GeminiDecoder, GeminiResponseWriter, capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    wants_bytes=lambda _media, in_result: in_result,
    reads_stored=lambda media, _dialect: is_own_uri(media.url or media.file_id),
    tools=TOOLS,
    citations=CITATIONS,
    searches=SEARCHES,
    continued=continued,
    quirks=QUIRKS,
    providers=(
        Provider(
            name="vertex-gemini", title="Gemini on Google's Vertex AI", auth="google", gen_ai_provider="gcp.vertex_ai"
        ),
    ),
    clients=(Profile(name="google-genai", title="the google-genai package, and programs like it"),),
)
