"""Bodies for a log, without the secrets in them.

What looks like a key is cut out: the value of a member whose name says so, what follows ``Bearer``, and keys by how
well-known vendors begin theirs. It looks at text, not at JSON, so that a body that nobody can read is shown as well. A secret
that looks like none of these stays: this is a help for logs, no promise. ``token`` alone is no such name, since log
probabilities have it.

Source: seeds.md S1.
"""

from __future__ import annotations

import re
from typing import Final

CUT: Final = "[removed]"
_MEMBER: Final = re.compile(
    r'("(?:[\w.-]*(?:api[_-]?key|secret|password|credential)[\w.-]*|(?:access|auth|refresh|id|session)[_-]?token|'
    r'(?:proxy-)?authorization|(?:set-)?cookie)"\s*:\s*")(?:[^"\\]|\\.)+',
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{6,}", re.IGNORECASE)
_KEY: Final = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|csk|fw|tgp|ghp|gho|github_pat|glpat|xox[abp])[-_][\w*-]{6,}"
    r"|\bAIza[\w-]{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)


def redacted(body: bytes) -> str:
    """The text of a body, without what looks like a secret; bytes that are not UTF-8 as U+FFFD."""
    text = body.decode("utf-8", "replace")
    text = _MEMBER.sub(rf"\1{CUT}", text)
    text = _BEARER.sub(rf"\1{CUT}", text)
    return _KEY.sub(CUT, text)
