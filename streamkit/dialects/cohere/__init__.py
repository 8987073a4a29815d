"""Cohere Chat v2, streamed and whole. Source: dialects.md §6.2."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect
from streamkit.dialects.cohere.asides import CITATIONS
from streamkit.dialects.cohere.decode import CohereBodyDecoder, CohereDecoder, recognises
from streamkit.dialects.cohere.encode import CohereEncoder, CohereResponseWriter
from streamkit.dialects.cohere.http import ERRORS, HTTP_HALF
from streamkit.dialects.cohere.lint import CohereLinter
from streamkit.dialects.cohere.quirks import QUIRKS
from streamkit.dialects.cohere.requests import CohereRequestReader, capabilities, write
from streamkit.dialects.cohere.wire import TOOLS
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name="cohere",
    title="Cohere Chat v2",
    decoder=CohereDecoder,
    encoder=CohereEncoder,
    linter=CohereLinter,
    keep_alive={"comment": KEEP_ALIVE},
    recognises=recognises,
    bodies=Bodies.of(CohereRequestReader, write, CohereBodyDecoder, CohereResponseWriter, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    wants_bytes=lambda media, _in_result: media.kind == "file",  # files may be text
    tools=TOOLS,
    citations=CITATIONS,
    quirks=QUIRKS,
)
