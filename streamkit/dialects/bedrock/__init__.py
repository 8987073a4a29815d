"""Amazon Bedrock: Converse, streamed and whole; responses of InvokeModel are only read. Source: dialects.md §6.1."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect
from streamkit.dialects.bedrock.asides import CITATIONS
from streamkit.dialects.bedrock.decode import BedrockBodyDecoder, BedrockDecoder, recognises
from streamkit.dialects.bedrock.encode import KEEP_ALIVE_MESSAGE, BedrockEncoder, BedrockResponseWriter
from streamkit.dialects.bedrock.http import ERRORS, HTTP_HALF
from streamkit.dialects.bedrock.lint import BedrockLinter
from streamkit.dialects.bedrock.quirks import QUIRKS
from streamkit.dialects.bedrock.requests import BedrockRequestReader, capabilities, write
from streamkit.dialects.bedrock.wire import TOOLS
from streamkit.framing.eventstream import EventStreamParser

DIALECT = Dialect(
    name="bedrock",
    title="Amazon Bedrock",
    gen_ai_provider="aws.bedrock",
    media_type="application/vnd.amazon.eventstream",
    frame_end=None,
    parser=lambda limits, report: EventStreamParser(limits=limits, report=report),
    decoder=BedrockDecoder,
    encoder=BedrockEncoder,
    linter=BedrockLinter,
    keep_alive={"event": KEEP_ALIVE_MESSAGE},
    failed_end=None,
    recognises=recognises,
    bodies=Bodies.of(BedrockRequestReader, write, BedrockBodyDecoder, BedrockResponseWriter, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    wants_bytes=lambda _media, _in_result: True,
    reads_stored=lambda media, _dialect: (media.url or "").startswith("s3://"),
    tools=TOOLS,
    quirks=QUIRKS,
    citations=CITATIONS,
)
