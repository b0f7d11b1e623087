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
from contracts.subjects.subject import Class, Subject, console

EVENTS_AFTER = console("events", EventsAfter, Events)
EVENTS_SINCE = console("events_since", EventsSince, EventsPage)
EVENTS = tuple(Subject(Class.EVENT, kind.owner, kind, Event, NoneType) for kind in EventType)

NOTICES = tuple(Subject(Class.NOTICE, kind.owner, kind, Event, NoneType) for kind in NOTABLE_EVENTS)
"""Events that people may be told of, as the notifier hears them."""
