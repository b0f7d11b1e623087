"""Exchange rates from Yahoo: a currency's daily close, known when its day has ended in London."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import structlog

from contracts.types import ExchangeRate
from libs.market.errors import MarketError
from libs.market.yahoo.feed import YahooFeed
from libs.quant.exchange import RATE_AGE_DAYS_MAX, RATE_STEP

log = structlog.get_logger(__name__)


class YahooRates:
    """`ExchangeRates` of `currencies` over a feed, each asked for as a pair of its own."""

    def __init__(self, feed: YahooFeed, currencies: Sequence[str]) -> None:
        self._feed = feed
        self._currencies = tuple(currencies)

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        """See ExchangeRates.into. A pair that got no answer is left out, and the log says so:

        who needs it fails with a reason, who does not goes on.
        """
        rates = {}
        for other in self._currencies:
            if other == currency:
                continue
            rate = await self._newest(other, currency, at)
            if rate is not None:
                rates[other] = rate
        return rates

    async def _newest(self, currency: str, into: str, at: datetime) -> ExchangeRate | None:
        try:
            quotes = await self._feed.rates(currency, into, at)
        except MarketError as error:
            log.warning("market.rate_missing", pair=f"{currency}{into}", why=error.code)
            return None
        known = [quote for quote in quotes if quote.known_at <= at]
        if not known or (at.date() - known[-1].on).days > RATE_AGE_DAYS_MAX:
            return None
        rate = Decimal(repr(known[-1].rate)).quantize(RATE_STEP)
        return ExchangeRate(currency=currency, into=into, rate=rate, on=known[-1].on)
