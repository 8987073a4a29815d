"""A mock provider that follows a script, in any dialect, and judges its client. See docs/how-to/mock-a-provider.md."""

from streamkit.lab.mock.script import (
    Call,
    Comment,
    Cut,
    Error,
    Match,
    Raw,
    Reset,
    Say,
    Script,
    Stall,
    Status,
    Stop,
    Think,
    Turn,
    Usage,
    Wait,
)
from streamkit.lab.mock.server import Mock, ServedMock, served_mock
from streamkit.lab.mock.verdict import ClientVerdict, Finding
from streamkit.lab.mock.writing import Timing

__all__ = [
    "Call",
    "ClientVerdict",
    "Comment",
    "Cut",
    "Error",
    "Finding",
    "Match",
    "Mock",
    "Raw",
    "Reset",
    "Say",
    "Script",
    "ServedMock",
    "Stall",
    "Status",
    "Stop",
    "Think",
    "Timing",
    "Turn",
    "Usage",
    "Wait",
    "served_mock",
]
