"""What is said of how past decisions fared."""

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
from contracts.types import Failure, Money
from libs.report import outcomes
from libs.report.sections import text_of

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
    entry_price=Money(amount=Decimal("585.03")),
    exit_price=Money(amount=Decimal("613.89")),
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


def test_each_pick_stands_beside_all_candidates() -> None:
    bought, vetoed, equal = outcomes.rows([WEEK, MONTH])

    assert (bought.name, bought.fate, bought.counted_from) == ("AAPL", "bought", "the fill")
    assert bought.returns == {5: Decimal("4.93"), 20: Decimal("4.93")}
    assert (vetoed.name, vetoed.fate, vetoed.returns) == ("GOOG", "vetoed", {5: None})
    assert (equal.name, equal.fate) == ("", "3 candidates in equal parts")
    assert equal.returns == {5: Decimal("-0.61"), 20: None}


def test_what_is_missing_says_why() -> None:
    assert list(outcomes.missing([WEEK, MONTH])) == [
        "after 5: GOOG was  [31mdelisted",
        "after 20: no prices of AAPL IBM among the candidates",
    ]


def test_one_tickers_outcome_is_a_sentence_beside_all_candidates() -> None:
    (aapl,) = outcomes.of_ticker([WEEK], "AAPL")
    (goog,) = outcomes.of_ticker([WEEK], "GOOG")

    assert aapl == (
        "after 5 sessions, 2012-07-09: +4.93% from the fill, 585.03 USD to 613.89 USD"
        ", adjusted to that session; all candidates in equal parts -0.61%"
    )
    assert goog.startswith("after 5 sessions, 2012-07-09: - (GOOG was  [31mdelisted)")
    assert outcomes.of_ticker([WEEK], "IBM") == []


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
    learned = outcomes.learned(memory)

    shown = min(count, outcomes.LEARNED_LISTED_MAX)
    assert [text_of(line) for line in learned.shown] == [f"sentence {n}" for n in range(shown)]
    assert learned.more == (f"and {count - shown} more" if count > shown else "")


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
def test_what_became_of_a_pick_is_said(action: Side, fate: PickFate, was: str) -> None:
    pick = BOUGHT.model_copy(update={"action": action, "fate": fate})

    assert outcomes.rows([outcome(5, date(2012, 7, 9), pick)])[0].fate == was
