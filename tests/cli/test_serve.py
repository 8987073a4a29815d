"""``streamkit serve``: what it refuses, and how it says so. That it serves is tests/gateway/test_processes.py's."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from streamkit.cli.commands import parser
from streamkit.errors import UsageError
from streamkit.report import Status
from tests.cli.command import run
from tests.gateway.processes import config_file

SAMPLE = Path(__file__).parents[2] / "docs" / "how-to" / "gateway.toml"
CANARY = "canary-4c1f"
KEYS = dict.fromkeys(["GATEWAY_KEY_EDITORS", "OPENAI_API_KEY", "OPENROUTER_API_KEY"], CANARY)
#: Packages as if they were not installed, one after the other, and then all of them.
WITHOUT = """
import sys

missing = set()

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from streamkit.cli import main

for package in sys.argv[1:]:
    missing = {package}
    for name in [name for name in sys.modules if name.startswith(("streamkit.gateway", *sys.argv[1:]))]:
        del sys.modules[name]
    print(main(["serve"]))
missing = set(sys.argv[1:])
sys.exit(main(["dialects"]))
"""


def refused(*arguments: str) -> str:
    """What is said of arguments that can't be, by a process that ends with status 2, without a traceback."""
    done = run("serve", *arguments)
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b""), told
    assert "Traceback" not in told
    return told


def run_here(*arguments: str) -> Status:
    """The command without a process, which takes a second to start. Raises UsageError."""
    options = parser().parse_args(["serve", *arguments])
    return options.run(options)


def sample_in(folder: Path) -> Path:
    """The documented sample, with the key files that it names."""
    path = folder / "gateway.toml"
    path.write_bytes(SAMPLE.read_bytes())
    for name in re.findall(r'file = "(.+?)"', SAMPLE.read_text("utf-8")):
        key = folder / name
        key.parent.mkdir(exist_ok=True)
        key.write_text(CANARY, "utf-8")
        key.chmod(0o600)
    return path


# -- --check-config ----------------------------------------------------------------------------------------------------


def test_a_good_configuration_is_described_and_its_keys_are_not(tmp_path):
    done = run("serve", "--config", str(sample_in(tmp_path)), "--check-config", **KEYS)
    told = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "listens on http://0.0.0.0:8080, 2 workers" in told
    assert "/metrics on http://127.0.0.1:9090" in told
    assert "gpt-* -> openai, then openrouter as openai/gpt-*" in told
    assert CANARY not in told


def test_options_win_over_the_file_and_are_checked_with_it(tmp_path, capsys):
    path = str(config_file(tmp_path, "http://127.0.0.1:1"))
    assert run_here("--config", path, "--check-config", "--host", "::1", "--port", "9", "--workers", "3") is Status.DONE
    assert "listens on http://[::1]:9, 3 workers\n" in capsys.readouterr().out
    assert run_here("--config", path, "--check-config", "--host", "0.0.0.0") is Status.DONE
    assert "set server.keys, or listen on loopback" in capsys.readouterr().out  # the file alone is on loopback


@pytest.mark.parametrize("named", [(), ("--timings",)])
@pytest.mark.parametrize("configured", [False, True])
def test_timings_are_the_files_unless_the_option_says_so(tmp_path, monkeypatch, named, configured):
    served = []
    monkeypatch.setattr("streamkit.gateway.serve.serve", lambda _config, server, *_, **__: served.append(server) or 0)
    path = config_file(tmp_path, "http://127.0.0.1:1", timings=configured)
    run_here("--config", str(path), *named)
    run_here(*named)
    assert [server.timings for server in served] == [bool(named) or configured, bool(named)]


def test_the_store_of_answers_is_looked_at(tmp_path, capsys, monkeypatch):
    path = config_file(tmp_path, "http://127.0.0.1:1")
    url = f"redis://me:{CANARY}@127.0.0.1:1/0"
    monkeypatch.setenv("STORE", url)
    path.write_text(path.read_text("utf-8") + '[resume]\nstore = "redis"\nurl = { env = "STORE" }\n', "utf-8")
    assert run_here("--config", str(path), "--check-config") is Status.DONE
    told = capsys.readouterr().out
    assert "responses are kept in Redis, redis://127.0.0.1:1/0, for clients that reconnect within 600 s\n" in told
    assert f"warnings:\n  {path}: resume.url: the store can't be reached" in told
    assert CANARY not in told

    async def is_cluster(_config):
        return "a cluster", ["a remark"]

    monkeypatch.setattr("streamkit.gateway.config.look_at_store", is_cluster)
    assert run_here("--config", str(path), "--check-config") is Status.USAGE
    assert f"{path}: resume.url: a cluster" in capsys.readouterr().err


