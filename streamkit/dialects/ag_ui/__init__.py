"""AG-UI, the protocol between agents and user interfaces: streams, and the requests for them. Source: ui-protocols.md §2."""

from __future__ import annotations

from streamkit.dialects.ag_ui.decode import AgUiDecoder, recognises
from streamkit.dialects.ag_ui.encode import AgUiEncoder, settings_of
from streamkit.dialects.ag_ui.http import ERRORS, HTTP_HALF
from streamkit.dialects.ag_ui.lint import AgUiLinter
from streamkit.dialects.ag_ui.quirks import QUIRKS
from streamkit.dialects.ag_ui.requests import AgUiRequestReader, capabilities, write
from streamkit.dialects.ag_ui.wire import TOOLS, VENDOR
from streamkit.dialects.base import Bodies, Dialect
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name=VENDOR,
    title="AG-UI",
    decoder=AgUiDecoder,
    encoder=AgUiEncoder,
    linter=AgUiLinter,
    keep_alive={"comment": KEEP_ALIVE},
    failed_end=None,
    recognises=recognises,
    # a whole body is an error: a response is always a stream
    bodies=Bodies(AgUiRequestReader.decode_request, write, AgUiDecoder.decode_response, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    settings=settings_of,
    reads_stored=lambda media, _dialect: media.file_id is None,  # the application decides which URLs it reads
    tools=TOOLS,
    quirks=QUIRKS,
)
