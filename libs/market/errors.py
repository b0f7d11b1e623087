"""Errors of the market layer. Each has a stable code and tells what to do."""

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Self, TypeGuard

from contracts.types import Failure
from libs.files.finding import FileFinding
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.nearest import did_you_mean


class MarketError(DeskError):
    """Any market data failure that ends an operation or is returned to a model."""

    code = "market_error"


class UnknownSource(MarketError):
    """The settings name an unknown source."""

    code = "unknown_source"

    def __init__(self, name: str, known: Sequence[str], field: str = "source") -> None:
        self.field = f"market.{field}"
        what = "a market source" if field == "source" else f"a source of {field}"
        super().__init__(
            f"DESKBUS_MARKET_{field.upper()} is {name[:40]!r}, which is not {what}; set it to "
            f"{' or '.join(known)}"
        )


class UnknownTicker(MarketError):
    """The source does not know the ticker."""

    code = "unknown_ticker"

    def __init__(self, ticker: str, source: str) -> None:
        # Which tickers there are is not point-in-time, and a model may read this: no word of them.
        super().__init__(f"{ticker} is not in source {source}; check the spelling, or leave it out")


class CryptoNotSupported(MarketError):
    """Crypto pairs are not supported: the desk trades equities in whole shares."""

    code = "crypto_not_supported"

    def __init__(self, ticker: str) -> None:
        super().__init__(
            f"{ticker} is a crypto or currency pair; the desk trades equities only, leave it out"
        )


class NotAnEquity(UnknownTicker):
    """The ticker is not an equity: it is an index, for example, which the desk does not trade."""

    code = "not_an_equity"

    def __init__(self, ticker: str, kind: str) -> None:
        MarketError.__init__(
            self, f"{ticker} is of kind {kind[:40]!r}; the desk trades equities only, leave it out"
        )


class NotAShare(NotAnEquity):
    """A symbol of a future, an index or another vendor's spelling."""

    def __init__(self, ticker: str, kind: str) -> None:
        MarketError.__init__(
            self, f"{ticker[:20]} is {kind[:60]}; the desk trades only shares, by their own tickers"
        )


class NoHistory(MarketError):
    """The ticker, or the whole source, has no prices for the date: before the data, or delisted.

    `last` is the session before it at which the ticker traded last, where there is one.
    """

    code = "no_history"

    def __init__(self, message: str, last: date | None = None) -> None:
        super().__init__(message)
        self.last = last

    @classmethod
    def ended(cls, ticker: str, as_of: date, source: str, last: date) -> Self:
        """The ticker traded at `last` for the last time up to as_of."""
        return cls(
            f"{ticker} has no price for {as_of} in source {source}: its last one is of {last}, "
            f"so it was delisted, suspended or not traded, or the data ends there; leave it out",
            last,
        )


class NothingTraded(NoHistory):
    """The whole source has no prices for the date: it lies outside the data, or is not over."""


class OutsideData(NothingTraded):
    """The date lies before or after the sessions of the source; `nearest` is one of them."""

    nearest: date

    def __init__(
        self, day: date, source: str, first: date | None, last: date, nearest: date
    ) -> None:
        where = "after" if day > last else "before"
        since = "" if first is None else f"from {first} "
        super().__init__(
            f"{day} lies {where} the sessions of source {source}, which has prices {since}to {last}"
            f"{did_you_mean(nearest)}"
        )
        self.nearest = nearest


class NotASession(MarketError):
    """The date is not a trading day of the exchange; `nearest` is the one before it."""

    code = "not_a_session"
    nearest: date

    def __init__(self, day: date, why: str, exchange: str, before: date, after: date) -> None:
        self.nearest = before
        super().__init__(
            f"{day} is a {why} on {exchange}; use {before} or {after}, "
            f"the sessions before and after it{did_you_mean(before)}"
        )


