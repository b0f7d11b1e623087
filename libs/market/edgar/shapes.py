"""EDGAR's JSON as the desk's rows. Pure: nothing here asks, waits or knows the time.

Every figure stays with the filing that stated it, in all its vintages; `frame`, EDGAR's own choice
of one of them (the last), is never looked at: it would show restatements before they were made.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from libs.market.edgar.accepted import FilingTime, accepted_at
from libs.market.filings.known import NEW_YORK, SHOWN_FROM, known_at
from libs.market.filings.reported import Filing, ReportedFact

FORMS = frozenset(
    form + change
    for form in ("8-K", "10-K", "10-Q", "10-KT", "10-QT", "20-F", "40-F", "6-K")
    for change in ("", "/A")
)
"""The forms that are kept: reports and events of the company itself, and their amendments."""
TAXONOMIES = ("us-gaap", "dei")
NAME_CHARS_MAX = 200
ITEMS_MAX = 12
"""Item numbers kept of one 8-K; the form has some thirty."""

# Days of a period, first and last included, for so many quarters: 12 to 14 weeks each, since some
# companies have quarters of 12 and years of 53 weeks; or, of one that counts three of 12 weeks,
# the fourth of 16 or 17.
_QUARTERS = {1: (84, 119), 2: (161, 196), 3: (245, 287), 4: (350, 378)}
_SIC = re.compile(r"[0-9]{1,4}")
_UNIT = re.compile(r"[A-Z]{3}(/shares)?|shares")
_ACCESSION = re.compile(r"\d{10}-\d{2}-\d{6}")
_OLDER = re.compile(r"CIK\d{10}-submissions-\d{3}\.json")
_ITEM = re.compile(r"\d{1,2}(\.\d{2})?")


@dataclass(frozen=True, slots=True)
class Older:
    """A file of older filings that a company's page names, with the days that it spans."""

    name: str
    first: date
    last: date


@dataclass(frozen=True, slots=True)
class CompanyCard:
    """What EDGAR says of a company as it is now: its number, name, business (`sic`, 0 where none is
    told) and the exchange of one of its tickers (an ISO 10383 code, empty where none is told)."""

    cik: int
    name: str
    sic: int
    exchange: str = ""


_EXCHANGES = {"NASDAQ": "XNAS", "NYSE": "XNYS", "CBOE": "BATS", "OTC": "PINX"}


def card_of(page: Mapping[str, Any], cik: int, ticker: str) -> CompanyCard:
    """The card on a page of submissions; `ticker` as EDGAR writes it."""
    sic = str(page.get("sic") or "")
    tickers, exchanges = page.get("tickers") or [], page.get("exchanges") or []
    told = dict(zip(tickers, exchanges, strict=False)).get(ticker) or ""
    return CompanyCard(
        cik=cik,
        name=str(page.get("name") or "")[:NAME_CHARS_MAX],
        sic=int(sic) if _SIC.fullmatch(sic) else 0,
        exchange=_EXCHANGES.get(str(told).upper(), ""),
    )


def ciks_of(page: Mapping[str, Any]) -> Mapping[str, int]:
    """The company's number by ticker; of two share classes both have the same. Raises ValueError
    where not one row can be read."""
    ciks = {}
    for row in page.values():
        ticker, cik = row.get("ticker"), row.get("cik_str")
        if isinstance(ticker, str) and isinstance(cik, int) and cik > 0:
            ciks[ticker.upper()] = cik
    if not ciks:
        raise ValueError("no row has a ticker and a number")
    return ciks


def older_of(page: Mapping[str, Any]) -> Sequence[Older]:
    """The files of older filings that a page of submissions names."""
    files = []
    for row in page["filings"].get("files") or ():
        name, first, last = row.get("name"), _day(row.get("filingFrom")), _day(row.get("filingTo"))
        if (
            isinstance(name, str)
            and _OLDER.fullmatch(name)
            and first is not None
            and last is not None
        ):
            files.append(Older(name, first, last))
    return files


def filings_of(ticker: str, tables: Iterable[Mapping[str, Any]], since: date) -> tuple[Filing, ...]:
    """The filings from `since` on in tables of columns (`filings.recent`, or an older file), oldest
    known first."""
    rows = {row["accessionNumber"]: row for table in tables for row in _rows(table)}
    kept = [row for row in rows.values() if row["form"] in FORMS]
    times = accepted_at([FilingTime(row["acceptanceDateTime"], row["filingDate"]) for row in kept])
    filings = [
        Filing(
            ticker=ticker,
            accession=row["accessionNumber"],
            form=row["form"],
            filed=row["filingDate"],
            known_at=_known_at(row["filingDate"], accepted),
            period_end=_period_end(row),
            items=row["items"],
        )
        for row, accepted in zip(kept, times, strict=True)
        if row["filingDate"] >= since
    ]
    return tuple(sorted(filings, key=lambda filing: (filing.known_at, filing.accession)))


