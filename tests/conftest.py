"""What all tests share: no property test is timed, and the sampled run is the same every time."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from streamkit.dialects import DIALECTS

# Containers often keep Python from writing bytecode. Then each worker rewrites the assertions of four hundred files (10 s), and each
# process that a test starts compiles all of streamkit.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A deadline is a timed test, and a busy machine fails it.
settings.register_profile("sampled", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("exhaustive", parent=settings.get_profile("sampled"), derandomize=False, max_examples=1000)


# A dialect that happens to be installed beside streamkit is none of ours: the laws run over the built-in ones.
DIALECTS.find = tuple


def pytest_configure(config: pytest.Config) -> None:
    """`make test` leaves the exhaustive forms out; with them, hypothesis looks for longer and anew."""
    settings.load_profile("sampled" if "not exhaustive" in config.option.markexpr else "exhaustive")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What installs programs from npm by the gigabyte is run by ``-m agents``, and by no command that does not name it."""
    if "agents" in config.option.markexpr:
        return
    ours = [item for item in items if item.get_closest_marker("agents")]
    config.hook.pytest_deselected(items=ours)
    items[:] = [item for item in items if item not in ours]
