"""Descriptions of the market sources without asking any of them."""

from collections.abc import Sequence
from datetime import date
from typing import assert_never

from pydantic import BaseModel

from libs.market.choice import (
    CAN,
    DataKind,
    PartName,
    SourceName,
    alpaca_tickers,
    chosen,
    yahoo_tickers,
)
from libs.market.sources import latest_session_of, market_of, tickers_of
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.cli.operating.source_words import alpaca_words, edgar_words, yahoo_words

NOTHING_ELSE = {kind.value: None for kind in DataKind if kind is not DataKind.PRICES}
"""The settings with which one source answers all that it can."""


class SourceRow(BaseModel):
    """One source: whether it is the chosen one, whether it can be used, and what it holds."""

    name: str
    chosen: bool
    """Whether prices come from it."""
    used_for: tuple[DataKind, ...] = ()
    can: tuple[DataKind, ...] = ()
    usable: bool
    label: str = ""
    synthetic: bool = False
    tickers: int | None = None
    latest_session: date | None = None
    said: str = ""


async def source_rows(settings: Settings) -> Sequence[SourceRow]:
    """All sources there are, those of whole markets first."""
    wholes = [await _source(settings, name) for name in SourceName]
    return [*wholes, *(_part(settings, name) for name in PartName)]


async def _source(settings: Settings, name: SourceName) -> SourceRow:
    row = _row(settings, name)
    alone = settings.changed(market={"source": name, **NOTHING_ELSE})
    try:
        row.label = market_of(alone).label.in_words
        row.synthetic = market_of(alone).label.synthetic
        row.latest_session = await latest_session_of(alone)()
        match name:
            case SourceName.REPLAY:
                row.tickers = len(tickers_of(alone))
            case SourceName.YAHOO:
                row.tickers = len(yahoo_tickers(settings)) or None
                row.said = yahoo_words(settings)
            case SourceName.ALPACA:
                row.tickers = len(alpaca_tickers(settings)) or None
                row.said = alpaca_words(settings)
            case _:
                assert_never(name)
    except DeskError as error:
        row.usable, row.said = False, error.message
    return row


def _part(settings: Settings, name: PartName) -> SourceRow:
    row = _row(settings, name)
    try:
        match name:
            case PartName.EDGAR:
                row.said = edgar_words(settings)
            case _:
                assert_never(name)
    except DeskError as error:
        row.usable, row.said = False, error.message
    return row


def _row(settings: Settings, name: SourceName | PartName) -> SourceRow:
    return SourceRow(
        name=name,
        chosen=settings.market.source == name,
        usable=True,
        used_for=tuple(kind for kind in CAN[name] if chosen(settings, kind) is name),
        can=tuple(CAN[name]),
    )
