"""The tools about what companies reported: fundamentals priced at as_of, and filings."""

from dataclasses import asdict
from datetime import date
from typing import Any

from libs.market.absence import none_of
from libs.market.choice import DataKind
from libs.market.facts import filing_event
from libs.market.kinds import label_of
from libs.market.source import Fundamentals, MarketData
from libs.market.tools.answers import PRICE_DECIMALS, TITLE_CHARS_MAX, TickerArguments
from libs.runtime.untrusted import clean_line

FILINGS_MAX = 25
ROUNDED = (
    "eps_ttm",
    "shares_outstanding",
    "revenue_ttm",
    "profit_margin_pct",
    "operating_margin_pct",
    "debt_to_equity",
    "profit_growth_pct",
    "revenue_growth_pct",
)


async def fundamentals(
    arguments: TickerArguments, market: MarketData, as_of: date
) -> dict[str, Any]:
    """The newest known figures, priced at as_of; `figures` is None where there are none."""
    ticker = arguments.ticker
    known = await market.fundamentals(ticker, as_of)
    if known is None:
        source = label_of(market, DataKind.FUNDAMENTALS).name
        asked = {"ticker": ticker, "source": source, "as_of": as_of.isoformat()}
        return {"ticker": ticker, "figures": None, "note": none_of("figures", asked)}
    listing = (await market.universe(as_of, (ticker,)))[0]
    price = float((await market.bars(ticker, as_of, 1))["close"][-1])
    return {
        "ticker": ticker,
        "session": as_of.isoformat(),
        "sector": clean_line(listing.sector, TITLE_CHARS_MAX),
        "figures": {
            "known_at": known.known_at.isoformat(),
            "period_end": known.period_end.isoformat(),
            "age_days": (as_of - known.period_end).days,
            "currency": known.currency,
            # A loss has no meaningful price-earnings ratio.
            "pe_ratio": _ratio(price, known.eps_ttm),
            "market_cap": _product(price, known.shares_outstanding),
            "dividend_yield_pct": _product(_over(known.dividend_per_share_ttm, price), 100),
            **_rounded(known),
            **_filed(known, as_of),
            "absent": dict(known.absent),
            "notes": list(known.notes),
        },
    }


def _ratio(price: float, earnings: float | None) -> float | None:
    return None if earnings is None or earnings <= 0 else round(price / earnings, PRICE_DECIMALS)


def _product(value: float | None, factor: float | None) -> float | None:
    return None if value is None or factor is None else round(value * factor, PRICE_DECIMALS)


def _over(value: float | None, price: float) -> float | None:
    return None if value is None else value / price


def _rounded(known: Fundamentals) -> dict[str, float | None]:
    """The reported figures: sums of floats are shown without their noise."""
    values = asdict(known)
    return {name: _product(values[name], 1) for name in ROUNDED}


def _filed(known: Fundamentals, as_of: date) -> dict[str, Any]:
    """Where the figures are from, of a source of filings; and its last whole fiscal year."""
    if known.filed is None:
        return {}
    ended = known.fiscal_year_end
    return {
        "form": clean_line(known.form, TITLE_CHARS_MAX),
        "accession": clean_line(known.accession, TITLE_CHARS_MAX),
        "filed": known.filed.isoformat(),
        "eps_fiscal_year": _product(known.eps_fiscal_year, 1),
        "fiscal_year_end": None if ended is None else ended.isoformat(),
        "fiscal_year_age_days": None if ended is None else (as_of - ended).days,
    }


async def filings(arguments: TickerArguments, market: MarketData, as_of: date) -> dict[str, Any]:
    """The company's filings, newest first, in the desk's words."""
    known = await market.filings(arguments.ticker, as_of)
    items = [
        {
            "event": filing_event(filing).id,
            "known_at": filing.known_at.isoformat(),
            "form": clean_line(filing.form, TITLE_CHARS_MAX),
            "filed": filing.filed.isoformat(),
            "age_days": (as_of - filing.filed).days,
            "period_end": filing.period_end.isoformat() if filing.period_end else None,
            "text": filing_event(filing).text,
            "accession": clean_line(filing.accession, TITLE_CHARS_MAX),
        }
        for filing in reversed(known)
    ]
    return {
        "ticker": arguments.ticker,
        "items": items[:FILINGS_MAX],
        "omitted_for_size": max(0, len(items) - FILINGS_MAX),
    }
