"""The shapes of the market tools' answers, for whoever wants a schema before the first call."""

from typing import Annotated

from pydantic import BaseModel, Field

Session = Annotated[str, Field(description="YYYY-MM-DD; its close is meant")]
Moment = Annotated[str, Field(description="ISO 8601, UTC: when it became known")]
EventId = Annotated[str, Field(description="What a decision names this by")]
Omitted = Annotated[int, Field(description="More of them than fit into an answer")]
Fraction = Annotated[float | None, Field(description="In percent; null where it is not known")]


class Sealed(BaseModel):
    """The fields that every answer has."""

    as_of: Session
    newest: Annotated[str | None, Field(description="The time of the newest datum in it")]
    source: str


class StockPrice(Sealed):
    """get_stock_price."""

    ticker: str
    session: Session
    price: Annotated[float, Field(description="The close, as it was traded")]
    day_change_pct: Fraction
    volume: int
    currency: str


class StockHistory(Sealed):
    """get_stock_history."""

    ticker: str
    adjusted: str
    currency: str
    columns: list[str]
    rows: Annotated[list[list[str | float | int]], Field(description="Oldest first")]


class TechnicalIndicators(Sealed):
    """get_technical_indicators."""

    ticker: str
    session: Session
    currency: str
    bars: Annotated[int, Field(description="Sessions that they were computed from")]
    values: Annotated[dict[str, float | None], Field(description="By indicator")]
    absent: Annotated[dict[str, str], Field(description="By indicator: why it has no value")]


class Figures(BaseModel):
    """Of the newest reported period; null is not reported."""

    known_at: Moment
    period_end: str
    age_days: Annotated[int, Field(description="From the period's end to as_of")]
    currency: str
    pe_ratio: float | None
    market_cap: float | None
    dividend_yield_pct: Fraction
    eps_ttm: float | None
    shares_outstanding: float | None
    revenue_ttm: float | None
    profit_margin_pct: Fraction
    operating_margin_pct: Fraction
    debt_to_equity: float | None
    profit_growth_pct: Fraction
    revenue_growth_pct: Fraction
    form: Annotated[str | None, Field(description="Of the filing that told of the period")] = None
    accession: str | None = None
    filed: str | None = None
    eps_fiscal_year: Annotated[float | None, Field(description="Of the last whole year")] = None
    fiscal_year_end: str | None = None
    fiscal_year_age_days: int | None = None
    absent: Annotated[dict[str, str], Field(description="By figure: why it has no value")]
    notes: Annotated[list[str], Field(description="Reports that were due and are missing")]


class CompanyFundamentals(Sealed):
    """get_fundamentals."""

    ticker: str
    session: Session | None = None
    sector: str | None = None
    figures: Figures | None
    note: str | None = None


class NewsHeadline(BaseModel):
    """Quoted from third parties."""

    event: EventId | None = None
    known_at: Moment
    title: str
    summary: str
    publisher: str
    url: str


class Headlines(Sealed):
    """get_news."""

    ticker: str
    note: str
    items: Annotated[list[NewsHeadline], Field(description="Newest first")]
    omitted_for_size: Omitted


class FiledItem(BaseModel):
    """A filing, in the desk's words: no text of it."""

    event: EventId
    known_at: Moment
    form: str
    filed: str
    age_days: Annotated[int, Field(description="From the day it was filed to as_of")]
    period_end: str | None
    text: str
    accession: str


class Filings(Sealed):
    """get_filings."""

    ticker: str
    items: Annotated[list[FiledItem], Field(description="Newest first")]
    omitted_for_size: Omitted


class Report(BaseModel):
    """A quarter's report."""

    event: EventId | None = None
    known_at: Moment
    period_end: str
    report_date: str
    eps_estimate: float | None
    eps_actual: float | None
    currency: Annotated[str | None, Field(description="Of both; null where it is not known")] = None


class DueReport(Report):
    """A report that is expected."""

    ticker: str


class Earnings(Sealed):
    """get_earnings."""

    ticker: str
    upcoming: Report | None
    last_reported: Report | None


class EarningsCalendar(Sealed):
    """get_earnings_calendar."""

    until: str
    entries: list[DueReport]
    omitted_for_size: Omitted


class EuropeanListing(BaseModel):
    """A listing; `in_source` where there are prices of it."""

    ticker: str
    name: str
    sector: str
    exchange: str
    currency: str
    country: str | None
    in_source: bool
    known_at: Moment | None = None


class EuropeanListings(Sealed):
    """search_eu_stocks."""

    session: Session
    matches: list[EuropeanListing]
    omitted_for_size: Omitted
