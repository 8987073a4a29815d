"""A mock provider that follows a script, in any dialect, and judges its client. See docs/how-to/mock-a-provider.md."""

from streamkit import renamed
from streamkit.lab.mock.script import (
    Call,
    Comment,
    Cut,
    Error,
    ErrorStatus,
    Match,
    MockTurn,
    Raw,
    Reset,
    Say,
    Script,
    Stall,
    Stop,
    Think,
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
    "ErrorStatus",
    "Finding",
    "Match",
    "Mock",
    "MockTurn",
    "Raw",
    "Reset",
    "Say",
    "Script",
    "ServedMock",
    "Stall",
    "Stop",
    "Think",
    "Timing",
    "Usage",
    "Wait",
    "served_mock",
]


def __getattr__(name: str) -> object:
    return renamed(__name__, name)
