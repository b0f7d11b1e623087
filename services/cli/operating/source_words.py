"""The market sources described without asking or loading any of them."""

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

from libs.market.alpaca.pages import KEY_SETTING
from libs.market.alpaca.standing import ALPACA_DIR, PriceFeed, kept_standing
from libs.market.calendar import exchange_calendar
from libs.market.choice import DataKind, PartName, SourceName, alpaca_tickers, chosen, yahoo_tickers
from libs.market.errors import ContactMissing, KeysMissing, MarketError
from libs.market.replay.layout import layout_of
from libs.runtime.contact import masked
from libs.runtime.key_pair import KeyPairUnusable, key_pair_in
from libs.runtime.settings import Settings


def replay_words(settings: Settings) -> str:
    """Describe recorded data by its files; none is read. Raises DeskError where they cannot be
    used."""
    layout = layout_of(settings.market.replay_dir)
    exchange_calendar(layout.exchange)
    synthetic = ", synthetic prices" if layout.synthetic else ""
    return f"{layout.name}{synthetic}: {len(layout.prices)} tickers ({layout.exchange})"


def edgar_words(settings: Settings) -> str:
    """Describe EDGAR without asking it. Raises ContactMissing."""
    if settings.edgar.contact is None:
        raise ContactMissing
    return (
        f"edgar, live, contact {masked(settings.edgar.contact)}, at most "
        f"{settings.edgar.requests_per_s:g} requests/s by all processes of this data directory; "
        "not tested here"
    )


def alpaca_words(settings: Settings) -> str:
    """Describe Alpaca without asking it. Raises KeysMissing."""
    file = settings.alpaca.data_key_file
    if file is None:
        raise KeysMissing(f"set {KEY_SETTING} to a file with a key id and its secret")
    try:
        keys = key_pair_in(file, KEY_SETTING)
    except KeyPairUnusable as error:
        raise KeysMissing(error.message) from None
    return (
        f"alpaca, live, key {keys.masked} of {file}, at most "
        f"{settings.alpaca.data_requests_per_s:g} requests/s by all processes of this data "
        f"directory; {alpaca_seen(settings)}; not tested here"
    )


def alpaca_seen(settings: Settings) -> str:
    """What the account could read when a process of this data directory found it out last."""
    standing = kept_standing(settings.data_dir / ALPACA_DIR)
    if standing is None:
        return "the account's access is not known yet"
    of_all, of_iex = (
        "prices of all US exchanges (SIP)",
        "prices from IEX only: no screens by volume",
    )
    words = of_all if standing.feed is PriceFeed.SIP else of_iex
    rate = standing.rate
    left = "" if rate is None else f", {rate.remaining} of {rate.limit} requests a minute left then"
    return f"{words}, seen at {standing.at:%Y-%m-%d %H:%M} UTC{left}"


def alpaca_lacks(settings: Settings) -> str:
    """What prices from Alpaca need and is not set; empty where nothing is missing, or where prices
    come from elsewhere."""
    if chosen(settings, DataKind.PRICES) is not SourceName.ALPACA:
        return ""
    lacks = []
    if settings.edgar.contact is None:
        lacks.append(
            "without DESKBUS_EDGAR_CONTACT no sector is known, so all shares count as one sector "
            "and share its limit"
        )
    if not alpaca_tickers(settings):
        lacks.append("a request must name its universe, as DESKBUS_ALPACA_TICKERS is not set")
    return "; ".join(lacks)


def yahoo_words(settings: Settings) -> str:
    """Describe the live source without asking it. Raises DeskError where it is not."""
    try:
        installed = version("yfinance")
    except PackageNotFoundError as error:
        raise MarketError("yfinance is not installed; install deskbus again") from error
    names = yahoo_tickers(settings)
    universe = f"{len(names)} tickers" if names else "Yahoo's screens of the newest session"
    return (
        f"yahoo, live through yfinance {installed}, at most {settings.yahoo.requests_per_s:g} "
        f"requests/s: {universe}; not tested here"
    )


WORDS: Mapping[SourceName | PartName, Callable[[Settings], str]] = {
    SourceName.REPLAY: replay_words,
    SourceName.YAHOO: yahoo_words,
    SourceName.ALPACA: alpaca_words,
    PartName.EDGAR: edgar_words,
}
"""How each source is described. Each raises DeskError where it cannot be used."""
