"""Mistral's Chat Completions, streamed and whole: a variant of Chat. Source: dialects.md §1.6, §6.3."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect, ModelPlace
from streamkit.dialects.mistral.decode import MistralBodyDecoder, MistralDecoder
from streamkit.dialects.mistral.encode import MistralEncoder
from streamkit.dialects.mistral.http import ERRORS, HTTP_HALF
from streamkit.dialects.mistral.lint import MistralLinter
from streamkit.dialects.mistral.quirks import QUIRKS
from streamkit.dialects.mistral.requests import MistralRequestReader, capabilities, write
from streamkit.dialects.mistral.response import MistralResponseWriter
from streamkit.dialects.mistral.wire import TOOLS
from streamkit.dialects.openai_chat.decode import recognises
from streamkit.dialects.profiles import Prefill
from streamkit.framing.sse import KEEP_ALIVE

DIALECT = Dialect(
    name="mistral",
    title="Mistral Chat Completions",
    gen_ai_provider="mistral_ai",
    decoder=MistralDecoder,
    encoder=MistralEncoder,
    linter=MistralLinter,
    keep_alive={
        "comment": KEEP_ALIVE,
        "event": b'data: {"id":"","object":"chat.completion.chunk","created":0,"model":"","choices":[]}\n\n',
    },
    model_place=ModelPlace("choices"),
    done_mark=True,
    #: Chunks of text are the same as Chat's, which is first in the table: ``auto`` takes them for openai-chat.
    recognises=recognises,
    bodies=Bodies.of(MistralRequestReader, write, MistralBodyDecoder, MistralResponseWriter, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    tools=TOOLS,
    prefill=Prefill(message={"prefix": True}),
    quirks=QUIRKS,
)
