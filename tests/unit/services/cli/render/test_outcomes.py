"""How a decision fared, in the terminal."""

from contracts.cycle_query import CycleView
from contracts.memory import DecisionOutcome
from tests.unit.report.test_outcomes import MONTH, WEEK
from tests.unit.services.cli.render.test_evidence import _of_ticker
from tests.unit.services.cli.render.test_story import _line_with, _told


def with_outcomes(view: CycleView, *outcomes: DecisionOutcome) -> CycleView:
    (pipeline,) = view.pipelines
    seen = pipeline.model_copy(update={"outcomes": outcomes})
    return view.model_copy(update={"pipelines": (seen,)})


def test_a_past_decision_shows_each_pick_beside_all_candidates(cycle_view: CycleView) -> None:
    text = _told(with_outcomes(cycle_view, WEEK, MONTH))

    head = " ".join(_line_with(text, "after 20").split())
    assert head.endswith("counted from after 5, 2012-07-09 after 20, 2012-07-30")
    (bought,) = [line for line in text.splitlines() if "the fill" in line]
    assert bought.split() == ["AAPL", "bought", "the", "fill", "+4.93%", "+4.93%"]
    assert _line_with(text, "GOOG    vetoed").split()[-1] == "-"
    assert _line_with(text, "3 candidates in equal parts").split()[-2:] == ["-0.61%", "-"]


def test_what_is_missing_says_why_and_cannot_move_the_cursor(cycle_view: CycleView) -> None:
    text = _told(with_outcomes(cycle_view, WEEK, MONTH))

    assert "after 5: GOOG was  [31mdelisted" in text


def test_without_an_outcome_there_is_no_table(cycle_view: CycleView) -> None:
    assert "counted from" not in _told(cycle_view)


def test_a_tickers_evidence_says_how_it_fared(cycle_view: CycleView) -> None:
    view = with_outcomes(cycle_view, WEEK)

    bought = "after 5 sessions, 2012-07-09: +4.93% from the fill, 585.03 USD to 613.89 USD"
    assert bought in _of_ticker(view, [], "AAPL")
    assert "- (GOOG was [31mdelisted)" in _of_ticker(view, [], "GOOG")
    assert "Outcome" not in _of_ticker(view, [], "IBM")


def test_outcomes_of_a_later_version_are_counted(cycle_view: CycleView) -> None:
    (pipeline,) = cycle_view.pipelines
    newer = pipeline.model_copy(update={"unreadable_outcomes": 2})
    text = _told(cycle_view.model_copy(update={"pipelines": (newer,)}))

    line = _line_with(text, "cannot be read")
    assert line.split()[:2] == ["Outcomes", "2"]
