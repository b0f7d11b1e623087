"""Descriptions of the market sources without asking any of them."""

from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import assert_never

from pydantic import BaseModel

from libs.market.errors import ContactMissing, MarketError
from libs.market.kinds import Kind
from libs.market.replay.store import ReplayStore
from libs.market.sources import (
    CAN,
    PartName,
    SourceName,
    chosen,
    latest_session_of,
    market_of,
    yahoo_tickers,
)
from libs.runtime.contact import masked
from libs.runtime.errors import DeskError
from libs.runtime.settings import Settings

NOTHING_ELSE = {kind.value: None for kind in Kind if kind is not Kind.PRICES}
"""The settings with which one source answers all that it can."""


class SourceRow(BaseModel):
    """One source: whether it is the chosen one, whether it can be used, and what it holds."""

    name: str
    chosen: bool
    """Whether prices come from it."""
    used_for: tuple[Kind, ...] = ()
    can: tuple[Kind, ...] = ()
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
    alone = settings.model_copy(update={"market": name, **NOTHING_ELSE})
    try:
        row.label = market_of(alone).label.in_words
        row.synthetic = market_of(alone).label.synthetic
        row.latest_session = await latest_session_of(alone)()
        match name:
            case SourceName.REPLAY:
                row.tickers = len(ReplayStore(settings.replay_dir).tickers)
            case SourceName.YAHOO:
                row.tickers = len(yahoo_tickers(settings)) or None
                row.said = yahoo_said(settings)
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
                row.said = edgar_said(settings)
            case _:
                assert_never(name)
    except DeskError as error:
        row.usable, row.said = False, error.message
    return row


def _row(settings: Settings, name: SourceName | PartName) -> SourceRow:
    return SourceRow(
        name=name,
        chosen=settings.market == name,
        usable=True,
        used_for=tuple(kind for kind in CAN[name] if chosen(settings, kind) is name),
        can=tuple(CAN[name]),
    )


def edgar_said(settings: Settings) -> str:
    """Describe EDGAR without asking it. Raises ContactMissing."""
    if settings.edgar_contact is None:
        raise ContactMissing
    return (
        f"edgar, live, asked as {masked(settings.edgar_contact)}, at most "
        f"{settings.edgar_requests_per_s:g} requests/s by all processes of this data directory; "
        f"not asked here"
    )


def yahoo_said(settings: Settings) -> str:
    """Describe the live source without asking it. Raises DeskError where it is not."""
    try:
        installed = version("yfinance")
    except PackageNotFoundError as error:
        raise MarketError("yfinance is not installed; install deskbus again") from error
    names = yahoo_tickers(settings)
    universe = f"{len(names)} tickers" if names else "Yahoo's screens of the newest session"
    return (
        f"yahoo, live through yfinance {installed}, at most {settings.yahoo_requests_per_s:g} "
        f"requests/s: {universe}; not asked here"
    )
