"""What a ticker says: its spelling, what is no share, its exchange and currency."""

import pytest
from pydantic import TypeAdapter

from contracts.types import Money, Ticker, spelled
from libs.market.calendar import SAME_SESSIONS
from libs.market.choice import named
from libs.market.errors import CryptoNotSupported, NotAShare
from libs.market.listed_calendars import OF_NEW_YORK
from libs.market.source import refuse_crypto
from libs.market.symbols import (
    CURRENCIES,
    HUNDREDTHS,
    VENUES,
    UnknownCurrency,
    currency,
    is_us_ticker,
    no_share,
    venue_of,
)


@pytest.mark.parametrize(
    ("text", "ticker"),
    [
        ("BRK.B", "BRK.B"),
        ("BRK-B", "BRK.B"),
        ("brk/b", "BRK.B"),
        (" BRK B ", "BRK.B"),
        ("BF-A", "BF.A"),
        ("aapl", "AAPL"),
        ("0700.HK", "0700.HK"),
        ("NOVO-B.CO", "NOVO-B.CO"),
        ("BTC-USD", "BTC-USD"),
        ("stra\u00dfe", "stra\u00dfe"),
    ],
)
def test_a_share_has_one_spelling(text: str, ticker: str) -> None:
    assert spelled(text) == ticker
    assert spelled(ticker) == ticker


@pytest.mark.parametrize(
    "ticker",
    ["AAPL", "BRK.B", "BRK-B", "BRK/B", "0700.HK", "SAP.DE", "NOVO-B.CO", "US", "A.US.B", "USD"],
)
def test_a_share_is_one(ticker: str) -> None:
    assert no_share(ticker) == ""
    refuse_crypto(ticker)


@pytest.mark.parametrize(
    ("ticker", "kind"),
    [
        ("BTC-USD", "a crypto or currency pair"),
        ("BTC/USD", "a crypto or currency pair"),
        ("EUR/GBP", "a crypto or currency pair"),
        ("EURUSD=X", "a crypto or currency pair"),
        ("JPY=X", "a crypto or currency pair"),
        ("ES=F", "a future"),
        ("^GSPC", "an index"),
        ("AAPL.US", "Stooq's spelling of AAPL"),
        ("BRK-B.US", "Stooq's spelling of BRK-B"),
    ],
)
def test_what_is_no_share_is_named(ticker: str, kind: str) -> None:
    assert no_share(ticker) == kind
    with pytest.raises((CryptoNotSupported, NotAShare), match="the desk trades"):
        refuse_crypto(ticker)


@pytest.mark.parametrize("typed", ["brk/b", "BRK-B", "brk-b", "BRK.B"])
def test_a_class_is_the_same_ticker_in_a_request_and_in_a_setting(typed: str) -> None:
    assert TypeAdapter(Ticker).validate_python(typed) == "BRK.B"
    assert named(f"AAPL, {typed}") == ("AAPL", "BRK.B")


@pytest.mark.parametrize("ticker", ["BTC/USD", "BTC-USD", "NOVO-B.CO", "BAC-PL", "0700.HK"])
def test_what_is_no_class_keeps_its_spelling_in_a_request(ticker: str) -> None:
    assert TypeAdapter(Ticker).validate_python(ticker) == ticker


def test_a_us_ticker_has_a_class_behind_a_dot_at_most() -> None:
    assert all(map(is_us_ticker, ("AAPL", "BRK.B", "BAC.PRL")))
    assert not any(map(is_us_ticker, ("SAP.DE", "BRK-B", "0700.HK", "BAC-PL", "^GSPC", "BTC-USD")))


@pytest.mark.parametrize(
    ("ticker", "exchange", "money"),
    [
        ("SAP.DE", "XETR", "EUR"),
        ("0700.HK", "XHKG", "HKD"),
        ("7203.T", "XTKS", "JPY"),
        ("600519.SS", "XSHG", "CNY"),
        ("RY.TO", "XTSE", "CAD"),
    ],
)
def test_a_suffix_says_where_it_trades_and_in_what(ticker: str, exchange: str, money: str) -> None:
    venue = venue_of(ticker)
    assert venue is not None
    assert (venue.exchange, venue.currency) == (exchange, money)


def test_every_venue_has_a_calendar_and_a_currency() -> None:
    import exchange_calendars  # noqa: PLC0415 - slow, and only wanted here

    for venue in VENUES.values():
        name = SAME_SESSIONS.get(venue.exchange, venue.exchange)
        assert name in OF_NEW_YORK or exchange_calendars.resolve_alias(name)
        assert currency(venue.currency) == venue.currency
    for suffix, money in HUNDREDTHS.items():
        assert venue_of(f"A.{suffix}").currency == money[1]
        assert {*money} <= CURRENCIES


@pytest.mark.parametrize("text", ["PENCE", "US", "USDT", "XXX", "", "$", "U5D", "us dollar"])
def test_an_unknown_currency_is_refused(text: str) -> None:
    with pytest.raises(UnknownCurrency, match="ISO 4217"):
        currency(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [("usd", "USD"), (" EUR ", "EUR"), ("GBp", "GBX"), ("GBX", "GBX"), ("GBP", "GBP")],
)
def test_a_currency_is_known_by_its_code(text: str, code: str) -> None:
    assert currency(text) == code
    assert Money(amount=1, currency=currency(text)).currency == code
