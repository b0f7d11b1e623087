"""How many figures of a decision have a source, in one line."""

from uuid import UUID

from contracts.cycle_query import PipelineView
from contracts.reasons import Figure, Loose
from contracts.research import QuantReport
from libs.report.figures import in_short, loose
from libs.report.reports import Reports

REPORT = {
    "cycle_id": str(UUID(int=1)),
    "op_id": str(UUID(int=2)),
    "as_of": "2012-06-29",
    "signal": "bullish",
    "confidence": 0.5,
    "reasoning": "",
    "assets": [{"ticker": "AAPL", "signal": "bullish", "confidence": 0.5, "reasoning": ""}],
}
FIGURE = Figure(field="assets.0.reasoning", start=0, text="584.00 USD", facts=("AAPL.close",))


def made(figures: int, *numbers: str) -> Reports:
    without = tuple(Loose(field="reasoning", start=0, text=number) for number in numbers)
    report = QuantReport.model_validate(REPORT).model_copy(
        update={"figures": (FIGURE,) * figures, "loose": without}
    )
    view = PipelineView.model_construct(contracts={"quant_report": report.model_dump(mode="json")})
    return Reports.of(view)


def test_it_counts_the_figures_and_names_the_numbers_without_a_source() -> None:
    told = in_short(made(91, "58.55"))
    assert told == "91 sourced, 1 unsourced: 58.55 (quant)"


def test_it_says_so_where_every_figure_has_a_source_and_nothing_where_there_are_none() -> None:
    assert in_short(made(3)) == "3 sourced, 0 unsourced"
    assert in_short(made(0)) == ""


def test_a_long_list_is_cut() -> None:
    nine = made(0, *(f"{number}%" for number in range(9)))
    assert in_short(nine).endswith(
        "9 unsourced: 0% (quant), 1% (quant), 2% (quant), 3% (quant), 4% (quant) and 4 more"
    )
    assert len(loose(nine)) == 9


def test_what_a_model_writes_cannot_paint_the_terminal() -> None:
    assert "\x1b" not in in_short(made(0, "9\x1b[31m"))
