"""The page at ``/``: for whoever asks, with the models for whom they are listed to, and nothing else of the configuration."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request

from streamkit.gateway.front_page import front_page
from streamkit.web.upstream import Secret
from tests.examples.browser import chromium, opened
from tests.gateway.running import behind
from tests.web.faults import as_asked

pytestmark = pytest.mark.usefixtures("no_leaks")

CONNECT = Path(__file__).parents[2] / "docs" / "how-to" / "connect-clients.md"
KEY = "canary-in-7e2f"
BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9"}
#: A name that would be markup, end a text, move a terminal and be read backwards.
HOSTILE = "<b onclick=\"x('&')\">\x1b[31m\u202e\n</pre>{base}"


@pytest.fixture
async def running():
    async with behind(
        as_asked("openai-chat"),
        upstream={"name": "hidden-upstream", "auth": "bearer", "key": Secret("canary-up-7e2f")},
        models=("hidden-model", "hidden-*"),
        server={"keys": (Secret(KEY),)},
    ) as running:
        yield running


async def page_of(running, *, headers=None, method="GET"):
    answer = await running.ask("/", method=method, headers=headers)
    assert answer.status == 200
    return answer, bytes(answer.body).decode()


@pytest.mark.parametrize("accept", ["text/html,application/xhtml+xml;q=0.9", "*/*", ""])
async def test_it_says_what_this_is_without_a_key_and_nothing_of_the_configuration(accept, running):
    answer, text = await page_of(running, headers={"accept": accept} if accept else {})
    assert "streamkit gateway" in text
    assert all(path in text for path in ("/v1/messages", "/v1/responses", "/v1/chat/completions", "/api/chat"))
    assert "The request has no API key" in text
    for secret in ("hidden", "canary"):
        assert secret not in text
        assert secret not in str(answer.headers)
    media = "text/html" if "html" in accept else "text/plain"
    assert answer.headers["content-type"].startswith(media)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in text


@pytest.mark.parametrize("headers", [{"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}])
async def test_with_one_it_names_the_models_that_are_listed(headers, running):
    for kind in ({}, BROWSER):
        _, text = await page_of(running, headers={**headers, **kind})
        assert "hidden-model" in text
        assert "canary" not in text
        assert "hidden-upstream" not in text
        assert "hidden-*" not in text
    _, text = await page_of(running, headers={"x-api-key": "another"})
    assert "This API key is not valid here" in text
    assert "hidden" not in text


@pytest.mark.parametrize(("origin", "named"), [("https://elsewhere.example", False), ("http://localhost:3000", True)])
async def test_without_keys_it_names_them_to_whom_they_are_listed_to(origin, named):
    async with behind(as_asked("openai-chat"), models=("a-model",)) as running:
        _, text = await page_of(running, headers={"origin": origin})
        listed = await running.get("/v1/models", headers={"origin": origin})
        assert ("a-model" in text) is named is (listed.status == 200)
        assert "This gateway requires no key" in text


async def test_a_head_is_answered_too(running):
    answer, text = await page_of(running, method="HEAD")
    assert text == ""
    assert answer.headers["content-type"].startswith("text/plain")


async def test_nothing_else_is_open(running):
    for path in ("/v1/models", "//", "/index.html", "/api/tags"):
        assert (await running.get(path)).status == 401


LISTING = [("GET", "/api/tags"), ("GET", "/api/version"), ("GET", "/api/ps"), ("POST", "/api/show")]


@pytest.mark.parametrize("keyless", [True, False])
async def test_ollamas_clients_list_models_without_a_key_where_that_is_wanted(keyless):
    server = {"keys": (Secret("canary-in-7e2f"),), "keyless_listing": keyless}
    async with behind(as_asked("openai-chat"), server=server) as running:
        for method, path in LISTING:
            body = b'{"model":"m"}' if method == "POST" else b""
            answer = await running.ask(path, method=method, body=body)
            assert answer.status == (200 if keyless else 401), path
            page = {"origin": "https://elsewhere.example"}
            assert (await running.ask(path, method=method, body=body, headers=page)).status != 200
        assert (await running.ask("/api/chat", body=b'{"model":"m","messages":[]}')).status == 401
        assert (await running.get("/v1/models")).status == 401


async def test_no_model_is_loaded_here():
    async with behind(as_asked("openai-chat")) as running:
        answer = await running.get("/api/ps")
        assert (answer.status, answer.json()) == (200, {"models": []})


# -- what is on it ------------------------------------------------------------------------------------------------------


def shown(models=("m",), *, headers=None, **how):
    """The page for a request with these headers."""
    request = make_mocked_request("GET", "/", {"Host": "localhost:8080", **(headers or {})})
    return front_page(request, models, has_keys=False, **how).text


def codes(text):
    """What is in its ``<pre>``, as a browser shows it."""
    return [html.unescape(code) for code in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL)]


def test_what_points_clients_here_is_what_the_documentation_says():
    documented = {re.sub(r" +# .*", "", line) for line in CONNECT.read_text("utf-8").splitlines()}
    snippets = codes(shown(["gpt-5.2"], headers={"Host": "127.0.0.1:8080", "Accept": "text/html"}))
    assert len(snippets) == 6
    for line in "\n".join(snippets).splitlines():
        assert line in documented


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        ({"Host": "127.0.0.1:8080"}, "http://127.0.0.1:8080"),
        ({"Host": "[::1]:8080"}, "http://[::1]:8080"),
        ({"Host": "llm.example.org"}, "http://llm.example.org"),
        ({"Host": "llm.example.org", "X-Forwarded-Proto": "https"}, "https://llm.example.org"),
        ({"Host": "llm.example.org", "X-Forwarded-Proto": "javascript"}, "http://llm.example.org"),
    ],
)
@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_it_has_the_url_by_which_it_was_asked(headers, url, accept):
    text = html.unescape(shown(headers={**headers, "Accept": accept}))
    assert f'base_url="{url}/v1"' in text
    assert f"export ANTHROPIC_BASE_URL={url}\n" in text


@pytest.mark.parametrize("host", ['"><script>', "x$(id)", "x;id", "", "a b", "x:1:1"])
async def test_a_host_that_is_none_is_not_repeated(host):
    async with behind(as_asked("openai-chat"), server={"hosts": ("*",)}) as running:
        _, text = await page_of(running, headers={"host": host})
        assert f'base_url="{running.url}/v1"' in text


@pytest.mark.parametrize("accept", ["text/html", "*/*"])
def test_names_of_models_are_neither_markup_nor_marks(accept):
    text = shown([HOSTILE], headers={"Accept": accept})
    assert not set(text) & {"\x1b", "\u202e"}
    assert html.unescape(text).count("\\u001b[31m\\u202e\\n</pre>{base}") == 2
    if accept == "text/html":
        assert "<b " not in text
        assert text.count("</pre>") == len(codes(text)) == 6
        assert codes(text)[-1].splitlines()[1].startswith('model = "<b onclick=')


def test_where_only_patterns_serve_models_it_says_so():
    for accept in "text/html", "*/*":
        text = html.unescape(shown([], headers={"Accept": accept}))
        assert "None is listed" in text
        assert 'model = "MODEL"' in text


def test_the_inspector_is_linked_where_it_is_on():
    link = "http://127.0.0.1:8081/inspector?a=1&b=2"
    for accept in "text/html", "*/*":
        assert "nspector" not in shown(headers={"Accept": accept})
        assert link in html.unescape(shown(headers={"Accept": accept}, inspector=link))
    assert '"><x' not in shown(headers={"Accept": "text/html"}, inspector='"><x')


async def test_in_a_browser_it_is_styled_in_light_and_dark_and_fits_a_narrow_window(tmp_path):
    chromium()
    async with (
        behind(as_asked("openai-chat"), models=("m" * 200, HOSTILE)) as running,
        opened(running.url, tmp_path) as page,
    ):
        await page.until("document.querySelectorAll('pre').length === 6 && document.readyState === 'complete'")
        await page.send("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
        assert await page.value("document.documentElement.scrollWidth") == 400
        grounds = []
        for scheme in ("light", "dark"):
            await page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            grounds.append(await page.value("getComputedStyle(document.body).backgroundColor"))
        assert grounds == ["rgb(255, 255, 255)", "rgb(19, 23, 28)"]
        assert await page.value("document.querySelector('b, script')") is None
