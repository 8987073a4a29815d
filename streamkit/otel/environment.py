"""The OpenTelemetry environment variables that are checked here. This module does not import OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from streamkit.errors import UsageError

Signal: TypeAlias = Literal["TRACES", "METRICS"]
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
#: The only OTLP protocol that the extra ``otel`` supports (``OTEL_EXPORTER_OTLP_PROTOCOL``).
PROTOCOL: Final = "http/protobuf"


def is_sent(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether a signal is sent. Raises UsageError for an exporter or a protocol that is not supported."""
    name = f"OTEL_{signal}_EXPORTER"
    exporter = environment.get(name) or "otlp"
    if exporter not in {"otlp", "none"}:
        raise UsageError(f"{name}: write otlp, none, or leave it out")
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if exporter == "otlp" and environment.get(name, PROTOCOL) != PROTOCOL:
            raise UsageError(f"{name}: OTLP is sent as {PROTOCOL} alone; write that, or leave it out")
    return exporter == "otlp"
