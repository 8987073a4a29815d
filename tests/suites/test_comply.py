"""llm-comply passes where the schema demands nothing that only a provider knows: docs/reference/conformance.md has the others."""

from pathlib import Path

import pytest

from tests.suites import comply


@pytest.mark.agents
@pytest.mark.timeout(700)
async def test_chat_and_gemini_comply(tmp_path: Path):
    found = {verdict.dialect: verdict for verdict in await comply.run(tmp_path, "openai-chat", "google-genai")}
    assert {name: (verdict.passed, verdict.failed) for name, verdict in found.items()} == {
        "openai-chat": (9, {}),
        "gemini": (9, {}),
    }
