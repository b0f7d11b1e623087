"""What a handler takes and what of a desk's messages it is given, without a server."""

from pathlib import Path
from typing import Any

import pytest
from faststream.nats import TestNatsBroker

from contracts.audit import Event, EventAt, EventType
from contracts.event_data import EVENT_DATA, EventOf, OrderEvent, StepEvent
from contracts.risk import DecisionValidation
from contracts.subjects.events import EVENTS
from contracts.subjects.subject import PREFIX
from libs.bus.listening.heard import HandlerInvalid, subject_of
from libs.bus.listening.listener import Delivery, Listener
from tests.fakes.events import body, headers, step, subject

pytestmark = pytest.mark.filterwarnings("ignore:.*AST parsing:RuntimeWarning")


@pytest.fixture
def listener(tmp_path: Path) -> Listener:
    return Listener("nats://127.0.0.1:4222", "user", tmp_path)


async def told(listener: Listener, *events: EventAt) -> None:
    """The events, over FastStream's broker in memory."""
    async with TestNatsBroker(listener.broker, connect_only=False) as broker:
        for placed in events:
            await broker.publish(body(placed), subject(placed), headers=headers(placed))


async def test_a_handler_is_given_its_events_with_typed_data(listener: Listener) -> None:
    heard: list[EventOf[StepEvent]] = []

    @listener.hears(EventType.OPERATION_STARTED, EventType.OPERATION_COMPLETED)
    async def on_step(event: EventOf[StepEvent]) -> None:
        heard.append(event)

    await told(
        listener,
        step(1),
        step(2, EventType.CYCLE_ACCEPTED),
        step(3, EventType.OPERATION_COMPLETED, step="risk"),
    )
    assert [(event.sequence, event.data.step) for event in heard] == [(1, "plan"), (3, "risk")]


async def test_an_event_is_given_once_however_often_it_comes(listener: Listener) -> None:
    heard: list[int] = []

    @listener.hears(EventType.OPERATION_STARTED)
    async def on_step(event: Event) -> None:
        heard.append(event.sequence)

    one, two = step(1), step(2)
    await told(listener, one, one, two, one)
    assert heard == [1, 2]


async def test_what_cannot_be_read_is_left_out_and_the_next_one_is_given(
    listener: Listener,
) -> None:
    heard: list[int] = []

    @listener.hears(EventType.OPERATION_STARTED)
    async def on_step(event: EventOf[StepEvent]) -> None:
        heard.append(event.sequence)

    await told(listener, step(1, nonsense=1), step(2))
    assert heard == [2]


async def test_a_handler_that_raises_gets_no_later_event(listener: Listener) -> None:
    given: list[int] = []

    @listener.hears(EventType.OPERATION_STARTED)
    async def on_step(event: Event) -> None:
        given.append(event.sequence)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await told(listener, step(1))
    await told(listener, step(2))
    assert given == [1]
    assert listener.lost.is_set()
    assert isinstance(listener.failure, ZeroDivisionError)


async def test_a_durables_handler_is_given_the_event_and_its_delivery(listener: Listener) -> None:
    taken: list[tuple[int, bool]] = []

    @listener.pulls("EVENTS", "mine")
    async def on_event(event: Event, delivery: Delivery) -> None:
        await delivery.ack()
        taken.append((event.sequence, delivery.settled))

    async with TestNatsBroker(listener.broker, connect_only=False) as broker:
        placed = step(1)
        await broker.publish(body(placed), subject(placed), stream="EVENTS")
    assert taken == [(1, True)]


@pytest.mark.parametrize("kind", EventType)
def test_one_type_is_heard_on_its_own_subject(kind: EventType) -> None:
    (row,) = [row for row in EVENTS if row.what == kind]
    assert subject_of([kind]) == f"{row.address}.{{cycle_id}}"


def test_several_types_are_heard_on_the_narrowest_subject_that_has_all() -> None:
    orders = [EventType.ORDER_FILLED, EventType.ORDER_REJECTED]
    assert subject_of(orders) == f"{PREFIX}.evt.execution.*.{{cycle_id}}"
    assert subject_of([*orders, EventType.DECISION]) == f"{PREFIX}.evt.*.*.{{cycle_id}}"


def takes(model: Any) -> Any:
    """A handler of events of this model."""

    async def handler(event: Any) -> None: ...

    handler.__annotations__ = {"event": model, "return": None}
    return handler


@pytest.mark.parametrize("kind", EventType)
def test_any_type_can_be_heard_by_its_shape_and_plainly(
    kind: EventType, listener: Listener
) -> None:
    for model in (Event, EventOf.__class_getitem__(EVENT_DATA[kind])):
        handler = takes(model)
        handler.__name__ = model.__name__
        listener.hears(kind)(handler)


def test_two_handlers_of_one_name_are_refused(listener: Listener) -> None:
    listener.hears(EventType.DECISION)(takes(Event))
    with pytest.raises(HandlerInvalid, match="two handlers are called handler"):
        listener.hears(EventType.DECISION)(takes(Event))


@pytest.mark.parametrize(
    ("kinds", "model"),
    [
        ([], Event),
        ([EventType.DECISION], EventOf[StepEvent]),
        ([EventType.DECISION], DecisionValidation),
        ([EventType.DECISION], dict),
        ([EventType.ORDER_PLACED, EventType.DECISION], EventOf[OrderEvent]),
    ],
)
def test_a_handler_of_the_wrong_shape_is_refused_when_it_is_named(
    kinds: list[EventType], model: Any, listener: Listener
) -> None:
    with pytest.raises(HandlerInvalid, match=r"EventType|first parameter is Event"):
        listener.hears(*kinds)(takes(model))


def test_a_handler_that_cannot_be_awaited_is_refused_when_it_is_named(listener: Listener) -> None:
    def plain(_: Event) -> None:
        """Without `async`, which the first event would show."""

    handler: Any = plain
    with pytest.raises(HandlerInvalid, match="plain is no coroutine: write it with `async def`"):
        listener.hears(EventType.DECISION)(handler)
