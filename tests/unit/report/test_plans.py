"""A buy's plan in one sentence."""

from datetime import date
from decimal import Decimal
from uuid import UUID

from contracts.account import AccountLimits, EntryPlan
from contracts.risk import DecisionAction, DecisionValidation, PortfolioDecision
from contracts.types import Money
from contracts.venue import DESK_STOPS, VenueOrderType, VenueTerms
from libs.report.approval import orders
from libs.report.orders import at_risk, planned

D = Decimal
ID = UUID(int=1)
PLAN = EntryPlan(
    horizon_sessions=60,
    stop_price=Money(amount=D("545.20")),
    risk=Money(amount=D("1020.00")),
    risk_pct=D("1.0"),
    review_by=date(2010, 7, 14),
)


def test_it_says_what_is_at_risk_until_when_and_what_would_prove_it_wrong():
    assert planned(PLAN) == (
        "1,020.00 USD at risk (1% of equity; stop 545.20 USD); review by 2010-07-14"
    )


def test_a_stop_abroad_stands_in_the_currency_that_the_share_trades_in():
    stop = Money(amount=D("763.81"), currency="GBX")
    assert "of equity; stop 763.81 GBX);" in planned(PLAN.model_copy(update={"stop_price": stop}))


def test_an_event_may_prove_it_wrong_too():
    told = planned(PLAN.model_copy(update={"review_event": "next report of 2010-07-14"}))
    assert told.endswith(
        "; wrong if its next report of 2010-07-14 speaks against it; review by 2010-07-14"
    )


def test_without_a_stop_an_event_alone_may_prove_it_wrong():
    told = planned(PLAN.model_copy(update={"stop_price": None, "review_event": "next report"}))
    assert "; wrong if its next report speaks against it; review by" in told


def test_without_a_stop_all_of_it_is_at_risk():
    told = planned(PLAN.model_copy(update={"stop_price": None, "review_by": None}))
    assert told == "1,020.00 USD at risk (1% of equity; no stop)"


def test_at_a_broker_it_says_whose_the_stops_are():
    bought = PortfolioDecision(
        asset="AAPL",
        action=DecisionAction.BUY,
        quantity=D(3),
        price=Money(amount=D(600)),
        allocation_pct=D(1),
        confidence=0.5,
        reasoning="",
        strategy_used="",
        plan=PLAN,
    )
    terms = VenueTerms(venue="alpaca-paper", account_number="PA3", type=VenueOrderType.MARKET)
    sent = bought.model_copy(update={"venue": terms})
    names = {"cycle_id": ID, "op_id": ID, "as_of": date(2010, 4, 14)}
    limits = AccountLimits()

    def told(decision: PortfolioDecision) -> list[str]:
        validated = DecisionValidation(
            **names, passed=True, decisions=(decision,), proposal_hash="", limits=limits
        )
        return [*at_risk(validated)]

    assert told(bought) == [f"AAPL: {planned(PLAN)}"]
    assert told(sent)[1:] == [DESK_STOPS]
    assert DESK_STOPS in [note.text for note in orders([sent]).notes]
    assert DESK_STOPS not in [note.text for note in orders([bought]).notes]
