"""Facts for anyone, and those of them that people may be told of."""

from types import NoneType

from contracts.audit import (
    NOTABLE_EVENTS,
    Event,
    Events,
    EventsAfter,
    EventsPage,
    EventsSince,
    EventType,
)
from contracts.subjects.subject import ORCHESTRATOR, Class, Subject, console

EVENTS_AFTER = console("events", EventsAfter, Events)
EVENTS_SINCE = console("events_since", EventsSince, EventsPage)


def event(owner: str, what: EventType) -> Subject[Event, None]:
    """An event's row."""
    return Subject(Class.EVENT, owner, what, Event, NoneType)


EXECUTION_EVENTS = (
    EventType.ORDER_PLACED,
    EventType.ORDER_FILLED,
    EventType.ORDER_REJECTED,
    EventType.ORDER_CANCELLED,
    EventType.POSITION_UNPRICED,
    EventType.TRADING_HALTED,
    EventType.TRADING_RESUMED,
    EventType.HOLDINGS_IMPORTED,
    EventType.CASH_DEPOSITED,
    EventType.CASH_WITHDRAWN,
    EventType.LIMIT_SET,
    EventType.BOOKS_DIFFER,
    EventType.BOOKS_AGREE,
    EventType.ORDER_UNRESOLVED,
    EventType.LATE_FILL,
)
EVENTS = tuple(
    event("execution" if what in EXECUTION_EVENTS else ORCHESTRATOR, what) for what in EventType
)

NOTICES = tuple(
    Subject(Class.NOTICE, row.owner, row.what, Event, NoneType)
    for row in EVENTS
    if row.what in NOTABLE_EVENTS
)
"""Events that people may be told of, as the notifier hears them."""