def test_no_name_in_it_moves_a_terminal(tmp_path, capsys):
    path = config_file(tmp_path, "http://127.0.0.1:1")
    path.write_text(path.read_text("utf-8").replace('["m"', '["m\\u009b31m\\u202e\\u007f\\u2028x"'), "utf-8")
    assert run_here("--config", str(path), "--check-config") is Status.DONE
    told = capsys.readouterr().out
    assert "31m" in told
    assert all(line.isprintable() for line in told.split("\n"))


def test_every_fault_of_a_bad_one_is_told_with_its_line(tmp_path, capsys):
    path = tmp_path / "gateway.toml"
    path.write_text(
        f"""\
[server]
port = "8080"
wrokers = 2

[upstreams.a]
dialect = "opnai-chat"
base_url = "http://x/v1?key={CANARY}"
key = "sk-{CANARY}"

[[routes]]
models = ["m"]
to = ["b"]
""",
        "utf-8",
    )
    told = refused("--config", str(path), "--check-config")
    found = [
        (int(line), key) for line, key in re.findall(rf"^streamkit: {path}:(\d+):\d+: (\S+): ", told, re.MULTILINE)
    ]
    assert found == [
        (2, "server.port"),
        (3, "server.wrokers"),
        (6, "upstreams.a.dialect"),
        (7, "upstreams.a.base_url"),
        (8, "upstreams.a.key"),
        (12, "routes[0].to[0]"),
    ]
    assert told.count("\n") == len(found)
    assert CANARY not in told
    assert run_here("--config", str(path)) is Status.USAGE  # and it does not start
    assert capsys.readouterr().err == told


def test_a_file_that_is_not_there_is_told(tmp_path, capsys):
    path = tmp_path / "none.toml"
    assert run_here("--config", str(path)) is Status.USAGE
    assert capsys.readouterr().err == f"streamkit: {path}: can't be read: No such file or directory\n"
    for option in "--check-config", "--watch":
        with pytest.raises(UsageError, match=f"{option} needs --config FILE"):
            run_here(option)


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "65535"], "--port: leaves no port for /metrics"),
        (["--workers", "0"], "--workers: must be >= 1: 0"),
        (["--host", "127.0.0.1:80"], "--host: must be .*, without a port"),
        (["--host", "a..b"], "--host: must be the name or address"),
        (["--inspect", "a..b:0"], "--inspect must be host:port"),
    ],
)
def test_values_that_can_not_be_are_usage_errors(arguments, words):
    with pytest.raises(UsageError, match=words):
        run_here(*arguments)


def test_a_usage_error_is_one_line():
    assert refused("--workers", "0") == "streamkit: --workers: must be >= 1: 0\n"


def test_values_that_can_not_be_are_told_as_options_and_not_as_lines_of_the_file(tmp_path, capsys):
    path = config_file(tmp_path, "http://127.0.0.1:1", stall_s=0)
    assert run_here("--config", str(path), "--host", "a b", "--workers", "0") is Status.USAGE
    told = capsys.readouterr().err.splitlines()
    assert sorted(line.partition(": must be ")[0] for line in told[:2]) == ["streamkit: --host", "streamkit: --workers"]
    assert told[2].startswith(f"streamkit: {path}:4:1: server.stall_s: must be > 0")


def test_a_warning_of_an_option_names_the_option(tmp_path, capsys):
    path = config_file(tmp_path, "http://127.0.0.1:1")
    assert run_here("--config", str(path), "--check-config", "--host", "0.0.0.0") is Status.DONE
    assert "\n  --host: " in capsys.readouterr().out


# -- the port ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behind", "workers", "what"),
    [
        (0, 1, "clients"),
        (0, 2, "clients"),
        (1, 1, r"/metrics \(at the port after the gateway's, or at server\.private\)"),
    ],
)
def test_a_port_in_use_is_told_with_what_it_is_for(behind, workers, what):
    with socket.socket() as taken, socket.socket() as beside:
        for port in range(20_000, 30_000, 7):  # below those that others are given for 0
            try:
                taken.bind(("127.0.0.1", port))
                beside.bind(("127.0.0.1", port + 1 - 2 * behind))
            except OSError:
                continue
            break
        beside.close()
        taken.listen()
        told = refused("--port", str(port - behind), "--workers", str(workers))
    assert re.fullmatch(
        rf"streamkit: cannot listen on http://127\.0\.0\.1:{port} for {what}: address already in use\n", told
    )


# -- the extra ---------------------------------------------------------------------------------------------------------


def test_a_missing_extra_is_told_with_the_command_that_installs_it_and_other_commands_do_without():
    packages = ["cattrs", "prometheus_client", "tenacity"]
    done = subprocess.run([sys.executable, "-c", WITHOUT, *packages], capture_output=True, check=False, timeout=60)
    assert done.stderr.decode().splitlines() == [
        "streamkit: streamkit serve needs the extra `gateway`: "
        f"pip install 'streamkit-llm[gateway]' (missing: {package})"
        for package in packages
    ]
    assert done.stdout.startswith(b"2\n2\n2\n")
    assert b"openai-chat" in done.stdout
    assert done.returncode == 0
