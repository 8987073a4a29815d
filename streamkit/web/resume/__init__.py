"""Responses that continue without their client, and resuming them, in an aiohttp application.

``add_resuming`` makes the responses of ``relay`` and ``setup`` resumable if their clients ask for it.

Source: resume.md §5, §6.
"""

from streamkit.web.resume.answer import ResumableOutlet
from streamkit.web.resume.routes import add_resuming
from streamkit.web.resume.settings import RESUMING, Resumable, ResumeCounts, Resuming, State

__all__ = ["RESUMING", "Resumable", "ResumableOutlet", "ResumeCounts", "Resuming", "State", "add_resuming"]
