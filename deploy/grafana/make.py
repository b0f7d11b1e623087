"""Makes the dashboards: `make dashboards` writes deploy/grafana/dashboards/*.json.

What they show is the tables below; grafana-foundation-sdk (of the extra `test`) gives it Grafana's
form. tests/architecture/test_dashboards.py compares the files, and every query is asked of a real
Prometheus in tests/integration/desk/test_watched.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
)

FOLDER = Path(__file__).parent / "dashboards"
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="prometheus")
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Graph:
    """Lines over time: queries by the words of their legend."""

    title: str
    about: str
    unit: str
    queries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figure:
    """One number. From `red_from` on, or up to `red_to`, it is red."""

    title: str
    about: str
    unit: str
    query: str
    red_from: float | None = None
    red_to: float | None = None


@dataclass(frozen=True)
class Row:
    """Panels side by side below a title."""

    title: str
    panels: Sequence[Graph | Figure]


@dataclass(frozen=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    about: str
    rows: Sequence[Row]


def p95(metric: str, by: str) -> str:
    """Below which 95% of a histogram's measures lie."""
    return f"histogram_quantile(0.95, sum by ({by}, le) (rate({metric}_bucket{RATE})))"


def rate(metric: str, by: str) -> str:
    """How often a second."""
    return f"sum by ({by}) (rate({metric}{RATE}))"


AVERAGE_INPUTS = (
    f"sum(rate(deskbus_commit_inputs_sum{RATE})) / sum(rate(deskbus_commit_inputs_count{RATE}))"
)

