"""Ollama's own dialect: `/api/chat`, streamed and whole; `/api/generate` is only read. Source: dialects.md §4."""

from __future__ import annotations

from streamkit.dialects.base import Bodies, Dialect, ModelPlace
from streamkit.dialects.ollama.decode import OllamaDecoder, recognises
from streamkit.dialects.ollama.encode import OllamaEncoder, OllamaResponseWriter
from streamkit.dialects.ollama.http import ERRORS, HTTP_HALF
from streamkit.dialects.ollama.lint import OllamaLinter
from streamkit.dialects.ollama.quirks import QUIRKS
from streamkit.dialects.ollama.requests import OllamaRequestReader, capabilities, write
from streamkit.dialects.ollama.wire import IMAGES, TOOLS, OllamaClient
from streamkit.dialects.profiles import Prefill
from streamkit.framing.ndjson import NDJSONParser

DIALECT = Dialect(
    name="ollama",
    title="Ollama",
    media_type="application/x-ndjson",
    frame_end=b"\n",
    parser=lambda limits, report: NDJSONParser(limits=limits, report=report),
    decoder=OllamaDecoder,
    encoder=OllamaEncoder,
    linter=OllamaLinter,
    keep_alive={
        "event": b'{"model":"","created_at":"1970-01-01T00:00:00Z",'
        b'"message":{"role":"assistant","content":""},"done":false}\n'
    },
    model_place=ModelPlace("done"),
    recognises=recognises,
    bodies=Bodies.of(OllamaRequestReader, write, OllamaDecoder, OllamaResponseWriter, capabilities=capabilities),
    errors=ERRORS,
    http=HTTP_HALF,
    wants_bytes=lambda media, _in_result: media.kind in {*IMAGES, "file"},
    tools=TOOLS,
    prefill=Prefill(),
    with_call_ids=OllamaClient(call_ids=True),
    quirks=QUIRKS,
    clients=(
        OllamaClient(name="zed", title="the editor Zed, which refuses calls with members other than `function`"),
        OllamaClient(
            name="ollama-python",
            title="the ollama package, and programs like it",
            user_agent="ollama-python",
            call_ids=True,
        ),
        OllamaClient(
            name="ollama-js",
            title="the ollama package for JavaScript, which reads images in responses",
            user_agent="ollama-js",
            call_ids=True,
            images=True,
        ),
    ),
)
