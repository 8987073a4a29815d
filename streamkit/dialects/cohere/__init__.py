"""Cohere Chat v2, streamed. Source: dialects.md §6.2."""

from __future__ import annotations

from streamkit.dialects.base import Dialect
from streamkit.dialects.cohere.decode import CohereDecoder, recognises
from streamkit.dialects.cohere.encode import CohereEncoder
from streamkit.dialects.cohere.lint import CohereLinter
from streamkit.dialects.cohere.tools import TOOLS
from streamkit.framing.sse import KEEP_ALIVE, SSEParser

DIALECT = Dialect(
    name="cohere",
    title="Cohere Chat v2",
    media_type="text/event-stream",
    frame_end=b"\n\n",
    parser=lambda limits, report: SSEParser(limits=limits, report=report, stray_errors=True),
    decoder=CohereDecoder,
    encoder=CohereEncoder,
    linter=CohereLinter,
    keep_alive={"comment": KEEP_ALIVE},
    terminates=lambda frame: b'"message-end"' in frame.data,
    recognises=recognises,
    tools=TOOLS,
)
