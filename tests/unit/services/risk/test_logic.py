"""The clamp and the evidence: what may reach the rules, and that they have the last word."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import Portfolio, Position, Side
from contracts.cycle import Budgets, CycleRequest
from contracts.facts import Moves
from contracts.message import Pipeline
from contracts.operation import JournalEntry
from contracts.research import AssetView, Plan, QuantReport, ResearchFinding, ResearchReport
from contracts.risk import DecisionValidation, PickReview, ValidateDecision
from contracts.trader import DailyPicks, PickPlan, StockPick
from contracts.types import ExchangeRate, Money
from libs.market.replay.market import ReplayMarket
from libs.market.replay.store import ReplayStore
from libs.quant.risk.evaluation import proposal_hash
from libs.quant.risk.evidence import evidence_of
from libs.runtime.journal import Journal
from services.risk import logic
from services.risk.handler import validate_decision
from services.risk.logic import BudgetCurrencyMismatch, clamp
from tests.fakes.moves import calm
from tests.fakes.reasons import settled

D = Decimal
DAY = date(2012, 6, 29)
OWN: dict[str, Any] = {"cycle_id": UUID(int=1), "op_id": UUID(int=2), "as_of": DAY}
PLAN = Plan(
    **OWN,
    objective="o",
    assets=("AAA",),
    quant_question="q",
    expected_outputs=("RSI14",),
)


def pick(ticker: str, pct: str | int, side: Side = Side.BUY) -> StockPick:
    return StockPick(
        ticker=ticker,
        action=side,
        allocation_pct=D(pct),
        reasons=(settled(ticker),) if side is Side.BUY else (),
        reasoning="why",
        confidence=0.5,
        plan=PickPlan() if side is Side.BUY else None,
    )


def daily(*picks: StockPick, sells: tuple[StockPick, ...] = ()) -> DailyPicks:
    return DailyPicks(
        **OWN,
        llm="rules",
        pick_date=DAY,
        picks=picks,
        sell_recommendations=sells,
        confidence=0.5,
        market_summary="",
    )


def review(*picks: StockPick, **fields: Any) -> PickReview:
    return PickReview(**OWN, llm="rules", pick_date=DAY, picks=picks, confidence=0.5, **fields)


def finding(ticker: str, **fields: Any) -> ResearchFinding:
    known = {
        "ticker": ticker,
        "current_price": D(10),
        "fundamental_score": 5,
        "technical_score": 5,
        "risk_score": 5,
        "measured_risk": 5,
        "sector": f"of {ticker}",
        "evidence": ("E0",),
        "atr": D("0.1"),
    }
    return ResearchFinding.model_validate({**known, **fields})


def research(*findings: ResearchFinding) -> ResearchReport:
    return ResearchReport(**OWN, analysis_date=DAY, tickers=findings)


def quant(*tickers: str) -> QuantReport:
    views = tuple(
        AssetView(ticker=t, signal="bullish", confidence=0.4, reasoning="")
        for t in tickers or ("AAA",)
    )
    return QuantReport(**OWN, signal="bullish", confidence=0.4, reasoning="", assets=views)


def command(
    picks: DailyPicks,
    reviewed: PickReview,
    found: ResearchReport,
    positions: tuple[Position, ...] = (),
    budget: Money | None = None,
) -> ValidateDecision:
    return ValidateDecision(
        **OWN,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        pipeline=Pipeline(name="rules"),
        state="validating_decision",
        step="validate",
        workflow_version=1,
        seed=0,
        request=CycleRequest(idempotency_key="k", budgets=Budgets(money=budget)),
        plan=PLAN,
        daily_picks=picks,
        pick_review=reviewed,
        quant_report=quant(),
        research_report=found,
        portfolio=books(positions),
    )


def books(positions: tuple[Position, ...] = (), rates: tuple[ExchangeRate, ...] = ()) -> Portfolio:
    held = sum((p.value for p in positions), D(0))
    return Portfolio(
        **OWN,
        account="main",
        cash=Money(amount=D(100_000)),
        equity=Money(amount=100_000 + held),
        positions=positions,
        rates=rates,
    )


def validate(asked: ValidateDecision) -> DecisionValidation:
    return logic.validate(asked, calm(("AAA", "BBB")))


def left(picks: tuple[StockPick, ...]) -> dict[str, Decimal]:
    return {p.ticker: p.allocation_pct for p in picks}


def test_a_review_may_trim_and_remove():
    clamped = clamp(daily(pick("AAA", 40), pick("BBB", 30)), review(pick("AAA", 10)))
    assert left(clamped.picks) == {"AAA": D(10)}
    assert clamped.removed == ("BBB",)
    assert len(clamped.adjustments) == 2


def test_the_reviewers_own_cut_and_veto_are_not_told_as_what_a_reviewer_may_not_do():
    mine = clamp(
        daily(pick("AAA", 40), pick("BBB", 30), pick("CCC", 20), pick("DDD", 10)),
        review(pick("AAA", 10), pick("CCC", 20), pick("DDD", 15), pick("EEE", 5)),
    )
    told = {check.ticker: (check.rule, check.outcome.value) for check in mine.checks}
    assert told == {
        "AAA": ("review", "cut"),
        "BBB": ("review", "vetoed"),
        "CCC": ("review", "kept"),
        "DDD": ("review_only_reduces", "cut"),
        "EEE": ("review_only_reduces", "vetoed"),
    }


def test_a_raised_allocation_is_cut_back_and_noted():
    clamped = clamp(daily(pick("AAA", 40)), review(pick("AAA", 60)))
    assert left(clamped.picks) == {"AAA": D(40)}
    (told,) = clamped.adjustments
    assert "raised it to 60%" in told


def test_what_the_review_adds_is_dropped_and_noted():
    clamped = clamp(daily(), review(pick("AAA", 10)))
    assert clamped.picks == ()
    assert "the reviewer added it" in clamped.adjustments[0]


def test_a_vetoed_ticker_does_not_come_back_though_it_is_listed():
    clamped = clamp(daily(pick("AAA", 40)), review(pick("AAA", 40), vetoed_tickers=("AAA",)))
    assert clamped.picks == ()
    assert clamped.removed == ("AAA",)


def test_a_sale_passes_through_a_review_that_does_not_speak_of_it():
    sales = (pick("AAA", 100, Side.SELL),)
    assert left(clamp(daily(sells=sales), review()).picks) == {"AAA": D(100)}
    trimmed = review(sell_recommendations=(pick("AAA", 50, Side.SELL),))
    assert left(clamp(daily(sells=sales), trimmed).picks) == {"AAA": D(50)}
    assert clamp(daily(sells=sales), review(vetoed_tickers=("AAA",))).picks == ()


def test_a_sell_recommendation_is_a_sale_whatever_its_action_says():
    clamped = clamp(daily(sells=(pick("AAA", 100),)), review())
    assert [p.action for p in clamped.picks] == [Side.SELL]


def test_the_reviewers_own_adjustments_are_kept():
    clamped = clamp(daily(), review(adjustments=("AAA: too hot",)))
    assert clamped.adjustments == ("AAA: too hot",)


def test_a_ticker_picked_twice_counts_once_with_the_smaller_and_it_is_said():
    clamped = clamp(daily(pick("AAA", 40), pick("AAA", 20)), review(pick("AAA", 40)))
    assert left(clamped.picks) == {"AAA": D(20)}
    assert any("more than once" in told for told in clamped.adjustments)


def test_a_finding_without_a_price_is_no_evidence():
    assert evidence_of(research(finding("AAA", current_price=D(0))), quant(), books()) == ()


def test_of_two_findings_the_one_that_cites_a_tool_result_counts():
    bare, cites = finding("AAA", evidence=(), risk_score=9.0), finding("AAA", risk_score=2.0)
    for both in ((bare, cites), (cites, bare)):
        (evidence,) = evidence_of(research(*both), quant(), books())
        assert (evidence.is_sourced, evidence.risk_score) == (True, 2.0)


def test_a_pick_by_a_headline_alone_is_vetoed_by_that_cause_and_by_no_other():
    """Its finding has a price, and cites no tool result: no rule claims that either is missing."""
    picked = pick("AAA", 20)
    asked = command(daily(picked), review(picked), research(finding("AAA", evidence=())))
    failed = [(check.rule, check.value) for check in validate(asked).checks if not check.passed]
    assert failed == [("research_evidence", "a finding that cites no tool result")]


EURUSD = ExchangeRate(currency="EUR", into="USD", rate=D("1.1"), on=DAY)


def test_a_finding_in_another_currency_is_priced_by_the_rate_of_the_books():
    found = research(finding("AAA", current_price=D(10), currency="EUR"))
    (evidence,) = evidence_of(found, quant(), books(rates=(EURUSD,)))
    assert (evidence.price, evidence.no_rate) == (D(11), None)
    assert evidence.foreign is not None
    assert evidence.foreign.price == Money(amount=D(10), currency="EUR")
    assert evidence.foreign.rate == EURUSD


def test_without_a_rate_the_pick_is_vetoed_for_that_and_for_nothing_else():
    asked = command(
        daily(pick("AAA", 60)),
        review(pick("AAA", 60)),
        research(finding("AAA", currency="EUR")),
    )
    validation = validate(asked)
    assert validation.vetoed_tickers == ("AAA",)
    (told,) = [check for check in validation.checks if not check.passed]
    assert told.rule == "exchange_rate"
    assert "it trades in EUR, and no EURUSD rate of the last 7 days is known" in told.reason


def test_of_two_findings_for_a_ticker_the_riskier_counts():
    found = research(finding("AAA", risk_score=9), finding("AAA", risk_score=2))
    (evidence,) = evidence_of(found, quant(), books())
    assert evidence.risk_score == 9
    assert evidence.confidence == 0.4


def test_the_validation_holds_all_that_execution_needs_to_judge_again():
    asked = command(
        daily(pick("AAA", 60), pick("BBB", 10)),
        review(pick("AAA", 60), pick("BBB", 10)),
        research(finding("AAA")),
        budget=Money(amount=D(50_000)),
    )
    validation = validate(asked)
    assert validation.passed
    assert [(d.asset, d.quantity) for d in validation.decisions] == [("AAA", D(1250))]
    assert validation.vetoed_tickers == ("BBB",)
    assert validation.proposal_hash == proposal_hash(validation.decisions)
    assert validation.budget == Money(amount=D(50_000))
    assert {e.ticker for e in validation.evidence} == {"AAA"}
    assert validation.limits == asked.portfolio.limits
    assert any("sector_allocation" in told for told in validation.adjustments)


def test_the_hash_survives_the_wire():
    validation = validate(
        command(daily(pick("AAA", 33)), review(pick("AAA", 33)), research(finding("AAA")))
    )
    read = DecisionValidation.model_validate_json(validation.model_dump_json())
    assert proposal_hash(read.decisions) == validation.proposal_hash


def test_nothing_left_is_a_validation_that_did_not_pass():
    validation = validate(command(daily(pick("AAA", 40)), review(), research(finding("AAA"))))
    assert not validation.passed
    assert validation.decisions == ()
    assert validation.vetoed_tickers == ("AAA",)


def test_a_budget_in_another_currency_is_a_typed_refusal():
    money = Money(amount=D(1), currency="EUR")
    with pytest.raises(BudgetCurrencyMismatch, match="EUR"):
        validate(command(daily(), review(), research(), budget=money))


async def test_the_handler_reads_how_its_tickers_moved_and_puts_it_on_record():
    recorded: list[JournalEntry] = []

    async def record(entries: Sequence[JournalEntry], *_: object) -> None:
        recorded.extend(entries)

    asked = command(daily(pick("AAA", 10)), review(pick("AAA", 10)), research(finding("AAA")))
    journal = Journal((), record)
    answer = await validate_decision(asked, journal, market=ReplayMarket(ReplayStore()))
    await journal.flush()
    assert [entry.name for entry in recorded] == ["moves"]
    assert answer.moves == Moves()  # the bundled prices have none of AAA
    assert (answer.cycle_id, answer.op_id, answer.as_of) == (asked.cycle_id, asked.op_id, DAY)


@pytest.mark.parametrize("synthetic", [True, False])
def test_a_decision_on_made_up_prices_bears_the_mark_of_its_books(synthetic: bool) -> None:
    asked = command(daily(pick("AAA", 10)), review(pick("AAA", 10)), research(finding("AAA")))
    books = asked.portfolio.model_copy(update={"synthetic": synthetic})
    assert validate(asked.model_copy(update={"portfolio": books})).synthetic is synthetic