DESK = Board(
    "deskbus-desk",
    "Deskbus: desk",
    "What runs, what failed, what waits.",
    (
        Row(
            "Now",
            (
                Figure(
                    "Checks that fail",
                    "Of readiness, over all processes.",
                    "none",
                    "count(deskbus_ready == 0) or vector(0)",
                    red_from=1,
                ),
                Figure(
                    "Cycles running",
                    "Of all kinds.",
                    "none",
                    "sum(max by (kind) (deskbus_cycles_running)) or vector(0)",
                ),
                Figure(
                    "Waiting for a person",
                    "Proposals.",
                    "none",
                    "max(deskbus_approvals_waiting)",
                ),
                Figure(
                    "Oldest untaken work",
                    "Operations whose command nobody has claimed or answered.",
                    "s",
                    "max(deskbus_outbox_seconds)",
                    red_from=120,
                ),
                Figure(
                    "Dead letters", "Kept.", "none", "max(deskbus_dead_letters_kept)", red_from=1
                ),
                Figure("Halts", "That stand.", "none", "max(deskbus_halts)", red_from=1),
            ),
        ),
        Row(
            "Cycles",
            (
                Graph(
                    "Cycles that ended, an hour",
                    "By kind and status.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_cycles_total', 'kind, status')}",
                            "{{kind}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a cycle took",
                    "95% were faster; waiting for people included.",
                    "s",
                    ((p95("deskbus_cycle_seconds", "kind"), "{{kind}}"),),
                ),
            ),
        ),
        Row(
            "Messages to people",
            (
                Graph(
                    "Messages, an hour",
                    "By channel and what became of them; one that failed is tried again.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_notices_total', 'channel, outcome')}",
                            "{{channel}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "Waiting and overdue",
                    "Messages of a channel that wait, and how late the oldest is.",
                    "short",
                    (
                        ("max by (channel) (deskbus_notices_waiting)", "{{channel}} waiting"),
                        (
                            "max by (channel) (deskbus_notices_overdue_seconds)",
                            "{{channel}} late, s",
                        ),
                        (
                            "max by (channel) (deskbus_notice_failures)",
                            "{{channel}} failed tries",
                        ),
                    ),
                ),
                Graph(
                    "From an event to its message",
                    "95% were faster; digests and quiet hours included.",
                    "s",
                    ((p95("deskbus_notice_seconds", "channel"), "{{channel}}"),),
                ),
            ),
        ),
        Row(
            "Operations",
            (
                Graph(
                    "Operations that ended, a minute",
                    "By step; failed ones apart.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_operations_total', 'step, status')}",
                            "{{step}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a handler worked",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_command_seconds", "subject"), "{{subject}}"),),
                ),
            ),
        ),
        Row(
            "Processes",
            (
                Graph(
                    "CPU",
                    "Cores in use, by process.",
                    "none",
                    ((f"sum by (process) (rate(process_cpu_seconds_total{RATE}))", "{{process}}"),),
                ),
                Graph(
                    "Memory",
                    "Resident, by process.",
                    "bytes",
                    (("sum by (process) (process_resident_memory_bytes)", "{{process}}"),),
                ),
                Graph(
                    "HTTP requests a second",
                    "By route and status.",
                    "reqps",
                    (
                        (
                            rate("deskbus_http_requests_total", "route, status"),
                            "{{route}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "Until the answer begins",
                    "95% of HTTP requests were faster.",
                    "s",
                    ((p95("deskbus_http_seconds", "route"), "{{route}}"),),
                ),
            ),
        ),
    ),
)

MODELS = Board(
    "deskbus-models",
    "Deskbus: models and cost",
    "What models are asked, what they answer, and what that costs.",
    (
        Row(
            "Budget",
            (
                Figure(
                    "Left of the day, US dollars",
                    "Of the UTC day.",
                    "currencyUSD",
                    "max(deskbus_day_cost_usd_left)",
                    red_to=1,
                ),
                Figure(
                    "Left of the day, tokens",
                    "Of the UTC day.",
                    "short",
                    "max(deskbus_day_tokens_left)",
                ),
                Figure(
                    "Spent in 24 hours",
                    "As the prices in force say.",
                    "currencyUSD",
                    "sum(increase(deskbus_model_cost_usd_total[24h]))",
                ),
            ),
        ),
        Row(
            "Calls",
            (
                Graph(
                    "Calls a minute",
                    "By provider and outcome.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_model_calls_total', 'provider, outcome')}",
                            "{{provider}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a model took",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_model_call_seconds", "provider"), "{{provider}}"),),
                ),
                Graph(
                    "Share of calls that failed",
                    "Of 15 minutes.",
                    "percentunit",
                    (("deskbus:model_calls_failed:ratio15m", "{{provider}}"),),
                ),
                Graph(
                    "Answers refused",
                    "That did not keep to their contract, a minute.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_model_answers_total', 'step, outcome')}",
                            "{{step}} {{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Cost",
            (
                Graph(
                    "US dollars an hour",
                    "By provider and step.",
                    "currencyUSD",
                    (
                        (
                            f"3600 * {rate('deskbus_model_cost_usd_total', 'provider, step')}",
                            "{{provider}} {{step}}",
                        ),
                    ),
                ),
                Graph(
                    "Tokens a minute",
                    "By provider and sort.",
                    "short",
                    (
                        (
                            f"60 * {rate('deskbus_model_tokens_total', 'provider, sort')}",
                            "{{provider}} {{sort}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Tools",
            (
                Graph(
                    "Tools called, a minute",
                    "By tool and outcome.",
                    "none",
                    (
                        (
                            f"60 * {rate('deskbus_tool_calls_total', 'tool, outcome')}",
                            "{{tool}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "How long a tool took",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_tool_call_seconds", "tool"), "{{tool}}"),),
                ),
            ),
        ),
    ),
)

BUS = Board(
    "deskbus-bus",
    "Deskbus: bus",
    "Commands, questions, commits and events on their way.",
    (
        Row(
            "Commands",
            (
                Graph(
                    "Waiting in the stream",
                    "Commands that no service has taken.",
                    "none",
                    (("max by (subject) (deskbus_consumer_pending)", "{{subject}}"),),
                ),
                Graph(
                    "How long a command waited",
                    "95% were taken sooner.",
                    "s",
                    ((p95("deskbus_command_queue_seconds", "subject"), "{{subject}}"),),
                ),
                Graph(
                    "Dealt with, a second",
                    "By service and outcome.",
                    "none",
                    (
                        (
                            rate("deskbus_commands_total", "service, outcome"),
                            "{{service}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "Taken and not acknowledged",
                    "By subject.",
                    "none",
                    (("max by (subject) (deskbus_consumer_unacknowledged)", "{{subject}}"),),
                ),
                Graph(
                    "Being worked on",
                    "By service.",
                    "none",
                    (("sum by (service) (deskbus_commands_running)", "{{service}}"),),
                ),
                Graph(
                    "Dead letters and inputs refused",
                    "What could not be used, an hour.",
                    "none",
                    (
                        ("max(deskbus_dead_letters_kept)", "dead letters kept"),
                        (f"3600 * sum(rate(deskbus_inputs_refused_total{RATE}))", "inputs refused"),
                    ),
                ),
            ),
        ),
        Row(
            "The orchestrator",
            (
                Graph(
                    "How long a commit took",
                    "Half, and 95%, were faster.",
                    "s",
                    (
                        (p95("deskbus_commit_seconds", "process"), "95% {{process}}"),
                        (
                            p95("deskbus_commit_seconds", "process").replace("0.95", "0.5"),
                            "50% {{process}}",
                        ),
                    ),
                ),
                Graph(
                    "Inputs in a commit",
                    "On average.",
                    "none",
                    (
                        (
                            AVERAGE_INPUTS,
                            "inputs",
                        ),
                    ),
                ),
                Graph(
                    "Inputs that wait",
                    "By orchestrator.",
                    "none",
                    (("sum by (process) (deskbus_inputs_waiting)", "{{process}}"),),
                ),
                Graph(
                    "Answered, a second",
                    "Claims, records, results and requests by their outcome.",
                    "none",
                    (
                        (
                            rate("deskbus_answers_total", "question, outcome"),
                            "{{question}} {{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Events",
            (
                Graph(
                    "Published, a second",
                    "By type.",
                    "none",
                    ((rate("deskbus_events_total", "type"), "{{type}}"),),
                ),
                Graph(
                    "Behind",
                    "Events that are still to be published, and how old the oldest is.",
                    "none",
                    (
                        ("max(deskbus_relay_unpublished)", "events"),
                        ("max(deskbus_relay_seconds)", "seconds"),
                    ),
                ),
            ),
        ),
        Row(
            "Questions",
            (
                Graph(
                    "Answered, a second",
                    "By subject and outcome.",
                    "none",
                    (
                        (
                            rate("deskbus_questions_total", "subject, outcome"),
                            "{{subject}} {{outcome}}",
                        ),
                    ),
                ),
                Graph(
                    "How long an answer took",
                    "95% were faster.",
                    "s",
                    ((p95("deskbus_question_seconds", "subject"), "{{subject}}"),),
                ),
            ),
        ),
    ),
)

LEDGER = Board(
    "deskbus-ledger",
    "Deskbus: ledger",
    "Accounts, orders and rules.",
    (
        Row(
            "Now",
            (
                Figure(
                    "Accounts out of balance",
                    "Anything but 0 is a defect.",
                    "none",
                    "max(deskbus_ledger_imbalance)",
                    red_from=1,
                ),
                Figure("Halts", "That stand.", "none", "max(deskbus_halts)", red_from=1),
                Figure(
                    "Orders in 24 hours",
                    "Placed at the broker.",
                    "none",
                    'sum(increase(deskbus_orders_total{status="placed"}[24h])) or vector(0)',
                ),
            ),
        ),
        Row(
            "Books",
            (
                Graph(
                    "Equity",
                    "At the newest close, by account.",
                    "short",
                    (
                        (
                            "max by (account, currency) (deskbus_account_equity)",
                            "{{account}} {{currency}}",
                        ),
                    ),
                ),
                Graph(
                    "Cash",
                    "Then, by account.",
                    "short",
                    (
                        (
                            "max by (account, currency) (deskbus_account_cash)",
                            "{{account}} {{currency}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            "Orders",
            (
                Graph(
                    "Orders an hour",
                    "By side and what became of them.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_orders_total', 'side, status')}",
                            "{{side}} {{status}}",
                        ),
                    ),
                ),
                Graph(
                    "What the rules did, an hour",
                    "Picks cut or vetoed, by rule.",
                    "none",
                    (
                        (
                            f"3600 * {rate('deskbus_rule_outcomes_total', 'rule, outcome')}",
                            "{{rule}} {{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
    ),
)

BOARDS = (DESK, MODELS, BUS, LEDGER)
WIDTH = 24
FIGURES_WIDTH_MAX = 8


def made(board: Board) -> str:
    """The dashboard as JSON."""
    builder = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.about)
        .tags(["deskbus"])
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
    )
    for row in board.rows:
        builder.with_row(dashboard.Row(row.title))
        for panel in row.panels:
            builder.with_panel(_figure(panel, row) if isinstance(panel, Figure) else _graph(panel))
    return json.dumps(builder.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _graph(graph: Graph) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .title(graph.title)
        .description(graph.about)
        .datasource(PROMETHEUS)
        .unit(graph.unit)
        .min(0)
        .span(WIDTH // 2)
        .height(8)
        .fill_opacity(8)
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs([])
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    for number, (query, legend) in enumerate(graph.queries):
        panel.with_target(_query(query, legend, number))
    return panel


def _figure(figure: Figure, row: Row) -> stat.Panel:
    beside = sum(isinstance(each, Figure) for each in row.panels)
    return (
        stat.Panel()
        .title(figure.title)
        .description(figure.about)
        .datasource(PROMETHEUS)
        .unit(figure.unit)
        .span(min(FIGURES_WIDTH_MAX, WIDTH // beside))
        .height(4)
        .graph_mode(BigValueGraphMode.AREA)
        .color_mode(BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(_thresholds(figure))
        .with_target(_query(figure.query, "", 0))
    )


def _thresholds(figure: Figure) -> dashboard.ThresholdsConfig:
    steps = [Threshold(value=None, color="green")]
    if figure.red_from is not None:
        steps.append(Threshold(value=figure.red_from, color="red"))
    if figure.red_to is not None:
        steps = [Threshold(value=None, color="red"), Threshold(value=figure.red_to, color="green")]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _query(query: str, legend: str, number: int) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .expr(query)
        .legend_format(legend)
        .ref_id("ABCDEF"[number])
        .datasource(PROMETHEUS)
    )


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(made(board))


if __name__ == "__main__":
    main()
