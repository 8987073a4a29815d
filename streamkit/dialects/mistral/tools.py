"""What Mistral takes of a tool's definition. Source: dialects.md §6.3; Mistral's own refusal of a name."""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(names=re.compile(r"[A-Za-z0-9_-]{1,64}"))
