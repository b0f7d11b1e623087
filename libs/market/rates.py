"""Exchange rates as they were known at a moment, and closes in the currency of an account.

Only execution and the console are given rates: everyone else finds those of as_of in a Portfolio.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from contracts.types import ExchangeRate
from libs.market.errors import NotInSource
from libs.market.replay.store import ReplayStore
from libs.market.replay.versions import Versioned, Versions, at_version
from libs.market.source import MarketData, price_kept
from libs.quant.exchange import RATE_AGE_DAYS_MAX, RATE_STEP, PriceMark, inverse, price_in


@dataclass(frozen=True, slots=True)
class Quote:
    """The value of one unit of a currency in another at the end of the day `on`, in London."""

    on: date
    rate: float
    known_at: datetime


class ExchangeRates(Protocol):
    """A source of exchange rates."""

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        """By currency: the newest rate into `currency` that was known at the moment `at`.

        One older than RATE_AGE_DAYS_MAX is left out. Empty where the source has no rates.
        """
        ...


async def mark(
    market: MarketData,
    ticker: str,
    session: date,
    into: str,
    rates: Mapping[str, ExchangeRate],
) -> PriceMark:
    """The close of `session`, with its value in `into` by those of `rates`. Raises MarketError."""
    bars = await market.bars(ticker, session, 1)
    price = price_kept(ticker, bars["close"][-1])
    currency = (await market.universe(session, (ticker,)))[0].currency
    if currency == into:
        return PriceMark(price, currency, price)
    rate = rates.get(currency)
    return PriceMark(price, currency, None if rate is None else price_in(price, rate), rate)


_PAIR = re.compile("[A-Z]{6}")
_Known = tuple[list[datetime], list[ExchangeRate]]


class ReplayRates:
    """`ExchangeRates` over the `fx` file of a store: a pair serves both ways, no crosses."""

    def __init__(self, store: ReplayStore) -> None:
        self._store = store
        self._pairs: Mapping[tuple[str, str], _Known] | None = None

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        """See ExchangeRates.into."""
        if self._pairs is None:
            self._pairs = await self._read()
        rates: dict[str, ExchangeRate] = {}
        for (base, quote), known in self._pairs.items():
            rate = _newest(known, at) if currency in {base, quote} else None
            if rate is None or self._is_unsure(rate, at):
                continue
            rate = rate if quote == currency else inverse(rate)
            other = rates.get(rate.currency)
            if other is None or rate.on > other.on:
                rates[rate.currency] = rate
        return rates

    def _is_unsure(self, newest: ExchangeRate, at: datetime) -> bool:
        """Whether a row that cannot be read may say a newer rate of the pair than this one."""
        pair = f"{newest.currency}{newest.into}"
        for row in self._store.bad_rows("fx"):
            named, day = row.text("pair").upper(), row.days.get("date")
            is_pair = _PAIR.fullmatch(named) is not None
            if is_pair and named not in {pair, pair[3:] + pair[:3]}:
                continue
            # Of a row without a pair that can be read: another one of that day is its own.
            is_newer = day is None or day > newest.on or (is_pair and day == newest.on)
            if is_newer and (day is None or day <= at.date()):
                return True
        return False

    async def _read(self) -> Mapping[tuple[str, str], _Known]:
        try:
            rows = await self._store.records("fx", "exchange rates")
        except NotInSource:
            return {}
        pairs: dict[tuple[str, str], _Known] = {}
        for row in rows.iter_rows(named=True):  # in the order in which they became known
            base, quote = row["pair"][:3], row["pair"][3:]
            times, newest = pairs.setdefault((base, quote), ([], []))
            rate = Decimal(repr(row["rate"])).quantize(RATE_STEP)
            latest = ExchangeRate(currency=base, into=quote, rate=rate, on=row["date"])
            # A late row for an earlier day does not displace what is known of a later one.
            late = bool(newest) and newest[-1].on > latest.on
            times.append(row["known_at"])
            newest.append(newest[-1] if late else latest)
        return pairs


class VersionedRates(Versioned[ReplayRates]):
    """`ExchangeRates` over the versions of a folder."""

    def __init__(self, versions: Versions) -> None:
        super().__init__(versions, ReplayRates)

    into = at_version(ReplayRates.into)


def _newest(known: _Known, at: datetime) -> ExchangeRate | None:
    times, newest = known
    count = bisect_right(times, at)
    if count == 0 or (at.date() - newest[count - 1].on).days > RATE_AGE_DAYS_MAX:
        return None
    return newest[count - 1]
