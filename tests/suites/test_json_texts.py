"""JSONTestSuite's documents that every parser must take are whole JSON, and those that every one must refuse are not."""

import pytest

from tests.suites import json_texts


@pytest.mark.agents
@pytest.mark.timeout(200)
def test_every_document_is_judged_as_the_suite_does():
    found = json_texts.run()
    assert (found["y", True], found["n", False]) == (95, 188)
    assert (found["y", False], found["n", True]) == (0, 0)
