"""What Bedrock takes of a tool's definition; what its models refuse is not known here.

Source: dialects.md §6.1; botocore's model of ``ToolSpecification``.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

TOOLS: Final = ToolRules(names=re.compile(r"[a-zA-Z0-9_-]{1,64}"))
