"""What Chat takes of a tool's definition.

Source: dialects.md §1.3, §7.3; OpenAI's own refusals: "object schema missing properties", and "schema must have type 'object'
and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(
    names=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    properties=True,
    not_at_root=frozenset({"oneOf", "anyOf", "allOf", "enum", "not"}),
)
