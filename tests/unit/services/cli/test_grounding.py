"""The line about grounding in the story of a cycle."""

from uuid import UUID

from contracts.grounding import Grounding, Ungrounded
from contracts.query import PipelineView
from contracts.research import QuantReport
from libs.report.made import Made
from services.cli import grounding

REPORT = {
    "cycle_id": str(UUID(int=1)),
    "op_id": str(UUID(int=2)),
    "as_of": "2012-06-29",
    "signal": "bullish",
    "confidence": 0.5,
    "reasoning": "",
    "assets": [{"ticker": "AAPL", "signal": "bullish", "confidence": 0.5, "reasoning": ""}],
}


def told(found: Grounding | None) -> list[str]:
    report = QuantReport.model_validate(REPORT).model_copy(update={"grounding": found})
    view = PipelineView.model_construct(contracts={"quant_report": report.model_dump(mode="json")})
    return [text.plain for _, text in grounding.told(Made.by(view))]


def test_it_says_how_many_figures_were_checked_and_which_are_not_traced() -> None:
    mark = Ungrounded(figure="58.55", field="assets.reasoning", about="AAPL")
    line = "148 figures checked, 1 not traced: 58.55 (quant on AAPL)"
    assert told(Grounding(checked=148, ungrounded=(mark,))) == [line]


def test_it_says_so_where_all_are_traced_and_nothing_of_an_older_record() -> None:
    assert told(Grounding(checked=3)) == ["3 figures checked, 0 not traced"]
    assert told(None) == []


def test_a_long_list_is_cut() -> None:
    marks = tuple(Ungrounded(figure=f"{n}%", field="reasoning") for n in range(9))
    (line,) = told(Grounding(checked=20, ungrounded=marks, marks_omitted=2))
    assert line.endswith("4% (quant) and 6 more")
    assert "11 not traced" in line
