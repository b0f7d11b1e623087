"""Market data of execution, read before it locks an account."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import prod

from contracts.facts import UNKNOWN_SECTOR, Moves, TickerFacts
from contracts.types import ExchangeRate
from libs.broker.broker import DayPrices, Opening, OrderRefused, Working
from libs.market.calendar import ExchangeCalendar, OutsideCalendar
from libs.market.errors import (
    BadReplayData,
    CryptoNotSupported,
    MarketError,
    NoHistory,
    NothingTraded,
    UnknownTicker,
)
from libs.market.exit_terms import DeskExitRules
from libs.market.exits import AccountExits
from libs.market.facts import TEXT_CHARS_MAX, facts_of
from libs.market.issuers import issuer_of
from libs.market.moves import moves_of
from libs.market.rates import ExchangeRates, mark
from libs.market.source import (
    CorporateAction,
    FillPrices,
    HasFiles,
    Listing,
    MarketData,
    whole_volume,
)
from libs.market.symbols import UnknownCurrency
from libs.quant.exchange import PriceMark, no_rate
from libs.runtime.data_version import reading
from libs.runtime.untrusted import clean_line
from services.execution.account import Account, Action, OpenFound, Quotes
from services.execution.books import EntryKind
from services.execution.errors import NoPrice
from services.execution.exits import LOOK_BACK_DAYS
from services.execution.snapshots import Closes

# The source knows that there is no such price, or the file that has it cannot be read: then the
# equity of who holds it is incomplete (`Quotes.unreadable`). Anything else could not be answered:
# try again.
NO_PRICE = (
    NoHistory,
    UnknownTicker,
    UnknownCurrency,
    CryptoNotSupported,
    OutsideCalendar,
    BadReplayData,
)
RATES = "fx"
"""The kind of records that has exchange rates."""
SECTORS = "sectors"
"""The kind of records that has listings."""


@dataclass(frozen=True)
class ExecutionReads:
    """The market as execution sees it: closes up to as_of, opens and splits after it, rates.

    `exit_rules` are the accounts', which judge buys; without them all are defaults.
    """

    market: MarketData
    fills: FillPrices
    rates: ExchangeRates
    exit_rules: DeskExitRules | None = None

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that clocks count in."""
        return self.market.calendar

    async def quotes(
        self,
        account: Account | None,
        currency: str,
        as_of: date,
        assets: Collection[str] = (),
        researched: Collection[str] = (),
    ) -> Quotes:
        """All that the account's movement to as_of and orders in `assets` can need; `researched`
        are those that the assets were picked from, whose movements are measured with theirs.

        None is an account that is still to be made, in `currency`. Raises NoPrice where the source
        as a whole has no prices of as_of, and something is held.
        """
        rates = await self._rates(currency, as_of)
        if account is None:
            snapped = as_of - timedelta(days=1)
            synthetic = self.market.label.synthetic
            return Quotes(
                closes=await self.closes(assets, as_of, currency, held=assets),
                snapped=snapped,
                sessions=(as_of,),
                rates=rates,
                sectors=_sectors(await self._listed(assets, as_of)),
                synthetic=synthetic,
                unreadable={SECTORS: self._no_listings} if self._no_listings else {},
                no_rates=self._no_rates,
            )
        past = self._past(as_of)
        keys = {order.key for order in account.working} | {(asset, as_of) for asset in assets}
        sessions = self.calendar.sessions(account.snapped + timedelta(days=1), as_of)
        closes: dict[tuple[str, date], PriceMark | None] = {}
        for session in sessions:
            if session < as_of:
                closes |= await self.closes(account.touched, session, currency)
        tickers = {*account.touched, *assets}
        closes |= await self.closes(tickers, as_of, currency, held=account.held(as_of))
        listed = await self._listed({*tickers, *account.sales}, as_of)
        lots = _lots(listed)
        closes = self._as_held(account, closes)
        openings = {
            key: self._if_sure(
                account,
                key[0],
                _in_lots(
                    await self._opening_by(currency, *key, account.clock, as_of),
                    lots.get(key[0], 1),
                ),
            )
            for key in sorted(keys)
        }
        filled = {
            (order.ticker, found.session)
            for order in account.working
            if isinstance(found := openings[order.key], Opening)
        }
        return Quotes(
            closes=closes,
            openings=openings,
            due={after: self.calendar.next_session(after) for _, after in keys},
            actions=await self._actions_of(account, as_of, sessions, closes, filled),
            since=account.clock,
            snapped=account.snapped,
            sessions=sessions,
            rates=rates,
            sectors=_sectors(listed),
            lots=lots,
            issuers={
                listing.ticker: clean_line(await issuer_of(self.market, listing), TEXT_CHARS_MAX)
                for listing in listed
            },
            facts=await self._facts(account.name, assets, as_of),
            moves=await moves_of(self.market, {*account.exposed(as_of), *researched}, as_of)
            if assets
            else Moves(),
            synthetic=self.market.label.synthetic,
            past=past,
            days={
                key: day
                for ticker in account.guarded
                for key, day in (await self._days(account, ticker, sessions, closes)).items()
            },
            unreadable=self._unvalued(account, as_of, closes),
            no_rates=self._no_rates,
        )

    async def with_late_opens(self, quotes: Quotes, currency: str) -> Quotes:
        """The quotes with the opens that are in the newest data, and not in the version that this
        cycle reads: an order that finds no open there fills at those later."""
        with reading(None):
            late = {
                key: await self._opening(currency, *key)
                for key, opening in quotes.openings.items()
                if opening is None
            }
        return replace(quotes, openings={**quotes.openings, **late})

    async def shown(self, account: Account, as_of: date) -> Quotes:
        """The quotes to show the account at as_of. Raises NoPrice as `quotes` does."""
        held = account.held(as_of)
        closes = await self.closes(held, as_of, account.currency, held=held)
        closes = self._as_held(account, closes)
        rates = await self._rates(account.currency, as_of)
        listed = await self._listed(held, as_of)
        return Quotes(
            closes=closes,
            rates=rates,
            sectors=_sectors(listed),
            lots=_lots(listed),
            synthetic=self.market.label.synthetic,
            past=self._past(as_of),
            unreadable=self._unvalued(account, as_of, closes),
            no_rates=self._no_rates,
        )

    @property
    def _no_listings(self) -> str:
        """Why no listing can be read; empty where they can. Exchange and currency of a ticker are
        then assumed: only what is held in that currency is valued and sold."""
        fault = self.market.no_listings if isinstance(self.market, HasFiles) else None
        return "" if fault is None else f"no sector and no currency can be read ({fault})"

    def _as_held(
        self, account: Account, closes: Closes
    ) -> dict[tuple[str, date], PriceMark | None]:
        """The closes; where no listing can be read, those of what is held in their currency."""
        if not self._no_listings:
            return dict(closes)
        return {
            key: mark if mark and mark.currency == account.held_in(key[0]) else None
            for key, mark in closes.items()
        }

    def _if_sure(self, account: Account, ticker: str, opening: OpenFound) -> OpenFound:
        """The opening; Working where no listing can be read, and it is not in the currency that
        the ticker is held in: a sale waits then, and a buy is cancelled."""
        if not isinstance(opening, Opening) or not self._no_listings:
            return opening
        currency = opening.rate.currency if opening.rate else account.currency
        is_sure = currency == account.held_in(ticker)
        return opening if is_sure else Working(self._no_listings)

    def _unvalued(self, account: Account, as_of: date, closes: Closes) -> Mapping[str, str]:
        """Why what is held at as_of has no value there: its files cannot be read, or its currency
        has no rate; and why no listing can be read, as nothing is bought then."""
        faults = self.market.faults if isinstance(self.market, HasFiles) else {}
        unvalued = {SECTORS: self._no_listings} if self._no_listings else {}
        for ticker in account.held(as_of):
            close = closes.get((ticker, as_of))
            if ticker in faults:
                unvalued[ticker] = str(faults[ticker])
            elif close is None and self._no_listings:
                unvalued[ticker] = f"{ticker} has no value: its currency is not known"
            elif close is not None and close.amount is None:
                why = self._why_no_rate(close.currency, account.currency)
                unvalued[ticker] = f"{ticker} has no value: {why}"
        return unvalued

    def _why_no_rate(self, currency: str, into: str) -> str:
        why = no_rate(currency, into)
        return f"{why}; {self._no_rates}" if self._no_rates else why

    def _require_own(self, ticker: str, error: MarketError) -> None:
        """Raise a file's fault again where the file is not the ticker's own: all need it then."""
        faults = self.market.faults if isinstance(self.market, HasFiles) else {}
        if isinstance(error, BadReplayData) and error.finding != faults.get(ticker):
            raise error

    def _past(self, as_of: date) -> Sequence[date]:
        return self.calendar.sessions(as_of - timedelta(days=LOOK_BACK_DAYS), as_of)

    async def closes(
        self, tickers: Iterable[str], session: date, currency: str, held: Collection[str] = ()
    ) -> Mapping[tuple[str, date], PriceMark | None]:
        """The closes of one session, in `currency` where a rate was known then.

        Raises NoPrice where one of those `held` has none because the source has none of any ticker.
        """
        wanted = sorted(tickers)
        rates = await self._rates(currency, session) if wanted else {}
        closes: dict[tuple[str, date], PriceMark | None] = {}
        for ticker in wanted:
            try:
                closes[ticker, session] = await self._close(ticker, session, currency, rates)
            except NothingTraded as error:
                if ticker in held:
                    raise NoPrice(session, error.message) from error
                closes[ticker, session] = None
        return closes

    async def _listed(self, tickers: Collection[str], as_of: date) -> Sequence[Listing]:
        """The listings of those that trade at as_of."""
        if not tickers:
            return ()
        try:
            return await self.market.universe(as_of, tuple(sorted(tickers)))
        except BadReplayData:
            raise  # it leaves out a ticker with a bad file: this is one that all of them need
        except NO_PRICE:
            return ()

    async def _facts(
        self, account: str, assets: Collection[str], as_of: date
    ) -> Mapping[str, TickerFacts]:
        """The facts that the rules judge by, of those that have a price at as_of."""
        exits = AccountExits(self.exit_rules, account)
        facts = {}
        for asset in sorted(assets):
            terms = await exits.of(asset)
            try:
                facts[asset] = await facts_of(
                    self.market, asset, as_of, terms, terms_note=exits.note
                )
            except NO_PRICE as error:
                self._require_own(asset, error)
        return facts

    async def _close(
        self, ticker: str, session: date, currency: str, rates: Mapping[str, ExchangeRate]
    ) -> PriceMark | None:
        try:
            return await mark(self.market, ticker, session, currency, rates)
        except NothingTraded:
            raise
        except NO_PRICE as error:
            self._require_own(ticker, error)
            return None

    async def _rates(self, currency: str, session: date) -> Mapping[str, ExchangeRate]:
        return await self._rates_at(currency, self.calendar.close(session))

    async def _rates_at(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        """The rates into a currency; none where their file cannot be read. Then whatever needs one
        is not bought, what is held has no value, and its orders wait."""
        try:
            return await self.rates.into(currency, at)
        except BadReplayData:
            return {}

    @property
    def _no_rates(self) -> str:
        """Why the file of rates, or a row of it, cannot be read; empty where all of it can."""
        fault = self.market.faults.get(RATES) if isinstance(self.market, HasFiles) else None
        return "" if fault is None else f"rates cannot be read ({fault})"

    async def _opening_by(
        self, currency: str, ticker: str, after: date, clock: date, as_of: date
    ) -> OpenFound:
        """The open after a session. Where nothing could be exchanged there: the first one of a
        later session after the `clock`, up to as_of, where it can be; Working where there is
        none, None where a session had no open at all."""
        opening = None
        if self.calendar.next_session(after) > clock:
            opening = await self._opening(currency, ticker, after)
            if not isinstance(opening, Working):
                return opening
        for session in self.calendar.sessions(max(after, clock), as_of)[:-1]:
            later = await self._opening(currency, ticker, session)
            if later is None or isinstance(later, Opening):
                return later
            opening = later if isinstance(later, Working) else opening
        return opening or Working("there was no open at which it could be exchanged")

    async def _opening(self, currency: str, ticker: str, after: date) -> OpenFound:
        try:
            at_open = await self.fills.next_open(ticker, after)
        except BadReplayData as error:
            self._require_own(ticker, error)
            return OrderRefused(f"its prices cannot be read ({error.message})")
        except NO_PRICE:
            return None
        rate = await self._rate_at_open(at_open.currency, currency, at_open.session)
        if rate is None and at_open.currency != currency:
            why = self._why_no_rate(at_open.currency, currency)
            return Working(f"it trades in {at_open.currency}, and at the open it was for {why}")
        ratio = at_open.action.split_ratio if at_open.action is not None else Decimal(1)
        return Opening(at_open.session, at_open.open, ratio, rate, _shares(at_open.volume))

    async def _days(
        self, account: Account, ticker: str, sessions: Sequence[date], closes: Closes
    ) -> Mapping[tuple[str, date], DayPrices | None]:
        """Of each session after the clock what may trigger a stop order; None where the ticker had
        no value in the account's currency: the next one that has says what was missed."""
        days: dict[tuple[str, date], DayPrices | None] = {}
        stop = next((order for order in account.stops if order.ticker == ticker), None)
        since = account.clock
        if stop is not None:
            since = min(since, max(_settled(account, ticker), stop.as_of))
        for session in sessions:
            if session <= account.clock:
                continue
            days[ticker, session] = None
            close = closes.get((ticker, session))
            day = await self._day(ticker, session)
            if close is None or day is None:
                continue
            rate = await self._rate_at_open(close.currency, account.currency, session)
            rate = rate or close.rate
            if rate is None and close.currency != account.currency:
                continue
            missed = await self._lows(ticker, since, session)
            days[ticker, session] = replace(day, rate=rate, missed=missed)
            since = session
        return days

    async def _lows(self, ticker: str, after: date, before: date) -> Mapping[date, Decimal]:
        """The lows of the sessions between two, in the shares of the second one."""
        between = self.calendar.sessions(after + timedelta(days=1), before)[:-1]
        splits = await self._actions(ticker, after, before) if between else ()
        lows = {}
        for session in between:
            if (day := await self._day(ticker, session)) is not None:
                ratio = prod(one.split_ratio for one in splits if one.session > session)
                lows[session] = day.low / ratio
        return lows

    async def _day(self, ticker: str, session: date) -> DayPrices | None:
        """The prices of a session up to as_of; None where the ticker did not trade."""
        try:
            bars = await self.market.bars(ticker, session, 1)
        except NO_PRICE as error:
            self._require_own(ticker, error)
            return None
        opened, low = (Decimal(str(bars[name][-1])) for name in ("open", "low"))
        volume = _shares(bars["volume"][-1]) if whole_volume(self.market) else None
        return DayPrices(session, opened, low, volume=volume)

    async def _actions_of(
        self,
        account: Account,
        as_of: date,
        sessions: Sequence[date],
        closes: Closes,
        filled: Collection[tuple[str, date]],
    ) -> Mapping[str, Sequence[Action]]:
        if account.clock >= as_of:
            return {}
        coming = [session for session in sessions if session > account.clock]
        return {
            ticker: [
                await self._action(action, account.currency, closes)
                for action in _at_closes(_not_booked(actions, account), coming, closes, filled)
            ]
            for ticker in account.touched
            for actions in [await self._actions(ticker, _settled(account, ticker), as_of)]
        }

    async def _actions(self, ticker: str, after: date, through: date) -> Sequence[CorporateAction]:
        try:
            return await self.fills.actions(ticker, after, through)
        except NO_PRICE as error:
            self._require_own(ticker, error)
            return ()

    async def _action(self, action: CorporateAction, currency: str, closes: Closes) -> Action:
        close = closes[action.ticker, action.session]
        before = self.calendar.previous_session(action.session)
        opened = await self.fills.next_open(action.ticker, before)
        return Action(
            action.session,
            action.split_ratio,
            action.dividend_per_share,
            opened.open,
            opened.currency,
            await self._rate_at_open(opened.currency, currency, action.session)
            or (close.rate if close else None),
        )

    async def _rate_at_open(self, currency: str, into: str, session: date) -> ExchangeRate | None:
        if currency == into:
            return None
        return (await self._rates_at(into, self.calendar.open(session))).get(currency)


def _settled(account: Account, ticker: str) -> date:
    """Up to where the splits and dividends of a ticker are in the books: the clock, or before it
    the session of its last close."""
    valued = account.known.get(ticker)
    if valued is None or valued.priced_on is None:
        return account.clock
    return min(account.clock, valued.priced_on)


def _not_booked(actions: Sequence[CorporateAction], account: Account) -> Sequence[CorporateAction]:
    """The actions without the splits and dividends that came before the newest one of their kind in
    the books: all of those are booked, whatever session they are booked at."""

    def is_booked(action: CorporateAction, kind: EntryKind) -> bool:
        return action.session <= account.actions.get((action.ticker, kind), date.min)

    return [
        replace(
            action,
            split_ratio=Decimal(1) if is_booked(action, EntryKind.SPLIT) else action.split_ratio,
            dividend_per_share=Decimal(0)
            if is_booked(action, EntryKind.DIVIDEND)
            else action.dividend_per_share,
        )
        for action in actions
    ]


def _at_closes(
    actions: Sequence[CorporateAction],
    sessions: Sequence[date],
    closes: Closes,
    filled: Collection[tuple[str, date]],
) -> Sequence[CorporateAction]:
    """The actions at the first of the sessions, from their own on, that has a close in the
    account's currency: what the source does not know the price of, it may not know the splits of.
    The others wait for one."""
    due: dict[date, list[CorporateAction]] = {}
    for action in actions:
        for session in sessions:
            close = closes.get((action.ticker, session))
            is_known = close is not None and close.amount is not None
            if session >= action.session and (is_known or (action.ticker, session) in filled):
                due.setdefault(session, []).append(action)
                break
    return [_as_one(actions, session) for session, actions in due.items()]


def _as_one(actions: Sequence[CorporateAction], session: date) -> CorporateAction:
    """Several actions of a ticker, ascending, as if all had happened at `session`'s open."""
    ratio, dividend = Decimal(1), Decimal(0)
    for action in actions:
        ratio *= action.split_ratio
        dividend = dividend / action.split_ratio + action.dividend_per_share
    return CorporateAction(actions[0].ticker, session, ratio, dividend)


def _sectors(listed: Iterable[Listing]) -> Mapping[str, str]:
    """The sectors of those that have one."""
    named = {listing.ticker: listing.sector.strip() for listing in listed}
    return {ticker: name for ticker, name in named.items() if name not in {"", UNKNOWN_SECTOR}}


def _lots(listed: Iterable[Listing]) -> Mapping[str, int]:
    return {listing.ticker: listing.lot for listing in listed}


def _in_lots(opening: OpenFound, lot: int) -> OpenFound:
    return replace(opening, lot=lot) if isinstance(opening, Opening) else opening


def _shares(volume: float | None) -> Decimal | None:
    """A session's volume in shares; None where the source does not know it."""
    return None if volume is None else Decimal(str(volume))
