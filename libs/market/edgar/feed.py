"""EDGAR's answers, asked with care and kept for a while: what `EdgarMarket` reads from.

An answer given after a session's close holds all that was filed up to it, so it serves that session
and all before. Figures serve later ones too, as long as no report has been filed since.

What EDGAR says of the past does not change (filings and figures are only added), but for its list
of tickers: that is today's, and a ticker means the company that has it today.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import structlog

from libs.market.asking.feed import SourceFeed, shaped
from libs.market.asking.kept_answers import KeptAnswer
from libs.market.asking.questions import REAL_TIME, Paced, SourceQuestions, Timing
from libs.market.edgar.calls import EdgarCalls
from libs.market.edgar.pages import SOURCE
from libs.market.edgar.shapes import (
    FORMS,
    CompanyCard,
    Older,
    card_of,
    ciks_of,
    filings_of,
    older_of,
    reported_of,
)
from libs.market.errors import ContactMissing, CryptoNotSupported, NotInSource
from libs.market.filings.reported import Filing, ReportedFact
from libs.market.source import refuse_crypto

log = structlog.get_logger(__name__)

LIMITED_S = 600.0
"""The SEC blocks for ten minutes, and whoever asks meanwhile starts them anew."""
HISTORY_DAYS = 1_100
"""Days before as_of whose filings are read: three years of reports."""
LAG = timedelta(minutes=10)
"""How far EDGAR's pages may lie behind the acceptance of a filing: it says a minute at most."""
REPORTS = FORMS - {"8-K", "8-K/A", "6-K", "6-K/A"}
"""The forms that state figures."""
FACT_BYTES = 300
ROW_BYTES = 200
"""About what a figure, and a row of a page, take in memory."""
OLDER_MAX = 8
"""Files of older filings read for one question. A bank that files notes daily has dozens."""


@dataclass(frozen=True, slots=True)
class _Company:
    """A company's page: its newest filings, the files of the older ones, and what it is."""

    recent: Mapping[str, Any]
    older: Sequence[Older]
    page: Mapping[str, Any]


