"""llm-comply passes for every dialect of clients that it knows."""

from pathlib import Path

import pytest

from tests.suites import comply


@pytest.mark.agents
@pytest.mark.timeout(700)
async def test_every_dialect_that_it_knows_complies(tmp_path: Path):
    found = {verdict.dialect: verdict for verdict in await comply.run(tmp_path)}
    assert {name: (verdict.passed, verdict.failed) for name, verdict in found.items()} == {
        "openai-chat": (9, {}),
        "openai-responses": (13, {}),
        "anthropic": (9, {}),
        "gemini": (9, {}),
        "gemini-interactions": (9, {}),
    }
