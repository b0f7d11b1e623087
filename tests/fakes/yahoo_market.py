"""A small made-up market as Yahoo would tell it at one moment, in the shapes that yfinance reads.

The truth is raw bars, as traded. The adjusting is written here once more, from Yahoo's side and
without the code under test: prices and dividends go through all splits until now, `adjclose` also
through dividends by 1 - dividend / close of the day before.
"""

import csv
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")
MINOR = {"GBp": 100.0}


@dataclass
class Row:
    """One raw day, in whole currency units; None is what Yahoo has a null for."""

    day: date
    open: float | None
    high: float | None
    low: float | None
    close: float | None
    volume: float | None
    dividend: float = 0.0
    split: float = 1.0


@dataclass
class Company:
    """What there is to tell about one ticker. `info` overrides its key figures."""

    ticker: str
    rows: list[Row]
    name: str = ""
    sector: str = ""
    quoted: str = "USD"
    kind: str = "EQUITY"
    exchange: str = "NYQ"
    zone: ZoneInfo = NEW_YORK
    opens: time = time(9, 30)
    closes: time = time(16, 0)
    news: list[dict[str, Any]] = field(default_factory=list)
    reports: list[tuple[datetime, float | None, float | None]] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)
    shares: float = 0.0
    """Of all classes, in shares of this listing."""
    dividend_unit: float = 1.0
    """What dividends are multiplied with: 0.01 is pounds where prices are pence."""
    dividend_currency: str = ""
    splits_applied: bool = True

    def stamp(self, day: date, at: time) -> int:
        return int(datetime.combine(day, at, tzinfo=self.zone).timestamp())


