"""How a decision fared, as a person reads it."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import Side
from contracts.memory import (
    AgentMemory,
    Basis,
    Benchmark,
    DecisionOutcome,
    PickFate,
    PickOutcome,
)
from contracts.query import CycleView
from contracts.types import Failure
from services.cli import fared
from tests.unit.services.cli.test_evidence import _of_ticker
from tests.unit.services.cli.test_story import _line_with, _told

CYCLE_ID = UUID("4332d851-4ebc-510c-b28d-0f5c50338936")


def outcome(sessions: int, session: date, *picks: PickOutcome, **benchmark: Any) -> DecisionOutcome:
    return DecisionOutcome(
        cycle_id=CYCLE_ID,
        pipeline="claude",
        as_of=date(2012, 6, 29),
        sessions=sessions,
        session=session,
        picks=picks,
        benchmark=Benchmark(**benchmark),
    )


BOUGHT = PickOutcome(
    ticker="AAPL",
    action=Side.BUY,
    fate=PickFate.FILLED,
    basis=Basis.FILL,
    entry_price=Decimal("585.03"),
    exit_price=Decimal("613.89"),
    return_pct=Decimal("4.93"),
)
VETOED = PickOutcome(
    ticker="GOOG",
    action=Side.BUY,
    fate=PickFate.VETOED,
    basis=Basis.CLOSE,
    absence=Failure(code="no_history", message="GOOG was \x1b[31mdelisted"),
)
WEEK = outcome(5, date(2012, 7, 9), BOUGHT, VETOED, return_pct=Decimal("-0.61"), counted=3)
MONTH = outcome(20, date(2012, 7, 30), BOUGHT, counted=0, absent=("AAPL", "IBM"))


def with_outcomes(view: CycleView, *outcomes: DecisionOutcome) -> CycleView:
    (pipeline,) = view.pipelines
    seen = pipeline.model_copy(update={"outcomes": outcomes})
    return view.model_copy(update={"pipelines": (seen,)})


def test_a_past_decision_shows_each_pick_beside_all_candidates(cycle_view: CycleView) -> None:
    text = _told(with_outcomes(cycle_view, WEEK, MONTH))

    assert _line_with(text, "after 20").split() == ["after", "5", "after", "20"]
    assert _line_with(text, "counted from").split()[-2:] == ["2012-07-09", "2012-07-30"]
    (bought,) = [line for line in text.splitlines() if "the fill" in line]
    assert bought.split() == ["AAPL", "bought", "the", "fill", "+4.93%", "+4.93%"]
    assert _line_with(text, "GOOG    vetoed").split()[-1] == "-"
    assert _line_with(text, "3 candidates in equal parts").split()[-2:] == ["-0.61%", "-"]


def test_what_is_missing_says_why_and_cannot_move_the_cursor(cycle_view: CycleView) -> None:
    text = _told(with_outcomes(cycle_view, WEEK, MONTH))

    assert "after 5: GOOG was  [31mdelisted" in text
    assert "after 20: no prices of AAPL IBM among the candidates" in text


def test_without_an_outcome_nothing_is_said(cycle_view: CycleView) -> None:
    assert "counted from" not in _told(cycle_view)


def test_a_tickers_evidence_says_how_it_fared(cycle_view: CycleView) -> None:
    view = with_outcomes(cycle_view, WEEK)

    bought = "after 5 sessions, 2012-07-09: +4.93% from the fill, 585.03 to 613.89"
    assert bought in _of_ticker(view, [], "AAPL")
    assert "after 5 sessions, 2012-07-09: - (GOOG was [31mdelisted)" in _of_ticker(view, [], "GOOG")
    assert "Fared" not in _of_ticker(view, [], "IBM")


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_a_cycle_tells_what_it_has_learned_and_how_much_more_there_is(count: int) -> None:
    memory = AgentMemory(
        cycle_id=CYCLE_ID,
        op_id=CYCLE_ID,
        as_of=date(2012, 7, 9),
        short_term_summary="done",
        outcomes=(WEEK,) * count,
        track_record=tuple(f"sentence {number}" for number in range(10)),
    )
    text = fared.learned(memory)

    if not count:
        assert text is None
        return
    assert text is not None
    shown = min(count, fared.LEARNED_LISTED_MAX)
    expected = [f"sentence {number}" for number in range(shown)]
    more = [f"and {count - shown} more: --stage memorize"] if count > shown else []
    assert text.plain.splitlines() == [*expected, *more]


@pytest.mark.parametrize(
    ("action", "fate", "was"),
    [
        (Side.BUY, PickFate.FILLED, "bought"),
        (Side.SELL, PickFate.FILLED, "sold"),
        (Side.BUY, PickFate.WORKING, "ordered"),
        (Side.BUY, PickFate.NOT_ORDERED, "not ordered"),
        (Side.SELL, PickFate.VETOED, "sale vetoed"),
    ],
)
def test_what_became_of_a_pick_is_said(
    action: Side, fate: PickFate, was: str, cycle_view: CycleView
) -> None:
    pick = BOUGHT.model_copy(update={"action": action, "fate": fate})
    text = _told(with_outcomes(cycle_view, outcome(5, date(2012, 7, 9), pick)))

    assert f"AAPL    {was}  " in text
