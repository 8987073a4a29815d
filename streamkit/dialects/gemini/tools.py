"""What Gemini takes of a tool's definition: JSON Schema in part, and the older OpenAPI subset in less.

Source: dialects.md §5.3; google-genai's ``types.Schema``; the API's reference of ``responseJsonSchema``, which says what it
supports of JSON Schema (the only such list there is).
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.conversation.tool_definitions import ToolRules

NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")

#: Of ``parametersJsonSchema``, which is what is written.
TOOLS: Final = ToolRules(
    names=NAMES,
    keywords=frozenset({
        "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
        "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required",
        "propertyOrdering",
    }),
)  # fmt: skip
#: Of ``parameters``.
OPENAPI: Final = ToolRules(
    names=NAMES,
    keywords=frozenset({
        "additionalProperties", "defs", "ref", "anyOf", "default", "description", "enum", "example", "format", "items",
        "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
        "nullable", "pattern", "properties", "propertyOrdering", "required", "title", "type",
    }),
    capitals=True,
)  # fmt: skip
