"""From facts to a proposal: judge every rule, weigh them, size the sale and its stop. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum

from contracts.account import ActedExit, ExitAct, OrderType, Position, Side
from contracts.exit_signal import ExitCheck, Holdings
from contracts.types import Money, Month, shortened
from libs.quant.exits.rules import (
    ExitFacts,
    ExitRule,
    Finding,
    Fired,
    NotEvaluated,
    exit_signal,
    rules_of,
)
from libs.quant.exits.terms import ExitTerms
from libs.quant.sizing import part_of, share_step, too_small
from libs.quant.ticks import priced, quoted, rounded_to_tick
from services.exit_signal.acted import SignalStanding, standing

WHY_CHARS_MAX = 400
"""As a contract's short text."""
PCT_STEP = Decimal("0.0001")  # contracts.types.Percent keeps four places
_ZERO = Decimal(0)
_HUNDRED = Decimal(100)


class ExitVerdict(StrEnum):
    """The verdict of all rules together; an assessment begins with it."""

    STRONG_EXIT = "STRONG EXIT"
    EXIT = "EXIT"
    MONITOR = "MONITOR"
    HOLD = "HOLD"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Signal:
    """One rule and what it found."""

    rule: ExitRule
    finding: Finding


@dataclass(frozen=True, slots=True)
class SellablePart:
    """The part of a position that may be sold: all but what open sales have promised.

    A stop order promises nothing: it stands behind a sale and not against it. `sold` is whether
    the session has sold of it already, `exits` those that acted on the position, oldest first.
    """

    position: Position
    promised: Decimal = _ZERO
    sold: bool = False
    exits: tuple[ActedExit, ...] = ()

    @property
    def shares(self) -> Decimal:
        """Shares held."""
        return self.position.quantity

    @property
    def free(self) -> Decimal:
        """Shares that nothing else is selling."""
        return max(_ZERO, self.shares - self.promised)


@dataclass(frozen=True, slots=True)
class ExitSizing:
    """How much to sell, in percent of the position and in shares, and the stop on the rest.

    `acts` is what the sale acts on. `stop_price` is in the currency that the ticker trades in;
    None: no stop, for the reason given where one was asked for.
    """

    sell_pct: Decimal
    quantity: Decimal
    remaining: Decimal
    reason: str
    acts: ExitAct
    stop_price: Decimal | None = None
    no_stop: str = ""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The signals, what they come to, and what is proposed. `not_sold` says why nothing is,
    although a primary rule fired."""

    signals: tuple[Signal, ...]
    verdict: ExitVerdict
    summary: str
    sizing: ExitSizing | None = None
    not_sold: str = ""


def held_in(holdings: Holdings, ticker: str) -> SellablePart | None:
    """The position with what its open orders mean for it; None where nothing is held."""
    position = next(
        (position for position in holdings.positions if position.ticker == ticker), None
    )
    if position is None or position.quantity <= 0:
        return None
    promised = (
        open_order.quantity
        for open_order in holdings.open_orders
        if (open_order.asset, open_order.side, open_order.type)
        == (ticker, Side.SELL, OrderType.MARKET)
    )
    return SellablePart(
        position,
        promised=sum(promised, _ZERO),
        sold=ticker in holdings.sold,
        exits=tuple(act for act in holdings.exits if act.ticker == ticker),
    )


def assess(
    facts: ExitFacts, terms: ExitTerms, held: SellablePart, own: Sequence[ExitRule] = ()
) -> Assessment:
    """Judge the position by its rules, with the user's `own` beside them, and size what follows."""
    signals = tuple(Signal(rule, rule.judge(facts)) for rule in (*rules_of(terms), *own))
    verdict, summary = weigh(signals)
    fired = [
        standing(signal.rule, signal.finding, facts, held.exits)
        for signal in signals
        if signal.rule.is_primary and isinstance(signal.finding, Fired)
    ]
    if not fired:
        return Assessment(signals, verdict, summary)
    due = [one for one in fired if not one.is_done]
    if not due:
        why = shortened("; ".join(one.sentence for one in fired), WHY_CHARS_MAX)
        return Assessment(signals, verdict, summary, not_sold=why)
    if held.promised > 0:
        why = f"an open order sells {held.promised.normalize():f} shares already"
        return Assessment(signals, verdict, summary, not_sold=why)
    if held.sold:
        why = "this session has sold of it already; the next one looks at it again"
        return Assessment(signals, verdict, summary, not_sold=why)
    return Assessment(signals, verdict, summary, sizing=size(due, held, terms, facts.month))


def weigh(signals: Sequence[Signal]) -> tuple[ExitVerdict, str]:
    """Weigh the signals: the verdict, and the same with the rules that made it.

    A primary rule that fired decides, whatever could not be evaluated beside it. Where none fired
    and one could not be evaluated, nobody can say.
    """
    primary = [signal for signal in signals if signal.rule.is_primary]
    fired, failed = _named(primary, Fired), _named(primary, NotEvaluated)
    warned = _named([signal for signal in signals if not signal.rule.is_primary], Fired)
    if fired and warned:
        return _with_rules(ExitVerdict.STRONG_EXIT, [*fired, *warned])
    if fired:
        return _with_rules(ExitVerdict.EXIT, fired)
    if failed or not primary:
        return _with_rules(ExitVerdict.ERROR, failed)
    if warned:
        return _with_rules(ExitVerdict.MONITOR, warned)
    return _with_rules(ExitVerdict.HOLD, [])


