"""Facts of what the desk itself holds: the account, the digest, and reports made before."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from contracts.account import Portfolio
from contracts.research import QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.trader import DailyPicks
from libs.facts.fact import PERCENT, PLAIN, SCORE, SHARES, TEXT, Fact, FactValue, Key
from libs.facts.market import INDICATORS
from libs.facts.marks import event_mark

ACCOUNT = "account"
MENTIONS = "mentions"
HEADLINE = "headline"
_HUNDRED = 100


def account_facts(portfolio: Portfolio) -> Iterator[Fact]:
    """Cash, equity and each position, at as_of's close."""
    currency, known = portfolio.cash.currency, portfolio.as_of.isoformat()

    def fact(entity: str, quantity: str, value: FactValue, unit: str, label: str) -> Fact:
        return Fact(Key(entity, quantity), value, unit, label, "the desk's books", known)

    equity = portfolio.equity.amount
    yield fact(ACCOUNT, "cash", portfolio.cash.amount, currency, "free cash")
    yield fact(ACCOUNT, "equity", equity, currency, "equity")
    if equity > 0:
        share = float(portfolio.cash.amount / equity * _HUNDRED)
        yield fact(ACCOUNT, "cash_pct", round(share, 4), PERCENT, "cash of equity")
    yield fact(ACCOUNT, "positions", len(portfolio.positions), "positions", "holds")
    for held in portfolio.positions:
        yield fact(held.ticker, "held", held.quantity, SHARES, "held")
        if equity > 0:
            share = float(held.value / equity * _HUNDRED)
            yield fact(held.ticker, "held_pct", round(share, 4), PERCENT, "held, of equity")
        cost = held.average_cost.amount
        yield fact(held.ticker, "cost", cost, currency, "average cost")
        if cost > 0:
            gain = float((held.price.amount / cost - 1) * _HUNDRED)
            yield fact(held.ticker, "gain_held_pct", round(gain, 4), PERCENT, "since bought")


def digest_facts(digest: SignalDigest) -> Iterator[Fact]:
    """Each candidate's headlines, how often it was mentioned, and what each source makes of it.

    Headlines come first: where not all facts can be shown, they say the most. One that two
    publishers have word for word at the same time is one fact, the first one's.
    """
    known = digest.as_of.isoformat()
    for each in digest.candidates:
        for headline in each.headlines:
            at = headline.published_at
            mark = event_mark(each.ticker, HEADLINE, at.date(), at, headline.title)
            yield Fact(
                Key(each.ticker, HEADLINE, at.date(), mark),
                headline.title,
                TEXT,
                HEADLINE,
                headline.source,
                at.isoformat(),
            )
        if each.mentions:
            key = Key(each.ticker, MENTIONS)
            yield Fact(key, each.mentions, MENTIONS, "named", digest.market_source, known)
        for source, score in each.scores.items():
            key = Key(each.ticker, f"{source}_score")
            yield Fact(key, round(score, 4), PLAIN, f"score of {source}", source, known)


def sentiment_facts(report: SentimentReport) -> Iterator[Fact]:
    """How each ticker is spoken of."""
    known = report.as_of.isoformat()
    for each in report.tickers:
        for quantity, value, label in (
            ("sentiment", each.score, "sentiment (-1 to 1)"),
            ("sentiment_confidence", each.confidence, "confidence of its sentiment"),
        ):
            yield Fact(Key(each.ticker, quantity), value, PLAIN, label, "sentiment", known)


def quant_facts(report: QuantReport, currencies: Mapping[str, str]) -> Iterator[Fact]:
    """The quant's view of each asset, and the indicators that it had of it. `currencies` are those
    that the tickers trade in, as far as they are known."""
    known = report.as_of.isoformat()
    measured = (each.source for each in report.figures if each.call)
    source = next(measured, "indicators of the quant")
    for each in report.assets:
        key = Key(each.ticker, "quant_signal")
        yield Fact(key, each.signal.value, TEXT, "quant", "quant", known)
        key = Key(each.ticker, "quant_confidence")
        yield Fact(key, each.confidence, PLAIN, "confidence of the quant", "quant", known)
        for name, (quantity, unit, label) in INDICATORS.items():
            value = each.technical_indicators.get(name)
            if value is not None:
                own = currencies.get(each.ticker, PLAIN) if unit == "money" else unit
                yield Fact(Key(each.ticker, quantity), value, own, label, source, known)


def research_facts(report: ResearchReport) -> Iterator[Fact]:
    """The analyst's scores of each ticker beside what the market source has of it."""
    known = report.as_of.isoformat()
    for each in report.tickers:
        for quantity, value, label in (
            ("technical_score", each.technical_score, "technical score"),
            ("fundamental_score", each.fundamental_score, "fundamental score"),
            ("risk_score", each.risk_score, "risk by the analyst"),
        ):
            yield Fact(Key(each.ticker, quantity), value, SCORE, label, "analyst", known)
        key = Key(each.ticker, "measured_risk")
        yield Fact(key, each.measured_risk, SCORE, "risk as measured", "prices", known)
        if each.current_price > 0:
            key = Key(each.ticker, "close")
            yield Fact(key, each.current_price, each.currency, "close", "research", known)
        yield Fact(Key(each.ticker, "sector"), each.sector, TEXT, "sector", "research", known)


def picks_facts(picks: DailyPicks) -> Iterator[Fact]:
    """What the trader proposes."""
    known = picks.as_of.isoformat()
    for each in (*picks.picks, *picks.sell_recommendations):
        key = Key(each.ticker, "allocation_pct")
        label = f"proposed to {each.action.value}"
        yield Fact(key, Decimal(each.allocation_pct), PERCENT, label, "trader", known)
        key = Key(each.ticker, "pick_confidence")
        yield Fact(key, each.confidence, PLAIN, "confidence of the trader", "trader", known)