class EdgarFeed(SourceFeed):
    """Questions with pace, retries, breaker and memory.

    `ciks` are companies' numbers by ticker that count above EDGAR's list.
    """

    def __init__(
        self,
        calls: EdgarCalls,
        pace: Paced,
        concepts: Collection[str],
        ciks: Mapping[str, int],
        timing: Timing = REAL_TIME,
    ) -> None:
        questions = SourceQuestions(
            "EDGAR", pace, timing, limited_s=LIMITED_S, tries_when_limited=False
        )
        super().__init__(SOURCE, questions, timedelta())
        self._calls = calls
        self._concepts = frozenset(concepts)
        self._ciks = {_name(ticker): cik for ticker, cik in ciks.items()}

    def require_contact(self) -> None:
        """Raise ContactMissing where nobody is named whom the SEC can write to."""
        self._calls.require_contact()

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """The filings of HISTORY_DAYS up to as_of's close, oldest first.

        Raises NotInSource for a ticker that EDGAR does not list, ContactMissing, and
        SourceUnavailable where there is no answer.
        """
        self.require_settled(as_of)
        close = self.calendar.close(as_of)
        cik = await self._cik(ticker)
        tables = await self._tables(ticker, as_of, cik)
        since = as_of - timedelta(days=HISTORY_DAYS)
        filings = shaped(f"filings of {ticker}", lambda: filings_of(ticker, tables, since))
        return tuple(filing for filing in filings if filing.known_at <= close)

    async def reported(self, ticker: str, as_of: date) -> tuple[ReportedFact, ...]:
        """The figures that these filings stated. Raises as `filings` does, and NotInSource for a
        company that reports none in XBRL by US-GAAP, or did not up to as_of."""
        filings = await self.filings(ticker, as_of)
        cik = await self._cik(ticker)
        close = self.calendar.close(as_of)
        reports = [filing.known_at for filing in filings if filing.form in REPORTS]
        newest = max(reports, default=close)

        def covers(answer: KeptAnswer) -> bool:
            return answer.refused is not None or answer.at >= min(close, newest) + LAG

        def load() -> tuple[Sequence[ReportedFact], int]:
            facts = shaped(
                f"figures of {ticker}",
                lambda: reported_of(ticker, self._calls.facts(cik), self._concepts),
            )
            return facts, FACT_BYTES * len(facts)

        try:
            facts = (await self._questions.ask(("facts", cik), load, covers)).value
        except NotInSource as error:
            raise _no_figures(ticker) from error
        if not facts:
            raise _no_figures(ticker)
        known = {filing.accession for filing in filings}
        # Of two share classes each asks under its own ticker, and both find one answer.
        stated = tuple(replace(fact, ticker=ticker) for fact in facts if fact.accession in known)
        if reports and not stated:
            raise _no_figures_yet(ticker, as_of)
        return stated

    async def issuer(self, ticker: str) -> str:
        """The number of the ticker's company; empty of what EDGAR does not list."""
        try:
            return f"CIK {await self._cik(ticker)}"
        except (NotInSource, CryptoNotSupported, ContactMissing):
            return ""

    async def card(self, ticker: str, as_of: date) -> CompanyCard:
        """The company's name and business, which EDGAR tells as they are now: those seen between
        as_of's close and the next open count for it, and for no other session (NotInSource).

        Raises as `filings` does for a ticker that EDGAR does not list, or without an answer.
        """
        cik = await self._cik(ticker)
        kept = self._questions.kept(("filings", cik))
        seen = [self.now()] if kept is None else [kept.at, self.now()]
        if as_of not in map(self.night_of, seen):
            raise NotInSource(
                f"name and sector of {ticker} as of {as_of}",
                SOURCE,
                "it has no dates for them, so they are available only for the newest session, "
                "between its close and the next open",
            )
        company = await self._company(ticker, cik, lambda answer: self.night_of(answer.at) == as_of)
        return shaped(f"card of {ticker}", lambda: card_of(company.page, cik, _name(ticker)))

    async def _cik(self, ticker: str) -> int:
        refuse_crypto(ticker)
        self._calls.require_contact()
        name = _name(ticker)
        if name in self._ciks:
            return self._ciks[name]

        def load() -> tuple[Mapping[str, int], int]:
            ciks = shaped("list of tickers", lambda: ciks_of(self._calls.tickers()))
            return ciks, ROW_BYTES * len(ciks)

        ciks: Mapping[str, int] = (await self._questions.ask(("tickers",), load)).value
        if name not in ciks:
            raise NotInSource(
                f"filings of {ticker}",
                SOURCE,
                "it lists US filers by the tickers that they have today; if it changed, name the "
                "company's number in DESKBUS_EDGAR_CIKS, else leave it out",
            )
        return ciks[name]

    async def _company(
        self, ticker: str, cik: int, covers: Callable[[KeptAnswer], bool]
    ) -> _Company:
        def load() -> tuple[_Company, int]:
            page = self._calls.submissions(cik)

            def shape() -> tuple[_Company, int]:
                about = {name: page.get(name) for name in ("name", "sic", "tickers", "exchanges")}
                company = _Company(page["filings"]["recent"], older_of(page), about)
                return company, _bytes_of(company.recent)

            return shaped(f"filings of {ticker}", shape)

        company: _Company = (await self._questions.ask(("filings", cik), load, covers)).value
        return company

    async def _tables(self, ticker: str, as_of: date, cik: int) -> Sequence[Mapping[str, Any]]:
        """The company's newest filings, and those older ones that HISTORY_DAYS reach into."""
        close = self.calendar.close(as_of)

        def covers(answer: KeptAnswer) -> bool:
            return answer.refused is not None or answer.at >= close + LAG

        company = await self._company(ticker, cik, covers)
        since = as_of - timedelta(days=HISTORY_DAYS)
        wanted = [file for file in company.older if file.last >= since and file.first <= as_of]
        wanted.sort(key=lambda file: file.last, reverse=True)
        if len(wanted) > OLDER_MAX:
            log.warning("market.filings_cut", ticker=ticker, files=len(wanted))

        async def older(name: str) -> Mapping[str, Any]:
            def load() -> tuple[Mapping[str, Any], int]:
                table = self._calls.older(name)
                return table, shaped(f"older filings of {ticker}", lambda: _bytes_of(table))

            return (await self._questions.ask(("filings", cik, name), load, covers)).value  # type: ignore[no-any-return]

        return [company.recent, *[await older(file.name) for file in wanted[:OLDER_MAX]]]


def _no_figures(ticker: str) -> NotInSource:
    return NotInSource(
        f"figures of {ticker}",
        SOURCE,
        "the company reports none in XBRL by US-GAAP (a fund, or a foreign one); use another "
        "source of figures, or leave it out",
    )


def _no_figures_yet(ticker: str, as_of: date) -> NotInSource:
    return NotInSource(
        f"figures of {ticker} at {as_of}",
        SOURCE,
        "none of the company's reports up to then is in XBRL (companies had to from 2009 "
        "to 2011); use another source of figures, or a later session",
    )


def _bytes_of(table: Mapping[str, Any]) -> int:
    return ROW_BYTES * len(table["accessionNumber"])


def _name(ticker: str) -> str:
    """EDGAR's way of writing a ticker: BRK.B is BRK-B there."""
    return ticker.upper().replace(".", "-")
