"""The market sources described without asking or loading any of them."""

from importlib.metadata import PackageNotFoundError, version

from libs.market.calendar import exchange_calendar
from libs.market.choice import yahoo_tickers
from libs.market.errors import ContactMissing, MarketError
from libs.market.replay.layout import layout_of
from libs.runtime.contact import masked
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
        f"edgar, live, asked as {masked(settings.edgar.contact)}, at most "
        f"{settings.edgar.requests_per_s:g} requests/s by all processes of this data directory; "
        f"not asked here"
    )


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
        f"requests/s: {universe}; not asked here"
    )
