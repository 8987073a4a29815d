"""What Cohere takes of a tool's definition: no limits are documented for v2. Source: dialects.md §6.2."""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(names=re.compile(r"(?s).+"))
