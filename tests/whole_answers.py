"""The dialects whose answers may be whole bodies; those of the others are always streams."""

from __future__ import annotations

from streamkit.dialects import DIALECTS

ANSWERING_WHOLE = [name for name, dialect in DIALECTS.items() if dialect.answers_whole]
