"""The dashboard and the alerts of docs/grafana ask for series that a gateway has, in PromQL that Prometheus takes.

A gateway serves a session in which everything happens that it counts, and its /metrics is compared with the expressions.
Grafana itself is not here: its library reads the dashboard and writes it again.

Source: observe.md O16, O20, O22.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import combinations, product
from pathlib import Path
from typing import get_args

import orjson
import promql_parser as promql
import pytest
import yaml
from aiohttp import ClientConnectionError, ClientSession
from attrs import define
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.parser import text_string_to_metric_families

from streamkit.events import VerdictKind
from streamkit.gateway.app import GATEWAY, gateway_app, private_app
from streamkit.gateway.metrics import Metrics, exposition
from streamkit.gateway.record import ANSWERS
from streamkit.web.resume.settings import RESUMING
from tests.docs.pages import ROOT
from tests.gateway.running import asking, config_of, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import good, status
from tests.web.ports import free_port
from tests.web.raw_client import ask
from tests.web.serving import eventually, serving

FOLDER = ROOT / "docs" / "grafana"
ALERTS, ALERTS_TEST = FOLDER / "alerts.yml", ROOT / "tests" / "docs" / "alerts_test.yml"
PAGE, README = ROOT / "docs" / "how-to" / "watch-the-gateway.md", FOLDER / "README.md"
SERIES = ROOT / "docs" / "how-to" / "run-the-gateway.md"  #: explains the series and their labels
BOARD = json.loads((FOLDER / "streamkit.json").read_text("utf-8"))
CHARTS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
QUERIES = {f"{chart['title']}: {target['refId']}": target for chart in CHARTS for target in chart["targets"]}
VARIABLES = {variable["name"]: variable["query"] for variable in BOARD["templating"]["list"]}
RULES = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"][0]["rules"]
#: Labels that a scrape adds.
SCRAPED = {"job", "instance"}
#: Ids of units as Grafana has them (packages/grafana-data, valueFormats/categories.ts), and units of one's own.
UNITS = {"s", "short", "bytes", "percentunit", "reqps", "cpm", "suffix:tokens/s"}
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)


# -- a gateway ---------------------------------------------------------------------------------------------------------


def chunks(*choices, **members):
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    told = [{**head, "choices": [{"index": 0, "delta": {}, "finish_reason": None, **choice}]} for choice in choices]
    return [
        *(b"data: %b\n\n" % orjson.dumps(each) for each in [*told, {**head, "choices": [], **members}]),
        b"data: [DONE]\n\n",
    ]


#: Of what an upstream tells of tokens, all.
USAGE = {
    "prompt_tokens": 90,
    "completion_tokens": 40,
    "total_tokens": 130,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 10},
}
CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
#: Slow enough for keep-alives, gaps and stalls.
SLOW = good(
    "openai-chat",
    chunks(*({"delta": {"content": f"{word} "}} for word in range(4)), {"finish_reason": "stop"}, usage=USAGE),
    delay_s=0.1,
)
#: A call without an index, which is repaired, and no usage.
REPAIRED = good("openai-chat", chunks({"delta": {"tool_calls": [CALL]}}, {"finish_reason": "tool_calls"}))
RESUMABLE = {"x-streamkit-resumable": "1", "content-type": "application/json"}


@define
class Watched:
    """A gateway whose ``/metrics`` is at ``url``."""

    url: str
    play: Callable[[], Awaitable[None]]  #: everything happens that a gateway counts


@asynccontextmanager
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with EvilUpstream(*[SLOW, REPAIRED, status(503), good("openai-chat")] * 2) as evil:
        recordings = tmp_path / "recordings"
        server = {"keep_alive_s": 0.05, "stall_report_s": 0.05, "record": str(recordings)}
        config = config_of([upstream_at(evil, "openai-chat")], server=server)
        metrics = Metrics()
        app = gateway_app(config, metrics)
        async with serving(app) as port, serving(private_app(metrics)) as private:
            url = f"http://127.0.0.1:{port}"

            async def play() -> None:
                shutil.rmtree(recordings, ignore_errors=True)  # so that nothing can be recorded
                path, body = asking("ollama")
                await ask(url, path, body=orjson.dumps({**body, "options": {"top_k": 5}}))  # Chat has no place for it
                path, body = asking("anthropic", tools=True)
                await ask(url, path, body=orjson.dumps(body).replace(b'"hi"', rb'"half of a pair \ud800"'))
                path, body = asking("openai-chat")
                await ask(url, path, body=orjson.dumps(body))
                answer = await ask(url, path, headers=RESUMABLE, body=orjson.dumps(body))
                await ask(url, answer.headers["location"], method="GET")
                await eventually(lambda: b"\nstreamkit_streams_active 0.0\n" in exposition(metrics))
                # a store elsewhere that fails, and is behind
                resuming = app[RESUMING]
                resuming.counts.not_resumable["slow"] += 1
                resuming.store.lost["behind"] += 1
                resuming.store.errors = resuming.store.lost
                metrics.answers_kept(resuming.counts, resuming.store)
                recorder = app[GATEWAY].recorder
                await eventually(lambda: recorder.unrecorded["disk_error"] > 0)
                metrics.recorded(recorder)
                metrics.upstreams_rest({("one", "retry_after"): 1}, {})

            yield Watched(f"http://127.0.0.1:{private}/metrics", play)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """``/metrics`` of a gateway on which everything happened."""

    async def read() -> bytes:
        async with watched(tmp_path_factory.mktemp("watched")) as gateway, ClientSession() as session:
            await gateway.play()
            async with session.get(gateway.url) as response:
                return await response.read()

    return asyncio.run(read())


@pytest.fixture(scope="module")
def series(page):
    """The labels of each series, those of a scrape included."""
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set(SCRAPED)).update(sample.labels)
    return labels


# -- expressions -------------------------------------------------------------------------------------------------------


def replaced(expr: str, interval: str = "5m") -> str:
    """An expression as Grafana asks it, with everything chosen."""
    return re.sub(r"\$(job|instance|client|route|upstream)\b", ".*", expr.replace("$__rate_interval", interval))


def asked(expr: str) -> Iterator[tuple[str, dict[str, str], set[str]]]:
    """The series of an expression: its name, what it is chosen by, and the labels that it is added up by."""
    found, around = [], []

    def enter(node: promql.Expr) -> None:
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            around.append(node.modifier.labels)
        if isinstance(node, promql.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql.VectorSelector):
            found.append(
                (node.name, {m.name: m.value for m in node.matchers.matchers}, {label for by in around for label in by})
            )

    def leave(node: promql.Expr) -> None:
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            around.pop()

    promql.walk(promql.parse(expr), enter, leave)
    assert found
    yield from found


EXPRESSIONS = {
    **{of: replaced(target["expr"]) for of, target in QUERIES.items()},
    **{rule["alert"]: rule["expr"] for rule in RULES},
}


@pytest.mark.parametrize("of", EXPRESSIONS)
def test_an_expression_asks_for_series_and_labels_that_a_gateway_has(series, of):
    for name, chosen, added in asked(EXPRESSIONS[of]):
        assert name in series
        assert chosen.keys() | added <= series[name]


@pytest.mark.parametrize("of", EXPRESSIONS)
def test_an_expression_asks_for_words_that_a_gateway_counts_by_or_its_how_to_explains(page, of):
    samples = [sample for family in text_string_to_metric_families(page.decode()) for sample in family.samples]
    known = {value for sample in samples for value in sample.labels.values()} | set(get_args(VerdictKind))
    known.update(re.findall(r"`(\w+)`", SERIES.read_text("utf-8")))
    for _, chosen, _ in asked(EXPRESSIONS[of]):
        for word in "|".join(chosen.values()).split("|") if chosen else ():
            assert re.fullmatch(r"http_4\d\d", word) or any(re.fullmatch(word, each) for each in known), word


def test_the_dashboard_shows_every_series(series):
    shown = {name for of in QUERIES for name, *_ in asked(EXPRESSIONS[of])}
    assert {name for name in series if not name.endswith(("_sum", "_count"))} == shown


@pytest.mark.parametrize("variable", [name for name in VARIABLES if name != "datasource"])
def test_a_filter_offers_the_values_of_its_label(series, variable):
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", VARIABLES[variable])
    assert found
    assert found[2] == variable
    ((name, chosen, _),) = asked(replaced(found[1]))
    assert chosen.keys() | {variable} <= series[name]


@pytest.mark.parametrize("of", QUERIES)
def test_a_query_is_filtered_by_all_that_its_series_have_and_named_by_what_it_is_added_up_by(series, of):
    target = QUERIES[of]
    for name, chosen, added in asked(EXPRESSIONS[of]):
        assert {*SCRAPED, "client", "route", "upstream"} & series[name] <= chosen.keys()
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) == added - {"le"}
    assert set(re.findall(r"\$(\w+)", target["expr"])) <= {*VARIABLES, "__rate_interval"}


# -- the dashboard -----------------------------------------------------------------------------------------------------


def test_grafanas_library_reads_the_whole_dashboard():
    register_default_plugins()
    again = JSONEncoder(sort_keys=True).encode(Dashboard.from_json(BOARD))
    assert json.loads(again)["panels"] == BOARD["panels"]
    assert json.loads(again)["templating"] == BOARD["templating"]


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    ids = Counter(panel["id"] for panel in BOARD["panels"])
    assert set(ids.values()) == {1}
    cells = []
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells.append(
            set(product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])))
        )
    assert not any(one & another for one, another in combinations(cells, 2))
    rows = Counter(place[1] for place in set().union(*cells))
    assert set(rows.values()) == {24}  # nor are there gaps


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart["title"])
def test_a_panel_says_in_a_sentence_or_two_what_it_shows_in_which_unit_and_of_which_source(chart):
    assert re.fullmatch(r"[A-Z][^.]*\.( [A-Z`][^.]*\.)?", chart["description"])
    assert chart["fieldConfig"]["defaults"]["unit"] in UNITS
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert [source] * (1 + len(chart["targets"])) == [
        chart["datasource"],
        *(target["datasource"] for target in chart["targets"]),
    ]
    assert len({target["refId"] for target in chart["targets"]}) == len(chart["targets"])


def test_the_how_to_explains_every_panel_and_every_alert():
    text = PAGE.read_text("utf-8")
    rows = [panel["title"] for panel in BOARD["panels"] if panel["type"] == "row"]
    lines = [f"| {chart['title']} | {chart['description']} |" for chart in CHARTS]
    assert [line for line in text.splitlines() if line in lines] == lines
    assert re.findall(r"^\*\*(.+)\*\*$", text, re.MULTILINE) == rows
    assert re.findall(r"^\| `(Streamkit\w+)` \|", text, re.MULTILINE) == [rule["alert"] for rule in RULES]


# -- the alerts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_waits_and_says_how_grave_it_is_and_what_it_is_about(rule):
    assert re.fullmatch(r"[1-9]\d*m", rule["for"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"].keys() == {"summary", "description"}
    assert all(text.endswith(".") for text in rule["annotations"].values())
    before = ALERTS.read_text("utf-8").partition(f"- alert: {rule['alert']}\n")[0]
    assert "# Tune: " in before.rpartition("\n\n")[2] or "# Tune: " in before.rpartition("rules:\n")[2]


def test_alerts_and_panels_judge_the_same_attempts_and_no_answer_is_a_failure():
    expr = next(rule["expr"] for rule in RULES if rule["alert"] == "StreamkitUpstreamFailing")
    failed, judged = re.findall(r'outcome!~"([^"]+)"', expr)
    assert re.findall(r'outcome!~"([^"]+)"', QUERIES["Share of attempts that failed: A"]["expr"]) == [failed, judged]
    assert set(failed.split("|")) > ANSWERS | set(judged.split("|"))


def test_every_alert_is_seen_to_fire():
    tests = yaml.safe_load(ALERTS_TEST.read_text("utf-8"))["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case.get("exp_alerts")}
    assert fired == {rule["alert"] for rule in RULES}


# -- Prometheus --------------------------------------------------------------------------------------------------------


def promtool(*words: object, text: bytes = b"") -> None:
    done = subprocess.run([PROMTOOL, *map(str, words)], input=text, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


@needs_promtool
def test_promtool_finds_nothing_in_metrics(page):
    promtool("check", "metrics", text=page)


@needs_promtool
def test_promtool_takes_the_alerts_and_every_expression(tmp_path):
    recorded = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(EXPRESSIONS.values())]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}), "utf-8")
    promtool("check", "rules", ALERTS, file)


@needs_promtool
def test_promtool_takes_the_configuration_that_the_page_shows(tmp_path):
    shutil.copy(ALERTS, tmp_path)
    file = tmp_path / "prometheus.yml"
    file.write_text(re.findall(r"```yaml\n(# prometheus.yml.+?)```", README.read_text("utf-8"), re.DOTALL)[0], "utf-8")
    promtool("check", "config", file)


@needs_promtool
def test_the_alerts_fire_when_they_should_and_only_then():
    promtool("test", "rules", ALERTS_TEST)


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
async def test_prometheus_has_an_answer_to_every_query_of_the_dashboard(tmp_path):
    """Scraped before and after everything happened a second time, so that every counter grows in between."""
    port = free_port()
    async with watched(tmp_path) as gateway, ClientSession(f"http://127.0.0.1:{port}") as session:
        await gateway.play()
        async with prometheus(tmp_path, port, gateway.url.split("/")[2]):

            async def results(expr: str) -> list[object]:
                try:
                    async with session.get("/api/v1/query", params={"query": expr}) as response:
                        return (await response.json())["data"]["result"]
                except ClientConnectionError:
                    return []  # it begins

            await eventually_has(results, "count_over_time(streamkit_streams_active[1m]) >= 2")
            await gateway.play()
            for of, target in QUERIES.items():
                await eventually_has(results, replaced(target["expr"], "1m"), of)


@asynccontextmanager
async def prometheus(folder: Path, port: int, target: str) -> AsyncIterator[None]:
    jobs = [{"job_name": "streamkit", "static_configs": [{"targets": [target]}]}]
    (folder / "prometheus.yml").write_text(
        yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}), "utf-8"
    )
    process = await asyncio.create_subprocess_exec(
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def eventually_has(results: Callable[[str], Awaitable[list[object]]], expr: str, of: str = "") -> None:
    for _ in range(100):
        if any(float(result["value"][1]) == float(result["value"][1]) for result in await results(expr)):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"no answer to {of} {expr}")
