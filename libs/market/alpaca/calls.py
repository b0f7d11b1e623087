"""The one place that speaks to Alpaca's data host: one GET a question, its page judged before use.

The key goes into two headers, to https://data.alpaca.markets and to nobody else but an address on
this machine that a test sets. No redirect is followed and no proxy used.
"""

import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import httpx2

from libs.market.alpaca.pages import KEY_SETTING, AlpacaAnswer, AlpacaPage, RateSeen, rate_in
from libs.market.asking.one_answer import PATIENCE, answer_of
from libs.market.errors import KeysMissing
from libs.runtime.key_pair import KeyPair, KeyPairUnusable, only_to
from libs.runtime.outgoing import BoundedClient, client_tls

HOST = "data.alpaca.markets"
URL_SETTING = "DESKBUS_ALPACA_DATA_URL"
PAGE_BYTES_MAX = 8 * 1024 * 1024
"""Of one page, unpacked: 10,000 bars have about 1.3 MB, 50 headlines 60 kB."""
WHOLE_S = 30
"""How long one answer may take, in seconds."""


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
        self.rate = rate_in(answer.headers) or self.rate
        seen = AlpacaAnswer(what, answer, self._now().timestamp(), keys.hidden_in)
        return seen.page(holds, shape)

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
