"""Limits of sales: how many of one session, of which part of equity; no exit is held up by them."""

from datetime import date
from decimal import Decimal
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from contracts.account import AccountLimits, OpenOrder, Portfolio, Position, Side
from contracts.constraints import Constraints
from contracts.risk import RuleOutcome
from contracts.trader import StockPick
from contracts.types import Money
from libs.quant.risk.evaluation import RuleVerdict, evaluate
from libs.quant.risk.rules import EXIT_GATES, SELL_GATES

D = Decimal
PRICE = D(10)
NAMES = ("AAA", "BBB", "CCC", "DDD")


def books(shares: dict[str, int], waiting: tuple[OpenOrder, ...] = ()) -> Portfolio:
    held = tuple(
        Position(
            ticker=name,
            quantity=D(count),
            average_cost=Money(amount=PRICE),
            price=Money(amount=PRICE),
        )
        for name, count in shares.items()
    )
    equity = sum((one.value for one in held), D(1_000))
    return Portfolio(
        cycle_id=uuid4(),
        op_id=uuid4(),
        as_of=date(2012, 6, 29),
        account="a",
        cash=Money(amount=D(1_000)),
        equity=Money(amount=equity),
        positions=held,
        open_orders=waiting,
    )


def waiting(name: str, shares: int) -> OpenOrder:
    return OpenOrder(
        order_id=uuid4(),
        asset=name,
        side=Side.SELL,
        quantity=D(shares),
        hold=Money(amount=D(0)),
        as_of=date(2012, 6, 29),
    )


def sale(name: str, pct: object = 100) -> StockPick:
    return StockPick(
        ticker=name,
        action=Side.SELL,
        allocation_pct=D(str(pct)),
        reasoning="why",
        confidence=0.5,
    )


def judged(
    portfolio: Portfolio, constraints: Constraints, *picks: StockPick, is_exit: bool = False
) -> RuleVerdict:
    gates = EXIT_GATES if is_exit else SELL_GATES
    return evaluate(
        picks,
        {},
        portfolio,
        AccountLimits(),
        None,
        {},
        constraints=constraints,
        sell_gates=gates,
    )


def sold(verdict: RuleVerdict) -> dict[str, Decimal]:
    return {one.asset: one.quantity for one in verdict.decisions}


def test_of_more_sales_than_are_allowed_the_largest_are_left() -> None:
    account = books({"AAA": 10, "BBB": 30, "CCC": 20})
    verdict = judged(account, Constraints(max_sales=2), *map(sale, ("AAA", "BBB", "CCC")))
    assert sold(verdict) == {"BBB": D(30), "CCC": D(20)}
    (check,) = [one for one in verdict.checks if not one.passed and one.rule == "max_sales"]
    assert (check.ticker, check.outcome) == ("AAA", RuleOutcome.VETOED)


def test_orders_that_wait_count_and_several_of_one_ticker_each() -> None:
    account = books({"AAA": 100}, (waiting("AAA", 1), waiting("AAA", 1)))
    assert sold(judged(account, Constraints(max_sales=2), sale("AAA", 10))) == {}
    assert sold(judged(account, Constraints(max_sales=3), sale("AAA", 10))) == {"AAA": D(9)}


def test_sales_beyond_a_part_of_equity_shrink_in_proportion() -> None:
    account = books({"AAA": 100, "BBB": 300})  # 5,000 of equity
    verdict = judged(account, Constraints(max_sold_pct=D(20)), sale("AAA"), sale("BBB"))
    assert sold(verdict) == {"AAA": D(25), "BBB": D(75)}


def test_what_waits_is_part_of_what_may_be_sold() -> None:
    account = books({"AAA": 400}, (waiting("AAA", 90),))  # 5,000; 900 of 1,000 wait
    verdict = judged(account, Constraints(max_sold_pct=D(20)), sale("AAA"))
    assert sold(verdict)["AAA"] <= 10


def test_zero_is_a_limit_too() -> None:
    account = books({"AAA": 100})
    assert sold(judged(account, Constraints(max_sales=0), sale("AAA"))) == {}
    assert sold(judged(account, Constraints(max_sold_pct=D(0)), sale("AAA"))) == {}


def test_an_exit_by_the_accounts_own_rules_passes_them() -> None:
    account = books({"AAA": 100})
    none = Constraints(max_sales=0, max_sold_pct=D(0))
    assert sold(judged(account, none, sale("AAA"), is_exit=True)) == {"AAA": D(100)}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 500), min_size=1),
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 100)), max_size=4),
    st.integers(0, 4),
    st.integers(0, 100),
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 40)), max_size=3),
)
def test_whatever_is_asked_no_limit_is_passed_and_a_second_look_changes_nothing(
    shares: dict[str, int],
    asked: list[tuple[str, int]],
    sales_max: int,
    pct_max: int,
    open_: list[tuple[str, int]],
) -> None:
    before = tuple(waiting(name, count) for name, count in open_ if name in shares)
    account = books(shares, before)
    limits = Constraints(max_sales=sales_max, max_sold_pct=D(pct_max))
    verdict = judged(account, limits, *(sale(*one) for one in asked))
    left = sold(verdict)
    assert len(left) <= max(0, sales_max - len(before))
    room = account.equity.amount * pct_max / 100 - sum(one.quantity * PRICE for one in before)
    assert sum(left.values()) * PRICE <= max(D(0), room)
    again = judged(
        account, limits, *(sale(one.asset, one.allocation_pct) for one in verdict.decisions)
    )
    assert sold(again) == left
