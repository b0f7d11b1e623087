"""Facts of what the desk itself holds: the account, the digest, and reports made before."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from contracts.account import OrderType, Portfolio, Side
from contracts.message import Contract
from contracts.research import QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.trader import DailyPicks
from libs.facts.fact import DAY, PERCENT, PLAIN, SCORE, SHARES, TEXT, Fact, FactValue, Key
from libs.facts.market import INDICATORS
from libs.facts.marks import event_mark
from libs.quant.risk.evaluation import Room
from libs.quant.risk.rules import halt_words

ACCOUNT = "account"
MENTIONS = "mentions"
HEADLINE = "headline"
NEXT_REPORT = "next_report"
BEING_SOLD = "being_sold"
REVIEW_BY = "review_by"
REVIEW_DUE = "review_due"
ROOM = "room_pct"
NOT_TO_BUY = "not_to_buy"
RULES = "the desk's rules"
_HUNDRED = 100

C = TypeVar("C", bound=Contract)
P = ParamSpec("P")


def _with_operation(
    lay_out: Callable[Concatenate[C, P], Iterator[Fact]],
) -> Callable[Concatenate[C, P], Iterator[Fact]]:
    """The same facts, each with the operation that made the contract which it is from."""

    @wraps(lay_out)
    def laid_out(contract: C, /, *args: P.args, **named: P.kwargs) -> Iterator[Fact]:
        for fact in lay_out(contract, *args, **named):
            yield replace(fact, op_id=contract.op_id)

    return laid_out


@_with_operation
def account_facts(portfolio: Portfolio) -> Iterator[Fact]:
    """Cash, equity and each position, at as_of's close."""
    currency, known = portfolio.cash.currency, portfolio.as_of.isoformat()

    def fact(entity: str, quantity: str, value: FactValue, unit: str, label: str) -> Fact:
        return Fact(Key(entity, quantity), value, unit, label, "the desk's books", known)

    equity = portfolio.equity.amount
    yield fact(ACCOUNT, "cash", portfolio.cash_free, currency, "free cash")
    yield fact(ACCOUNT, "equity", equity, currency, "equity")
    if equity > 0:
        share = float(portfolio.cash_free / equity * _HUNDRED)
        yield fact(ACCOUNT, "cash_pct", round(share, 4), PERCENT, "cash of equity")
    if portfolio.halt is not None:
        yield fact(ACCOUNT, "halt", halt_words(portfolio.halt), TEXT, "buys are halted")
    yield fact(ACCOUNT, "positions", len(portfolio.positions), "positions", "holds")
    for position in portfolio.positions:
        yield fact(position.ticker, "held", position.quantity, SHARES, "held")
        if equity > 0:
            share = float(position.value / equity * _HUNDRED)
            yield fact(position.ticker, "held_pct", round(share, 4), PERCENT, "held, of equity")
        cost = position.average_cost.amount
        yield fact(position.ticker, "cost", cost, currency, "average cost")
        if cost > 0:
            gain = float((position.price.amount / cost - 1) * _HUNDRED)
            yield fact(position.ticker, "gain_held_pct", round(gain, 4), PERCENT, "since bought")
        if (plan := position.plan) is not None:
            yield fact(position.ticker, "entered_on", plan.since, DAY, "bought on")
            if plan.review_by is not None:
                due = plan.is_due(portfolio.as_of)
                quantity = REVIEW_DUE if due else REVIEW_BY
                label = "to be looked at again since" if due else "to be looked at again by"
                yield fact(position.ticker, quantity, plan.review_by, DAY, label)
    for order in portfolio.open_orders:
        if order.type is OrderType.STOP and order.stop_price is not None:
            stop = order.stop_price
            yield fact(order.asset, "stop", stop.amount, stop.currency, "its stop")
        else:
            quantity, label = (
                ("being_bought", "in an open buy")
                if order.side is Side.BUY
                else (BEING_SOLD, "in an open sale")
            )
            yield fact(order.asset, quantity, order.quantity, SHARES, label)
    for sold in portfolio.cooling_off:
        yield fact(sold.ticker, "sold_on", sold.sold_on, DAY, "sold on")
        ago = sold.sessions_ago
        yield fact(sold.ticker, "sessions_since_sold", ago, "sessions", "since it was sold")


def room_facts(rooms: Mapping[str, Room], known: date) -> Iterator[Fact]:
    """Each ticker's room by itself under the rules, or why they let none pass."""
    for ticker, room in rooms.items():
        if room.allocation_pct:
            share, label = float(room.allocation_pct), "the rules let pass, of the budget,"
            key = Key(ticker, ROOM)
            yield Fact(key, share, PERCENT, label, RULES, known.isoformat(), note=room.why)
        else:
            key = Key(ticker, NOT_TO_BUY)
            yield Fact(key, room.why, TEXT, "not to be bought", RULES, known.isoformat())


