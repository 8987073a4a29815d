"""Old names work for one release: each is its new name's value, and says so."""

import importlib
import warnings

import pytest

OLD = [
    ("streamkit", "replay", "response_events"),
    ("streamkit", "restore_response", "restore_response_calls"),
    ("streamkit", "restore_tools", "restore_calls"),
    ("streamkit.lab.mock", "Status", "ErrorStatus"),
    ("streamkit.lab.mock", "Turn", "MockTurn"),
]


@pytest.mark.parametrize(("module", "old", "new"), OLD, ids=str)
def test_an_old_name_is_the_new_ones_value_and_warns_its_user(module, old, new):
    found = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"^{module}\.{old} is now {new}; the next release") as seen:
        exec(compile(f"from {module} import {old} as value", "a user's file", "exec"), namespace := {})
    assert {warning.filename for warning in seen} == {"a user's file"}  # Python asks a package twice for one import
    assert namespace["value"] is getattr(found, new)
    assert old not in found.__all__


def test_a_name_that_never_was_is_an_attribute_error():
    with warnings.catch_warnings(action="error"):
        for module in {module for module, _, _ in OLD}:
            assert not hasattr(importlib.import_module(module), "transcoed")
