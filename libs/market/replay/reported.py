"""Filings and reported figures of a replay directory: rows to values, and what ties the two files.

`reported.csv` has no times of its own: a figure is known when its filing is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import polars as pl

from libs.files.finding import FileFinding
from libs.market.errors import BadReplayData
from libs.market.filings.known import known_at
from libs.market.filings.reported import Filing, ReportedFact

_BY = ("ticker", "accession")


def dated_by_filing(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of filings, known by the rule of `known_at` where the file gives no time."""
    known = [
        row["known_at"] or known_at(row["filed"], None).astimezone(UTC)
        for row in frame.iter_rows(named=True)
    ]
    return frame.with_columns(pl.Series("known_at", known, dtype=pl.Datetime("us", "UTC")))


def require_filings(path: Path, reported: pl.DataFrame, filings: pl.DataFrame | None) -> None:
    """Raise BadReplayData where a figure's filing is not there: nobody knows since when it is."""
    if filings is None:
        remedy = "add filings.csv: it has the time at which each filing became known"
        raise BadReplayData(FileFinding(path.name, "no filings.csv in the same folder", remedy))
    orphans = reported.join(filings, on=_BY, how="anti")
    if not orphans.is_empty():
        ticker, accession = orphans.select(_BY).row(0)
        what = (
            f"{orphans.height} figures of filings that filings.csv does not have, the first of "
            f"{ticker} {accession}"
        )
        remedy = "add the filing to filings.csv, or leave its figures out"
        raise BadReplayData(FileFinding(path.name, what, remedy))


@dataclass(frozen=True, slots=True)
class Company:
    """The filings of one ticker's company, and the figures that they state."""

    filings: Sequence[Filing]
    stated: Sequence[ReportedFact]


def company_of(ticker: str, filings: pl.DataFrame, stated: pl.DataFrame | None) -> Company:
    """The rows of one ticker as values, in the order of the files."""

    def own(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
        return frame.filter(pl.col("ticker") == ticker).iter_rows(named=True)

    facts = () if stated is None else map(fact_of, own(stated))
    return Company(tuple(map(filing_of, own(filings))), tuple(facts))


def filing_of(row: Mapping[str, Any]) -> Filing:
    """A row of filings.csv; the items of an 8-K stand with blanks or semicolons between them."""
    items = (row["items"] or "").replace(";", " ").split()
    return Filing(
        ticker=row["ticker"],
        accession=row["accession"],
        form=row["form"],
        filed=row["filed"],
        known_at=row["known_at"],
        period_end=row["period_end"],
        items=tuple(items),
    )


def fact_of(row: Mapping[str, Any]) -> ReportedFact:
    """A row of reported.csv."""
    return ReportedFact(
        ticker=row["ticker"],
        accession=row["accession"],
        concept=row["concept"],
        period_end=row["period_end"],
        quarters=int(row["quarters"]),
        unit=row["unit"],
        value=row["value"],
    )
