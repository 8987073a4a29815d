"""A configuration to change, and the keys that it names; every message is searched for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamkit.errors import UsageError
from streamkit.gateway.config_file import parse_config
from streamkit.gateway.keys import KEY_BYTES, KeyFile
from streamkit.toml.findings import ConfigError

SAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "gateway.toml"
CANARY = "canary-7e2f41c09"
ENV = {
    "KEY": f"env-{CANARY}",
    "EMPTY": " ",
    "REDIS_URL": f"redis://me:{CANARY}@127.0.0.1:6379/1",
    "REDIS_OPTION": f"rediss://{CANARY}@127.0.0.1?ssl_ca_certs=a.pem&socket_timeout=5",
    "NO_PORT": f"redis://{CANARY}:port/0",
    "LINES": f"{CANARY}\n{CANARY}",
    **dict.fromkeys(["GATEWAY_KEY_EDITORS", "OPENAI_API_KEY", "OPENROUTER_API_KEY"], CANARY),
}
FILES = {
    "key": KeyFile(f"file-{CANARY}\n".encode(), 0o600),
    "open": KeyFile(CANARY.encode(), 0o644),
    "empty": KeyFile(b"\n", 0o600),
    "binary": KeyFile(b"\xff\xfe" + CANARY.encode(), 0o600),
    "long": KeyFile(b"x" * (KEY_BYTES + 1), 0o600),
    **dict.fromkeys(["keys/batch-jobs", "keys/anthropic"], KeyFile(CANARY.encode(), 0o400)),
}
GOOD = """\
[upstreams.a]
dialect = "openai-chat"
base_url = "https://a.example/v1"
key = { env = "KEY" }

[[routes]]
models = ["m"]
to = ["a"]
"""


def read_file(name):
    if name not in FILES:
        raise FileNotFoundError(2, "No such file or directory", name)
    return FILES[name]


def parse(text, **server):
    return parse_config(text, name="gateway.toml", env=ENV, read_file=read_file, server=server)


def faults(text):
    with pytest.raises(ConfigError) as raised:
        parse(text)
    assert isinstance(raised.value, UsageError)
    assert str(raised.value) == "\n".join(map(str, raised.value.findings))
    assert CANARY not in str(raised.value)
    return str(raised.value).splitlines()


def with_upstream(lines):
    """The faults of an upstream with these lines."""
    return faults(f'[upstreams.x]\n{lines}\n[[routes]]\nmodels = ["x"]\nto = ["x"]\n{GOOD}')


def warnings(text):
    return list(map(str, parse(text).warnings))
