"""What became of each position of a replay, from the first share to none, by the ledger's fills."""

import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import orjson

from libs.quant.sizing import BPS_IN_ONE as BPS
from libs.quant.sizing import CASH_RESERVE_BPS

Fill = Mapping[str, Any]
SOON_SESSIONS = 5
"""A week: what was bought within it was hardly meant to be sold."""
LISTED_MAX = 20
COSTS_BPS = 15
"""Both fees and the sale's slippage, by the default settings: the rest of a plan's reserve bears a
small gap, and the slippage of the purchase."""
SLIPPED, CENTS = Decimal("0.9995"), Decimal("0.02")
"""A fill at a stop's own price is worse than it by the paper broker's slippage and rounding."""
_ZERO = Decimal(0)


@dataclass
class Held:
    """One position: its fills, oldest first. Dividends are not in them."""

    ticker: str
    fills: list[Fill] = field(default_factory=list)
    shares: Decimal = _ZERO

    @property
    def is_closed(self) -> bool:
        """Whether nothing of it is held any more."""
        return self.shares <= 0

    @property
    def risk(self) -> Decimal | None:
        """The money that its plan said it risks; None without a plan."""
        plan = self.fills[0]["plan"]
        return None if plan is None else Decimal(orjson.loads(plan)["risk"]["amount"])

    @property
    def gain(self) -> Decimal:
        """What it brought after fees, once it is closed."""
        return sum((_money(fill) - fill["fee"] for fill in self.fills), _ZERO)

    @property
    def sized_at(self) -> Decimal | None:
        """The price that the buy was sized at, by what its plan said that it risks; None without a
        stop."""
        plan = orjson.loads(self.fills[0]["plan"] or "{}")
        if not plan.get("stop_price"):
            return None
        shares: Decimal = self.fills[0]["ordered"]
        stop = Decimal(plan["stop_price"]["amount"])
        return (Decimal(plan["risk"]["amount"]) / shares + stop) / (1 + CASH_RESERVE_BPS / BPS)

    @property
    def entry_gap(self) -> str:
        """How far above the price it was sized at it was bought; empty where the reserve of its
        plan bears that."""
        price, sized_at = self.fills[0]["price"], self.sized_at
        borne = 1 + (CASH_RESERVE_BPS - COSTS_BPS) / BPS
        is_gap = sized_at is not None and price > sized_at * borne
        return f"sized at {sized_at:.2f}, bought at {price:.2f}" if is_gap else ""

    @property
    def gap(self) -> str:
        """The stop that was opened through, and its fill; empty where none was."""
        last = self.fills[-1]
        is_gap = last["type"] == "stop" and last["price"] < last["stop_price"] * SLIPPED - CENTS
        return f"stop {last['stop_price']:.2f}, sold at {last['price']:.2f}" if is_gap else ""


def summary(
    fills: Sequence[Fill], splits: Sequence[Fill], sessions: Sequence[date]
) -> dict[str, Any]:
    """Positions, why they were sold, and what they lost beside what they said that they risk."""
    every = list(positions_of(fills, splits))
    closed = [each for each in every if each.is_closed]
    counts = [len(each.fills) for each in every]
    beyond = [each for each in closed if each.risk is not None and -each.gain > each.risk]
    losses = [_lost(each) for each in sorted(beyond, key=_over)]
    return {
        "fills": dict(Counter(map(_kind, fills)).most_common()),
        "sales by reason": dict(Counter(map(_reason, _sales(fills))).most_common()),
        "positions opened": len(every),
        "by ticker": dict(Counter(each.ticker for each in every).most_common(10)),
        "fills a position": round(statistics.fmean(counts), 2) if counts else None,
        "most fills of one position": max(counts, default=None),
        "cut twice by one signal of a month": len(list(_cut_twice(every))),
        f"sold of within {SOON_SESSIONS} sessions": sum(_soon(each, sessions) for each in every),
        "median sessions held": _median([_held_for(each, sessions) for each in closed]),
        "won of those closed": f"{sum(each.gain > 0 for each in closed)} of {len(closed)}",
        "median of gain by risk": _median(
            [round(float(each.gain / each.risk), 2) for each in closed if each.risk]
        ),
        "lost more than stated": len(beyond),
        "- of these by a gap through the stop": sum(bool(each.gap) for each in beyond),
        "- by a gap at the purchase": sum(bool(each.entry_gap and not each.gap) for each in beyond),
        "- by neither": sum(not each.entry_gap and not each.gap for each in beyond),
        "- the largest": losses[:LISTED_MAX],
    }


def positions_of(fills: Iterable[Fill], splits: Iterable[Fill] = ()) -> Iterator[Held]:
    """Every position, the closed ones first; `splits` are the shares that splits have added."""
    held: dict[str, Held] = {}
    # A split comes at the open, before what is filled there.
    for fill in sorted((*splits, *fills), key=lambda each: each["session"]):
        position = held.setdefault(fill["ticker"], Held(fill["ticker"]))
        position.shares += fill["quantity"] * (-1 if fill["side"] == "sell" else 1)
        if fill["side"] != "split":
            position.fills.append(fill)
        if position.is_closed:
            yield held.pop(fill["ticker"])
    yield from held.values()


def _money(fill: Fill) -> Decimal:
    value: Decimal = fill["quantity"] * fill["price"]
    return -value if fill["side"] == "buy" else value


def _over(position: Held) -> Decimal:
    return position.gain + (position.risk or _ZERO)


def _lost(position: Held) -> str:
    bought, sold = position.fills[0]["session"], position.fills[-1]["session"]
    gaps = ", ".join(filter(None, (position.entry_gap, position.gap)))
    why = gaps or _reason(position.fills[-1])
    return (
        f"{position.ticker} {bought} to {sold}: lost {-position.gain:.2f}, stated "
        f"{position.risk:.2f} ({why})"
    )


def _kind(fill: Fill) -> str:
    return "stop" if fill["type"] == "stop" else "exit" if fill["exit"] else str(fill["side"])


def _sales(fills: Iterable[Fill]) -> Iterator[Fill]:
    return (fill for fill in fills if fill["side"] == "sell")


def _reason(fill: Fill) -> str:
    """`stop`, the rules of an exit, `by hand`, or `decision`."""
    if fill["type"] == "stop":
        return "stop"
    if fill["exit"]:
        return " + ".join(fill["exit_rules"]) if fill["exit_rules"] else "by hand"
    return "decision"


def _cut_twice(positions: Iterable[Held]) -> Iterator[tuple[str, str, str]]:
    """The ticker, rule and month of a signal that sold twice of one position."""
    for position in positions:
        acted: Counter[tuple[str, str]] = Counter()
        for fill in position.fills:
            acted.update((rule, fill["exit_month"]) for rule in fill["exit_rules"] or ())
        yield from ((position.ticker, *signal) for signal, count in acted.items() if count > 1)


def _held_for(position: Held, sessions: Sequence[date]) -> int:
    first, last = position.fills[0]["session"], position.fills[-1]["session"]
    return bisect_left(sessions, last) - bisect_left(sessions, first)


def _soon(position: Held, sessions: Sequence[date]) -> bool:
    sales = [*_sales(position.fills)]
    if not sales:
        return False
    first = bisect_left(sessions, position.fills[0]["session"])
    return bisect_left(sessions, sales[0]["session"]) - first <= SOON_SESSIONS


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
