"""How past decisions fared: which are due, what a price has become, how it is told. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from contracts.account import Fill, OrderStatus, Side
from contracts.assessment import Memorize
from contracts.cycle import STUDY_ACCOUNTS
from contracts.execution import ExecutionResult, Order
from contracts.memory import (
    JUDGED_SESSIONS,
    OUTCOME_SESSIONS,
    PENDING_ORDERS_MAX,
    STATED_MAX,
    TRACK_RECORD_MAX,
    AwaitedDecision,
    Basis,
    Benchmark,
    DecisionOutcome,
    PastDecision,
    PastPick,
    PickFate,
    PickOutcome,
    StatedOutcome,
)
from contracts.risk import DecisionAction
from contracts.stages import fell_back
from contracts.trader import StockPick
from contracts.types import Failure, Money, shortened
from libs.market.calendar import ExchangeCalendar
from libs.quant.ticks import PRICE_STEP

RETURN_STEP = Decimal("0.01")
"""Returns are told in percent to two places: the daily close is no more exact than that."""
SENTENCE_CHARS_MAX = 400
COMPARED_MIN = 2
"""With one candidate there is nothing that it could do better than."""


@dataclass(frozen=True)
class Due:
    """A decision whose `sessions`-th session has closed: it is looked at as of `session`."""

    decision: PastDecision
    sessions: int
    session: date


@dataclass(frozen=True)
class Closes:
    """One ticker's prices in `currency`, adjusted up to an outcome's session.

    `decided` and `measured` are the closes at the decision's as_of and at the outcome's session,
    `next_open` the open after the decision; `filled` the fill's price, None where nothing filled.
    """

    decided: float | None
    next_open: float | None
    measured: float
    currency: str
    filled: float | None = None

    def price(self, amount: float) -> Money:
        """A price in the ticker's currency, with the places that are stored."""
        return Money(amount=_exact(amount, PRICE_STEP), currency=self.currency)


Prices = Mapping[str, Closes | Failure]
"""By ticker: its prices, or why there are none."""


# --- what is kept of a decision -------------------------------------------------------------------


def pending(result: ExecutionResult | None) -> tuple[str, ...]:
    """The cycle's orders that still work, in a sentence each."""
    orders = result.orders if result else ()
    working = [
        f"{order.side.value} {order.quantity} {order.asset} ({order.order_id})"
        for order in orders
        if order.status is OrderStatus.WORKING
    ]
    return tuple(working[:PENDING_ORDERS_MAX])


def decision_of(cycle: Memorize) -> PastDecision | None:
    """The cycle's decision for later cycles; None where it ended before the trader had decided."""
    daily = cycle.daily_picks
    if daily is None:
        return None
    fills, orders = _executed(cycle)
    allowed = _allowed(cycle)
    proposed = (*daily.picks, *daily.sell_recommendations)
    return PastDecision(
        cycle_id=cycle.cycle_id,
        pipeline=cycle.pipeline.name,
        as_of=cycle.as_of,
        picks=tuple(_past_pick(pick, fills, orders, allowed) for pick in proposed),
        universe=tuple(item.ticker for item in cycle.signal_digest.candidates)
        if cycle.signal_digest
        else (),
        provider=cycle.pipeline.answers("trader"),
        fell_back=fell_back(daily.substitutes),
    )


_Leg = tuple[str, str]


def _executed(cycle: Memorize) -> tuple[Mapping[_Leg, Fill], Mapping[_Leg, Order]]:
    result = cycle.execution_result
    if result is None:
        return {}, {}
    fills = {(fill.side.value, fill.asset): fill for fill in result.fills}
    return fills, {(order.side.value, order.asset): order for order in result.orders}


def _allowed(cycle: Memorize) -> set[_Leg] | None:
    """The legs that the rules left; None where they never judged."""
    validation = cycle.decision_validation
    if validation is None:
        return None
    decisions = (
        decision for decision in validation.decisions if decision.action is not DecisionAction.HOLD
    )
    return {(decision.action.value, decision.asset) for decision in decisions}


