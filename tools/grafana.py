"""Write ``docs/grafana/streamkit.json``: the dashboard of a gateway's ``/metrics``, for Grafana 10 and later.

python tools/grafana.py            # write the file; tests/docs/test_grafana.py fails if it lags

``ROWS`` is all that is ours: what each panel asks, and of which series. The JSON is Grafana's own library's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import frozen
from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    GraphGradientMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "grafana" / "streamkit.json"
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
#: The labels that a scrape adds, by which every panel is filtered.
SCRAPE: Final = ("job", "instance")
#: Each filter above the dashboard, and the series that has all of its values.
FILTERS: Final = {
    "job": "streamkit_streams_active",
    "instance": 'streamkit_streams_active{job=~"$job"}',
    "client": 'streamkit_requests_total{job=~"$job",instance=~"$instance"}',
    "route": 'streamkit_requests_total{job=~"$job",instance=~"$instance"}',
    "upstream": 'streamkit_attempts_total{job=~"$job",instance=~"$instance"}',
}
#: Attempts that say nothing of their upstream: it was not asked, or nobody waited for its answer any more.
NOT_JUDGED: Final = "client_left|client_stalled|shut_down|request_unfit"
#: Attempts that are no failure of their upstream: those, its answers, requests that are wrong, and the gateway's own faults.
NOT_FAILED: Final = f"success|answered|tool_choice_ignored|counted|failed|http_400|http_413|http_422|{NOT_JUDGED}"
COLUMNS, PANEL_HEIGHT = 24, 8


@frozen
class Query:
    """An expression, and the name of each of its lines with labels as ``{{label}}``."""

    expr: str
    legend: str


@frozen
class Panel:
    """A chart over time; ``unit`` is Grafana's id of a unit, ``stacked`` is for parts of one whole."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    stacked: bool = False


def of(series: str, *filters: str, only: str = "") -> str:
    """The selector of a series: those chosen above the dashboard, of them ``only`` what another matcher says."""
    matchers = [f'{label}=~"${label}"' for label in (*SCRAPE, *filters)]
    return f"streamkit_{series}{{{','.join([*matchers, *([only] if only else [])])}}}"


def rate(series: str, by: str, *filters: str, only: str = "") -> str:
    """How much a counter grows in a second, by labels."""
    return f"sum by ({by}) (rate({of(series, *filters, only=only)}[$__rate_interval]))"


def per_minute(series: str, by: str, *filters: str) -> str:
    return f"60 * {rate(series, by, *filters)}"


def share(series: str, *filters: str, part: str, whole: str) -> tuple[Query, ...]:
    """For each upstream, how much of what one matcher takes of a counter another one takes."""
    parts, wholes = (rate(series, "upstream", *filters, only=only) for only in (part, whole))
    return (Query(f"{parts} / {wholes}", "{{upstream}}"),)


def quantiles(
    histogram: str, by: str, *filters: str, only: str = "", shares: tuple[float, ...] = (0.5, 0.95)
) -> tuple[Query, ...]:
    buckets = rate(f"{histogram}_bucket", f"le, {by}", *filters, only=only)
    return tuple(
        Query(f"histogram_quantile({share}, {buckets})", f"p{share * 100:.0f} {{{{{by}}}}}") for share in shares
    )