class UnknownExchange(MarketError):
    """The source names an exchange code or years without a calendar."""

    code = "unknown_exchange"

    def __init__(self, exchange: str, why: str) -> None:
        super().__init__(
            f"no calendar for exchange {exchange[:20]} ({why}); use an ISO 10383 code such as XNYS"
        )


class NotInSource(MarketError):
    """The source does not offer this kind of data."""

    code = "not_in_source"

    def __init__(self, what: str, source: str, remedy: str) -> None:
        super().__init__(f"source {source} has no {what}; {remedy}")


class SourceUnavailable(MarketError, Unavailable):
    """A live source could not answer now; try again later.

    An operation that can do nothing without the answer waits for it.
    """

    code = "source_unavailable"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"no answer for {what}: {why}; try again later, or replay recorded data")


class RateLimited(SourceUnavailable):
    """A live source reported too many requests; the desk now pauses its calls to it."""

    code = "rate_limited"

    def __init__(
        self, what: str, wait_s: float | None = None, why: str = "too many requests"
    ) -> None:
        later = "" if wait_s is None else f", next try in {wait_s:.0f} s"
        super().__init__(what, f"{why}{later}")
        self.wait_s = wait_s
        self.why = why


class ContactMissing(MarketError):
    """The source needs a contact address, and none is set."""

    code = "contact_missing"

    def __init__(self) -> None:
        super().__init__(
            "EDGAR needs your contact e-mail: set DESKBUS_EDGAR_CONTACT; it is sent to the SEC and "
            "shown nowhere"
        )


class KeysMissing(MarketError):
    """The source needs a key, and no usable one is set."""

    code = "keys_missing"

    def __init__(self, why: str) -> None:
        super().__init__(f"Alpaca needs your key and was not called: {why}")


def is_silence(answer: object) -> TypeGuard[Failure]:
    """True where this failure says that a source gave no answer."""
    return isinstance(answer, Failure) and answer.code in {SourceUnavailable.code, RateLimited.code}


class BadVendorData(MarketError):
    """A live source's answer cannot be used: its shape changed, or it contradicts itself."""

    code = "bad_vendor_data"

    def __init__(self, what: str, why: str, reader: str = "yfinance") -> None:
        super().__init__(
            f"the answer for {what} cannot be used: {why}; leave it out, and see whether a newer "
            f"{reader} reads it"
        )


class LookAhead(MarketError):
    """The source returned data newer than as_of: a defect of the source, never ignored."""

    code = "look_ahead"

    def __init__(self, what: str, newest: datetime, as_of: date) -> None:
        super().__init__(
            f"{what} holds a datum from {newest.isoformat()}, after the close of {as_of}; "
            f"it was withheld: report the source, its point-in-time filter is broken"
        )


class BadReplayData(MarketError):
    """A market data file is invalid; `finding` says where and why."""

    code = "bad_replay_data"

    def __init__(self, finding: FileFinding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class BadReplayDir(BadReplayData):
    """The directory of recorded data is none, or has no prices."""

    def __init__(self, directory: Path, what: str, remedy: str) -> None:
        super().__init__(FileFinding(str(directory), what, remedy))


class ContentGone(DeskError):
    """A data file has changed since the cycle was accepted.

    No MarketError: it says nothing of a ticker, and no work may go on without it. The same request,
    sent again, gets the newest data.
    """

    code = "data_changed"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the market data changed after this cycle was accepted, and its earlier state is not "
            f"kept: {what}; request the cycle again"
        )


UNPRICED = (UnknownTicker, CryptoNotSupported, NoHistory, BadVendorData, BadReplayData)
"""Errors that say of a ticker that it has no prices to be used; not that its source is away."""


class MarketToolNotAllowed(MarketError):
    """The agent called a tool that is not on its allow-list."""

    code = "tool_not_allowed"


class BadMarketToolArguments(MarketError):
    """The arguments of a tool call do not fit its schema."""

    code = "bad_tool_arguments"


class MarketToolResultTooLarge(MarketError):
    """A tool's result is over the limit of one result."""

    code = "tool_result_too_large"
