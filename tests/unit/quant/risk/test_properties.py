"""What holds for every proposal, account and limit: 10,000 random cases and more."""

import random
from collections import defaultdict
from decimal import ROUND_FLOOR, Decimal
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.account import (
    AccountLimits,
    CoolingOff,
    OpenOrder,
    Portfolio,
    Position,
    SessionBefore,
    Side,
)
from contracts.exit_signal import ExitSignal
from contracts.facts import DatedEvent, EventKind, Moves, ReportAhead
from contracts.halt import Halt
from contracts.reasons import Reason
from contracts.risk import DecisionAction, Evidence, PortfolioDecision, RuleOutcome
from contracts.trader import PickPlan, StockPick
from contracts.types import Money
from libs.quant.risk.evaluation import RuleVerdict, evaluate
from libs.quant.risk.rules import BUY_CEILINGS, BUY_GATES, LEAST_SIZE, is_currency_pair
from libs.quant.sizing import CASH_RESERVE_BPS
from tests.fakes.moves import moving
from tests.fakes.reasons import settled

CASES = 10_000
SHARDS = 10
HUNTED = 300
TICKERS = ("AAA", "BBB", "CCC", "DDD", "BTC-USD")
SECTORS = ("unknown", "", "tech", "Energy")
EARNINGS = DatedEvent(
    id="announced-abc",
    ticker="AAA",
    kind=EventKind.ANNOUNCED,
    on="2012-07-10",
    known_at="2012-06-01T00:00:00Z",
)
REPORT = ReportAhead(on="2012-07-05", sessions=3)
FIRES = ExitSignal(rule="momentum", primary=True, triggered=True)
LATER_REPORT = ReportAhead(on="2012-07-06", sessions=4)
ID = UUID(int=7)
D = Decimal
HALT = Halt(by="cli", since="2026-11-22T02:00:00Z")


