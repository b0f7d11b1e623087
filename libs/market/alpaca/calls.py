"""The one place that speaks to Alpaca's data host: one GET a question, its page judged before use.

The key goes into two headers, to https://data.alpaca.markets and to nobody else but an address on
this machine that a test sets. No redirect is followed and no proxy used.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2

from libs.market.alpaca.pages import AlpacaRefusalKind, RateSeen, rate_in, read
from libs.market.asking.one_answer import PATIENCE, answer_of
from libs.market.errors import (
    BadVendorData,
    KeysMissing,
    MarketError,
    RateLimited,
    SourceUnavailable,
    UnknownTicker,
)
from libs.runtime.key_pair import KeyPair, KeyPairUnusable, only_to
from libs.runtime.outgoing import BoundedClient, client_tls

SOURCE = "alpaca"
KEY_SETTING = "DESKBUS_ALPACA_DATA_KEY_FILE"
HOST = "data.alpaca.markets"
URL_SETTING = "DESKBUS_ALPACA_DATA_URL"
PAGE_BYTES_MAX = 8 * 1024 * 1024
"""Of one page, unpacked: 10,000 bars have about 1.3 MB, 50 headlines 60 kB."""
WHOLE_S = 30
"""How long one answer may take, in seconds."""


class AlpacaForbidden(SourceUnavailable):
    """The account may not read what was asked for, or not yet."""

    def __init__(self, what: str, why: str) -> None:
        clock = "; is this machine's clock right?" if "recent" in why.lower() else ""
        super().__init__(what, f"Alpaca says: {why}{clock}")


@dataclass(frozen=True)
class AlpacaPage:
    """One page: what it holds, the token of the next one, and the rate as it told it."""

    rows: Any
    next_token: str | None
    rate: RateSeen | None


class AlpacaCalls:
    """Questions to Alpaca's data host, each one HTTP request. Safe to share between threads.

    `keys` reads the pair, or raises KeyPairUnusable; None where no file is named. `url` is a
    stand-in's on this machine; any other raises KeyPairUnusable. `now` gives aware UTC.
    """

    def __init__(
        self,
        keys: Callable[[], KeyPair] | None,
        url: str | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._keys = keys
        self._now = now
        self._url = only_to(HOST, url, URL_SETTING)
        self._tls: ssl.SSLContext = client_tls()
        self.rate: RateSeen | None = None
        """The rate that the newest answer told."""

    def require_keys(self) -> KeyPair:
        """The pair. Raises KeysMissing."""
        if self._keys is None:
            raise KeysMissing(f"set {KEY_SETTING} to a file with a key id and its secret")
        try:
            return self._keys()
        except KeyPairUnusable as error:
            raise KeysMissing(error.message) from None

    def bars(self, what: str, query: Mapping[str, str]) -> AlpacaPage:
        """A page of daily bars by symbol. Raises AlpacaForbidden, UnknownTicker, MarketError."""
        return self._page(what, "/v2/stocks/bars", query, "bars", dict)

    def actions(self, what: str, query: Mapping[str, str]) -> AlpacaPage:
        """A page of corporate actions by kind. Raises as `bars` does."""
        return self._page(what, "/v1/corporate-actions", query, "corporate_actions", dict)

    def news(self, what: str, query: Mapping[str, str]) -> AlpacaPage:
        """A page of articles. Raises as `bars` does."""
        return self._page(what, "/v1beta1/news", query, "news", list)

    def _page(
        self, what: str, path: str, query: Mapping[str, str], holds: str, shape: type
    ) -> AlpacaPage:
        keys = self.require_keys()
        answer = answer_of(
            what,
            self._client(keys),
            f"{self._url}{path}",
            dict(query),
            whole_s=WHOLE_S,
            now=self._now,
            hidden=keys.hidden_in,
        )
        headers = answer.headers
        self.rate = rate_in(headers) or self.rate
        kind = headers.get("Content-Type", "")
        page, refusal = read(answer.status_code, kind, answer.content, holds, shape)
        if refusal is not None:
            raise self._ours(what, refusal.kind, keys.hidden_in(refusal.why), rate_in(headers))
        return AlpacaPage(page[holds], page.get("next_page_token"), rate_in(headers))

    def _client(self, keys: KeyPair) -> BoundedClient:
        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
        return BoundedClient(
            PAGE_BYTES_MAX,
            # A transport of its own, and no environment: neither a proxy nor .netrc is looked for.
            transport=httpx2.AsyncHTTPTransport(verify=self._tls, limits=limits, trust_env=False),
            trust_env=False,
            tls=self._tls,
            timeout=PATIENCE,
            headers={
                "Accept": "application/json",
                "APCA-API-KEY-ID": keys.key_id.get_secret_value(),
                "APCA-API-SECRET-KEY": keys.secret.get_secret_value(),
            },
        )

    def _ours(
        self, what: str, kind: AlpacaRefusalKind, why: str, rate: RateSeen | None
    ) -> MarketError:
        match kind:
            case AlpacaRefusalKind.LIMITED:
                now_s = self._now().timestamp()
                return RateLimited(what, None if rate is None else rate.wait_s(now_s))
            case AlpacaRefusalKind.KEY:
                return SourceUnavailable(
                    what,
                    f"Alpaca refuses the key in the file of {KEY_SETTING} ({why}): a paper account "
                    f"that is reset loses its keys; make a new pair and write it into the file",
                )
            case AlpacaRefusalKind.FORBIDDEN:
                return AlpacaForbidden(what, why)
            case AlpacaRefusalKind.SYMBOL:
                return UnknownTicker(why, SOURCE)
            case AlpacaRefusalKind.QUESTION:
                return BadVendorData(what, f"Alpaca refuses the request: {why}", "Deskbus")
            case AlpacaRefusalKind.UNAVAILABLE:
                return SourceUnavailable(what, why)
