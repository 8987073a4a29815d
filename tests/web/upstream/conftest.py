from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No AWS credentials but those that a test sets, and none of a machine in a cloud."""
    sigv4 = pytest.importorskip(
        "streamkit.web.upstream.sigv4", reason="signing is the extra `aws`", exc_type=ImportError
    )
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    sigv4._chain.cache_clear()
    yield monkeypatch
    monkeypatch.undo()  # a test may have put another in the chain's place
    sigv4._chain.cache_clear()
