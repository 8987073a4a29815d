"""The server and the official clients of ``tests/clients``, for bodies; and what a row asserts is shown as that of a test."""

import pytest

from tests.clients.conftest import client, replay

__all__ = ["client", "replay"]

pytest.register_assert_rewrite("tests.responses.rows", "tests.requests.rows")