class Case:
    """One random proposal against one random account. Sizes are drawn to hit limits often."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.picks = [self._pick() for _ in range(self.rng.randrange(6))]
        self.prices = {t: self._near(self._price()) for t in TICKERS if self.rng.random() < 0.9}
        self.evidence = {t: self._evidence(t) for t in TICKERS if self.rng.random() < 0.85}
        self.limits = self._limits()
        self.moves = self._moves()
        self.portfolio = self._portfolio()
        cap = self._amount(200_000) if self.rng.random() < 0.6 else None
        self.budget = None if cap is None else Money(amount=cap)

    def _price(self) -> Decimal:
        coarse = self.rng.choice([D("0.000002"), D("0.01")])
        return self.rng.choice([coarse, D(10), D(10), D("33.33"), D(999), D("123456.789")])

    def _near(self, price: Decimal) -> Decimal:
        factor = self.rng.choice([D(1), D(1), D("1.05"), D("1.0501"), D("0.95"), D("0.9")])
        return (price * factor).quantize(D("0.000001")) or D("0.000001")

    def _exact(self, price: Decimal) -> Decimal:
        return price.quantize(D("0.000001"))

    def _amount(self, top: int) -> Decimal:
        return self.rng.choice([D(0), D(1_000), D(self.rng.randrange(top * 100)) / 100])

    def _pick(self) -> StockPick:
        pct = self.rng.choice([D(0), D(25), D(50), D(100), D(self.rng.randrange(10**6)) / 10**4])
        ticker = self.rng.choice(TICKERS)
        stop_atr = self.rng.choice([1.0, 3.0, 3.0, 6.0])
        about = self.rng.choice([*[(ticker,)] * 8, (), ("AAPL", "XYZ")])
        return StockPick(
            ticker=ticker,
            reasons=tuple(map(settled, about)),
            action=self.rng.choice([Side.BUY, Side.BUY, Side.BUY, Side.SELL]),
            allocation_pct=pct,
            reasoning=self.rng.choice("ab"),
            confidence=self.rng.choice([0.0, 0.5, 0.7, 1.0]),
            plan=self.rng.choice([None, *[PickPlan(stop_atr=stop_atr)] * 6]),
        )

    def _evidence(self, ticker: str) -> Evidence:
        price = self.prices.get(ticker, D(10))
        return Evidence(
            ticker=ticker,
            sector=self.rng.choice(SECTORS),
            risk_score=self.rng.choice([1.0, 7.0, 7.1, 10.0]),
            measured_risk=self.rng.choice([1.0, 1.0, 7.0, 7.1]),
            catalyst="words",
            catalyst_event=self.rng.choice([None, EARNINGS]),
            price=self._near(price),
            no_rate=self.rng.choice([*[None] * 9, "EUR"]),
            atr=self.rng.choice([None, *[self._exact(price / 50)] * 2, D(0), price]),
            report=self.rng.choice([*[None] * 6, REPORT, LATER_REPORT]),
            has_reports=self.rng.random() < 0.5,
            issuer=self.rng.choice([*[""] * 9, "Alpha"]),
            exits=self.rng.choice([None, *[()] * 40, (FIRES,)]),
        )

    def _limits(self) -> AccountLimits:
        def pct() -> Decimal:
            return self.rng.choice([D(0), D(30), D(50), D(100), D("33.3333")])

        return AccountLimits(
            sector_pct_max=pct(),
            position_pct_max=pct(),
            order_pct_max=pct(),
            gross_exposure_pct_max=pct(),
            risk_per_trade_pct_max=self.rng.choice([D(0), D(1), D(1), D(100)]),
            volatility_pct_max=self.rng.choice([D(0), D(15), D(15), D(100)]),
            cluster_pct_max=pct(),
            position_shares_min=self.rng.choice([0, 0, 0, 5]),
            position_value_min=self.rng.choice([D(0), D(0), D(0), D(500)]),
        )

    def _moves(self) -> Moves:
        known = [ticker for ticker in TICKERS if self.rng.random() < 0.8]
        return moving(
            {ticker: self.rng.choice([0.0, 5.0, 20.0, 60.0]) for ticker in known},
            {
                (one, two): self.rng.choice([-0.5, 0.0, 0.5999, 0.6, 0.9])
                for one in known
                for two in known
            },
        )

    def _portfolio(self) -> Portfolio:
        positions = tuple(self._position(t) for t in TICKERS if self.rng.random() < 0.25)
        orders = tuple(self._order(n, t) for n, t in enumerate(TICKERS) if self.rng.random() < 0.15)
        cash = self._amount(100_000)
        equity = cash + sum((p.value for p in positions), D(0))
        return Portfolio(
            cycle_id=ID,
            op_id=ID,
            as_of="2012-06-29",
            account="main",
            cash=Money(amount=cash),
            equity=Money(amount=equity.quantize(D("0.000001"))),
            positions=positions,
            open_orders=orders,
            before=self._before(equity),
            halt=HALT if self.rng.random() < 0.05 else None,
            cooling_off=tuple(self._sold(t) for t in TICKERS if self.rng.random() < 0.15),
        )

    def _sold(self, ticker: str) -> CoolingOff:
        ago = self.rng.choice([0, 9, 10, 11])
        return CoolingOff(ticker=ticker, sold_on="2012-06-15", sessions_ago=ago)

    def _before(self, equity: Decimal) -> SessionBefore | None:
        factor = self.rng.choice([None, D(1), D(1), D(1), D("0.9"), D(100) / 95, D("1.2")])
        if factor is None:
            return self.rng.choice([None, SessionBefore(session="2012-06-28")])
        then = (equity * factor).quantize(D("0.000001"))
        return SessionBefore(session="2012-06-28", equity=Money(amount=then))

    def _position(self, ticker: str) -> Position:
        price = Money(amount=self.prices.get(ticker, D(10)))
        return Position(
            ticker=ticker,
            quantity=D(self.rng.randrange(100)),
            average_cost=price,
            price=price,
            sector=self.rng.choice(SECTORS),
        )

    def _order(self, number: int, ticker: str) -> OpenOrder:
        side = self.rng.choice(list(Side))
        hold = self._amount(20_000) if side is Side.BUY else D(0)
        return OpenOrder(
            order_id=UUID(int=number),
            asset=ticker,
            side=side,
            quantity=D(self.rng.randrange(50)),
            hold=Money(amount=hold),
            as_of="2012-06-29",
        )

    def judge(self, picks: list[StockPick] | None = None, **rules: object) -> RuleVerdict:
        return evaluate(
            self.picks if picks is None else picks,
            self.evidence,
            self.portfolio,
            self.limits,
            self.budget,
            self.prices,
            moves=self.moves,
            **rules,  # type: ignore[arg-type]
        )

    @property
    def cash_free(self) -> Decimal:
        held_back = (o.hold.amount for o in self.portfolio.open_orders if o.side is Side.BUY)
        return max(D(0), self.portfolio.cash.amount - sum(held_back, D(0)))

    @property
    def exposed(self) -> dict[str, Decimal]:
        """The money that is held or ordered, by ticker."""
        money: dict[str, Decimal] = defaultdict(lambda: D(0))
        for position in self.portfolio.positions:
            money[position.ticker] += position.value
        for order in self.portfolio.open_orders:
            if order.side is Side.BUY:
                money[order.asset] += order.hold.amount
        return money

    def pick_of(self, decision: PortfolioDecision) -> StockPick:
        """The smallest pick for it, which counts."""
        picks = [
            each
            for each in self.picks
            if (each.action.value, each.ticker) == (decision.action.value, decision.asset)
        ]
        return min(picks, key=lambda each: (each.allocation_pct, each.model_dump_json()))

    def reasons_of(self, decision: PortfolioDecision) -> tuple[Reason, ...]:
        """Those of the pick that a decision came of: without any of its own there was none."""
        picks = [
            each
            for each in self.picks
            if (each.action.value, each.ticker) == (decision.action.value, decision.asset)
        ]
        return max(picks, key=lambda each: len(each.own_reasons)).reasons

    @property
    def base(self) -> Decimal:
        return self.cash_free if self.budget is None else self.budget.amount


def seeded(seed: int) -> Case:
    """The case of that number, the same on every machine."""
    return Case(random.Random(seed))


def assert_never_increased(case: Case, verdict: RuleVerdict) -> None:
    asked = defaultdict(lambda: D(0))
    for pick in case.picks:
        key = (pick.action.value, pick.ticker)
        asked[key] = max(asked[key], pick.allocation_pct)
    for decision in verdict.decisions:
        assert decision.allocation_pct <= asked[decision.action.value, decision.asset]
        if decision.action is DecisionAction.BUY:
            value = decision.quantity * decision.price.amount
            assert value <= decision.allocation_pct * case.base / 100


def assert_inside_every_limit(case: Case, verdict: RuleVerdict) -> None:
    limits, equity = case.limits, case.portfolio.equity.amount
    buys = [d for d in verdict.decisions if d.action is DecisionAction.BUY]
    values = {d.asset: d.quantity * d.price.amount for d in buys}
    total = sum(values.values(), D(0))
    assert sum((d.allocation_pct for d in buys), D(0)) <= 100
    assert total <= case.base
    assert total * (1 + CASH_RESERVE_BPS / 10_000) <= case.cash_free
    orders = [o for o in case.portfolio.open_orders if o.side is Side.BUY]
    tied = sum((p.value for p in case.portfolio.positions), D(0))
    tied += sum((o.hold.amount for o in orders), D(0))
    if values:
        assert total + tied <= limits.gross_exposure_pct_max * equity / 100
    for value in values.values():
        assert value <= min(limits.order_pct_max, limits.position_pct_max) * equity / 100
    by_sector: dict[str, Decimal] = defaultdict(lambda: D(0))
    for buy in buys:
        sector = case.evidence[buy.asset].sector.strip().lower() or "unknown"
        by_sector[sector] += buy.allocation_pct
    assert all(pct <= limits.sector_pct_max for pct in by_sector.values())


def assert_a_stop_loses_no_more_than_a_trade_may(case: Case, verdict: RuleVerdict) -> None:
    """Bought up to the reserve's gap above the price, with its fees, and sold at the stop."""
    equity = case.portfolio.equity.amount
    for buy in verdict.decisions:
        if buy.action is not DecisionAction.BUY:
            continue
        price = buy.price.amount
        stop = buy.plan.stop_price.amount if buy.plan and buy.plan.stop_price else D(0)
        assert 0 <= stop < price
        lost = buy.quantity * (price * (1 + CASH_RESERVE_BPS / 10_000) - stop)
        factor = max(D("0.5"), D(str(buy.confidence)))
        assert lost <= equity * case.limits.risk_per_trade_pct_max * factor / 100
        if buy.plan:
            assert lost <= buy.plan.risk.amount < lost + D("0.01")
            cents = D("0.0001") + 1 / equity
            assert buy.plan.risk_pct <= case.limits.risk_per_trade_pct_max + cents


