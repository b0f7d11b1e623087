"""The calendars of the exchanges that listings name, each computed once."""

import asyncio
from collections.abc import Iterable

import structlog

from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.market.errors import UnknownExchange

EXCHANGES_KNOWN_MAX = 64
OF_NEW_YORK = frozenset({"XNYS", "XNAS", "XASE", "ARCX", "BATS", "PINX", "OTCB", "OTCQ", "OOTC"})
"""Exchanges with New York's sessions, which need not be computed."""

log = structlog.get_logger(__name__)

_known: dict[str, ExchangeCalendar | None] = {}


def known_calendar(exchange: str) -> ExchangeCalendar | None:
    """The calendar of an exchange that a listing names; None where none is known by that name.

    The first time it may take seconds: `compute` does that beside an event loop.
    """
    if exchange in OF_NEW_YORK:
        return exchange_calendar()
    if exchange not in _known:
        if len(_known) >= EXCHANGES_KNOWN_MAX:
            del _known[next(iter(_known))]
        try:
            _known[exchange] = exchange_calendar(exchange)
        except UnknownExchange as error:
            log.warning("market.exchange_unknown", exchange=exchange[:20], why=error.message)
            _known[exchange] = None
    return _known[exchange]


async def compute(exchanges: Iterable[str]) -> None:
    """Have `known_calendar` answer at once for these."""
    for exchange in {*exchanges} - OF_NEW_YORK - _known.keys():
        await asyncio.to_thread(known_calendar, exchange)
