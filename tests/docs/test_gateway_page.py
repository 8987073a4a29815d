"""The configurations that the how-to pages of the gateway show are valid."""

from pathlib import Path

from streamkit.gateway.config_file import parse_config
from streamkit.gateway.keys import KeyFile
from tests.docs.pages import ROOT, blocks
from tests.web.upstream.certificates import Certificates

PAGES = [ROOT / "docs" / "how-to" / f"{name}.md" for name in ("run-the-gateway", "choose-upstreams", "change-requests")]
EQUALS = ("gpu-1", "gpu-2", "cloud")  #: the upstreams of the example of a group


def test_the_configuration_of_the_how_to_can_be_read_and_warns_of_nothing(tmp_path):
    run, choose, change = ([block for block in blocks(page) if block.language == "toml"] for page in PAGES)
    block, clouds, ways, over_sockets, staged, state = run
    by_reason, rests, timeouts, equals, keys, hedged = choose
    changed, cached = change
    env = {"GATEWAY_KEY": "a-key-of-clients", "OPENAI_API_KEY": "a-key-of-ours"}
    config = parse_config(
        block.text, name="gateway.toml", env=env, read_file=lambda _path: KeyFile(b"another-key", 0o600)
    )
    assert list(config.upstreams) == ["openai", "deepseek", "local"]
    assert [target.upstream.name for target in config.routes[0].targets] == ["openai", "deepseek"]
    assert config.warnings == ()
    env |= {"AZURE_OPENAI_API_KEY": "azures-key", "AWS_BEARER_TOKEN_BEDROCK": "bedrocks-key"}
    env["ANTHROPIC_FOUNDRY_API_KEY"] = "foundrys-key"
    auths = {
        "claude-vertex": "google",
        "gemini-vertex": "google",
        "azure": "azure",
        "bedrock": "sigv4",
        "bedrock-openai": "bearer",
        "bedrock-mantle": "sigv4",
        "claude-azure": "x-api-key",
    }
    route = f'[[routes]]\nmodels = ["*"]\nto = {list(auths)}\n'
    config = parse_config(
        f"{clouds.text}\n{route}", name="gateway.toml", env=env, read_file=lambda _path: KeyFile(b"", 0o600)
    )
    assert {target.upstream.name: target.upstream.auth for target in config.routes[0].targets} == auths
    written = {"corp-ca.pem": "ca.pem", "gateway.pem": "client.pem", "gateway.key": "client.key"}
    made = Certificates(tmp_path)
    for name, known in written.items():
        Path(made.path(known)).rename(tmp_path / name)
    (tmp_path / "gateway.key").chmod(0o600)
    config = parse_config(
        f'{ways.text}\n[[routes]]\nmodels = ["*"]\nto = ["openai", "internal"]\n',
        name="gateway.toml",
        env=env,
        read_file=lambda _path: KeyFile(b"", 0o600),
        folder=tmp_path,
    )
    assert [upstream.connection.arguments.keys() for upstream in config.upstreams.values()] == [{"proxy"}, {"ssl"}]
    assert config.warnings == ()
    config = parse_config(
        f'{over_sockets.text}\n[[routes]]\nmodels = ["*"]\nto = ["openai"]\n',
        name="gateway.toml",
        env=env,
        read_file=lambda _path: KeyFile(b"", 0o600),
    )
    assert config.upstreams["openai"].transport == "websocket"
    config = parse_config(
        f"{block.text}\n{by_reason.text}\n{hedged.text}",
        name="gateway.toml",
        env=env,
        read_file=lambda _path: KeyFile(b"a-key", 0o600),
    )
    assert [(route.next_on[-1], route.hedge_after_s) for route in config.routes[-2:]] == [
        ("content_filter", None),
        ("default", 4.0),
    ]
    assert config.warnings == ()
    others = "".join(f'[upstreams.{name}]\ndialect = "ollama"\nbase_url = "http://127.0.0.1"\n' for name in EQUALS)
    config = parse_config(
        f'{rests.text}\n{keys.text}\n{others}\n{equals.text}\n[[routes]]\nmodels = ["*"]\nto = ["local", "openai"]\n',
        name="gateway.toml",
        env={"OPENAI_KEY_A": "a-key", "OPENAI_KEY_B": "another-key"},
        read_file=lambda _path: KeyFile(b"", 0o600),
    )
    assert (config.upstreams["local"].rest.failures, len(config.upstreams["openai"].keys)) == (3, 2)
    assert [target.place for target in config.routes[0].targets] == [0, 0, 1]
    config = parse_config(
        f'{timeouts.text}\n[[routes]]\nmodels = ["*"]\nto = ["local"]\n',
        name="gateway.toml",
        env={},
        read_file=lambda _path: KeyFile(b"", 0o600),
    )
    assert config.upstreams["local"].timeouts.first_byte_s == 300
    assert config.warnings == ()
    config = parse_config(
        f'{changed.text}\n{cached.text}\n[[routes]]\nmodels = ["*"]\nto = ["gemini", "anthropic"]\n',
        name="gateway.toml",
        env={"GEMINI_API_KEY": "googles-key", "ANTHROPIC_API_KEY": "anthropics-key"},
        read_file=lambda _path: KeyFile(b"", 0o600),
    )
    assert len(config.upstreams["gemini"].changes) == 3
    assert config.upstreams["anthropic"].cache == "auto"
    assert config.warnings == ()
    config = parse_config(
        f"{block.text}\n{staged.text}", name="gateway.toml", env=env, read_file=lambda _path: KeyFile(b"a-key", 0o600)
    )
    assert [stage.use for stage in config.routes[-1].stages] == ["streamkit:redact"]
    assert config.warnings == ()
    config = parse_config(
        f"{block.text}\n{state.text}", name="gateway.toml", env=env, read_file=lambda _path: KeyFile(b"a-key", 0o600)
    )
    assert config.responses.state
    assert config.warnings == ()
