"""Turn the transcript of audio, and code that the provider ran, into text for dialects that have no form for them.

The transcript of audio is what the model said, so it is emitted as text at once. Code that the provider ran, and its output,
are text only in a response without other content, because such a response would be empty for the client.

Source: dialects.md §7.4.
"""

from __future__ import annotations

from typing import Any, Final

from streamkit.dialects.members.values import details_of, objects_in, text_of
from streamkit.events import Aside

TRANSCRIPT: Final = "response.audio.transcript.delta"  #: the event of Responses with a part of an audio transcript
#: Vendor and type of asides that may contain a transcript or code. A fast path that skips asides must still read these.
SPOKEN: Final = frozenset({("openai", "audio"), ("google", "part"), ("google-interactions", "step.start")})


def transcript_of(aside: Aside) -> str:
    """Return the transcript in an audio aside of Chat or Responses; empty for any other aside."""
    raw = aside.raw if aside.kind == "audio" and isinstance(aside.raw, dict) else {}
    words = raw.get("delta" if aside.type == TRANSCRIPT else "transcript")
    return words if isinstance(words, str) else ""


def code_of(aside: Aside) -> str:
    """Return code that the provider ran, or its output, as a fenced block; empty for any other aside."""
    raw: dict[str, Any] = aside.raw if isinstance(aside.raw, dict) else {}
    code, result = details_of(raw, "executableCode"), details_of(raw, "codeExecutionResult")
    block, item, step = (details_of(raw, name) for name in ("content_block", "item", "step"))
    texts = [(str(code.get("language") or "").lower(), code.get("code")), ("", result.get("output"))]
    if str(block.get("type")).endswith("code_execution_tool_result"):
        content = details_of(block, "content")
        texts += [("", content.get("stdout")), ("", content.get("stderr"))]
    if item.get("type") == "code_interpreter_call" and item.get("status") == "completed":
        texts.append(("python", item.get("code")))
        texts += [("", output.get("logs")) for output in objects_in(item.get("outputs"))]
    if step.get("type") == "code_execution_call":
        texts.append(("python", details_of(step, "arguments").get("code")))
    if step.get("type") == "code_execution_result":
        texts.append(("", step.get("result")))
    fenced = [(language, text) for language, value in texts if (text := text_of(value)) is not None]
    return "".join(f"```{language}\n{text.rstrip()}\n```\n" for language, text in fenced)
