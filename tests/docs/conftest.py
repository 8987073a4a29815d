"""What is too long for `make test`, or leaves sockets of other libraries to the garbage collector: it runs in `make test-all`."""

import pytest

LONG = ("tests/docs/test_deploy.py", "tests/docs/test_other_sources.py")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.exhaustive)
