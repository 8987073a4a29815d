"""What the web tests have: a check for leaks, nginx. And what is too long for `make test`: it runs in `make test-all`."""

import pytest

from tests.web.conftest import nginx_program, no_leaks

__all__ = ["nginx_program", "no_leaks"]

#: Minutes together: they start processes and clients, or go through every fault once for each kind of key.
LONG = (
    "tests/gateway/clients/",
    "tests/gateway/test_processes.py",
    "tests/gateway/test_canary.py",
    "tests/gateway/test_security.py",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.exhaustive)
