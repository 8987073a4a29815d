"""What Ollama takes of a tool's definition: its server reads schemas into types of its own, which know a few keywords.

Source: dialects.md §4.1; ``api/types.go``, ``ToolFunctionParameters`` and ``ToolProperty``.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(
    names=re.compile(r"(?s).+"),
    root_keywords=frozenset({"type", "$defs", "items", "required", "properties"}),
    keywords=frozenset({"anyOf", "type", "items", "description", "enum", "properties", "required"}),
    whole=frozenset({"items", "$defs"}),
)
