from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No credentials of Google's but those that a test sets, and none of a machine in a cloud."""
    module = pytest.importorskip(
        "streamkit.web.upstream.google", reason="tokens of Google's are the extra `google`", exc_type=ImportError
    )
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nowhere")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    module._found.cache_clear()
    yield monkeypatch
    module._found.cache_clear()


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
