"""Ids for what came without one."""

from __future__ import annotations

import secrets
import string

BASE62 = string.digits + string.ascii_letters


def random_id(prefix: str) -> str:
    """An id nobody else has: ``prefix`` and 22 base-62 characters (131 bits). The default maker of ids.

    Ids must be unique across turns, or results find the wrong call (quirks.md 34).
    """
    return prefix + "".join(secrets.choice(BASE62) for _ in range(22))