def _named(signals: Sequence[Signal], kind: type[Fired | NotEvaluated]) -> list[str]:
    return [signal.rule.name for signal in signals if isinstance(signal.finding, kind)]


def _with_rules(verdict: ExitVerdict, names: Sequence[str]) -> tuple[ExitVerdict, str]:
    return verdict, f"{verdict} ({', '.join(names)})" if names else verdict.value


def size(
    due: Sequence[SignalStanding], held: SellablePart, terms: ExitTerms, month: Month
) -> ExitSizing:
    """The largest sale that a rule asks for, never nothing and never more than is held; all
    where the rest would be under the least that the terms keep. Then the stop that the terms name,
    on what remains.
    """
    most = max(due, key=lambda one: _wanted(one, held))
    quantity, reason = _wanted(most, held), _asks(most)
    if too_little := _too_little(held, held.shares - quantity, terms):
        quantity, reason = held.free, f"{reason}; {too_little}"
    remaining = held.shares - quantity
    price, no_stop = stop_of(terms, held.position) if remaining > 0 else (None, "")
    return ExitSizing(
        sell_pct=_share(most, quantity, held),
        quantity=quantity,
        remaining=remaining,
        reason=reason,
        acts=ExitAct(
            rules=tuple(one.rule.name for one in due),
            month=month,
            held=held.shares,
            asked=quantity,
        ),
        stop_price=price,
        no_stop=no_stop,
    )


def _wanted(rule: SignalStanding, held: SellablePart) -> Decimal:
    """Shares that a rule asks for: its part of what is free, or what its last order left unsold."""
    if rule.left is not None:
        return min(held.free, rule.left)
    part = part_of(held.free, rule.finding.sell_pct, held.position.lot)
    return min(held.free, max(share_step(held.free, held.position.lot), part))


def _asks(rule: SignalStanding) -> str:
    if rule.left is None:
        return f"{rule.rule.name} sells {rule.finding.sell_pct.normalize():f}%"
    last = rule.acts[-1]
    return (
        f"{rule.rule.name} sells the {rule.left.normalize():f} shares that were left of its "
        f"{last.asked.normalize():f} on {last.as_of}"
    )


def _too_little(held: SellablePart, rest: Decimal, terms: ExitTerms) -> str:
    """Why a rest is sold too; empty where it is none, or enough to be kept."""
    if rest <= 0 or held.promised > 0:
        return ""
    price = held.position.price
    value, least = rest * price.amount, (terms.rest_shares_min, terms.rest_value_min)
    why = too_small(rest, value, *least, price.currency)
    return f"a rest of {why}, so all is sold" if why else ""


def _share(rule: SignalStanding, quantity: Decimal, held: SellablePart) -> Decimal:
    """The part of what is free that the quantity is: as the rule says it where it comes to that,
    else the least that covers it."""
    share = rule.finding.sell_pct
    if part_of(held.free, share, held.position.lot) == quantity:
        return share
    exact = quantity * _HUNDRED / held.free
    return min(_HUNDRED, exact.quantize(PCT_STEP, ROUND_CEILING))


def stop_of(terms: ExitTerms, position: Position) -> tuple[Decimal | None, str]:
    """The price of the stop order, or why there is none although one was asked for.

    A stop at or above the price would sell the rest at once, which is not what it is for.
    """
    paid = traded(position)
    price = paid.amount
    if terms.stop_price is not None:
        stop_price = terms.stop_price
    elif terms.stop_pct is not None:
        left = price * (1 - Decimal(str(terms.stop_pct)) / _HUNDRED)
        stop_price = rounded_to_tick(left, ROUND_CEILING) if left > 0 else _ZERO
    else:
        return None, ""
    if stop_price <= 0:
        return None, f"a stop {terms.stop_pct}% below {quoted(paid)} is not a price"
    if stop_price >= price:
        stop = quoted(priced(stop_price, paid.currency))
        return None, f"the stop price {stop} is not below the price {quoted(paid)}"
    return stop_price, ""


def check_of(held: SellablePart, assessment: Assessment) -> ExitCheck:
    """The assessment of one position, as it is told to the rest of the desk."""
    sizing = assessment.sizing
    check = ExitCheck(
        ticker=held.position.ticker,
        assessment=assessment.summary,
        signals=tuple(exit_signal(s.rule, s.finding) for s in assessment.signals),
        note=assessment.not_sold,
    )
    if sizing is None:
        return check
    price = sizing.stop_price
    currency = traded(held.position).currency
    return check.model_copy(
        update={
            "sell_pct": sizing.sell_pct,
            "quantity": sizing.quantity,
            "acts": sizing.acts,
            "stop_price": None if price is None else Money(amount=price, currency=currency),
            "note": sizing.no_stop,
        }
    )


def traded(position: Position) -> Money:
    """The close as the ticker trades, in its own currency."""
    return position.price if position.foreign is None else position.foreign.price
