"""Each risk rule from both sides of its limit, and what stands in the verdict."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import uuid4

import pytest

from contracts.account import (
    AccountLimits,
    OpenOrder,
    Portfolio,
    Position,
    SessionBefore,
    Side,
)
from contracts.facts import DatedEvent, EventKind, Moves
from contracts.halt import Halt
from contracts.risk import DecisionAction, Evidence, RuleOutcome
from contracts.trader import PickPlan, StockPick
from contracts.types import Money
from libs.quant.risk.evaluation import (
    WHOLE_SHARES,
    RuleVerdict,
    evaluate,
    proposal_hash,
    room_for,
)
from libs.quant.risk.rules import BUY_CEILINGS, BUY_GATES, LEAST_SIZE, is_currency_pair
from tests.fakes.moves import calm
from tests.fakes.reasons import settled

D = Decimal
WIDE = AccountLimits(
    sector_pct_max=D(100),
    position_pct_max=D(100),
    order_pct_max=D(100),
    gross_exposure_pct_max=D(100),
    risk_per_trade_pct_max=D(100),
    volatility_pct_max=D(100),
    cluster_pct_max=D(100),
    position_shares_min=0,
    position_value_min=D(0),
)


def usd(amount: str | int) -> Money:
    return Money(amount=D(amount))


EARNINGS = DatedEvent(
    id="announced-abc",
    ticker="AAA",
    kind=EventKind.ANNOUNCED,
    on=date(2012, 7, 10),
    known_at=datetime(2012, 6, 1, tzinfo=UTC),
)


def test_words_about_a_catalyst_are_none():
    seen = known("AAA", risk_score=9.0, catalyst="an exceptional takeover")
    assert failed(judge(pick("AAA", 10), evidence=[seen])) == {"risk_needs_catalyst"}


def test_what_nobody_has_measured_counts_as_the_worst():
    seen = Evidence(ticker="AAA", risk_score=0.0, price=D(10))
    assert failed(judge(pick("AAA", 10), evidence=[seen])) == {"risk_needs_catalyst"}


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


def waits(ticker: str, side: Side, quantity: int, hold: str | int) -> OpenOrder:
    return OpenOrder(
        order_id=uuid4(),
        asset=ticker,
        side=side,
        quantity=D(quantity),
        hold=usd(hold),
        as_of=date(2012, 6, 29),
    )


def known(ticker: str, price: str | int = 10, **fields: object) -> Evidence:
    fields = {
        "sector": ticker.lower(),
        "risk_score": 5.0,
        "measured_risk": 5.0,
        "atr": D("0.1"),
        **fields,
    }
    return Evidence.model_validate({"ticker": ticker, "price": D(price), **fields})


def books(cash: str | int = 100_000, **fields: object) -> Portfolio:
    held = fields.get("positions", ())
    equity = D(cash) + sum((p.value for p in held), D(0))  # type: ignore[attr-defined]
    return Portfolio.model_validate(
        {
            "cycle_id": uuid4(),
            "op_id": uuid4(),
            "as_of": "2012-06-29",
            "account": "main",
            "cash": usd(cash),
            "equity": usd(str(equity)),
            **fields,
        }
    )


def held(ticker: str, quantity: int, price: int = 10, sector: str = "unknown") -> Position:
    return Position(
        ticker=ticker,
        quantity=D(quantity),
        average_cost=usd(price),
        price=usd(price),
        sector=sector,
    )


def judge(
    *picks: StockPick,
    portfolio: Portfolio | None = None,
    limits: AccountLimits = WIDE,
    evidence: list[Evidence] | None = None,
    budget: str | int | None = None,
    prices: dict[str, Decimal] | None = None,
    moves: Moves | None = None,
) -> RuleVerdict:
    found = [known(p.ticker) for p in picks] if evidence is None else evidence
    account = portfolio or books()
    return evaluate(
        picks,
        {item.ticker: item for item in found},
        account,
        limits,
        None if budget is None else usd(budget),
        {p.ticker: D(10) for p in picks} if prices is None else prices,
        moves=calm({*account.exposed, *(p.ticker for p in picks)}) if moves is None else moves,
    )


def bought(verdict: RuleVerdict) -> dict[str, Decimal]:
    return {d.asset: d.quantity for d in verdict.decisions if d.action is DecisionAction.BUY}


def failed(verdict: RuleVerdict) -> set[str]:
    return {check.rule for check in verdict.checks if not check.passed}


def test_a_pick_inside_every_limit_is_kept_whole_and_every_rule_says_so():
    verdict = judge(pick("AAA", 40))
    assert bought(verdict) == {"AAA": D(4000)}
    assert verdict.decisions[0].allocation_pct == 40
    assert verdict.adjustments == ()
    assert verdict.vetoed == ()
    assert len(verdict.checks) == len((*BUY_GATES, *BUY_CEILINGS, LEAST_SIZE, WHOLE_SHARES))
    assert all(check.passed and check.outcome is RuleOutcome.KEPT for check in verdict.checks)


def test_an_empty_proposal_leaves_nothing_to_execute():
    assert judge().decisions == ()


@pytest.mark.parametrize(("second", "cut"), [(25, 25), (26, D("24.9999"))])
def test_a_sector_over_half_of_the_allocations_is_cut_in_proportion(second, cut):
    limits = WIDE.model_copy(update={"sector_pct_max": D(50)})
    tech = [known("AAA", sector="tech"), known("BBB", sector="Tech ")]
    asked = [pick("AAA", 50 - 25), pick("BBB", second)]
    verdict = judge(*asked, limits=limits, evidence=tech)
    allowed = sum(d.allocation_pct for d in verdict.decisions)
    assert allowed <= 50
    assert (failed(verdict) == set()) is (second == 25)
    assert allowed >= D("49.999")


def test_unknown_sectors_count_as_one():
    limits = WIDE.model_copy(update={"sector_pct_max": D(50)})
    blank = [known("AAA", sector="unknown"), known("BBB", sector="")]
    verdict = judge(pick("AAA", 40), pick("BBB", 40), limits=limits, evidence=blank)
    assert bought(verdict) == {"AAA": D(2500), "BBB": D(2500)}
    assert "sector_allocation" in failed(verdict)


def test_a_sector_already_held_leaves_less_room_for_it():
    limits = WIDE.model_copy(update={"sector_pct_max": D(50)})
    portfolio = books(60_000, positions=(held("OLD", 4_000, sector="tech"),))
    verdict = judge(
        pick("AAA", 50),
        portfolio=portfolio,
        limits=limits,
        evidence=[known("AAA", sector="tech")],
    )
    assert failed(verdict) == {"sector_exposure"}
    assert D(990) <= bought(verdict)["AAA"] <= D(1000)


@pytest.mark.parametrize(
    ("research", "prices", "event", "kept"),
    [
        (7.0, 7.0, None, True),
        (7.01, 0.0, None, False),
        (0.0, 7.01, None, False),
        (10.0, 10.0, EARNINGS, True),
    ],
)
def test_the_higher_of_both_risk_scores_over_seven_needs_a_dated_event(
    research, prices, event, kept
):
    seen = known("AAA", risk_score=research, measured_risk=prices, catalyst_event=event)
    verdict = judge(pick("AAA", 10), evidence=[seen])
    assert bool(verdict.decisions) is kept
    assert verdict.vetoed == (() if kept else ("AAA",))
    assert failed(verdict) == (set() if kept else {"risk_needs_catalyst"})


def test_what_is_held_or_already_ordered_is_not_bought_again():
    waiting = waits("BBB", Side.BUY, 1, "10.10")
    portfolio = books(positions=(held("AAA", 1),), open_orders=(waiting,))
    verdict = judge(pick("AAA", 10), pick("BBB", 10), pick("CCC", 10), portfolio=portfolio)
    assert list(bought(verdict)) == ["CCC"]
    assert verdict.vetoed == ("AAA", "BBB")


def test_a_pick_without_research_evidence_is_vetoed_with_a_reason():
    verdict = judge(pick("AAA", 10), evidence=[])
    assert verdict.vetoed == ("AAA",)
    assert failed(verdict) == {"research_evidence"}


@pytest.mark.parametrize(
    ("price", "kept"), [("10.5", True), ("10.500001", False), ("9.5", True), ("9.499999", False)]
)
def test_a_price_that_moved_over_the_limit_since_research_is_vetoed(price, kept):
    verdict = judge(pick("AAA", 10), prices={"AAA": D(price)})
    assert bool(verdict.decisions) is kept


def test_a_share_of_less_than_a_dollar_can_be_bought():
    verdict = judge(
        pick("AAA", 10), evidence=[known("AAA", "0.5", atr=D("0.01"))], prices={"AAA": D("0.5")}
    )
    assert bought(verdict) == {"AAA": D(20_000)}


def test_a_buy_without_a_current_price_is_vetoed():
    verdict = judge(pick("AAA", 10), prices={})
    assert verdict.vetoed == ("AAA",)
    assert failed(verdict) == {"price_drift"}


def test_allocations_above_a_hundred_percent_shrink_in_proportion():
    verdict = judge(pick("AAA", 90), pick("BBB", 60), budget=10_000)
    assert bought(verdict) == {"AAA": D(600), "BBB": D(400)}
    assert "allocation_total" in failed(verdict)


def test_a_vetoed_pick_takes_no_room_from_the_others():
    verdict = judge(pick("AAA", 90), pick("BBB", 60), evidence=[known("AAA")], budget=10_000)
    assert bought(verdict) == {"AAA": D(900)}


def test_the_budget_is_what_allocations_are_percent_of():
    assert bought(judge(pick("AAA", 50), budget=1_000)) == {"AAA": D(50)}


@pytest.mark.parametrize(
    ("field", "rule"), [("position_pct_max", "position_size"), ("order_pct_max", "order_size")]
)
def test_one_name_is_held_to_its_share_of_equity(field, rule):
    limits = WIDE.model_copy(update={field: D(30)})
    assert bought(judge(pick("AAA", 30), limits=limits)) == {"AAA": D(3000)}
    over = judge(pick("AAA", 31), limits=limits)
    assert bought(over) == {"AAA": D(3000)}
    assert failed(over) == {rule}


def test_gross_exposure_counts_positions_and_open_orders():
    limits = WIDE.model_copy(update={"gross_exposure_pct_max": D(60)})
    waiting = waits("BBB", Side.BUY, 990, 10_000)
    portfolio = books(60_000, positions=(held("OLD", 4_000),), open_orders=(waiting,))
    verdict = judge(pick("AAA", 40), portfolio=portfolio, limits=limits, budget=50_000)
    assert failed(verdict) == {"gross_exposure"}
    assert bought(verdict) == {"AAA": D(1000)}


def test_buys_leave_room_for_fee_and_slippage_in_free_cash():
    waiting = waits("BBB", Side.BUY, 1, 49_500)
    verdict = judge(pick("AAA", 100), portfolio=books(100_000, open_orders=(waiting,)))
    assert failed(verdict) == {"cash"}
    assert bought(verdict) == {"AAA": D(4999)}  # 50,500 free, 1% of it held back


def test_less_than_one_share_is_vetoed():
    verdict = judge(pick("AAA", 1), budget=100, prices={"AAA": D(10)})
    assert verdict.vetoed == ("AAA",)
    assert failed(verdict) == {"whole_shares"}


def test_a_buy_is_rounded_down_to_whole_lots():
    verdict = judge(pick("AAA", 50), evidence=[known("AAA", lot=100)], budget=4_500)
    assert bought(verdict) == {"AAA": D(200)}
    assert verdict.decisions[0].lot == 100


def test_a_buy_of_less_than_a_lot_is_vetoed_with_the_price_of_one():
    verdict = judge(pick("AAA", 50), evidence=[known("AAA", lot=100)], budget=1_990)
    assert failed(verdict) == {"whole_shares"}
    (check,) = [check for check in verdict.checks if not check.passed]
    assert "below one lot (100 shares = 1,000.00 USD)" in check.reason
    rooms = room_for(["AAA"], {"AAA": known("AAA", lot=1_000)}, books(5_000), None)
    assert rooms["AAA"].why.startswith("below one lot (1,000 shares = 10,000.00 USD): ")


@pytest.mark.parametrize(
    ("shares", "pct", "sold"),
    [("250", 100, "250"), ("250", 50, "100"), ("30", 50, "30"), ("100.5", 100, "100.5")],
)
def test_an_odd_lot_is_sold_whole_and_a_part_in_whole_lots(shares: str, pct: int, sold: str):
    position = held("AAA", 1).model_copy(update={"quantity": D(shares), "lot": 100})
    verdict = judge(pick("AAA", pct, Side.SELL), portfolio=books(positions=(position,)))
    assert verdict.decisions[0].quantity == D(sold)


@pytest.mark.parametrize(
    ("shares", "pct", "sold"),
    [("0.5", 100, "0.5"), ("10.5", 50, "5.25"), ("0.000003", 50, "0.000001")],
)
def test_a_fraction_that_is_held_is_sold_down_to_six_places(shares: str, pct: int, sold: str):
    position = held("AAA", 1).model_copy(update={"quantity": D(shares)})
    verdict = judge(pick("AAA", pct, Side.SELL), portfolio=books(positions=(position,)))
    assert verdict.decisions[0].quantity == D(sold)
    assert not failed(verdict)


@pytest.mark.parametrize("ticker", ["BTC/USD", "BTC-USD", "ETH-EUR", "BTCUSDT", "EURUSD=X", "ES=F"])
def test_a_crypto_pair_is_refused_on_both_sides(ticker):
    portfolio = books(positions=(held(ticker, 5),))
    for side in Side:
        verdict = judge(pick(ticker, 50, side), portfolio=portfolio)
        assert verdict.vetoed == (ticker,)
        assert "equities_only" in failed(verdict)


@pytest.mark.parametrize("ticker", ["AAPL", "BRK.B", "BRK-B", "BRK/B", "BF-A", "GOOG"])
def test_a_share_class_is_no_currency_pair(ticker):
    assert not is_currency_pair(ticker)


def test_a_sale_is_a_share_of_what_is_held_and_not_promised():
    waiting = waits("AAA", Side.SELL, 3, 0)
    portfolio = books(positions=(held("AAA", 10),), open_orders=(waiting,))
    verdict = judge(pick("AAA", 50, Side.SELL), portfolio=portfolio, prices={})
    assert verdict.decisions[0].action is DecisionAction.SELL
    assert verdict.decisions[0].quantity == 3
    assert verdict.decisions[0].price.amount == 10


def test_what_is_not_held_is_not_sold():
    verdict = judge(pick("AAA", 100, Side.SELL))
    assert verdict.vetoed == ("AAA",)
    assert failed(verdict) == {"something_to_sell"}


def test_of_two_picks_for_one_ticker_the_smaller_counts_and_it_is_said():
    verdict = judge(pick("AAA", 40), pick("AAA", 20))
    assert bought(verdict) == {"AAA": D(2000)}
    assert failed(verdict) == {"one_pick_per_ticker"}


def test_every_change_stands_in_the_adjustments_with_rule_numbers_and_reason():
    limits = WIDE.model_copy(update={"position_pct_max": D(40)})
    (sentence,) = judge(pick("AAA", 60), limits=limits).adjustments
    assert sentence == (
        "AAA: position_size: buy of 60% cut to 40%: one position may be at most 40% of equity "
        "(60,000.00 USD asked for; limit 40,000.00 USD)"
    )


@pytest.mark.parametrize(
    ("most", "said"),
    [
        ("12.3495", "buy of 20% cut to 12.35%"),
        ("12.5", "buy of 20% cut to 12.5%"),
        ("19.9996", "buy of 20% cut to 19.9996%"),
    ],
)
def test_a_percentage_has_two_places_and_more_only_where_they_tell_a_cut(most: str, said: str):
    limits = WIDE.model_copy(update={"position_pct_max": D(most)})
    (sentence,) = judge(pick("AAA", 20), limits=limits).adjustments
    assert sentence.startswith(f"AAA: position_size: {said}: ")


def test_a_budget_in_another_currency_is_an_error():
    with pytest.raises(ValueError, match="EUR"):
        evaluate([], {}, books(), WIDE, Money(amount=D(1), currency="EUR"), {})


def test_an_account_without_money_buys_nothing():
    verdict = judge(pick("AAA", 50), portfolio=books(0))
    assert verdict.decisions == ()


def test_the_proposal_hash_sees_values_not_their_spelling_or_order():
    one, two = judge(pick("AAA", 10), pick("BBB", 20)).decisions
    respelled = one.model_copy(update={"quantity": one.quantity * D("1.00")})
    assert proposal_hash([one, two]) == proposal_hash([two, respelled])
    changed = one.model_copy(update={"quantity": one.quantity - 1})
    assert proposal_hash([one, two]) != proposal_hash([changed, two])


HALT = Halt(reason="flash crash", by="cli", since="2026-11-22T02:00:00Z")


def test_a_halted_account_buys_nothing_and_still_sells():
    portfolio = books(positions=(held("OLD", 10),), halt=HALT)
    verdict = judge(pick("AAA", 10), pick("OLD", 100, Side.SELL), portfolio=portfolio)
    assert bought(verdict) == {}
    assert [(d.action, d.quantity) for d in verdict.decisions] == [(DecisionAction.SELL, D(10))]
    assert failed(verdict) == {"halted"}
    assert any("flash crash" in text and "`deskbus resume`" in text for text in verdict.adjustments)


@pytest.mark.parametrize(
    ("then", "now", "kept"),
    [
        ("100000", "95000", True),
        ("100000", "94999.99", False),
        ("100000", "120000", True),
        ("100000.000001", "95000", False),
    ],
)
def test_an_account_that_lost_more_than_its_daily_limit_buys_no_more(then, now, kept):
    before = SessionBefore(session="2012-06-28", equity=usd(then))
    verdict = judge(pick("AAA", 10), portfolio=books(now, before=before))
    assert bool(bought(verdict)) is kept
    assert failed(verdict) == (set() if kept else {"daily_loss"})


@pytest.mark.parametrize(
    ("paid_in", "now", "kept"),
    [
        # 20,000 taken out of 100,000: 80,000 is what the day's loss is of, 4,000 the most of it.
        ("-20000", "76000", True),
        ("-20000", "75999.99", False),
        # 100,000 paid in hide no loss: 200,000 may lose 10,000.
        ("100000", "190000", True),
        ("100000", "189999.99", False),
    ],
)
def test_the_daily_loss_takes_a_withdrawal_for_no_loss_and_a_deposit_for_no_gain(
    paid_in, now, kept
):
    before = SessionBefore(session="2012-06-28", equity=usd("100000"), paid_in=usd(paid_in))
    verdict = judge(pick("AAA", 10), portfolio=books(now, before=before))
    assert failed(verdict) == (set() if kept else {"daily_loss"})


def test_what_has_no_price_is_not_sold_and_counts_at_its_last_one():
    gone = held("OLD", 400, sector="tech").model_copy(update={"priced_on": date(2012, 6, 1)})
    tight = WIDE.model_copy(update={"gross_exposure_pct_max": D(50)})
    verdict = judge(
        pick("AAA", 60),
        pick("OLD", 100, Side.SELL),
        portfolio=books(4_000, positions=(gone,)),
        limits=tight,
    )
    assert verdict.decisions == ()
    assert any("no price since 2012-06-01" in text for text in verdict.adjustments)
    assert any("gross_exposure" in text for text in verdict.adjustments)


def test_a_loss_that_cannot_be_measured_stops_buys_and_names_the_session():
    before = SessionBefore(session="2012-06-28")
    portfolio = books(positions=(held("OLD", 10),), before=before)
    verdict = judge(pick("AAA", 10), pick("OLD", 100, Side.SELL), portfolio=portfolio)
    assert [d.asset for d in verdict.decisions] == ["OLD"]
    assert any("held on 2012-06-28 could not be valued" in text for text in verdict.adjustments)


def test_an_account_without_a_session_before_has_lost_nothing():
    assert failed(judge(pick("AAA", 10), portfolio=books(before=None))) == set()
