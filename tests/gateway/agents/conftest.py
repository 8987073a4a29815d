"""The agents are run by ``make test-agents``: by ``-m agents``, and by no command that does not name them."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "agents" in config.option.markexpr:
        return
    ours = [item for item in items if item.get_closest_marker("agents")]
    config.hook.pytest_deselected(items=ours)
    items[:] = [item for item in items if item not in ours]
