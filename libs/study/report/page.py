"""A study on one page that needs nothing else.

`page` is pure: a report in, one HTML text out, the same for the same report. The page runs no
script and makes no request, and every text of a model or a person is escaped.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from contracts.message import PAGE_MAX
from contracts.study import CELL_KINDS, CellView, StudyCells, StudyCellsQuery
from libs.facts import amounts
from libs.report.strategies import page as strategy
from libs.report.strategies.chart import Chart, ChartLine
from libs.report.templates import templates_in
from libs.report.tones import Tone
from libs.study.report.parts import ReportCurves, StudyReport

TEMPLATES = Path(__file__).with_name("templates")
CELLS_MAX = 1_000
"""Cells that the page lists; others are listed by `deskbus study cells`."""
COLOURS = ("own", "hold", "gain", "loss", "third", "fourth", "fifth", "sixth", "plain")
"""Of lines, in their order; after the last one the first again."""
TONES = {Tone.GOOD: "gain", Tone.BAD: "loss", Tone.WARN: "loss", Tone.QUIET: "soft"}


def page(report: StudyReport, cells: Sequence[CellView] = ()) -> str:
    """The whole page; arms link to the lists of their cells at its end."""
    lists: dict[str, list[CellView]] = {}
    for cell in cells:
        lists.setdefault(f"#{cell.kind}-{cell.arm}", []).append(cell)
    styles = (strategy.TEMPLATES / "strategy.css", TEMPLATES / "study.css")
    style = "\n".join(path.read_text(encoding="utf-8") for path in styles)
    return (
        _templates()
        .get_template("study.html")
        .render(
            style=Markup(style),  # noqa: S704 - ours
            it=report,
            lists=lists,
            listed_max=CELLS_MAX,
            charts={
                section.title: _chart(section.curves)
                for section in report.sections
                if section.curves
            },
        )
    )


async def listed(
    name: str, ask: Callable[[StudyCellsQuery], Awaitable[StudyCells]]
) -> Sequence[CellView]:
    """The study's cells, as many as the page lists of each kind."""
    cells: list[CellView] = []
    for kind in CELL_KINDS:
        for skip in range(0, CELLS_MAX, PAGE_MAX):
            view = await ask(StudyCellsQuery(name=name, kind=kind, skip=skip, limit=PAGE_MAX))
            cells += view.cells
            if not view.more:
                break
    return cells


@cache
def _templates() -> Environment:
    templates = templates_in(TEMPLATES, strategy.TEMPLATES)
    templates.globals.update(colour_of=colour_of, tones=TONES)
    templates.filters.update(short=amounts.short, share=strategy.share)
    return templates


def colour_of(number: int) -> str:
    """The colour of a line by its number."""
    return COLOURS[number % len(COLOURS)]


def _chart(curves: ReportCurves) -> Chart:
    places = range(len(curves.points))
    titles = [
        f"{curves.points[at]}: "
        + "; ".join(f"{line.name} {line.values[at]:+.2f}%" for line in curves.lines)
        for at in places
    ]
    return Chart(
        [ChartLine(line.values, colour_of(number)) for number, line in enumerate(curves.lines)],
        titles,
        "{:.4g}%".format,
        strategy.date_ticks(curves.points),
        label=curves.label,
        tall=True,
    )