@dataclass
class MadeUpMarket:
    """All companies at `now`; what is later than `now` is not told."""

    now: datetime
    companies: dict[str, Company]
    screens: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def fixture(cls, folder: Path, now: datetime) -> "MadeUpMarket":
        """The market of tests/data/fixture_market."""
        sectors = {row["ticker"]: row for row in _read(folder / "sectors.csv")}
        companies = {}
        for path in sorted(folder.glob("*.csv")):
            if path.stem in {"news", "earnings", "fundamentals", "filings", "sectors", "fx"}:
                continue
            told = sectors.get(path.stem, {})
            company = Company(
                path.stem,
                [_row(each) for each in _read(path)],
                name=told.get("name", ""),
                sector=told.get("sector", ""),
            )
            if path.stem.endswith(".DE"):
                company.quoted, company.exchange = "EUR", "GER"
                company.zone, company.closes = ZoneInfo("Europe/Berlin"), time(17, 30)
            companies[path.stem] = company
        for row in _read(folder / "news.csv"):
            companies[row["ticker"]].news.append(_story(row))
        _add_figures(companies, folder, now)
        _add_reports(companies, folder)
        _add_rates(companies, folder)
        names = sorted(name for name in companies if "=" not in name)
        screens = {"day_gainers": names[:4], "day_losers": names[2:6], "most_actives": names[:3]}
        return cls(now, companies, screens)

    def chart(self, symbol: str, first: int | None, until: int) -> dict[str, Any] | str | None:
        """The chart between two moments; None is unknown, a text is why there is none.

        Without a first moment it is the newest day: of a listing that no longer trades, no row.
        """
        company = self.companies.get(symbol)
        if company is None:
            return None
        now = int(self.now.timestamp())
        begun = [row for row in company.rows if company.stamp(row.day, company.opens) <= now]
        if first is None:
            return {"meta": self._meta(company), "indicators": {"quote": [{}], "adjclose": [{}]}}
        asked = [row for row in begun if first <= company.stamp(row.day, company.opens) < until]
        if not asked:
            return f"Data doesn't exist for startDate = {first}, endDate = {until}"
        return self._told(company, begun, asked)

    def _told(self, company: Company, begun: list[Row], asked: list[Row]) -> dict[str, Any]:
        unit = MINOR.get(company.quoted, 1.0)
        later, factors = 1.0, {}
        for row in reversed(begun):
            factors[row.day] = later
            later *= row.split if company.splits_applied else 1.0
        paid_off = _paid_off(begun, factors)

        def price(row: Row, name: str) -> float | None:
            value = getattr(row, name)
            return None if value is None else value * unit / factors[row.day]

        quote = {
            name: [price(row, name) for row in asked] for name in ("open", "high", "low", "close")
        }
        quote["volume"] = [
            None if row.volume is None else round(row.volume * factors[row.day]) for row in asked
        ]
        adjusted = [
            None if row.close is None else price(row, "close") * paid_off[row.day] for row in asked
        ]
        return {
            "meta": self._meta(company),
            "timestamp": [company.stamp(row.day, company.opens) for row in asked],
            "events": _events(company, asked, factors, unit),
            "indicators": {"quote": [quote], "adjclose": [{"adjclose": adjusted}]},
        }

    def _meta(self, company: Company) -> dict[str, Any]:
        today = self.now.astimezone(company.zone).date()
        edges = {
            "timezone": "EST",
            "gmtoffset": -18000,
            "start": company.stamp(today, company.opens),
            "end": company.stamp(today, company.closes),
        }
        return {
            "currency": company.quoted,
            "symbol": company.ticker,
            "exchangeName": company.exchange,
            "fullExchangeName": "NYSE",
            "instrumentType": company.kind,
            "firstTradeDate": company.stamp(company.rows[0].day, company.opens),
            "regularMarketTime": int(self.now.timestamp()),
            "hasPrePostMarketData": True,
            "regularMarketPrice": company.rows[-1].close,
            "fiftyTwoWeekHigh": 1e6,
            "chartPreviousClose": company.rows[0].close,
            "longName": company.name,
            "shortName": company.name,
            "exchangeTimezoneName": company.zone.key,
            "timezone": "EST",
            "gmtoffset": -18000,
            "priceHint": 2,
            "currentTradingPeriod": {
                "pre": dict(edges),
                "regular": dict(edges),
                "post": dict(edges),
            },
            "dataGranularity": "1d",
            "range": "",
            "validRanges": ["1d", "5d", "1mo", "3mo", "6mo", "1y", "2y", "5y", "10y", "ytd", "max"],
        }

    def figures(self, company: Company) -> dict[str, Any]:
        """Key figures as they stand now: value and P/E go with the price."""
        price = [each.close for each in company.rows if each.day <= self.now.date()][-1] or 0.0
        told: dict[str, Any] = {"currentPrice": price}
        if company.shares:
            told["marketCap"] = round(price * company.shares)
        if company.info.get("trailingEps", 0) > 0:
            told["trailingPE"] = price / company.info["trailingEps"]
        return told | company.info

    def search(self, words: str) -> list[dict[str, Any]]:
        wanted = words.casefold()
        return [
            {
                "symbol": company.ticker,
                "exchange": company.exchange,
                "quoteType": company.kind,
                "shortname": company.name,
                "longname": company.name,
                "sector": company.sector,
                "sectorDisp": company.sector,
                "industry": "Made Up",
                "exchDisp": "NYSE",
                "typeDisp": company.kind.title(),
                "score": 20_000.0,
                "index": "quotes",
                "isYahooFinance": True,
            }
            for company in self.companies.values()
            if wanted in company.ticker.casefold() or wanted in company.name.casefold()
        ] + [
            # What the real one finds besides: twins abroad, options, pairs, and hits of no symbol.
            {"symbol": f"{words}.BA", "quoteType": "EQUITY", "exchange": "BUE", "shortname": words},
            {"symbol": f"{words}240621C00100000", "quoteType": "OPTION", "exchange": "OPR"},
            {"symbol": f"{words}-USD", "quoteType": "CRYPTOCURRENCY", "exchange": "CCC"},
            {"index": "private-company", "name": words, "isYahooFinance": False},
        ]

    def stories(self, symbol: str, count: int) -> list[dict[str, Any]]:
        company = self.companies.get(symbol)
        told = [
            story
            for story in (company.news if company else [])
            if (at := story["content"].get("pubDate")) is None
            or datetime.fromisoformat(at) <= self.now
        ]
        told.sort(key=lambda story: story["content"].get("pubDate") or "", reverse=True)
        return [*told[:count], {"id": "x", "ad": [{"type": "ad"}]}]

    def reports_page(self, symbol: str) -> str | None:
        """The HTML table of earnings dates; None where the page has none."""
        company = self.companies.get(symbol)
        if company is None or not company.reports:
            return None
        rows = "".join(
            f"<tr><td>{symbol}</td><td>{company.name}</td>"
            f"<td>{at.astimezone(NEW_YORK):%B %d, %Y at %-I %p} {at.astimezone(NEW_YORK):%Z}</td>"
            f"<td>{_dash(estimate)}</td><td>{_dash(self._out(at, actual))}</td><td>-</td></tr>"
            for at, estimate, actual in sorted(company.reports, reverse=True)
        )
        heads = [
            "Symbol",
            "Company",
            "Earnings Date",
            "EPS Estimate",
            "Reported EPS",
            "Surprise (%)",
        ]
        head = "".join(f"<th>{each}</th>" for each in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def calendar(self, first: str, last: str) -> dict[str, Any]:
        """The earnings calendar as the visualization endpoint tells it."""
        labels = [
            ("Symbol", "STRING"),
            ("Company Name", "STRING"),
            ("Market Cap (Intraday)", "NUMBER"),
            ("Event Name", "STRING"),
            ("Event Start Date", "DATE"),
            ("Event Start Date", "STRING"),
            ("EPS Estimate", "NUMBER"),
            ("Reported EPS", "NUMBER"),
            ("Surprise (%)", "NUMBER"),
        ]
        rows = [
            [
                company.ticker,
                company.name,
                1e9,
                "Q",
                at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                "AMC",
                estimate,
                self._out(at, actual),
                None,
            ]
            for company in self.companies.values()
            for at, estimate, actual in company.reports
            if first <= at.date().isoformat() <= last
        ]
        columns = [{"label": label, "type": kind} for label, kind in labels]
        return {"documents": [{"columns": columns, "rows": rows}]}

    def _out(self, at: datetime, actual: float | None) -> float | None:
        return actual if at <= self.now else None


def _paid_off(begun: list[Row], factors: dict[date, float]) -> dict[date, float]:
    """What dividends take off each day's close, newest first."""
    found, factor, next_paid = {}, 1.0, None
    for row in reversed(begun):
        if next_paid is not None and row.close is not None:
            factor *= 1 - next_paid / (row.close / factors[row.day])
            next_paid = None
        found[row.day] = factor
        if row.dividend:
            next_paid = (next_paid or 0.0) + row.dividend / factors[row.day]
    return found


def _events(
    company: Company, asked: list[Row], factors: dict[date, float], unit: float
) -> dict[str, Any]:
    dividends, splits = {}, {}
    for row in asked:
        at = company.stamp(row.day, company.opens)
        if row.dividend:
            amount = row.dividend * unit * company.dividend_unit / factors[row.day]
            dividends[str(at)] = {"amount": amount, "date": at}
            if company.dividend_currency:
                dividends[str(at)]["currency"] = company.dividend_currency
        if row.split != 1:
            top, bottom = (row.split, 1.0) if row.split > 1 else (1.0, 1 / row.split)
            ratio = f"{top:g}:{bottom:g}"
            splits[str(at)] = {
                "date": at,
                "numerator": top,
                "denominator": bottom,
                "splitRatio": ratio,
            }
    events = {"dividends": dividends, "splits": splits}
    return {name: rows for name, rows in events.items() if rows}


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _row(row: dict[str, str]) -> Row:
    prices = (float(row[name]) for name in ("open", "high", "low", "close", "volume"))
    return Row(
        date.fromisoformat(row["date"]), *prices, float(row["dividend"]), float(row["split_factor"])
    )


def _story(row: dict[str, str]) -> dict[str, Any]:
    known = row["known_at"]
    if len(known) == len("2024-03-14"):
        known = f"{known}T20:00:00Z"
    content = {
        "contentType": "STORY",
        "title": row["title"],
        "summary": row["summary"],
        "provider": {"displayName": row["publisher"]},
        "canonicalUrl": {"url": row["url"]},
        "clickThroughUrl": None,
    }
    if known:
        at = datetime.fromisoformat(known).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # The one is told with every headline, the other may be later, or "".
        shown = at if len(row["title"]) % 3 else ""
        content |= {"pubDate": at, "displayTime": shown}
    return {"id": row["title"][:8], "content": content | _BESIDES}


_BESIDES = {
    "description": "",
    "isHosted": True,
    "bypassModal": False,
    "previewUrl": None,
    "thumbnail": {"originalUrl": "x.jpg", "resolutions": []},
    "metadata": {"editorsPick": False},
    "finance": {"premiumFinance": {"isPremiumNews": False, "isPremiumFreeNews": False}},
    "storyline": None,
}


def _add_figures(companies: dict[str, Company], folder: Path, now: datetime) -> None:
    for row in _read(folder / "fundamentals.csv"):
        if row["known_at"][:10] > now.date().isoformat():
            continue
        ended = datetime.combine(date.fromisoformat(row["period_end"]), time(0), tzinfo=UTC)
        shares = float(row["shares_outstanding"])
        companies[row["ticker"]].shares = shares
        companies[row["ticker"]].info = {
            "mostRecentQuarter": int(ended.timestamp()),
            "financialCurrency": companies[row["ticker"]].quoted,
            "trailingEps": float(row["eps_ttm"]),
            # One class of two: Yahoo counts the listing's own here.
            "sharesOutstanding": round(shares * 0.45),
            "impliedSharesOutstanding": round(shares * 1.05),
            "currency": companies[row["ticker"]].quoted,
            "totalRevenue": float(row["revenue_ttm"]),
            "profitMargins": float(row["profit_margin_pct"]) / 100,
            "operatingMargins": float(row["operating_margin_pct"]) / 100,
            "debtToEquity": float(row["debt_to_equity"]) * 100,
        }


def _add_reports(companies: dict[str, Company], folder: Path) -> None:
    found: dict[tuple[str, str], tuple[datetime, float | None, float | None]] = {}
    for row in _read(folder / "earnings.csv"):
        day = date.fromisoformat(row["report_date"])
        at = datetime.combine(day, time(16), tzinfo=NEW_YORK)
        actual = float(row["eps_actual"]) if row["eps_actual"] else None
        found[row["ticker"], row["period_end"]] = (at, float(row["eps_estimate"]), actual)
    for (ticker, _), report in found.items():
        companies[ticker].reports.append(report)


def _add_rates(companies: dict[str, Company], folder: Path) -> None:
    """Pairs of currencies as Yahoo has them: days that begin and end in London."""
    for row in _read(folder / "fx.csv"):
        ticker, rate = f"{row['pair']}=X", float(row["rate"])
        pair = companies.setdefault(
            ticker,
            Company(ticker, [], quoted=row["pair"][3:], kind="CURRENCY", exchange="CCY"),
        )
        pair.zone, pair.opens, pair.closes = ZoneInfo("Europe/London"), time(0), time(23, 59)
        pair.rows.append(Row(date.fromisoformat(row["date"]), rate, rate, rate, rate, 0.0))


def _dash(value: float | None) -> str:
    return "-" if value is None else f"{value}"


def weekdays(first: date, count: int) -> list[date]:
    """So many weekdays from `first` on."""
    days = (first + timedelta(days=n) for n in range(count * 2))
    return [day for day in days if day.weekday() < 5][:count]
