"""From facts to a proposal: judge every rule, weigh them, size the sale and its stop. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from enum import StrEnum

from contracts.account import OrderType, Position, Side
from contracts.exit_signal import ExitCheck, ExitSignal, Holdings
from contracts.types import Money
from libs.quant.sizing import CENT
from services.exit_signal.rules import Facts, Finding, Fired, NotEvaluated, Rule, rules_of
from services.exit_signal.terms import ExitTerms

PCT_STEP = Decimal("0.0001")  # contracts.types.Percent keeps four places
_ZERO = Decimal(0)
_ONE = Decimal(1)
_HUNDRED = Decimal(100)


class Verdict(StrEnum):
    """What the rules come to together; an assessment begins with it."""

    STRONG_EXIT = "STRONG EXIT"
    EXIT = "EXIT"
    MONITOR = "MONITOR"
    HOLD = "HOLD"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Signal:
    """One rule and what it found."""

    rule: Rule
    finding: Finding


@dataclass(frozen=True, slots=True)
class Held:
    """What may be sold of a position: whole shares, less those that open sales have promised.

    A stop order promises nothing: it stands behind a sale and not against it. `sold` is whether
    the session has sold of it already.
    """

    position: Position
    promised: Decimal = _ZERO
    sold: bool = False

    @property
    def shares(self) -> Decimal:
        """Whole shares held."""
        return self.position.quantity.to_integral_value(ROUND_FLOOR)

    @property
    def free(self) -> Decimal:
        """Whole shares that nothing else is selling."""
        return max(_ZERO, self.shares - self.promised)


@dataclass(frozen=True, slots=True)
class Sizing:
    """How much to sell, in percent of the position and in shares, and the stop on the rest.

    `stop_price` is in the currency that the ticker trades in; None: no stop, for the reason given
    where one was asked for.
    """

    sell_pct: Decimal
    quantity: Decimal
    remaining: Decimal
    reason: str
    stop_price: Decimal | None = None
    no_stop: str = ""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The signals, what they come to, and what is proposed. `not_sold` says why nothing is,
    although a primary rule fired."""

    signals: tuple[Signal, ...]
    verdict: Verdict
    told: str
    sizing: Sizing | None = None
    not_sold: str = ""


def held_in(holdings: Holdings, ticker: str) -> Held | None:
    """The position with what its open orders mean for it; None where nothing is held."""
    position = next(
        (position for position in holdings.positions if position.ticker == ticker), None
    )
    if position is None or position.quantity < _ONE:
        return None
    promised = (
        open_order.quantity
        for open_order in holdings.open_orders
        if (open_order.asset, open_order.side, open_order.type)
        == (ticker, Side.SELL, OrderType.MARKET)
    )
    return Held(position, promised=sum(promised, _ZERO), sold=ticker in holdings.sold)


def assess(facts: Facts, terms: ExitTerms, held: Held) -> Assessment:
    """Judge the position by its rules and size what follows."""
    signals = tuple(Signal(rule, rule.judge(facts)) for rule in rules_of(terms))
    verdict, summary = weigh(signals)
    fired = [
        signal for signal in signals if signal.rule.is_primary and isinstance(signal.finding, Fired)
    ]
    if not fired:
        return Assessment(signals, verdict, summary)
    if held.promised > 0:
        why = f"an open order sells {held.promised.normalize():f} shares already"
        return Assessment(signals, verdict, summary, not_sold=why)
    if held.sold:
        why = "this session has sold of it already; the next one looks at it again"
        return Assessment(signals, verdict, summary, not_sold=why)
    return Assessment(signals, verdict, summary, sizing=size(fired, held, terms))


