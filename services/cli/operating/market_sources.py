"""Descriptions of the market sources without asking any of them."""

from collections.abc import Sequence
from datetime import date

from pydantic import BaseModel

from libs.market.choice import (
    CAN,
    DataKind,
    PartName,
    SourceName,
    chosen,
)
from libs.market.sources import latest_session_of, market_of, tickers_of
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings
from services.cli.operating.source_words import WORDS

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
    return [await _row(settings, name) for name in (*SourceName, *PartName)]


async def _row(settings: Settings, name: SourceName | PartName) -> SourceRow:
    row = SourceRow(
        name=name,
        chosen=settings.market.source == name,
        usable=True,
        used_for=tuple(kind for kind in CAN[name] if chosen(settings, kind) is name),
        can=tuple(CAN[name]),
    )
    try:
        if isinstance(name, SourceName):
            alone = settings.changed(market={"source": name, **NOTHING_ELSE})
            row.label = market_of(alone).label.in_words
            row.synthetic = market_of(alone).label.synthetic
            row.latest_session = await latest_session_of(alone)()
            row.tickers = len(tickers_of(alone)) or None
        if name is not SourceName.REPLAY:  # recorded data is described by its label
            row.said = WORDS[name](settings)
    except DeskError as error:
        row.usable, row.said = False, error.message
    return row
