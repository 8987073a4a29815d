"""What Anthropic takes of a tool's definition.

Source: dialects.md §3.2; Anthropic's own refusal: "input_schema does not support oneOf, allOf, or anyOf at the top level".
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(names=re.compile(r"[A-Za-z0-9_-]{1,128}"), not_at_root=frozenset({"oneOf", "allOf", "anyOf"}))
