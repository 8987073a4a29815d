"""The page in headless Chromium: what is seen of a stream, by role and by text, and what a page of another site sees: nothing."""

import re
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web

from streamkit.errors import IdleTimeout
from streamkit.gateway.app import gateway_app
from streamkit.gateway.demo import demo_config, start_demo
from streamkit.gateway.metrics import Metrics
from streamkit.lab.inspector.app import inspector_app
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import follow
from streamkit.lab.recording import parse_recording
from streamkit.lab.recording.source import RecordedSource
from streamkit.read_options import DEFAULT_OPTIONS
from streamkit.recipes import transcode
from tests import corpora
from tests.cli.command import DEMO
from tests.cli.recorded import in_reads, recorded
from tests.gateway.running import asking
from tests.lab.inspector.browser import browsing, keep_picture
from tests.vectors.vector import sse
from tests.web.ports import free_port
from tests.web.serving import serving

TOKEN = "token-of-this-page"
pytestmark = pytest.mark.timeout(240)


async def whole(body):
    yield body


async def demo_as(dialect):
    """The demo, recorded of an upstream of that dialect."""
    if dialect == "openai-chat":
        return DEMO.read_bytes()
    async with transcode(whole(DEMO.read_bytes()), "openai-chat", dialect) as stream:
        return b"".join([chunk async for chunk in stream])


@asynccontextmanager
async def shown(*bodies, client="anthropic", **named):
    """The address of an inspector of these recordings, and what it keeps; each body with its dialect."""
    captures = Captures()
    for number, (dialect, body) in enumerate(bodies):
        capture = captures.open(
            str(number), timed=False, encodes=True, client=client, about={"file": f"{number}-{dialect}", **named}
        )
        await follow(whole(body), capture, dialect, DEFAULT_OPTIONS)
    async with serving(inspector_app(captures, TOKEN), handler_cancellation=True) as port:
        yield f"http://127.0.0.1:{port}/#{TOKEN}", captures


async def test_three_recordings_show_their_calls_events_and_bytes_side_by_side():
    bodies = [(dialect, await demo_as(dialect)) for dialect in ("openai-chat", "anthropic", "ollama")]
    async with shown(*bodies, client="openai-responses") as (url, _), browsing() as browser:
        page = await browser.open(url)
        await page.locator("#state", has_text="connected").wait_for()
        assert "#" not in page.url
        for number, (dialect, body) in enumerate(bodies):
            await page.get_by_role("option", name=f"{number}-{dialect}").click()
            await page.get_by_role("heading", name=f"{number}-{dialect}").wait_for()
            await page.get_by_text("clean end").wait_for(state="attached")
            calls = page.get_by_role("region", name="Tool calls")
            assert await calls.get_by_text("complete").count() == 2
            assert (
                await calls.get_by_text('"city": "Reykjavík"').or_(calls.get_by_text('"city":"Reykjavík"')).count() == 1
            )
            assert await page.get_by_role("region", name="What the model said").get_by_text("Let me look").count() == 1
            rows = page.get_by_role("grid", name="Bytes and events").get_by_role("row")
            row = rows.filter(has_text=re.compile("text.*Let me"))
            cells = await row.first.get_by_role("gridcell").all_inner_texts()
            assert len(cells) == 4
            place = int(cells[0].removeprefix("byte ").replace(",", ""))
            raw = cells[1].partition("\n")[2].replace("\\n\n", "\n").replace("\\n", "\n")
            assert body[place:].startswith(raw.rstrip("\n").encode()[:40])
            assert "response.output_text.delta" in cells[3]
            if dialect == "anthropic":
                await keep_picture(page, "inspector-recording.png")
        assert browser.said == []


@pytest.mark.exhaustive
async def test_a_page_finds_a_server_again_that_was_away():
    captures = Captures()
    captures.open("old", about={"model": "old"})
    port = free_port()
    async with browsing() as browser:
        async with at_port(inspector_app(captures, TOKEN), port):
            page = await browser.open(f"http://127.0.0.1:{port}/#{TOKEN}")
            await page.get_by_role("option", name="old").wait_for()
        await page.get_by_role("status").get_by_text("trying again").wait_for()
        others = Captures()
        others.open("new", about={"model": "new"})
        async with at_port(inspector_app(others, TOKEN), port):
            await page.get_by_role("option", name="new").wait_for()
            assert await page.get_by_role("option").count() == 1
            await page.get_by_role("heading", name="new").wait_for()
        async with at_port(inspector_app(others, "another token"), port):
            await page.get_by_text("needs the token").wait_for()


