"""Exits that have acted, and tickers that cool off after a sale, as of a session. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from contracts.account import COOLING_OFF_SESSIONS_MAX, ActedExit, CoolingOff
from libs.quant.sizing import kept_shares

LOOK_BACK_DAYS = 2 * COOLING_OFF_SESSIONS_MAX
"""Calendar days that surely hold the longest cooling-off: most weeks have five sessions."""
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class SplitOf:
    """That `before` shares of a ticker became `after` when a session began."""

    ticker: str
    session: date
    before: Decimal
    after: Decimal


def exits_at(
    acted: Sequence[ActedExit], splits: Sequence[SplitOf], sold_by: date | None = None
) -> tuple[ActedExit, ...]:
    """The exits with what was sold of each by the close of `sold_by` (None: so far), all shares as
    after the splits by then.

    An order is in the shares of the session it was decided at, its fill in those of its own.
    """
    return tuple(_restated(act, splits, sold_by) for act in acted)


def _restated(acted: ActedExit, splits: Sequence[SplitOf], sold_by: date | None) -> ActedExit:
    own = [
        split
        for split in splits
        if split.ticker == acted.ticker and (sold_by is None or split.session <= sold_by)
    ]
    filled = acted.sold_on is not None and (sold_by is None or acted.sold_on <= sold_by)
    ordered = [split for split in own if split.session > acted.as_of]
    since = [split for split in own if acted.sold_on is not None and split.session > acted.sold_on]
    return acted.model_copy(
        update={
            "held": _after(acted.held, ordered),
            "asked": _after(acted.asked, ordered),
            "sold": _after(acted.sold, since) if filled else _ZERO,
            "sold_on": acted.sold_on if filled else None,
        }
    )


def _after(shares: Decimal, splits: Sequence[SplitOf]) -> Decimal:
    """As many shares after the splits, rounded down: what is left to sell never grows by it."""
    for split in splits:
        shares = kept_shares(shares * split.after / split.before)
    return shares


def cooling_off(
    sales: Mapping[str, date], past: Sequence[date], sessions: int
) -> tuple[CoolingOff, ...]:
    """Of the last `sales` by ticker those that are fewer than `sessions` ago; `past` are the
    sessions up to the one that is looked at, as far back as LOOK_BACK_DAYS."""
    counted = (
        CoolingOff(
            ticker=ticker, sold_on=sold_on, sessions_ago=sum(session > sold_on for session in past)
        )
        for ticker, sold_on in sorted(sales.items())
    )
    return tuple(act for act in counted if act.sessions_ago < sessions)
