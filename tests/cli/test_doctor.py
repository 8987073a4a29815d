"""``streamkit doctor`` as a user runs it: what it may cost comes first, keys come nowhere, and kept answers lint alike."""

from __future__ import annotations

import asyncio
import io
import json
import stat

import pytest
from aiohttp import web

from streamkit.cli import doctor
from streamkit.cli.commands import parser
from streamkit.cli.lint import lint
from streamkit.errors import UsageError
from streamkit.lab.doctor import plan
from streamkit.lab.recording import read_recording
from streamkit.testing.serving import served
from tests.cli.command import run
from tests.lab.doctor.servers import model_server
from tests.vectors.openai_chat import CALLED, DONE, ROLE, call, calls, said
from tests.vectors.vector import sse
from tests.web.serving import answering
from tests.web.upstream.certificates import Certificates

CHAT = "openai-chat"
#: What lint says of a stream and its recording.
SAME = ("verdict", "violations", "repairs", "other_repairs")
#: It looks like no key, so that nothing but knowing it can cut it out.
KEY = "planted.0123456789"
WITHOUT_INDEX = sse(ROLE, calls(call(None, "a", "get_weather", '{"city":"Bern"}')), CALLED, DONE)


def parsed(*arguments):
    return parser().parse_args(["doctor", "--model", "demo", "--dialect", CHAT, *arguments])


@pytest.fixture
def examine(capfd):
    """The command in this process: its status, and what it prints."""

    def run_it(url, *arguments):
        status = asyncio.run(doctor.run(parsed(f"{url}/v1", *arguments)))
        said = capfd.readouterr()
        return status, said.out, said.err

    return run_it


@pytest.fixture(scope="module")
def clean():
    with served(lambda: model_server(CHAT)) as url:
        yield url


def key_of(request):
    return request.headers.get("authorization", "").removeprefix("Bearer ")


@pytest.fixture(scope="module")
def faulty():
    """A server whose calls lack an index, and whose other streams break off; errors are not in the dialect's form."""

    async def handle(request):
        body = await request.json()
        if body["messages"] == 0:
            return web.json_response({"detail": "no"}, status=400)
        if "tools" in body or not body.get("stream"):
            return web.Response(body=WITHOUT_INDEX, content_type="text/event-stream")
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(sse(ROLE, said("one")))
        request.transport.close()
        return stream

    with served(lambda: answering(handle)) as url:
        yield url


@pytest.fixture(scope="module")
def broken():
    """A server whose streams lack an index, and which repeats the key that it gets in an error."""

    async def handle(request):
        body = await request.json()
        if body["messages"] == 0:
            message = f"no, {key_of(request)}"
            return web.json_response(
                {"error": {"message": message, "type": "x", "param": None, "code": None}}, status=400
            )
        if not body.get("stream"):
            raise web.HTTPBadGateway(text=f"key {key_of(request)} is wrong")
        return web.Response(body=WITHOUT_INDEX, content_type="text/event-stream")

    with served(lambda: answering(handle)) as url:
        yield url


def test_a_clean_server_is_clean(clean, examine):
    status, out, err = examine(clean)
    assert status == 0, out
    assert err.startswith("streamkit: 10 requests to http://127.0.0.1:")
    assert "for at most 1," in err
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:10]] == [
        "text", "usage", "whole", "tool", "parallel", "forced", "result", "length", "cancel", "bad",
    ]  # fmt: skip
    assert lines[-1] == "openai-chat, demo: clean"


def test_the_status_is_that_of_the_worst_answer(broken, examine):
    status, out, _ = examine(broken, "--json")
    assert status == 1
    by_name = {each["probe"]: each for each in json.loads(out)["probes"]}
    assert (by_name["tool"]["verdict"], by_name["whole"]["verdict"]) == ("repairable", "broken")


