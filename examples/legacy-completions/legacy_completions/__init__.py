"""OpenAI's legacy Completions, streamed: ``/v1/completions`` of OpenAI, vLLM, llama.cpp and others, as a streamkit dialect."""

from legacy_completions.decode import CompletionsDecoder, recognises
from legacy_completions.encode import CompletionsEncoder
from legacy_completions.lint import CompletionsLinter
from streamkit.dialects.base import Dialect
from streamkit.framing.sse import KEEP_ALIVE, SSEParser

DIALECT = Dialect(
    name="openai-completions",
    title="OpenAI Completions (legacy)",
    media_type="text/event-stream",
    frame_end=b"\n\n",
    parser=lambda limits, report: SSEParser(limits=limits, report=report, stray_errors=True),
    decoder=CompletionsDecoder,
    encoder=CompletionsEncoder,
    linter=CompletionsLinter,
    keep_alive={"comment": KEEP_ALIVE},
    terminates=lambda frame: b'"choices"' not in frame.data,  # [DONE], and errors in any form
    recognises=recognises,
)
