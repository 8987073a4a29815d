"""Traces and metrics with OpenTelemetry (the extra ``otel``): ``traced`` for pipes; the other modules are for the gateway.

``traced`` is imported on first use, so that code that only names a version of the conventions does not need the extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamkit.text.quoting import quoted

if TYPE_CHECKING:
    from streamkit.otel.stage import traced

__all__ = ["traced"]


def __getattr__(name: str) -> Any:
    if name != "traced":
        raise AttributeError(f"{__name__} has no {quoted(name)}")
    from streamkit.otel.stage import traced  # noqa: PLC0415 - OpenTelemetry's packages take 26 ms

    return traced