def test_nothing_is_sent_to_another_machine_where_nobody_can_be_asked():
    done = run("doctor", "https://192.0.2.1/v1", "--dialect", CHAT, "--model", "m")
    assert done.returncode == 2
    cost, refusal = done.stderr.decode().splitlines()
    assert "10 requests to https://192.0.2.1, for at most" in cost
    assert "add --yes" in refusal
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("answer", "sends"), [("y\n", True), ("Yes\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_on_a_terminal_it_asks(answer, sends, monkeypatch, capsys):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    options = parsed("https://192.0.2.1/v1")
    assert doctor.consents(doctor.upstream_of(options), chosen(), yes=False) is sends
    cost, question = capsys.readouterr().err.splitlines()
    assert "requests to https://192.0.2.1" in cost
    assert question == "Send them? [y/N] "


def test_it_warns_of_a_key_that_goes_as_it_is(monkeypatch, capsys):
    monkeypatch.setenv("A_KEY", KEY)
    assert doctor.consents(doctor.upstream_of(parsed("http://192.0.2.1/v1", "--key-env", "A_KEY")), chosen(), yes=True)
    said = capsys.readouterr().err
    assert "the key is sent in clear text" in said
    assert KEY not in said


@pytest.mark.parametrize(
    ("arguments", "auth"),
    [
        ((), "none"),
        (("--key-env", "A_KEY"), "bearer"),
        (("--key-env", "A_KEY", "--dialect", "anthropic"), "x-api-key"),
        (("--key-env", "A_KEY", "--dialect", "azure-responses"), "azure"),
        (("--key-env", "A_KEY", "--dialect", "bedrock", "--auth", "bedrock-bearer"), "bedrock-bearer"),
    ],
)
def test_a_key_is_sent_only_if_it_is_named_and_as_the_provider_wants_it(arguments, auth, monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    upstream = doctor.upstream_of(parsed("https://192.0.2.1/openai/v1", *arguments))
    assert upstream.auth == auth
    assert (upstream.key is not None and upstream.key.reveal() == KEY) == bool(arguments)


def test_the_way_to_a_server_is_that_of_an_upstream(tmp_path):
    made = Certificates(tmp_path)
    files = {
        "ca_file": made.path("ca.pem"),
        "client_cert": made.path("client.pem"),
        "client_key": made.path("client.key"),
    }
    values = {"auth": "sigv4", "region": "eu-west-1", "service": "execute-api", "proxy": "http://proxy:3128", **files}
    arguments = [word for name, value in values.items() for word in (f"--{name.replace('_', '-')}", value)]
    upstream = doctor.upstream_of(parsed("https://192.0.2.1/v1", *arguments))
    assert {name: getattr(upstream, name) for name in values} == values


def chosen():
    return plan(CHAT, "m")


@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
def test_the_key_is_sent_and_is_in_no_output_and_no_file(form, broken, tmp_path, examine):
    key = tmp_path / "key"
    key.write_text(f"{KEY}\n")
    _, out, err = examine(broken, "--key-file", str(key), "--keep", str(tmp_path / "kept"), *form)
    written = "".join(file.read_text() for file in (tmp_path / "kept").iterdir())
    assert "[removed]" in out
    assert KEY not in out + err + written
    assert "10-bad.stream.jsonl was not saved" in err


@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
def test_no_report_names_the_host(form, broken, examine):
    assert "127.0.0.1" not in examine(broken, *form)[1]


def test_kept_streams_lint_as_they_were_reported(faulty, tmp_path, examine, capfd):
    """observe.md O34, with the command itself."""
    report = json.loads(examine(faulty, "--json", "--keep", str(tmp_path))[1])
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files][:3] == [
        "01-text.stream.jsonl",
        "02-usage.stream.jsonl",
        "03-whole.stream.jsonl",
    ]
    linted = 0
    for file, probe in zip(files, report["probes"], strict=True):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        recording = read_recording(file)
        assert (recording.response.status, recording.ending) == (probe["status"], probe["end"])
        assert (recording.dialect, recording.request.path) == (CHAT, "/v1/chat/completions")
        if "violations" in probe and probe["end"] != "client_left":
            asyncio.run(lint(str(file), "auto", as_json=True))
            found = json.loads(capfd.readouterr().out)
            assert {name: found[name] for name in SAME} == {name: probe[name] for name in SAME}
            linted += 1
    assert linted == 7
    assert {probe["end"] for probe in report["probes"]} == {"whole", "cut", "client_left"}


def test_recordings_are_not_written_over(clean, tmp_path, examine):
    (tmp_path / "01-text.stream.jsonl").write_text("mine")
    with pytest.raises(UsageError, match="--keep: the folder has recordings already"):
        examine(clean, "--keep", str(tmp_path))


@pytest.mark.parametrize("name", ["missing/badge.json", "."])
def test_a_badge_that_cannot_be_written_is_refused_before_a_request(tmp_path, name, examine):
    with pytest.raises(UsageError, match=r"--badge: .* can't be written"):
        examine("http://127.0.0.1:1", "--badge", str(tmp_path / name))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--key-env", "NO_SUCH_VARIABLE"], "--key-env: the environment variable is missing"),
        (["--key-file", "/no/such/file"], "--key-file: the file can't be read: No such file"),
        (["--auth", "bearer"], "key: auth"),
        (["--proxy", "socks5://h"], "proxy: write the URL of an HTTP proxy"),
        (["--ca-file", "/no/such/file"], "ca_file: leave it out, or let base_url begin with https"),
        (["--timeout", "0"], "--timeout must be a number of seconds above 0"),
        (["--dialect", "ai-sdk"], "has no limit on tokens"),
        (["--dialect", "gemini", "--model", ".."], "--model: "),
    ],
)
def test_options_that_can_not_be_are_refused_before_anything_is_said(arguments, says, examine, capfd):
    with pytest.raises(UsageError, match=says):
        examine("http://127.0.0.1:9", *arguments)
    assert capfd.readouterr() == ("", "")


def test_where_nothing_listens_it_says_so(examine):
    status, out, _ = examine("http://127.0.0.1:9")
    assert status == 1
    assert "Connection refused" in out


def test_a_missing_key_is_named_with_the_options_for_one(examine):
    requests = []

    def app():
        async def handle(request):
            requests.append(request)
            return web.json_response({"error": {"message": "no key", "type": "invalid_request_error"}}, status=401)

        return answering(handle)

    with served(app) as url:
        status, out, _ = examine(url)
    assert status == 1
    assert "status 401: no key" in out
    assert "--key-env NAME or --key-file PATH" in out
    assert len(requests) == 1


def test_a_key_that_can_not_be_sent_is_not_shown(tmp_path):
    (tmp_path / "key").write_text(f"{KEY}\x00{KEY}")
    with pytest.raises(UsageError) as raised:
        doctor.upstream_of(parsed("https://192.0.2.1/v1", "--key-file", str(tmp_path / "key")))
    assert KEY not in str(raised.value)
