"""Makes the dashboards: `make dashboards` writes deploy/grafana/dashboards/*.json.

What they show is the tables of deploy/grafana/boards; grafana-foundation-sdk (of the extra `test`)
gives it Grafana's form. tests/architecture/test_dashboards.py compares the files, and every query
is asked of a real Prometheus in tests/integration/desk/test_watched.py.
"""

import json
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

from deploy.grafana.boards.desk import DESK
from deploy.grafana.boards.health import HEALTH
from deploy.grafana.boards.panels import Board, FigurePanel, Graph, PanelRow

FOLDER = Path(__file__).parent / "dashboards"
PROMETHEUS = DataSourceRef(type_val="prometheus", uid="prometheus")
BOARDS = (HEALTH, DESK)
WIDTH = 24
FIGURES_WIDTH_MAX = 12


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
            builder.with_panel(
                _figure(panel, row) if isinstance(panel, FigurePanel) else _graph(panel)
            )
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


def _figure(figure: FigurePanel, row: PanelRow) -> stat.Panel:
    beside = sum(isinstance(each, FigurePanel) for each in row.panels)
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


def _thresholds(figure: FigurePanel) -> dashboard.ThresholdsConfig:
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