def _past_pick(
    pick: StockPick,
    fills: Mapping[_Leg, Fill],
    orders: Mapping[_Leg, Order],
    allowed: set[_Leg] | None,
) -> PastPick:
    leg = (pick.action.value, pick.ticker)
    fill, order = fills.get(leg), orders.get(leg)
    if fill is not None:
        fate = PickFate.FILLED
    elif order is not None and order.status is OrderStatus.WORKING:
        fate = PickFate.WORKING
    else:
        vetoed = allowed is not None and leg not in allowed
        fate = PickFate.VETOED if vetoed else PickFate.NOT_ORDERED
    return PastPick(
        ticker=pick.ticker,
        action=pick.action,
        allocation_pct=pick.allocation_pct,
        fate=fate,
        fill_price=_paid(fill) if fill else None,
        filled_on=fill.session if fill else None,
        confidence=pick.confidence,
    )


def _paid(fill: Fill) -> Money:
    """The price as it is traded, like the closes that it will be compared with."""
    return fill.foreign.price if fill.foreign else fill.price


# --- which outcomes are due -----------------------------------------------------------------------


def due(
    awaited: Sequence[AwaitedDecision], as_of: date, calendar: ExchangeCalendar
) -> Sequence[Due]:
    """The outcomes that are known at as_of's close and were not told."""
    dues: list[Due] = []
    for decision in awaited:
        passed = calendar.sessions(decision.decision.as_of + timedelta(days=1), as_of)
        dues += [
            Due(decision.decision, sessions, passed[sessions - 1])
            for sessions in OUTCOME_SESSIONS
            if sessions not in decision.told and sessions <= len(passed)
        ]
    return dues


# --- how it fared ---------------------------------------------------------------------------------


def outcome(looked_at: Due, prices: Prices) -> DecisionOutcome:
    """The decision's outcome from the prices of its picks and of its universe."""
    decision = looked_at.decision
    return DecisionOutcome(
        cycle_id=decision.cycle_id,
        pipeline=decision.pipeline,
        as_of=decision.as_of,
        sessions=looked_at.sessions,
        session=looked_at.session,
        picks=tuple(_pick_outcome(pick, decision, prices[pick.ticker]) for pick in decision.picks),
        benchmark=_benchmark(decision.universe, prices),
    )


def _pick_outcome(pick: PastPick, decision: PastDecision, closes: Closes | Failure) -> PickOutcome:
    basis = _basis(pick)
    outcome = PickOutcome(ticker=pick.ticker, action=pick.action, fate=pick.fate, basis=basis)
    if isinstance(closes, Failure):
        return outcome.model_copy(update={"absence": closes})
    entry = {
        Basis.FILL: closes.filled,
        Basis.NEXT_OPEN: closes.next_open,
        Basis.CLOSE: closes.decided,
    }[basis]
    if entry is None:
        return outcome.model_copy(update={"absence": _no_entry(pick, basis, decision.as_of)})
    return outcome.model_copy(
        update={
            "entry_price": closes.price(entry),
            "exit_price": closes.price(closes.measured),
            "return_pct": _return_pct(entry, closes.measured),
        }
    )


def _basis(pick: PastPick) -> Basis:
    if pick.fate is PickFate.WORKING:
        return Basis.NEXT_OPEN
    return Basis.FILL if pick.fill_price is not None else Basis.CLOSE


def _no_entry(pick: PastPick, basis: Basis, as_of: date) -> Failure:
    missing = {
        Basis.FILL: f"close on {pick.filled_on}, when it was filled",
        Basis.NEXT_OPEN: f"open on the session after {as_of}",
        Basis.CLOSE: f"close on {as_of}",
    }[basis]
    return Failure(code="no_history", message=f"{pick.ticker} has no {missing}, to count from")


def _benchmark(universe: Sequence[str], prices: Prices) -> Benchmark:
    changes = {
        ticker: _return_pct(closes.decided, closes.measured)
        for ticker in universe
        if isinstance(closes := prices[ticker], Closes) and closes.decided is not None
    }
    if not changes:
        return Benchmark(absent=tuple(universe))
    mean = sum(changes.values(), Decimal(0)) / len(changes)
    return Benchmark(
        return_pct=mean.quantize(RETURN_STEP),
        counted=len(changes),
        absent=tuple(ticker for ticker in universe if ticker not in changes),
    )