ROWS: Final = {
    "Traffic": (
        Panel(
            "Requests by ending",
            "How many requests end in a second, and how, as their clients saw it.",
            "reqps",
            (Query(rate("requests_total", "ending", "client", "route"), "{{ending}}"),),
            stacked=True,
        ),
        Panel(
            "Requests by client and route",
            "Which clients' dialects ask for which routes.",
            "reqps",
            (Query(rate("requests_total", "client, route", "client", "route"), "{{client}} {{route}}"),),
            stacked=True,
        ),
        Panel(
            "Streams and sockets",
            "How many answers are under way, and how many WebSockets are open.",
            "short",
            (
                Query(f"sum({of('streams_active')})", "answers under way"),
                Query(f"sum({of('sockets_open')})", "WebSockets open"),
            ),
        ),
    ),
    "Latency": (
        Panel(
            "First output by upstream",
            "How long an upstream takes from being asked to its first text, reasoning or call.",
            "s",
            quantiles("first_output_seconds", "upstream", "upstream", "route"),
        ),
        Panel(
            "First output by route",
            "How long a client waits for the first text, reasoning or call, all tries with upstreams included.",
            "s",
            quantiles("request_first_output_seconds", "route", "client", "route"),
        ),
        Panel(
            "First byte by route",
            "How long a client waits for the first byte of an answer, which may come before any output.",
            "s",
            quantiles("first_byte_seconds", "route", "client", "route"),
        ),
        Panel(
            "Duration of whole answers",
            "How long a request takes whose client got all of its answer; those that failed or were left do not count.",
            "s",
            quantiles("request_seconds", "route", "client", "route", only='ending="whole"'),
        ),
        Panel(
            "Overhead of the gateway",
            "How long the gateway itself takes: until it asks, and from the first output to the answer's first byte.",
            "s",
            quantiles("overhead_seconds", "route", "client", "route"),
        ),
    ),
    "Pace": (
        Panel(
            "Gaps between outputs",
            "How long a model is silent between two outputs of an answer.",
            "s",
            quantiles("output_gap_seconds", "upstream", "upstream"),
        ),
        Panel(
            "Stalls",
            "How often a model was silent for so long, in the middle of an answer, that the gateway calls it a stall.",
            "cpm",
            (Query(per_minute("stalls_total", "upstream", "upstream"), "{{upstream}}"),),
        ),
        Panel(
            "Output tokens per second",
            "How fast streams go on behind their first output: p5 is what one in twenty does not reach.",
            "suffix:tokens/s",
            quantiles("output_tokens_per_second", "upstream", "upstream", "route", shares=(0.5, 0.05)),
        ),
        Panel(
            "Keep-alives",
            "How often the gateway keeps a connection open while its upstream is silent.",
            "cpm",
            (Query(per_minute("keep_alives_total", "client", "client"), "{{client}}"),),
        ),
    ),
    "Tokens and stops": (
        Panel(
            "Tokens by type",
            "How many tokens are read and written in a second; cached ones are part of input, reasoning is part of output.",
            "suffix:tokens/s",
            (Query(rate("tokens_total", "type", "upstream", "route"), "{{type}}"),),
        ),
        Panel(
            "Share of input from a cache",
            "How much of the input an upstream had in its cache.",
            "percentunit",
            share("tokens_total", "upstream", "route", part='type="input_cached"', whole='type="input"'),
        ),
        Panel(
            "Stop reasons",
            "Why models stop: `length` was cut by a limit of tokens, `none` broke off.",
            "reqps",
            (Query(rate("stops_total", "reason", "upstream"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "Answers without usage",
            "How many answers are missing in the counts of tokens, since their upstream told none.",
            "cpm",
            (
                Query(
                    per_minute("usage_unknown_total", "upstream, ending", "upstream"), "{{upstream}}, ended {{ending}}"
                ),
            ),
        ),
    ),
    "Upstreams": (
        Panel(
            "Attempts by outcome",
            "How each try with an upstream went.",
            "reqps",
            (Query(rate("attempts_total", "outcome", "upstream"), "{{outcome}}"),),
            stacked=True,
        ),
        Panel(
            "Share of attempts that failed",
            "Which upstreams fail, and how often; an upstream without a line was not asked.",
            "percentunit",
            share("attempts_total", "upstream", part=f'outcome!~"{NOT_FAILED}"', whole=f'outcome!~"{NOT_JUDGED}"'),
        ),
        Panel(
            "Attempt time",
            "How long a try takes that brings an answer.",
            "s",
            quantiles("attempt_seconds", "upstream", "upstream", only='outcome=~"success|answered"'),
        ),
    ),
    "Repairs, losses and tool calls": (
        Panel(
            "Repairs of answers",
            "Which rules of its own dialect an upstream breaks, and how often the gateway mends it.",
            "cpm",
            (Query(per_minute("repairs_total", "upstream, kind", "upstream"), "{{upstream}} {{kind}}"),),
        ),
        Panel(
            "Repairs of requests",
            "Which rules of its own dialect a client breaks.",
            "cpm",
            (Query(per_minute("request_repairs_total", "client, kind", "client"), "{{client}} {{kind}}"),),
        ),
        Panel(
            "Losses",
            "What a dialect could not carry, of requests and of answers.",
            "cpm",
            (Query(per_minute("losses_total", "kind, way", "upstream", "client"), "{{kind}} of the {{way}}"),),
        ),
        Panel(
            "Tool calls by verdict",
            "Whether the arguments of finished calls are whole JSON objects.",
            "cpm",
            (Query(per_minute("tool_calls_total", "verdict", "upstream"), "{{verdict}}"),),
            stacked=True,
        ),
    ),
    "Resuming": (
        Panel(
            "Requests for the rest of an answer",
            "Whether clients that come back get the rest of their answers.",
            "cpm",
            (Query(per_minute("resumes_total", "result"), "{{result}}"),),
        ),
        Panel(
            "Answers kept",
            "How many answers can be read on, under way and ended.",
            "short",
            (
                Query(f"sum({of('logs_live')})", "under way"),
                Query(f"sum({of('logs_kept')})", "ended, in the gateways' memory"),
            ),
        ),
        Panel(
            "Answers lost or not kept since the start",
            "How many answers nobody can come back to, and why, since each gateway started.",
            "short",
            (
                Query(f"sum by (why) ({of('logs_lost_total')})", "lost: {{why}}"),
                Query(f"sum by (why) ({of('not_resumable_total')})", "not kept: {{why}}"),
            ),
        ),
        Panel(
            "Bytes of answers",
            "How much the answers that are kept take of the gateways' memory, and how much waits for the store.",
            "bytes",
            (
                Query(f"sum({of('log_bytes')})", "in memory"),
                Query(f"sum({of('log_behind_bytes')})", "wait for the store"),
            ),
        ),
        Panel(
            "Seconds behind",
            "For how long bytes have been waiting for the store, at each gateway.",
            "s",
            (Query(f"max by (instance) ({of('log_behind_seconds')})", "{{instance}}"),),
        ),
        Panel(
            "Errors of the store since the start",
            "How many calls to the store failed, and how, since each gateway started.",
            "short",
            (Query(f"sum by (kind) ({of('store_errors_total')})", "{{kind}}"),),
        ),
    ),
    "Recording": (
        Panel(
            "Exchanges since the start",
            "How many exchanges with upstreams are recorded, and how many are not, or not to their end, and why.",
            "short",
            (
                Query(f"sum({of('recorder_files_total')})", "recorded"),
                Query(f"sum by (why) ({of('recorder_unrecorded_total')})", "not recorded: {{why}}"),
            ),
        ),
        Panel(
            "Bytes written since the start",
            "How much the recordings of each gateway take of its disk.",
            "bytes",
            (Query(f"sum by (instance) ({of('recorder_bytes_total')})", "{{instance}}"),),
        ),
        Panel(
            "Reads left out since the start",
            "How many reads are in no recording, since the disk was too slow.",
            "short",
            (Query(f"sum by (instance) ({of('recorder_dropped_total')})", "{{instance}}"),),
        ),
    ),
}


def chart(number: int, panel: Panel, width: int) -> timeseries.Panel:
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.BOTTOM)
    built = (
        timeseries.Panel()
        .id(number)
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .height(PANEL_HEIGHT)
        .span(width)
        .unit(panel.unit)
        .min(0)
        .gradient_mode(GraphGradientMode.NONE)
        .fill_opacity(25 if panel.stacked else 0)
        .stacking(common.StackingConfig().mode(StackingMode.NORMAL if panel.stacked else StackingMode.NONE).group("A"))
        .legend(legend.show_legend(True).calcs(["mean", "max"]))
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    for letter, query in zip("ABC", panel.queries, strict=False):
        built.with_target(
            prometheus.Dataquery()
            .ref_id(letter)
            .datasource(SOURCE)
            .expr(query.expr)
            .legend_format(query.legend)
            .range()
        )
    return built


def built() -> str:
    """The dashboard's JSON."""
    board = (
        dashboard.Dashboard("streamkit gateway")
        .uid("streamkit-gateway")
        .description("What a streamkit gateway's /metrics says: docs/how-to/watch-the-gateway.md explains each panel.")
        .tags(["streamkit", "llm"])
        .time("now-6h", "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    every = VariableOption(selected=True, text=["All"], value=["$__all"])
    for label, series in FILTERS.items():
        board.with_variable(
            dashboard.QueryVariable(label)
            .label(label)
            .datasource(SOURCE)
            .query(f"label_values({series}, {label})")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .all_value(".*")
            .current(every)
        )
    number = 0
    for title, panels in ROWS.items():
        number += 1
        board.with_row(dashboard.Row(title).id(number))
        for place, panel in enumerate(panels):
            number += 1
            board.with_panel(chart(number, panel, width_of(place, len(panels))))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def width_of(place: int, panels: int) -> int:
    """Three panels in a line of a row; those of its last line share that, and four stand two by two."""
    if panels == 4:
        return COLUMNS // 2
    left = panels - place // 3 * 3
    return COLUMNS // min(left, 3)


if __name__ == "__main__":
    FILE.write_text(built(), "utf-8")
