"""A buy's plan in one sentence."""

from datetime import date
from decimal import Decimal

from contracts.account import EntryPlan
from contracts.types import Money
from libs.report.orders import planned

D = Decimal
PLAN = EntryPlan(
    horizon_sessions=60,
    stop_price=Money(amount=D("545.20")),
    risk=Money(amount=D("1020.00")),
    risk_pct=D("1.0"),
    review_by=date(2010, 7, 14),
)


def test_it_says_what_is_at_risk_until_when_and_what_would_prove_it_wrong():
    assert planned(PLAN) == (
        "risks 1,020.00 USD (1% of equity) down to 545.20 USD; wrong if it falls there; "
        "looked at again by 2010-07-14"
    )


def test_a_stop_abroad_stands_in_the_currency_that_the_share_trades_in():
    stop = Money(amount=D("763.81"), currency="GBX")
    assert "of equity) down to 763.81 GBX;" in planned(PLAN.model_copy(update={"stop_price": stop}))


def test_an_event_may_prove_it_wrong_too():
    told = planned(PLAN.model_copy(update={"review_event": "next report of 2010-07-14"}))
    assert told.endswith(
        "wrong if it falls there or if its next report of 2010-07-14 speaks against it; "
        "looked at again by 2010-07-14"
    )


def test_without_a_stop_an_event_alone_may_prove_it_wrong():
    told = planned(PLAN.model_copy(update={"stop_price": None, "review_event": "next report"}))
    assert "; wrong if its next report speaks against it; looked at again" in told


def test_without_a_stop_all_of_it_is_at_risk():
    told = planned(PLAN.model_copy(update={"stop_price": None, "review_by": None}))
    assert told == "risks 1,020.00 USD (1% of equity), all of it, as there is no stop"