def weigh(signals: Sequence[Signal]) -> tuple[Verdict, str]:
    """What the signals come to: the verdict, and the same with the rules that made it.

    A primary rule that fired decides, whatever could not be evaluated beside it. Where none fired
    and one could not be evaluated, nobody can say.
    """
    primary = [signal for signal in signals if signal.rule.is_primary]
    fired, failed = _named(primary, Fired), _named(primary, NotEvaluated)
    warned = _named([signal for signal in signals if not signal.rule.is_primary], Fired)
    if fired and warned:
        return _told(Verdict.STRONG_EXIT, [*fired, *warned])
    if fired:
        return _told(Verdict.EXIT, fired)
    if failed or not primary:
        return _told(Verdict.ERROR, failed)
    if warned:
        return _told(Verdict.MONITOR, warned)
    return _told(Verdict.HOLD, [])


def _named(signals: Sequence[Signal], kind: type[Fired | NotEvaluated]) -> list[str]:
    return [signal.rule.name for signal in signals if isinstance(signal.finding, kind)]


def _told(verdict: Verdict, names: Sequence[str]) -> tuple[Verdict, str]:
    return verdict, f"{verdict} ({', '.join(names)})" if names else verdict.value


def size(fired: Sequence[Signal], held: Held, terms: ExitTerms) -> Sizing:
    """The largest share that a fired primary rule asks for: at least one share, never more than
    is held; then the stop that the terms name, on what remains.
    """
    most = max(fired, key=lambda signal: _sell_pct(signal.finding))
    share = _sell_pct(most.finding)
    exact = (held.free * share / _HUNDRED).to_integral_value(ROUND_FLOOR)
    quantity = min(held.free, max(_ONE, exact))
    # Where the share asked for is less than one of the shares held, one of them is asked for.
    least = (_HUNDRED / held.free).quantize(PCT_STEP, ROUND_CEILING)
    sell_pct = share if exact == quantity else min(_HUNDRED, least)
    remaining = held.shares - quantity
    price, no_stop = stop_of(terms, held.position) if remaining > 0 else (None, "")
    return Sizing(
        sell_pct=sell_pct,
        quantity=quantity,
        remaining=remaining,
        reason=f"{most.rule.name} sells {share.normalize():f}%",
        stop_price=price,
        no_stop=no_stop,
    )


def _sell_pct(finding: Finding) -> Decimal:
    return finding.sell_pct if isinstance(finding, Fired) else _ZERO


def stop_of(terms: ExitTerms, position: Position) -> tuple[Decimal | None, str]:
    """The price of the stop order, or why there is none although one was asked for.

    A stop at or above the price would sell the rest at once, which is not what it is for.
    """
    price = traded(position).amount
    if terms.stop_price is not None:
        stop_price = terms.stop_price
    elif terms.stop_pct is not None:
        stop_price = (price * (1 - Decimal(str(terms.stop_pct)) / _HUNDRED)).quantize(
            CENT, ROUND_DOWN
        )
    else:
        return None, ""
    if stop_price <= 0:
        return None, f"a stop {terms.stop_pct}% below {price.normalize():f} is not a price"
    if stop_price >= price:
        return None, f"the stop price {stop_price} is not below the price {price.normalize():f}"
    return stop_price, ""


def check_of(held: Held, assessment: Assessment) -> ExitCheck:
    """The assessment of one position, as it is told to the rest of the desk."""
    sizing = assessment.sizing
    check = ExitCheck(
        ticker=held.position.ticker,
        assessment=assessment.told,
        signals=tuple(map(_signal, assessment.signals)),
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
            "stop_price": None if price is None else Money(amount=price, currency=currency),
            "note": sizing.no_stop,
        }
    )


def _signal(signal: Signal) -> ExitSignal:
    rule, finding = signal.rule, signal.finding
    if isinstance(finding, NotEvaluated):
        return ExitSignal(
            rule=rule.name, primary=rule.is_primary, failed=True, detail=finding.reason
        )
    return ExitSignal(
        rule=rule.name,
        primary=rule.is_primary,
        triggered=isinstance(finding, Fired),
        severity=finding.severity if isinstance(finding, Fired) else 0.0,
        detail=finding.detail,
    )


def traded(position: Position) -> Money:
    """The close as the ticker trades, in its own currency."""
    return position.price if position.foreign is None else position.foreign.price