@_with_operation
def digest_facts(digest: SignalDigest) -> Iterator[Fact]:
    """Each candidate's headlines, how often it was mentioned, and what each source makes of it.

    Headlines come first: where not all facts can be shown, they say the most. One that two
    publishers have word for word at the same time is one fact, the first one's.
    """
    known = digest.as_of.isoformat()
    for candidate in digest.candidates:
        for headline in candidate.headlines:
            at = headline.published_at
            mark = event_mark(candidate.ticker, HEADLINE, at.date(), at, headline.title)
            yield Fact(
                Key(candidate.ticker, HEADLINE, at.date(), mark),
                headline.title,
                TEXT,
                HEADLINE,
                headline.source,
                at.isoformat(),
            )
        if candidate.mentions:
            key = Key(candidate.ticker, MENTIONS)
            yield Fact(key, candidate.mentions, MENTIONS, "named", digest.market_source, known)
        for source, score in candidate.scores.items():
            key = Key(candidate.ticker, f"{source}_score")
            yield Fact(key, round(score, 4), PLAIN, f"score of {source}", source, known)


@_with_operation
def sentiment_facts(report: SentimentReport) -> Iterator[Fact]:
    """The sentiment of each ticker."""
    known = report.as_of.isoformat()
    for mood in report.tickers:
        for quantity, value, label in (
            ("sentiment", mood.score, "sentiment (-1 to 1)"),
            ("sentiment_confidence", mood.confidence, "confidence of its sentiment"),
        ):
            yield Fact(Key(mood.ticker, quantity), value, PLAIN, label, "sentiment", known)


@_with_operation
def quant_facts(report: QuantReport) -> Iterator[Fact]:
    """The quant's view of each asset, and the indicators that it had of it."""
    known = report.as_of.isoformat()
    measured = (figure.source for figure in report.figures if figure.call)
    source = next(measured, "indicators of the quant")
    for view in report.assets:
        key = Key(view.ticker, "quant_signal")
        yield Fact(key, view.signal.value, TEXT, "quant", "quant", known)
        key = Key(view.ticker, "quant_confidence")
        yield Fact(key, view.confidence, PLAIN, "confidence of the quant", "quant", known)
        for name, (quantity, unit, label) in INDICATORS.items():
            value = view.technical_indicators.get(name)
            if value is not None:
                own = (view.currency or PLAIN) if unit == "money" else unit
                yield Fact(Key(view.ticker, quantity), value, own, label, source, known)


@_with_operation
def research_facts(report: ResearchReport) -> Iterator[Fact]:
    """The analyst's scores of each ticker beside what the market source has of it."""
    known = report.as_of.isoformat()
    for finding in report.tickers:
        for quantity, value, label in (
            ("technical_score", finding.technical_score, "technical score"),
            ("fundamental_score", finding.fundamental_score, "fundamental score"),
            ("risk_score", finding.risk_score, "risk by the analyst"),
        ):
            if value is not None:
                yield Fact(Key(finding.ticker, quantity), value, SCORE, label, "analyst", known)
        key = Key(finding.ticker, "measured_risk")
        yield Fact(key, finding.measured_risk, SCORE, "risk as measured", "prices", known)
        if finding.current_price > 0:
            key = Key(finding.ticker, "close")
            yield Fact(key, finding.current_price, finding.currency, "close", "research", known)
        yield Fact(Key(finding.ticker, "sector"), finding.sector, TEXT, "sector", "research", known)
        if finding.report is not None:
            key = Key(finding.ticker, NEXT_REPORT)
            yield Fact(key, finding.report.on, DAY, "next report", "announced", known)
            key = Key(finding.ticker, "sessions_to_report")
            away = finding.report.sessions
            yield Fact(key, away, "sessions", "next report in", "announced", known)


@_with_operation
def picks_facts(picks: DailyPicks) -> Iterator[Fact]:
    """The trader's proposals."""
    known = picks.as_of.isoformat()
    for pick in (*picks.picks, *picks.sell_recommendations):
        key = Key(pick.ticker, "allocation_pct")
        label = f"proposed to {pick.action.value}"
        yield Fact(key, Decimal(pick.allocation_pct), PERCENT, label, "trader", known)
        key = Key(pick.ticker, "pick_confidence")
        yield Fact(key, pick.confidence, PLAIN, "confidence of the trader", "trader", known)
