"""A signal acts once: one of a month a month, another until it was quiet; a cut order goes on."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from contracts.account import ActedExit
from contracts.exit_signal import ExitFormat
from libs.quant.exits.terms import ExitTerms
from services.exit_signal.logic import Assessment, SellablePart, assess, check_of
from services.exit_signal.report import flags_of, result_of, shaped, snapshot_of
from tests.unit.services.exit_signal.conftest import (
    AS_OF,
    FALLING,
    NAMED,
    RISING,
    facts,
    position,
)

D = Decimal
PROFIT = {"take_profit": {"pct": 20}}
GONE_UP = {"average_cost": 80.0, "close": 100.0}
EARLIER = date(2012, 6, 1)


def acted(*rules: str, asked: int = 26, sold: int = 26, **fields: Any) -> ActedExit:
    return ActedExit(
        **{
            "ticker": "AAPL",
            "as_of": AS_OF,
            "rules": rules or ("momentum",),
            "month": "2012-06",
            "held": D(53),
            "asked": D(asked),
            "sold": D(sold),
            "sold_on": date(2012, 7, 2) if sold else None,
            **fields,
        }
    )


def assessed(
    *exits: ActedExit, shares: str = "27", seen: Any = None, months: Any = FALLING, **terms: Any
) -> Assessment:
    held = SellablePart(position(shares), exits=exits)
    return assess(facts(months, **(seen or {})), ExitTerms.model_validate(terms), held)


@pytest.mark.parametrize(
    ("opened_on", "is_sold"),
    [
        (date(2012, 6, 1), True),
        (date(2012, 6, 29), True),  # the month's last session: its close is not known to a buyer
        (date(2012, 7, 2), False),
        (None, True),  # nobody can say that it is younger
    ],
)
def test_a_signal_of_a_month_sells_no_position_that_was_opened_after_it(
    opened_on: date | None, *, is_sold: bool
) -> None:
    found = assessed(seen={"opened_on": opened_on})

    assert found.summary == "EXIT (momentum)", "it stays triggered"
    assert (found.sizing is not None) is is_sold
    if not is_sold:
        assert found.not_sold == (
            "the momentum signal of 2012-06 is older than the position, opened on 2012-07-02: "
            "only the next month's can sell it"
        )


def test_other_rules_sell_a_position_however_young_it_is() -> None:
    found = assessed(seen={**GONE_UP, "opened_on": date(2012, 7, 2)}, **PROFIT)

    assert found.sizing is not None
    assert found.sizing.acts.rules == ("take_profit",)


def test_a_signal_of_a_month_that_has_acted_stays_triggered_and_sells_no_more() -> None:
    found = assessed(acted())

    assert found.summary == "EXIT (momentum)"
    assert found.sizing is None
    assert found.not_sold == (
        "momentum acted on 2012-06-29, sold 26 of 53 shares; the signal of 2012-06 acts once"
    )
    held = SellablePart(position("27"), exits=(acted(),))
    full = result_of(NAMED, held, (), found)
    momentum = next(each for each in full["signals"] if each["rule_name"] == "momentum")
    assert (momentum["triggered"], full["trade_eligible"]) == (True, False)
    assert full["recommended_actions"] == []
    snapshot = snapshot_of(full)
    assert snapshot["verdict"] == "AAPL: EXIT (momentum)"
    assert snapshot["not_sold"] == found.not_sold == shaped(full, ExitFormat.SUMMARY)["not_sold"]
    assert [each["flag"] for each in flags_of(snapshot)] == ["exit_signal"]
    assert check_of(held, found).note == found.not_sold


def test_the_next_months_signal_acts_again() -> None:
    found = assessed(acted(month="2012-05"))
    assert found.sizing is not None
    assert (found.sizing.quantity, found.sizing.acts.held) == (13, 27)
    assert found.sizing.acts.month == "2012-06"


@pytest.mark.parametrize(("sold", "more"), [(0, 26), (10, 16), (25, 1)])
def test_a_cut_order_is_completed_in_its_month_up_to_what_it_asked_for(
    sold: int, more: int
) -> None:
    found = assessed(acted(sold=sold), shares=str(53 - sold))
    sizing = found.sizing
    assert sizing is not None
    assert (sizing.quantity, sizing.acts.asked) == (more, more)
    assert sizing.reason == (
        f"momentum sells the {more} shares that were left of its 26 on 2012-06-29"
    )
    # And what completes it is the end of it.
    done = assessed(acted(sold=sold), acted(asked=more, sold=more), shares="27")
    assert done.sizing is None
    assert "sold 26 of 53 shares" in done.not_sold


def test_what_a_person_struck_off_an_exit_is_not_asked_for_again() -> None:
    assert assessed(acted(asked=5, sold=5), shares="48").sizing is None


def test_another_rule_may_still_sell_after_the_monthly_one_has() -> None:
    found = assessed(acted(), stop_loss={"pct": 10}, seen={"price": 50.0})
    assert found.sizing is not None
    assert (found.sizing.quantity, found.sizing.acts.rules) == (27, ("stop_loss",))


def test_a_rule_of_prices_that_stays_on_acts_once() -> None:
    since = {EARLIER + timedelta(days=n): 97.0 + n for n in range(1, 4)}
    seen = {**GONE_UP, "closes_since": since}
    found = assessed(acted("take_profit", as_of=EARLIER), months=RISING, seen=seen, **PROFIT)
    assert found.summary == "EXIT (take_profit)"
    assert found.not_sold == (
        "take_profit acted on 2012-06-01, sold 26 of 53 shares; "
        "it acts again once it has been quiet"
    )


def test_a_rule_of_prices_that_was_quiet_in_between_acts_again() -> None:
    # At 95.99 the gain was 19.99%: quiet; at 96 it is the limit itself.
    for low, again in ((95.99, True), (96.0, False)):
        seen = {**GONE_UP, "closes_since": {EARLIER: 50.0, date(2012, 6, 4): low, AS_OF: 100.0}}
        found = assessed(acted("take_profit", as_of=EARLIER), months=RISING, seen=seen, **PROFIT)
        assert (found.sizing is not None) is again, low


def test_a_stop_loss_of_a_part_acts_again_after_the_price_was_back() -> None:
    terms = {"stop_loss": {"pct": 10, "sell_pct": 50}}
    for high, again in ((72.0, False), (72.01, True)):
        closes = {date(2012, 6, 4): high, AS_OF: 50.0}
        seen = {"price": 50.0, "average_cost": 80.0, "close": 50.0, "closes_since": closes}
        found = assessed(acted("stop_loss", as_of=EARLIER), months=RISING, seen=seen, **terms)
        assert (found.sizing is not None) is again, high


def test_a_trailing_stop_acts_again_after_a_new_high() -> None:
    terms = {"trailing_stop": {"pct": 10, "sell_pct": 50}}
    for closes, again in (({date(2012, 6, 4): 89.0}, False), ({date(2012, 6, 4): 100.0}, True)):
        seen = {"close": 80.0, "peak": 100.0, "closes_since": closes}
        found = assessed(acted("trailing_stop", as_of=EARLIER), months=RISING, seen=seen, **terms)
        assert (found.sizing is not None) is again, closes


def test_a_hold_period_that_sells_a_part_acts_once_as_it_is_never_quiet_again() -> None:
    seen = {"sessions_held": 90, "close": 100.0, "closes_since": {AS_OF: 100.0}}
    terms = {"hold_period": {"sessions": 20, "sell_pct": 50}}
    found = assessed(acted("hold_period", as_of=EARLIER), months=RISING, seen=seen, **terms)
    assert found.sizing is None


@pytest.mark.parametrize(
    ("shares", "price", "sold", "reason"),
    [
        ("53", "100", 26, "momentum sells 50%"),
        ("10", "100", 5, "momentum sells 50%"),  # 5 shares worth 500 are kept
        ("9", "1000", 4, "momentum sells 50%"),
        ("8", "1000", 4, None),
        ("10", "99.99", 5, None),
    ],
)
def test_a_rest_under_the_least_shares_or_value_goes_with_the_sale(
    shares: str, price: str, sold: int, reason: str | None
) -> None:
    held = SellablePart(position(shares, price))
    sizing = assess(facts(FALLING), ExitTerms(), held).sizing
    assert sizing is not None
    if reason is None:
        assert (sizing.quantity, sizing.remaining, sizing.sell_pct) == (D(shares), 0, 100)
        assert "so all is sold" in sizing.reason
    else:
        assert (sizing.quantity, sizing.reason) == (sold, reason)


def test_a_rest_that_somebody_wants_kept_is_kept() -> None:
    terms = ExitTerms(rest_shares_min=0, rest_value_min=D(0))
    sizing = assess(facts(FALLING), terms, SellablePart(position("2", "1"))).sizing
    assert sizing is not None
    assert (sizing.quantity, sizing.remaining) == (1, 1)
