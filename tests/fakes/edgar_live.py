"""EDGAR as a test has it: the desk's own client, the stand-in, a clock that the test turns."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import SecretStr

from libs.market.asking.questions import Timing
from libs.market.asking.shared_pace import SharedPace
from libs.market.edgar.calls import EdgarCalls
from libs.market.edgar.feed import EdgarFeed
from libs.market.filings.concepts import CONCEPTS
from tests.fakes.edgar_server import Company, StandIn, row, serving

CONTACT = "margaret@desk.example.org"
AS_OF = date(2010, 1, 26)
BEFORE = date(2009, 12, 31)
EVENING = datetime(2010, 1, 26, 23, 0, tzinfo=UTC)
"""Two hours after the close of AS_OF in New York."""
FIRST = "0001193125-09-214859"
AMENDED = "0001193125-10-012091"
EPS = "EarningsPerShareDiluted"


def apple() -> Company:
    """Apple's 10-K of fiscal 2009 and its amendment of January 2010: the figures are Apple's own,
    as the two filings state them; its times are in UTC, as the rest of its record proves."""
    company = Company(320193, ["AAPL"], name="Apple Inc.")
    company.files(
        "0001193125-09-214000", "8-K", "2009-10-19", "2009-10-19T20:30:00.000Z", items="2.02,9.01"
    )
    company.files(FIRST, "10-K", "2009-10-27", "2009-10-27T20:18:00.000Z", report="2009-09-26")
    company.files(AMENDED, "10-K/A", "2010-01-25", "2010-01-25T21:26:00.000Z", report="2009-09-26")
    company.older["CIK0000320193-submissions-001.json"] = [
        row("0001193125-08-224958", "10-K", "2008-11-05", "2008-11-05T11:16:00.000Z", "2008-09-27")
    ]
    year = {"start": "2008-09-28", "end": "2009-09-26"}
    company.states(EPS, 6.29, FIRST, filed="2009-10-27", unit="USD/shares", **year)
    company.states(
        EPS, 9.08, AMENDED, filed="2010-01-25", unit="USD/shares", frame="CY2009", **year
    )
    return company


@dataclass
class EdgarLive:
    """One live source and all that a test turns; `slept` are the waits that nobody waited for."""

    server: StandIn
    feed: EdgarFeed
    slept: list[float]
    clock: list[float]
    now: list[datetime]
    calls: EdgarCalls
    others: list["EdgarLive"] = field(default_factory=list)

    def close(self) -> None:
        for each in (self, *self.others):
            each.feed.close()


def edgar_source(
    server: StandIn,
    folder: Path,
    contact: str | None = CONTACT,
    ciks: Mapping[str, int] = {},
    clock: list[float] | None = None,
) -> EdgarLive:
    """A source that asks `server`."""
    slept: list[float] = []
    clock, now = [0.0] if clock is None else clock, [EVENING]

    def sleep(wait_s: float) -> None:
        slept.append(wait_s)
        clock[0] += wait_s

    calls = EdgarCalls(SecretStr(contact) if contact else None, server.url)
    pace = SharedPace(folder / "pace", 10, "EDGAR", lambda: clock[0])
    feed = EdgarFeed(calls, pace, CONCEPTS, ciks, Timing(lambda: now[0], sleep, lambda: clock[0]))
    return EdgarLive(server, feed, slept, clock, now, calls)


@contextmanager
def edgar_serving(folder: Path, *companies: Company) -> Iterator[EdgarLive]:
    """EDGAR with these companies, in the evening of AS_OF."""
    with serving(*companies) as server:
        live = edgar_source(server, folder)
        try:
            yield live
        finally:
            live.close()