def assert_inside_the_account_s_volatility(case: Case, verdict: RuleVerdict) -> None:
    """By numpy, with the true correlations: those below zero only make it calmer."""
    buys = {
        d.asset: float(d.quantity * d.price.amount)
        for d in verdict.decisions
        if d.action is DecisionAction.BUY
    }
    if not buys:
        return
    money = {ticker: float(case.exposed.get(ticker, 0)) for ticker in TICKERS}
    money |= {ticker: money[ticker] + value for ticker, value in buys.items()}
    size, known = len(TICKERS), case.moves.tickers
    correlations = np.ones((size, size))
    for row, one in enumerate(TICKERS):
        for column, two in enumerate(TICKERS):
            if one != two and {one, two} <= set(known):
                low, high = sorted((known.index(one), known.index(two)))
                correlations[row, column] = case.moves.correlations[high * (high - 1) // 2 + low]
    volatility = [
        case.moves.volatility_pct[known.index(ticker)] if ticker in known else 130.0
        for ticker in TICKERS
    ]
    risks = np.array([money[ticker] for ticker in TICKERS]) * np.array(volatility) / 100
    limit = float(case.limits.volatility_pct_max * case.portfolio.equity.amount) / 100
    assert max(float(risks @ correlations @ risks), 0.0) ** 0.5 <= limit * (1 + 1e-9) + 1e-9


def assert_no_cluster_is_too_large(case: Case, verdict: RuleVerdict) -> None:
    """A pair of the same cluster is never more than a cluster may be."""
    buys = {
        d.asset: d.quantity * d.price.amount
        for d in verdict.decisions
        if d.action is DecisionAction.BUY
    }
    known, limit = case.moves.tickers, case.limits.cluster_pct_max
    most = limit * case.portfolio.equity.amount / 100
    for one, value in buys.items():
        for two in {*buys, *case.exposed} - {one}:
            together = True
            if {one, two} <= set(known):
                low, high = sorted((known.index(one), known.index(two)))
                together = case.moves.correlations[high * (high - 1) // 2 + low] >= 0.6
            if together:
                assert value + buys.get(two, D(0)) + case.exposed.get(two, D(0)) <= most


def assert_no_gate_was_passed_by_what_it_bars(case: Case, verdict: RuleVerdict) -> None:
    held = {p.ticker for p in case.portfolio.positions if p.quantity > 0}
    waiting = {o.asset for o in case.portfolio.open_orders if o.side is Side.BUY}
    selling = {o.asset for o in case.portfolio.open_orders if o.side is Side.SELL and o.quantity}
    for decision in verdict.decisions:
        assert not is_currency_pair(decision.asset)
        assert decision.quantity >= 1
        assert decision.quantity == decision.quantity.to_integral_value()
        if decision.action is DecisionAction.SELL:
            continue
        assert case.portfolio.halt is None
        assert_inside_the_daily_loss(case)
        assert any(each.about == decision.asset for each in case.reasons_of(decision))
        evidence = case.evidence[decision.asset]
        assert evidence.risk_score <= case.limits.risk_score_max or evidence.catalyst
        assert decision.asset not in held | waiting | selling
        ago = [each.sessions_ago for each in case.portfolio.cooling_off]
        sold = [each.ticker for each in case.portfolio.cooling_off]
        assert dict(zip(sold, ago, strict=True)).get(decision.asset, 99) >= 10
        move = abs(case.prices[decision.asset] - evidence.price)
        assert move * 100 <= case.limits.price_move_pct_max * evidence.price
        assert not any(signal.triggered for signal in evidence.exits or ())
        assert evidence.exits is not None
        assert evidence.report is None or evidence.report.sessions > case.limits.report_sessions


def assert_inside_the_daily_loss(case: Case) -> None:
    before = case.portfolio.before
    if before is not None:
        assert before.equity is not None
        floor = before.equity.amount * (100 - case.limits.daily_loss_pct_max) / 100
        assert case.portfolio.equity.amount >= floor


def assert_sells_only_what_is_free(case: Case, verdict: RuleVerdict) -> None:
    free = {p.ticker: p.quantity for p in case.portfolio.positions}
    for order in case.portfolio.open_orders:
        if order.side is Side.SELL:
            free[order.asset] = free.get(order.asset, D(0)) - order.quantity
    for decision in verdict.decisions:
        if decision.action is DecisionAction.SELL:
            assert decision.quantity <= free[decision.asset].to_integral_value(ROUND_FLOOR)


def assert_no_buy_is_too_small(case: Case, verdict: RuleVerdict) -> None:
    for decision in verdict.decisions:
        if decision.action is DecisionAction.BUY:
            assert decision.quantity >= case.limits.position_shares_min
            value = decision.quantity * decision.price.amount
            assert value >= case.limits.position_value_min


def assert_told(case: Case, verdict: RuleVerdict) -> None:
    not_kept = [check for check in verdict.checks if check.outcome is not RuleOutcome.KEPT]
    assert len(verdict.adjustments) == len(not_kept)
    assert all(check.passed is (check.outcome is RuleOutcome.KEPT) for check in verdict.checks)
    left = {decision.asset for decision in verdict.decisions}
    assert set(verdict.vetoed) == {pick.ticker for pick in case.picks} - left
    for ticker in verdict.vetoed:
        assert any(text.startswith(f"{ticker}: ") for text in verdict.adjustments)


def assert_order_does_not_matter(case: Case, verdict: RuleVerdict) -> None:
    picks, gates, ceilings = list(case.picks), list(BUY_GATES), list(BUY_CEILINGS)
    for items in (picks, gates, ceilings):
        case.rng.shuffle(items)
    assert case.judge(picks, buy_gates=gates, buy_ceilings=ceilings) == verdict


def assert_applied_again_it_changes_nothing(case: Case, verdict: RuleVerdict) -> None:
    sides = {DecisionAction.BUY: Side.BUY, DecisionAction.SELL: Side.SELL}
    again = [
        StockPick(
            ticker=d.asset,
            action=sides[d.action],
            allocation_pct=d.allocation_pct,
            reasons=case.reasons_of(d),
            reasoning=d.reasoning,
            confidence=d.confidence,
            plan=case.pick_of(d).plan,
        )
        for d in verdict.decisions
    ]
    second = case.judge(again)
    assert second.decisions == verdict.decisions
    assert second.adjustments == ()


PROPERTIES = (
    assert_never_increased,
    assert_inside_every_limit,
    assert_a_stop_loses_no_more_than_a_trade_may,
    assert_inside_the_account_s_volatility,
    assert_no_cluster_is_too_large,
    assert_no_gate_was_passed_by_what_it_bars,
    assert_sells_only_what_is_free,
    assert_no_buy_is_too_small,
    assert_told,
    assert_order_does_not_matter,
    assert_applied_again_it_changes_nothing,
)


@pytest.mark.parametrize(
    "shard",
    [0, *(pytest.param(shard, marks=pytest.mark.slow) for shard in range(1, SHARDS))],
)
def test_no_proposal_gets_past_a_rule(shard):
    for seed in range(shard * CASES // SHARDS, (shard + 1) * CASES // SHARDS):
        case = seeded(seed)
        verdict = case.judge()
        for holds in PROPERTIES:
            try:
                holds(case, verdict)
            except AssertionError as error:
                error.add_note(f"seed {seed}")
                raise


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(max_examples=HUNTED, suppress_health_check=[*HealthCheck], derandomize=True)
def test_a_hunt_for_the_smallest_proposal_that_gets_past_a_rule_finds_none(rng):
    case = Case(rng)
    verdict = case.judge()
    for holds in PROPERTIES:
        holds(case, verdict)


def test_the_random_cases_reach_every_rule_with_every_outcome():
    seen = {
        (check.rule, check.outcome)
        for seed in range(2_500)
        for check in seeded(seed).judge().checks
    }
    assert {(LEAST_SIZE.name, RuleOutcome.KEPT), (LEAST_SIZE.name, RuleOutcome.VETOED)} <= seen
    names = {rule.name for rule in (*BUY_GATES, *BUY_CEILINGS)}
    assert {name for name in names if (name, RuleOutcome.KEPT) in seen} == names
    assert {rule.name for rule in BUY_GATES if (rule.name, RuleOutcome.VETOED) in seen} == {
        rule.name for rule in BUY_GATES
    }
    assert ("one_share_class", RuleOutcome.VETOED) in seen, "it lets all of a buy pass, or none"
    cut = {rule.name for rule in BUY_CEILINGS if (rule.name, RuleOutcome.CUT) in seen}
    assert cut == {rule.name for rule in BUY_CEILINGS} - {"one_share_class"}
