"""How much of its limits an account uses, from its books alone."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from contracts.account import AccountLimits, HeldPlan, OpenOrder, Portfolio, Position, Side
from contracts.reasons import Reason, Speaks
from contracts.risk import DecisionValidation, Evidence
from contracts.trader import PickPlan, StockPick
from contracts.types import Money
from libs.quant.risk.use import buys_under, limits_used

D = Decimal
DAY = date(2012, 6, 29)
WIDE = AccountLimits(
    volatility_pct_max=D(100),
    cluster_pct_max=D(100),
    risk_per_trade_pct_max=D(100),
    position_value_min=D(0),
)
"""What is not known to move is taken to move the most."""


def usd(amount: str) -> Money:
    return Money(amount=D(amount))


def held(ticker: str, shares: int, sector: str, risk_pct: str | None = None) -> Position:
    plan = None
    if risk_pct is not None:
        plan = HeldPlan(
            horizon_sessions=20,
            risk=usd("1"),
            risk_pct=D(risk_pct),
            since=DAY,
            cycle_id=UUID(int=3),
        )
    return Position(
        ticker=ticker,
        quantity=D(shares),
        average_cost=usd("10"),
        price=usd("10"),
        sector=sector,
        plan=plan,
    )


def books(*positions: Position, equity: str = "1000", **fields: Any) -> Portfolio:
    return Portfolio(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=DAY,
        account="main",
        cash=usd("500"),
        equity=usd(equity),
        positions=positions,
        **fields,
    )


def used(of: Portfolio, lost: Decimal | None = None) -> dict[str, tuple[Decimal | None, str]]:
    return {it.limit: (it.used, it.by) for it in limits_used(of, lost)}


def test_positions_and_open_buys_count_in_percent_of_equity() -> None:
    buy = OpenOrder(
        order_id=UUID(int=1),
        asset="CCC",
        side=Side.BUY,
        quantity=D(5),
        hold=usd("60"),
        as_of=DAY,
    )
    found = used(books(held("AAA", 20, "tech"), held("BBB", 10, "tech"), open_orders=(buy,)))
    assert found["gross_exposure_pct_max"] == (D("36.00"), "")
    assert found["position_pct_max"] == (D("20.00"), "AAA")
    assert found["sector_pct_max"] == (D("30.00"), "tech")


def test_a_trades_risk_is_as_it_was_bought_and_the_largest_counts() -> None:
    found = used(books(held("AAA", 20, "tech", "0.5051"), held("BBB", 10, "tech", "0.9")))
    assert found["risk_per_trade_pct_max"] == (D("0.90"), "BBB")


def test_a_gain_is_no_loss_of_the_day_and_an_unknown_one_is_not_said() -> None:
    assert used(books(), D("-2.5"))["daily_loss_pct_max"] == (D("0.00"), "")
    assert used(books(), D("2.5"))["daily_loss_pct_max"] == (D("2.50"), "")
    assert used(books())["daily_loss_pct_max"] == (None, "")


def test_every_limit_with_a_number_is_there_and_nothing_is_divided_by_no_equity() -> None:
    limits = AccountLimits().model_dump()
    numbers = {name for name, value in limits.items() if not isinstance(value, bool)}
    assert set(used(books())) == numbers
    assert used(books(held("AAA", 1, "tech"), equity="0"))["position_pct_max"] == (D(100), "AAA")


def test_a_decision_judged_by_other_limits_says_which_buys_they_cut_and_why() -> None:
    pick = StockPick(
        ticker="AAA",
        allocation_pct=D(40),
        confidence=1.0,
        reasoning="",
        plan=PickPlan(),
        reasons=(Reason(fact="AAA.close", speaks=Speaks.FOR, about="AAA"),),
    )
    evidence = Evidence(ticker="AAA", sector="Energy", risk_score=1, measured_risk=1, price=D(10))
    decision = DecisionValidation(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=DAY,
        passed=True,
        proposal_hash="0" * 64,
        proposals=(pick,),
        evidence=(evidence,),
        limits=WIDE,
        budget=usd("1000"),
    )
    of = Portfolio.model_validate(
        {**books(equity="10000").model_dump(), "cash": usd("10000"), "limits": WIDE}
    )
    tight = WIDE.model_copy(update={"position_pct_max": D(3)})

    (same,) = buys_under(decision, of, WIDE, WIDE)
    (cut,) = buys_under(decision, of, WIDE, tight)
    assert (same.shares, same.then, same.reason) == (D(40), D(40), "")
    assert (cut.shares, cut.then) == (D(40), D(30))
    assert cut.reason.startswith("position size: ")
