"""A progress bar on standard error for what takes longer than a moment."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm


def bar(name: str, total: int) -> Any:
    """A context manager with ``update()``; ``total`` counts timed runs."""
    return tqdm(total=total, desc=f"{name:24}", unit="run", leave=False, dynamic_ncols=True)
