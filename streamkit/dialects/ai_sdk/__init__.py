"""The AI SDK's UI message stream, which ``useChat`` reads: streams, and the requests for them. Source: ui-protocols.md §1."""

from __future__ import annotations

from streamkit.dialects.ai_sdk.asides import CITATIONS, SEARCHES
from streamkit.dialects.ai_sdk.decode import AISDKDecoder, recognises
from streamkit.dialects.ai_sdk.encode import AISDKEncoder, settings_of
from streamkit.dialects.ai_sdk.http import ERRORS, HTTP_HALF
from streamkit.dialects.ai_sdk.lint import AISDKLinter
from streamkit.dialects.ai_sdk.quirks import QUIRKS
from streamkit.dialects.ai_sdk.requests import AISDKRequestReader, capabilities, write
from streamkit.dialects.ai_sdk.wire import CLIENTS, TOOLS, VENDOR
from streamkit.dialects.base import Bodies, Dialect
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name=VENDOR,
    title="AI SDK UI message stream (`useChat`)",
    decoder=AISDKDecoder,
    encoder=AISDKEncoder,
    linter=AISDKLinter,
    keep_alive={"comment": KEEP_ALIVE},
    failed_end=None,
    done_mark=True,
    recognises=recognises,
    # a whole body is an error: a response is always a stream
    bodies=Bodies(AISDKRequestReader.decode_request, write, AISDKDecoder.decode_response, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    reads_stored=lambda media, _dialect: media.file_id is None,  # the application decides which URLs it reads
    tools=TOOLS,
    citations=CITATIONS,
    searches=SEARCHES,
    quirks=QUIRKS,
    clients=CLIENTS,
    settings=settings_of,
)