def reported_of(
    ticker: str, page: Mapping[str, Any], concepts: Collection[str]
) -> tuple[ReportedFact, ...]:
    """The figures of `concepts` by filing. One that a filing states twice is there once, and where
    it states two numbers (of two share classes, on one cover page) with both. Raises ValueError
    where not one figure can be read."""
    entries = list(_entries(page, concepts))
    if entries and not any(_is_figure(row) for _, _, row in entries):
        raise ValueError(f"none of {len(entries)} figures has a filing, a day and a number")
    facts = {
        fact
        for concept, unit, row in entries
        if (fact := _fact(ticker, concept, unit, row)) is not None
    }
    return tuple(sorted(facts, key=_place))


def _place(fact: ReportedFact) -> tuple[str, str, date, int, str, float]:
    return (
        fact.accession,
        fact.concept,
        fact.period_end,
        fact.quarters,
        fact.unit,
        fact.value,
    )


def _known_at(filed: date, accepted: datetime | None) -> datetime:
    """The moment in UTC; never before the day that the filing is dated, whatever the time says."""
    known = known_at(filed, accepted)
    if known.date() < filed:
        known = datetime.combine(filed, SHOWN_FROM, tzinfo=NEW_YORK)
    return known.astimezone(UTC)


def _period_end(row: Mapping[str, Any]) -> date | None:
    """The period of a report; the date of an event's form is that of the event."""
    ended = row["reportDate"]
    is_event = row["form"].startswith(("8-K", "6-K"))
    return None if is_event or ended is None or ended > row["filingDate"] else ended


def _rows(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of parallel columns; one that lacks number, form or day is left out. Raises
    ValueError where the columns do not fit together, or not one row can be read."""
    needed = ("accessionNumber", "form", "filingDate", "acceptanceDateTime")
    count = len(table["accessionNumber"])
    columns = {name: table[name] for name in needed}
    columns |= {name: table.get(name) or [""] * count for name in ("reportDate", "items")}
    for name, cells in columns.items():
        if not isinstance(cells, list) or len(cells) != count:
            raise ValueError(f"the column {name} does not fit to the others")
    read = [row for cells in zip(*columns.values(), strict=True) if (row := _row(columns, cells))]
    if count and not read:
        raise ValueError(f"none of {count} rows has a number, a form and a day")
    yield from read


def _row(names: Iterable[str], cells: Sequence[Any]) -> dict[str, Any] | None:
    row = {name: str(cell or "") for name, cell in zip(names, cells, strict=True)}
    filed = _day(row["filingDate"])
    if filed is None or not row["form"] or not _ACCESSION.fullmatch(row["accessionNumber"]):
        return None
    return {
        **row,
        "filingDate": filed,
        "reportDate": _day(row["reportDate"]),
        "items": _items(row["items"]),
    }


def _items(text: str) -> tuple[str, ...]:
    """Item numbers of an 8-K: "2.02,9.01"; before 2004 "5,7"."""
    items = (item.strip() for item in text.split(","))
    return tuple(item for item in items if _ITEM.fullmatch(item))[:ITEMS_MAX]


def _entries(
    page: Mapping[str, Any], concepts: Collection[str]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for taxonomy in TAXONOMIES:
        for concept, stated in (page["facts"].get(taxonomy) or {}).items():
            if concept not in concepts:
                continue
            for unit, rows in stated["units"].items():
                if _UNIT.fullmatch(unit):
                    yield from ((concept, unit, row) for row in rows)


def _fact(ticker: str, concept: str, unit: str, row: Mapping[str, Any]) -> ReportedFact | None:
    """A figure; None where it is none that the desk can place: its period is of another length, or
    ends after the filing (a slip in the date of a cover page)."""
    if not _is_figure(row):
        return None
    end, filed = date.fromisoformat(row["end"]), date.fromisoformat(row["filed"])
    quarters = _quarters(row.get("start"), end)
    if quarters is None or end > filed:
        return None
    return ReportedFact(
        ticker=ticker,
        accession=row["accn"],
        concept=concept,
        period_end=end,
        quarters=quarters,
        unit=unit,
        value=float(row["val"]),
    )


def _is_figure(row: Mapping[str, Any]) -> bool:
    """True where a row has its filing, its days and a number."""
    value = row.get("val")
    return (
        _ACCESSION.fullmatch(str(row.get("accn"))) is not None
        and _day(row.get("end")) is not None
        and _day(row.get("filed")) is not None
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    )


def _quarters(start: object, end: date) -> int | None:
    if start is None:
        return 0
    first = _day(start)
    if first is None:
        return None
    days = (end - first).days + 1
    return next((n for n, (low, high) in _QUARTERS.items() if low <= days <= high), None)


def _day(text: object) -> date | None:
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        return None
