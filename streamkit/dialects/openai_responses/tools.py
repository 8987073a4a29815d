"""What Responses takes of a tool's definition: the same as Chat. Source: dialects.md §2.3, §7.3."""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(
    names=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    properties=True,
    not_at_root=frozenset({"oneOf", "anyOf", "allOf", "enum", "not"}),
)
