"""Evidence behind a pick: the findings of research as the rules take them. Pure."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from contracts.account import Portfolio
from contracts.research import QuantReport, ResearchFinding, ResearchReport
from contracts.risk import Evidence
from contracts.types import ExchangeRate, Foreign
from libs.quant.exchange import price_in


def evidence_of(
    research: ResearchReport, quant: QuantReport, portfolio: Portfolio
) -> tuple[Evidence, ...]:
    """The evidence behind picks: each finding, priced in the account's currency by the portfolio's
    rates.

    Of two for one ticker one that cites a tool result counts, and of two of these the riskier.
    """
    confidence: Mapping[str, float] = {view.ticker: view.confidence for view in quant.assets}
    rates = {rate.currency: rate for rate in portfolio.rates}
    priced = [
        _evidence(
            finding,
            confidence.get(finding.ticker, 0.0),
            portfolio.cash.currency,
            rates,
        )
        for finding in research.tickers
    ]
    # A price below all the places that are kept of it is none.
    usable: Sequence[Evidence] = [item for item in priced if item is not None]
    worst = {item.ticker: item for item in sorted(usable, key=_weight)}
    return tuple(worst[ticker] for ticker in sorted(worst))


def _evidence(
    finding: ResearchFinding,
    confidence: float,
    into: str,
    rates: Mapping[str, ExchangeRate],
) -> Evidence | None:
    is_foreign = finding.currency != into
    rate = rates.get(finding.currency) if is_foreign else None
    paid = finding.close
    price = price_in(finding.current_price, rate)
    if price == 0:
        return None
    return Evidence(
        ticker=finding.ticker,
        sector=finding.sector,
        risk_score=finding.risk_score,
        measured_risk=finding.measured_risk,
        catalyst=finding.catalyst,
        catalyst_event=finding.catalyst_event,
        price=price,
        confidence=confidence,
        foreign=None if rate is None else Foreign(price=paid, rate=rate),
        no_rate=finding.currency if is_foreign and rate is None else None,
        atr=finding.atr,
        report=finding.report,
        has_reports=finding.has_reports,
        issuer=finding.issuer,
        lot=finding.lot,
        exits=finding.exits,
        exits_note=finding.exits_note,
        is_sourced=bool(finding.evidence),
    )


def _weight(item: Evidence) -> tuple[bool, float, bool, Decimal]:
    return item.is_sourced, item.risk, item.catalyst_event is None, item.price