@asynccontextmanager
async def at_port(app, port):
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "gemini"])
async def test_recordings_of_providers_are_read_to_their_end(dialect):
    recording = max(corpora.recordings(dialect), key=lambda each: min(len(each.body), 100_000))
    async with shown((dialect, recording.body)) as (url, captures), browsing() as browser:
        page = await browser.open(url)
        ending = captures.get("0").ended["ending"]
        await page.get_by_role("option").get_by_text(ending, exact=True).wait_for()
        await page.locator(".step.end").wait_for(state="attached")
        assert browser.said == []


HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202eevil\x1b[2J\u2066"


async def test_what_a_model_says_stays_text():
    call = {"index": 0, "id": HOSTILE, "function": {"name": HOSTILE, "arguments": '{"a":"' + HOSTILE[:3]}}
    body = sse(
        {"id": HOSTILE, "model": HOSTILE, "choices": [{"index": 0, "delta": {"content": HOSTILE}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": HOSTILE, "tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {"content": "y" * 1_000_000}}]},
    )
    body += f"data: {HOSTILE}\n\n".encode()
    async with shown(("openai-chat", body), model=HOSTILE) as (url, _), browsing() as browser:
        page = await browser.open(url)
        await page.get_by_role("option").get_by_text("failed").wait_for()
        await page.get_by_role("heading", name="0-openai-chat").wait_for()
        await page.locator(".step.end").wait_for(state="attached")
        assert await page.locator("img, script:not([src]), iframe").count() == 0
        assert await page.title() == "streamkit inspector"
        text = await page.locator("main").inner_text()
        assert "<img src=x onerror=" in text
        assert "\\u202eevil\\u001b[2J\\u2066" in text
        everything = await page.locator("html").inner_html()
        assert not set("\u202e\x1b\u2066") & set(everything)
        assert len(everything) < 200_000  # of the line of a megabyte a beginning
        assert browser.said == []


async def test_a_stream_of_the_gateway_is_seen_as_it_grows():
    captures = Captures()
    runner, base_url = await start_demo(speed=0.5)
    try:
        app = gateway_app(demo_config(base_url), Metrics(), captures=captures)
        async with (
            serving(app, handler_cancellation=True) as port,
            serving(inspector_app(captures, TOKEN), handler_cancellation=True) as page_port,
            browsing() as browser,
            ClientSession() as session,
        ):
            page = await browser.open(f"http://127.0.0.1:{page_port}/#{TOKEN}", scheme="dark")
            await page.get_by_text("No stream yet").wait_for()
            path, body = asking("anthropic", tools=True, model="demo-reasoning")
            async with session.post(f"http://127.0.0.1:{port}{path}", json=body) as answer:
                option = page.get_by_role("option", name="demo-reasoning")
                await option.get_by_text("live").wait_for()
                said = page.get_by_role("group", name="What the model said")
                await said.get_by_text("There are tools").wait_for()
                assert captures.get(await option.get_attribute("data-id")).ended is None
                written = await answer.read()
            await option.get_by_text("whole").wait_for()
            assert re.search(r", anthropic → demo, .*, \d+ tokens$", await option.locator(".sub").inner_text())
            request_id = await option.get_attribute("data-id")
            assert await page.locator("#facts").get_by_text(request_id).count() == 1
            await page.get_by_text("clean end").wait_for(state="attached")
            assert await page.get_by_role("region", name="Tool calls").get_by_text("complete").count() == 1
            attempts = page.get_by_role("region", name="Attempts")
            assert await attempts.get_by_text("success").count() == 1
            encoded = page.get_by_role("grid").locator(".bytes:last-child pre")
            shown = "".join(text.replace("\\n\n", "\n") for text in await encoded.all_text_contents())
            assert shown.encode() == written
            await keep_picture(page, "inspector-live.png")
            assert browser.said == []
    finally:
        await runner.cleanup()


async def test_stalls_attempts_repairs_and_what_failed_are_seen():
    now = [0.0]
    captures = Captures(clock=lambda: now[0])
    capture = captures.open("one", about={"model": "m"}, client="anthropic", stall_s=12.0)
    capture.attempt("first", "openai-chat", DEFAULT_OPTIONS)
    now[0] = 1.0
    capture.attempt("second", "openai-chat", DEFAULT_OPTIONS)
    body = DEMO.read_bytes().replace(b'{"index": 1, "function"', b'{"index": 1, "id": "other", "function"')[:-1200]
    now[0] += 2.0
    for number, chunk in enumerate(re.findall(rb"(?:.+\n\n?){1,4}", body)):
        now[0] += 0.3
        capture.read(chunk)
        if number == 2:
            now[0] += 6.0
            capture.read(b": still here\n\n")  # which is no answer
            now[0] += 6.0
            capture.wrote(b": keep-alive\n\n", keep_alive=True)
    attempts = [
        {"upstream": "first", "outcome": "http_503", "seconds": 1.0, "detail": "no capacity"},
        {"upstream": "second", "outcome": "cut", "seconds": 15.0},
    ]
    capture.end({"ending": "broken", "status": 200, "error": "the answer ended early", "attempts": attempts})
    async with serving(inspector_app(captures, TOKEN), handler_cancellation=True) as port, browsing() as browser:
        page = await browser.open(f"http://127.0.0.1:{port}/#{TOKEN}", width=400)
        await page.get_by_text("cut: it ended before its completion point").wait_for(state="attached")
        facts = await page.locator("#facts").inner_text()
        assert re.search(r"stalls\n1\b", facts)
        assert re.search(r"longest pause\n12\.30 s", facts)
        assert "the answer ended early" in facts
        asked = page.get_by_role("region", name="Attempts")
        assert await asked.get_by_text("http_503").count() == 1
        assert await asked.get_by_text("no capacity").count() == 1
        assert await page.get_by_role("region", name="Tool calls").get_by_text("truncated").count() > 0
        found = page.get_by_role("region", name="Repairs and losses")
        assert await found.get_by_text("repair id_changed").count() == 1
        await found.get_by_role("button", name="byte ").first.click()
        assert await page.get_by_role("row", selected=True).get_by_text("id_changed").count() == 1
        assert await page.get_by_role("row").filter(has_text="keep-alive").count() > 0
        assert browser.said == []


#: How a stream ended, and its colour.
ENDINGS = {"whole": "good", "client left": "left", "broken": "bad", "error": "bad"}


async def test_a_client_that_left_is_no_failure():
    captures = Captures()
    for number, ending in enumerate(ENDINGS):
        capture = captures.open(f"req_{number}", about={"model": "m"}, client="anthropic")
        capture.attempt("first", "openai-chat", DEFAULT_OPTIONS)
        outcome = ending.replace("client left", "client_left")
        capture.end({"ending": ending, "attempts": [{"upstream": "first", "outcome": outcome, "seconds": 1.0}]})
    async with serving(inspector_app(captures, TOKEN), handler_cancellation=True) as port, browsing() as browser:
        page = await browser.open(f"http://127.0.0.1:{port}/#{TOKEN}")
        for ending, colour in ENDINGS.items():
            option = page.get_by_role("option").filter(has_text=ending)
            await option.click()
            assert await option.locator(f".badge.{colour}").count() == 1
            await page.locator("#facts").get_by_text(ending).wait_for()
            assert await page.locator(f"#facts .{colour} dd", has_text=ending).count() == 1
            assert await page.locator(f"#attempts .badge.{colour}").count() == 1
        assert browser.said == []


# in one task of the page: nothing of the stream before may be there for the next key
PRESS_AND_READ_TITLE = """key => {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    return document.getElementById("title").textContent;
}"""


async def test_the_keyboard_reaches_everything():
    async with shown(*[("openai-chat", DEMO.read_bytes())] * 2) as (url, _), browsing() as browser:
        page = await browser.open(url, width=400)
        await page.get_by_text("clean end").wait_for(state="attached")
        await page.keyboard.press("Tab")
        assert await page.get_by_role("listbox", name="Streams").evaluate("e => e === document.activeElement")
        assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        await page.keyboard.press("ArrowDown")
        await page.get_by_role("option", selected=True).get_by_text("1-openai-chat").wait_for()
        for key, name in ("ArrowUp", "0-openai-chat"), ("ArrowDown", "1-openai-chat"):
            assert await page.evaluate(PRESS_AND_READ_TITLE, key) == name
        await page.get_by_text("clean end").wait_for(state="attached")
        await page.keyboard.press("Tab")
        slider = page.get_by_role("slider", name="Waterfall")
        assert await slider.evaluate("e => e === document.activeElement")
        for key in "Home", "ArrowRight", "ArrowRight":
            await page.keyboard.press(key)
        assert await slider.get_attribute("aria-valuetext") == "byte 250"
        assert await page.get_by_role("row", selected=True).get_by_text("byte 250").count() == 1
        while not await page.get_by_role("grid").evaluate("e => e === document.activeElement"):
            await page.keyboard.press("Tab")
        await page.keyboard.press("End")
        assert await page.get_by_role("row", selected=True).get_by_text("clean end").count() == 1
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400
        assert browser.said == []


async def test_pages_of_other_sites_read_nothing():
    """A wrong token; a page of another name that leads here (DNS rebinding); another site's script and frame."""
    async with shown(("openai-chat", DEMO.read_bytes())) as (url, captures):
        port = int(url.partition("#")[0].rstrip("/").rpartition(":")[2])
        site = web.Application()
        script = f"""<script type=module>
            const get = async (mode) => {{
                try {{ return (await fetch('http://127.0.0.1:{port}/feed', {{mode, headers: mode === 'cors' ? {{Authorization: 'Bearer {TOKEN}'}} : {{}}}})).type }}
                catch {{ return 'refused' }}
            }};
            document.title = [await get('cors'), await get('no-cors')].join();
        </script><iframe src='http://127.0.0.1:{port}/'></iframe>"""

        async def foreign(_request):
            return web.Response(text=script, content_type="text/html")

        site.router.add_get("/", foreign)
        async with serving(site) as other, browsing("--host-resolver-rules=MAP *.test 127.0.0.1") as browser:
            page = await browser.open(url.partition("#")[0] + "#wrong")
            await page.get_by_text("needs the token").wait_for()
            assert await page.get_by_role("option").count() == 0
            rebound = await browser.program.new_page()
            response = await rebound.goto(f"http://evil.test:{port}/#{TOKEN}")
            assert response.status == 421
            page = await browser.open(f"http://evil.test:{other}/")
            await page.wait_for_function("document.title !== ''")
            assert await page.title() == "refused,refused"
            assert "Reykjav" not in await page.frames[1].content()
        assert not captures.watchers


@pytest.mark.exhaustive
async def test_a_recording_is_drawn_over_its_own_times(tmp_path):
    reads = [(at + (7 if at > 2 else 0), data) for at, data in in_reads(DEMO.read_bytes(), 200)]
    recording = parse_recording(recorded(reads[:12], end="timeout:idle", t=70.0))
    source = RecordedSource(recording)
    captures = Captures()
    capture = captures.open("0", clock=lambda: source.ended_at or source.now, about={"file": "slow"})
    with pytest.raises(IdleTimeout):
        await follow(source, capture, "openai-chat", DEFAULT_OPTIONS)
    async with serving(inspector_app(captures, TOKEN), handler_cancellation=True) as port, browsing() as browser:
        page = await browser.open(f"http://127.0.0.1:{port}/#{TOKEN}")
        await page.get_by_role("heading", name="slow").wait_for()
        facts = page.locator("#facts")
        await facts.get_by_text("The upstream sent no further bytes within 59.8 s").wait_for()
        known = re.sub(r"\s+", " ", await facts.inner_text())
        for fact in "state failed", "duration 70.00 s", "first output 1.00 s", "stalls 2", "reads 12":
            assert fact in known
        assert await page.get_by_text("under way").count() == 0
        times = await page.get_by_role("grid", name="Bytes and events").get_by_role("gridcell").all_inner_texts()
        assert any(cell.startswith("9.25 s") for cell in times)
        assert browser.said == []
