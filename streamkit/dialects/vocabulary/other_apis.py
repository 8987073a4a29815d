"""Name the API of a payload that streamkit does not read, so that the error says what to call instead.

OpenAI's older Completions API writes almost the same chunks as Chat, and a Chat reader would lose their text. Only the text
without a delta tells them apart: older Chat servers write ``"object": "text_completion"`` above deltas.
"""

from __future__ import annotations

from typing import Any, Final

COMPLETIONS: Final = "a payload of the older Completions API, which is not read; call /v1/chat/completions instead"


def other_api(document: Any) -> str | None:
    """Return the name of the API that wrote a payload, and what to call instead. None: the payload may be a dialect's."""
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list):
        return None
    if not choices:  # the last chunk, which has the usage
        return COMPLETIONS if document.get("object") == "text_completion" else None
    first = choices[0]
    is_text = isinstance(first, dict) and "text" in first and first.keys().isdisjoint({"delta", "message"})
    return COMPLETIONS if is_text else None
