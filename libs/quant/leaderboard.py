"""Who did how well: pipelines beside cash and holding, on the same sessions. Pure.

A pipeline is one on the account that it trades: the same design on another account is another one.

A session's return of an account is time-weighted (`libs.quant.returns`): what was paid in or taken
out is neither gain nor loss. It belongs to the pipeline that decided last before that session:
orders fill at the open after a decision. So a pipeline that takes turns on an account is not paid
for the turns of others.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

from libs.quant.returns import ONE, AccountWorth, period_return

ONE_DAY = timedelta(days=1)
HUNDRED = Decimal(100)
STEP = Decimal("0.0001")
"""Percentages are told to four places."""

Closes = Mapping[date, Decimal]
"""A price at the close of each session that has one."""
Returns = Mapping[date, Decimal]
"""A session's return, as a part: 0.01 is one percent."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A pipeline has decided for an account, at a session's close."""

    session: date
    pipeline: str
    account: str


@dataclass(frozen=True, slots=True)
class Traded:
    """The return of one pick after some sessions; `sold` says that the pick was a sale."""

    return_pct: Decimal
    sold: bool = False


def steered(
    decisions: Sequence[Decision], worth: Mapping[str, Mapping[date, AccountWorth]]
) -> Mapping[str, Returns]:
    """By pipeline: the returns of the sessions for which it decided, of the account it decided for.

    `decisions` are in their order of time; of several at one session the last one counts. A session
    without a known equity is passed over: the next known one has the return since the last, where
    it was the same pipeline's all the while.
    """
    turns = _Turns(decisions)
    returns: dict[str, dict[date, Decimal]] = {decision.pipeline: {} for decision in decisions}
    for account, closes in worth.items():
        for before, session in pairwise(sorted(closes)):
            pipeline = turns.of(account, session - ONE_DAY)
            if pipeline is not None and pipeline == turns.of(account, before):
                returns[pipeline][session] = period_return(closes[before], closes[session])
    return returns


class _Turns:
    """The last decisions: of an account by which pipeline, and of a pipeline for which account."""

    def __init__(self, decisions: Sequence[Decision]) -> None:
        of_account: dict[str, dict[date, str]] = {}
        of_pipeline: dict[str, dict[date, str]] = {}
        for decision in decisions:
            of_account.setdefault(decision.account, {})[decision.session] = decision.pipeline
            of_pipeline.setdefault(decision.pipeline, {})[decision.session] = decision.account
        self._of_account = {name: sorted(days.items()) for name, days in of_account.items()}
        self._of_pipeline = {name: sorted(days.items()) for name, days in of_pipeline.items()}

    def of(self, account: str, day: date) -> str | None:
        """The pipeline whose turn the account is after the close of `day`: it decided for it last,
        and has decided for no other since. None where there is none."""
        pipeline = _last(self._of_account.get(account, ()), day)
        if pipeline is None or _last(self._of_pipeline[pipeline], day) != account:
            return None
        return pipeline


def _last(days: Sequence[tuple[date, str]], day: date) -> str | None:
    place = bisect_right(days, day, key=lambda dated: dated[0])
    return days[place - 1][1] if place else None


def buy_and_hold(closes: Mapping[str, Closes], first: date, sessions: Sequence[date]) -> Returns:
    """The returns of equal parts of all tickers, bought at the close of `first` and left alone.

    Tickers without a close at `first` are left out; where one is missing later, the one before
    stands. Empty where none has one.
    """
    began = {name: prices[first] for name, prices in closes.items() if prices.get(first)}
    worth, returns = dict.fromkeys(began, ONE), {}
    before = ONE
    for session in sessions if began else ():
        for name, price in began.items():
            if session in closes[name]:
                worth[name] = closes[name][session] / price
        value = sum(worth.values(), Decimal(0)) / len(worth)
        returns[session] = value / before - ONE
        before = value
    return returns


def common(of_each: Iterable[Returns]) -> Sequence[date]:
    """The sessions that all of them have a return of, oldest first."""
    sets = [set(returns) for returns in of_each]
    return sorted(set.intersection(*sets)) if sets else []


def alongside(of_each: Mapping[str, Returns]) -> frozenset[str]:
    """Who is fit to be compared: the one with the most sessions (of several the last by name), and
    all that share at least half of them. A newcomer of three days would leave three days to all."""
    if not of_each:
        return frozenset()
    longest = set(of_each[max(of_each, key=lambda name: (len(of_each[name]), name))])
    return frozenset(
        name for name, returns in of_each.items() if 2 * len(longest & set(returns)) >= len(longest)
    )


def curve(returns: Returns, sessions: Sequence[date]) -> Sequence[Decimal]:
    """The equity curve of 1: 1 first, then its value at the close of each of the sessions."""
    worth = [ONE]
    for session in sessions:
        worth.append(worth[-1] * (ONE + returns[session]))
    return worth


def return_pct(worth: Sequence[Decimal]) -> Decimal:
    """Last against first, less 1, in percent."""
    return ((worth[-1] / worth[0] - ONE) * HUNDRED).quantize(STEP)


def max_drawdown_pct(worth: Sequence[Decimal]) -> Decimal:
    """The max drawdown: the largest fall from an earlier peak, in percent of it; 0 if none."""
    highest, deepest = worth[0], Decimal(0)
    for value in worth:
        highest = max(highest, value)
        deepest = max(deepest, ONE - value / highest)
    return (deepest * HUNDRED).quantize(STEP)


def hits(traded: Iterable[Traded]) -> int:
    """Count the picks that went the right way: bought shares up, sold ones down. Unchanged ones
    are no hit."""
    return sum(trade.return_pct < 0 if trade.sold else trade.return_pct > 0 for trade in traded)