def _return_pct(entry: float, measured: float) -> Decimal:
    return _exact((measured / entry - 1) * 100, RETURN_STEP)


def _exact(value: float, step: Decimal) -> Decimal:
    return Decimal(str(value)).quantize(step)


# --- what came of stated confidences --------------------------------------------------------------


def stated(command: Memorize, outcomes: Sequence[DecisionOutcome]) -> tuple[StatedOutcome, ...]:
    """The outcomes of stated confidences: those that the last memory knew, then those that have
    become known since; the newest STATED_MAX. A study's accounts know nothing: it judges what was
    stated.

    A buy counts whether it was traded or not: it was stated all the same. Of a ticker that was
    picked twice for one session the later decision counts.
    """
    if command.pipeline.account.startswith(STUDY_ACCOUNTS):
        return ()
    awaited = [one.decision for one in command.past_decisions]
    decisions = {(decision.cycle_id, decision.pipeline): decision for decision in awaited}
    new: dict[tuple[date, str], StatedOutcome] = {}
    for outcome in outcomes:
        decision = decisions[outcome.cycle_id, outcome.pipeline]
        if outcome.sessions == JUDGED_SESSIONS and decision.provider is not None:
            new |= {
                (outcome.as_of, ticker): StatedOutcome(
                    on=outcome.as_of,
                    known_on=outcome.session,
                    provider=decision.provider,
                    stated=confidence,
                    beat=beat,
                    fell_back=decision.fell_back,
                )
                for ticker, confidence, beat in _judged(decision, outcome)
            }
    before = command.agent_memory.stated if command.agent_memory else ()
    return (*before, *new.values())[-STATED_MAX:]


def _judged(decision: PastDecision, outcome: DecisionOutcome) -> Iterator[tuple[str, float, bool]]:
    """The buys that stated a confidence and have a return beside a benchmark: their tickers, what
    was stated, and whether they did better."""
    benchmark = outcome.benchmark
    if benchmark.return_pct is None or benchmark.counted < COMPARED_MIN:
        return
    changes = {(pick.ticker, pick.action): pick.return_pct for pick in outcome.picks}
    for pick in decision.picks:
        change = changes.get((pick.ticker, pick.action))
        if pick.action is Side.BUY and pick.confidence is not None and change is not None:
            yield pick.ticker, pick.confidence, change > benchmark.return_pct


# --- how it is told -------------------------------------------------------------------------------


def track_record(new: Sequence[DecisionOutcome], before: Sequence[str]) -> tuple[str, ...]:
    """The new outcomes in a sentence each, then the ones that the last memory carried."""
    newest = sorted(
        new, key=lambda outcome: (outcome.session, outcome.as_of, outcome.sessions), reverse=True
    )
    return (*map(sentence, newest), *before)[:TRACK_RECORD_MAX]


def sentence(outcome: DecisionOutcome) -> str:
    """`2012-06-29 after 5 sessions: bought AAPL +4.93%; equal parts of 5 candidates +0.61%`."""
    picks = [f"{_verb(pick)} {pick.ticker} {_change(pick)}" for pick in outcome.picks]
    benchmark = outcome.benchmark
    if benchmark.return_pct is not None:
        many = "s" if benchmark.counted != 1 else ""
        share = f"equal parts of {benchmark.counted} candidate{many} {benchmark.return_pct:+f}%"
        picks.append(share if outcome.picks else f"nothing picked; {share}")
    head = f"{outcome.as_of} after {outcome.sessions} sessions: "
    return shortened(f"{head}{'; '.join(picks) or 'nothing picked'}", SENTENCE_CHARS_MAX)


def _verb(pick: PickOutcome) -> str:
    if pick.fate is PickFate.FILLED:
        return "bought" if pick.action is Side.BUY else "sold"
    return f"{pick.fate.value.replace('_', ' ')} {pick.action.value} of"


def _change(pick: PickOutcome) -> str:
    if pick.return_pct is None:
        return f"unknown ({pick.absence.code})" if pick.absence else "unknown"
    return f"{pick.return_pct:+f}%"
