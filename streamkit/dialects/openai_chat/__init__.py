"""OpenAI Chat Completions, and its many compatible servers, streamed and whole. Source: dialects.md §1."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect, ModelPlace
from streamkit.dialects.bodies.openai import TOOLS
from streamkit.dialects.openai_chat.decode import ChatDecoder, recognises
from streamkit.dialects.openai_chat.encode import ChatEncoder
from streamkit.dialects.openai_chat.http import ERRORS, HTTP_HALF
from streamkit.dialects.openai_chat.lint import ChatLinter
from streamkit.dialects.openai_chat.providers import CLIENTS, PROVIDERS
from streamkit.dialects.openai_chat.quirks import QUIRKS
from streamkit.dialects.openai_chat.request_in import ChatRequestReader
from streamkit.dialects.openai_chat.request_out import capabilities, write
from streamkit.dialects.openai_chat.response import ChatBodyDecoder, ChatResponseWriter
from streamkit.dialects.openai_chat.wire import CITATIONS
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name="openai-chat",
    title="OpenAI Chat Completions",
    gen_ai_provider="openai",
    decoder=ChatDecoder,
    encoder=ChatEncoder,
    linter=ChatLinter,
    # no keep-alive is written before the usage: openai-python's helper forgets usage that an event follows (dialects.md §0.4)
    keep_alive={
        "comment": KEEP_ALIVE,
        "event": b'data: {"id":"","object":"chat.completion.chunk","created":0,"model":"","choices":[]}\n\n',
    },
    model_place=ModelPlace("choices"),
    usage_on_request=True,
    done_mark=True,
    recognises=recognises,
    bodies=Bodies.of(ChatRequestReader, write, ChatBodyDecoder, ChatResponseWriter, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    wants_bytes=lambda media, _in_result: media.kind in {"audio", "file"},
    reads_stored=lambda media, dialect: media.kind == "file" and media.url is None and dialect == "openai-responses",
    tools=TOOLS,
    citations=CITATIONS,
    quirks=QUIRKS,
    providers=PROVIDERS,
    clients=CLIENTS,
)
