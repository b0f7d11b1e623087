"""The market source of each kind of data, as the settings choose it; nothing of a source is loaded.

`market` of the settings is `replay` (recorded data, the default), `yahoo` or `alpaca` (live). Kinds
of data beside prices may have a source of their own, and that may have nothing else (`edgar`).
"""

from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum

from contracts.types import spelled
from libs.market.errors import UnknownSource
from libs.runtime.settings import Settings


class DataKind(StrEnum):
    """A kind of data; the setting of its source has the same name, but for prices: `market`."""

    PRICES = "prices"
    """Bars, listings, the universe, and what execution fills at; exchange rates."""
    FUNDAMENTALS = "fundamentals"
    EVENTS = "events"
    """Filings with a regulator."""
    HEADLINES = "headlines"
    CALENDAR = "calendar"
    """Earnings dates."""


class SourceName(StrEnum):
    """The sources of whole markets."""

    REPLAY = "replay"
    YAHOO = "yahoo"
    ALPACA = "alpaca"


class PartName(StrEnum):
    """The sources that have some kinds of data, and no prices."""

    EDGAR = "edgar"


CAN: Mapping[SourceName | PartName, Sequence[DataKind]] = {
    SourceName.REPLAY: tuple(DataKind),
    SourceName.YAHOO: tuple(kind for kind in DataKind if kind is not DataKind.EVENTS),
    SourceName.ALPACA: (DataKind.PRICES, DataKind.HEADLINES),
    PartName.EDGAR: (DataKind.FUNDAMENTALS, DataKind.EVENTS),
}
"""The kinds of data that each source can be asked for."""
BUNDLED_SESSION = date(2012, 6, 29)
"""Of the bundled prices: all five tickers trade, years lie before it and months after it."""


def source_of(settings: Settings) -> SourceName:
    """The chosen source. Raises UnknownSource, as all that asks for a part of it does."""
    try:
        return SourceName(settings.market.source)
    except ValueError:
        raise UnknownSource(settings.market.source, [*SourceName]) from None


def chosen(settings: Settings, kind: DataKind) -> SourceName | PartName:
    """The source of a kind of data. Raises UnknownSource."""
    name = None if kind is DataKind.PRICES else getattr(settings.market, kind)
    if name is None:
        return source_of(settings)
    for names in (SourceName, PartName):
        if name in set(names) and kind in CAN[names(name)]:
            return names(name)
    raise UnknownSource(name, [source for source in CAN if kind in CAN[source]], kind)


def is_bundled(settings: Settings) -> bool:
    """Whether prices are those that come with the desk, which end in 2013. Raises UnknownSource."""
    return source_of(settings) is SourceName.REPLAY and settings.market.replay_dir is None


def first_request(settings: Settings) -> str:
    """The command that asks for a desk's first cycle: of the newest session, but that of the
    bundled prices has no next open at which its orders could be filled. Raises UnknownSource."""
    day = f" --as-of {BUNDLED_SESSION}" if is_bundled(settings) else ""
    return f"deskbus cycle request{day} --wait"


def yahoo_tickers(settings: Settings) -> tuple[str, ...]:
    """The tickers that the settings make Yahoo's universe."""
    return named(settings.yahoo.tickers)


def alpaca_tickers(settings: Settings) -> tuple[str, ...]:
    """The tickers that the settings make the universe of Alpaca's prices."""
    return named(settings.alpaca.tickers)


def named(names: str) -> tuple[str, ...]:
    """The tickers between the commas of a setting, as the desk spells them."""
    return tuple(filter(None, map(spelled, names.split(","))))
