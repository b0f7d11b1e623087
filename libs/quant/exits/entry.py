"""How the exit rules judge a position that is bought at as_of's close. Pure.

It is the position that a check would see after the buy: opened at the next open, at as_of's price,
with nothing lost, gained or waited since. Only rules that decide (primary) count. The exemption of
positions that are newer than a signal of a month is left aside: it is for what was bought knowing
the signal, and the risk rule that reads this keeps the desk from such a buy.
"""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from contracts.account import Position
from contracts.exit_signal import ExitSignal
from contracts.types import Failure, Money
from libs.quant.exits.history import (
    ExitContext,
    HistoryRequest,
    PriceHistory,
    SessionsBetween,
    facts_of,
    last_complete,
    wanted_for,
)
from libs.quant.exits.rules import exit_signal, rules_of
from libs.quant.exits.terms import ExitTerms


def wanted_at_entry(
    ticker: str, as_of: date, next_session: date, terms: ExitTerms, sessions: SessionsBetween
) -> HistoryRequest:
    """The closes to read of a ticker before `signals_at_entry`."""
    bought, held = _bought(ticker, next_session), _holding(as_of, next_session)
    (wanted,) = wanted_for([bought], held, {ticker: _own(terms)}, sessions)
    return wanted


def signals_at_entry(
    ticker: str,
    as_of: date,
    next_session: date,
    terms: ExitTerms,
    history: PriceHistory,
    sessions: SessionsBetween,
) -> tuple[ExitSignal, ...]:
    """The finding of each rule that decides, on a position that is bought at the close."""
    bought, held = _bought(ticker, next_session), _holding(as_of, next_session)
    facts = facts_of(bought, held, _own(terms), {ticker: history}, sessions)
    if isinstance(facts, Failure) or history.close is None:
        return ()
    facts = replace(facts, price=history.close, average_cost=history.close)
    decide = (rule for rule in rules_of(terms) if rule.is_primary)
    return tuple(exit_signal(rule, rule.judge(facts)) for rule in decide)


def _own(terms: ExitTerms) -> ExitTerms:
    """Without the basket: only the regime looks at it, which never decides."""
    return terms.model_copy(update={"basket": ()})


def _holding(as_of: date, next_session: date) -> ExitContext:
    return ExitContext(as_of, last_complete(as_of, next_session), largest=())


def _bought(ticker: str, opened_on: date) -> Position:
    paid = Money(amount=Decimal(1))  # the close takes its place once it is read
    return Position(
        ticker=ticker,
        quantity=Decimal(1),
        average_cost=paid,
        price=paid,
        opened_on=opened_on,
    )
