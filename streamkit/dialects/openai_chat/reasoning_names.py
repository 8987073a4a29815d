"""The names of reasoning in a Chat delta or message, and the opaque members next to it.

| who | text | opaque |
|---|---|---|
| DeepSeek, vLLM, Groq, OpenRouter and others | ``reasoning_content``, ``reasoning`` | |
| OpenRouter | ``reasoning_details[]`` | ``signature``, ``data`` of one |
| GitHub Copilot | ``reasoning_text``, ``cot_summary``, ``thinking`` | ``reasoning_opaque``, ``cot_id``, ``signature`` |
| LiteLLM | ``thinking_blocks[]``, also in ``provider_specific_fields`` | ``signature``, ``data`` of one |
| Databricks | content part ``reasoning``, ``summary[].text`` | ``signature`` of a summary |
| Mistral | content part ``thinking`` | its ``signature`` |

Source: dialects.md §1.6; quirks.md 91.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import Reasoning
from streamkit.dialects.members.values import details_of, objects_in
from streamkit.events import Opaque

#: Members that contain all reasoning as one text, in order of preference, and the opaque member that may be next to each.
PLAIN_REASONING: Final[Mapping[str, str]] = {
    "reasoning": "",
    "reasoning_content": "",
    "thinking": "signature",
    "reasoning_text": "reasoning_opaque",
    "cot_summary": "cot_id",
}
#: The opaque members, and the vendor that can read each. Blank: the vendor of the model.
OPAQUE_MEMBERS: Final[Mapping[str, str]] = {"reasoning_opaque": "copilot", "cot_id": "copilot", "signature": ""}
#: The opaque member that is in each delta of a block, even before the block's text is complete.
BLOCK_ID: Final = "cot_id"
#: LiteLLM's member with Anthropic's blocks, and another member that contains the blocks, too.
BLOCKS: Final = "thinking_blocks"
HOLDER: Final = "provider_specific_fields"
#: Marks, in a history, reasoning that was among the parts of the content (Databricks).
PARTS: Final = "content.reasoning"


def maker_of(model: str | None) -> str:
    """Return the vendor of a signature in Anthropic's form, by the model's name: routers use that form for Gemini, too."""
    return "google" if "gemini" in (model or "").lower() else "anthropic"


def thinking_blocks(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return LiteLLM's blocks of a delta or a message."""
    return objects_in(fields.get(BLOCKS)) or objects_in(details_of(fields, HOLDER).get(BLOCKS))


def opaque_member(field: str, parts: list[Reasoning]) -> dict[str, str]:
    """Return the opaque member next to a text, if the last of these parts has a signature for it."""
    name = PLAIN_REASONING.get(field, "")
    vendor = OPAQUE_MEMBERS.get(name)
    signature: Opaque | None = parts[-1].signature if parts else None
    if signature is None or vendor is None or vendor not in {"", signature.vendor}:
        return {}
    return {name: signature.blob}
