"""The one place that speaks to EDGAR: one GET a question, its page judged before it is used.

Each request names a contact in its User-Agent, because the SEC refuses callers that do not; it is
the mail address of a person, so it stands in no error, log or answer, and no redirect is followed.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from pydantic import SecretStr

from libs.market.asking.one_answer import PATIENCE, answer_of
from libs.market.edgar.pages import EdgarRefusalKind, read
from libs.market.errors import (
    ContactMissing,
    MarketError,
    NotInSource,
    RateLimited,
    SourceUnavailable,
)
from libs.runtime.outgoing import BoundedClient, client_tls

SOURCE = "edgar"
DATA_URL = "https://data.sec.gov"
FILES_URL = "https://www.sec.gov"
FACTS_BYTES_MAX = 32 * 1024 * 1024
"""Of the figures of one company, unpacked: large companies have some 10 MB."""
PAGE_BYTES_MAX = 16 * 1024 * 1024
"""Of every other page, unpacked: the list of tickers has about 1 MB."""
WHOLE_S = 60.0
"""How long one answer may take."""


class EdgarCalls:
    """Questions to EDGAR, each one HTTP request. Safe to share between threads.

    `url` is another address that answers in EDGAR's place, for both of its hosts.
    """

    def __init__(self, contact: SecretStr | None, url: str | None = None) -> None:
        self._contact = contact
        self._data_url = url or DATA_URL
        self._files_url = url or FILES_URL
        self._tls = client_tls()

    def require_contact(self) -> str:
        """The contact. Raises ContactMissing."""
        if self._contact is None:
            raise ContactMissing
        return self._contact.get_secret_value()

    def tickers(self) -> Mapping[str, Any]:
        """EDGAR's list of tickers and companies, as it is now."""
        page: Mapping[str, Any] = self._page(
            "list of tickers", f"{self._files_url}/files/company_tickers.json", ("0",)
        )
        return page

    def submissions(self, cik: int) -> Mapping[str, Any]:
        """A company's page: its newest thousand filings or so, and where older ones are."""
        page: Mapping[str, Any] = self._page(
            f"filings of CIK {cik}",
            f"{self._data_url}/submissions/CIK{cik:010d}.json",
            ("filings", "recent"),
        )
        return page

    def older(self, name: str) -> Mapping[str, Any]:
        """A file of older filings: columns, as in `filings.recent`."""
        page: Mapping[str, Any] = self._page(
            f"older filings {name}", f"{self._data_url}/submissions/{name}", ("accessionNumber",)
        )
        return page

    def facts(self, cik: int) -> Mapping[str, Any]:
        """All figures that a company reported in XBRL. Raises NotInSource where it has none."""
        url = f"{self._data_url}/api/xbrl/companyfacts/CIK{cik:010d}.json"
        page: Mapping[str, Any] = self._page(
            f"figures of CIK {cik}", url, ("facts",), FACTS_BYTES_MAX
        )
        return page

    def _page(self, what: str, url: str, holds: Sequence[str], bytes_max: int | None = None) -> Any:
        agent = f"Deskbus/{version('deskbus')} {self.require_contact()}"
        client = BoundedClient(
            bytes_max or PAGE_BYTES_MAX,
            timeout=PATIENCE,
            tls=self._tls,
            headers={"Accept": "application/json", "User-Agent": agent},
        )
        answer = answer_of(what, client, url, whole_s=WHOLE_S, now=lambda: datetime.now(UTC))
        kind = answer.headers.get("Content-Type", "")
        page, refusal = read(answer.status_code, kind, answer.content, holds)
        if refusal is not None:
            raise _ours(what, refusal.sort, refusal.why)
        return page


def _ours(what: str, sort: EdgarRefusalKind, why: str) -> MarketError:
    match sort:
        case EdgarRefusalKind.LIMITED:
            return RateLimited(what)
        case EdgarRefusalKind.UNDECLARED:
            return RateLimited(
                what,
                why="EDGAR refuses the contact: set DESKBUS_EDGAR_CONTACT to an e-mail address "
                "that the SEC can write to",
            )
        case EdgarRefusalKind.NONE:
            return NotInSource(what, SOURCE, "EDGAR has none; leave it out")
        case EdgarRefusalKind.UNAVAILABLE:
            return SourceUnavailable(what, why)
