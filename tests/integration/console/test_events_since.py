"""The console's answer to who asks for all events behind a position, on real tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contracts.audit import EventAt, EventsAfter, EventsPage, EventsSince
from contracts.subjects.events import EVENTS_AFTER, EVENTS_SINCE
from libs.bus.client import Client, QuestionRefused

if TYPE_CHECKING:
    from tests.integration.console.conftest import Made


async def all_since(client: Client, **question: Any) -> tuple[list[EventAt], list[EventsPage]]:
    """Every event behind a position, asked for page by page."""
    found: list[EventAt] = []
    pages: list[EventsPage] = []
    while not pages or pages[-1].more:
        if pages:
            question = {**question, "after": pages[-1].position}
        pages.append(await client.ask(EVENTS_SINCE, EventsSince(**question)))
        found += pages[-1].events
    return found, pages


async def now(client: Client) -> str:
    """The position behind all events."""
    page = await client.ask(EVENTS_SINCE, EventsSince())
    assert (page.events, page.more, page.gap) == ((), False, None)
    return page.position


async def test_events_of_all_cycles_come_behind_a_position_in_order_and_by_type(
    client: Client, made: Made
) -> None:
    start = await now(client)
    for number in range(6):
        await made.event(number, "decision" if number % 2 else "state_entered", step=f"s{number}")

    every, _ = await all_since(client, after=start, limit=4)
    some, pages = await all_since(client, after=start, types=("deci*",), limit=2)
    behind, _ = await all_since(client, after=every[3].position)

    assert [placed.event.sequence for placed in every] == [1, 2, 3, 4, 5, 6]
    assert [placed.event.data["step"] for placed in some] == ["s1", "s3", "s5"]
    assert [placed.event.sequence for placed in behind] == [5, 6]
    assert pages[-1].position == await now(client)


async def test_without_a_position_so_many_events_before_now_are_given(
    client: Client, made: Made
) -> None:
    for number in range(4):
        await made.event(number)
    found, _ = await all_since(client, back=3)
    assert [placed.event.sequence for placed in found] == [2, 3, 4]


async def test_events_behind_a_position_that_are_too_large_for_one_message_come_in_several(
    client: Client, made: Made
) -> None:
    start = await now(client)
    for number in range(4):
        await made.event(number, "decision", text="x" * 200_000)
    found, pages = await all_since(client, after=start)
    assert [placed.event.sequence for placed in found] == [1, 2, 3, 4]
    assert len(pages) >= 2


async def test_events_of_a_type_that_only_a_later_version_knows_are_counted_and_left_out(
    client: Client, made: Made
) -> None:
    start = await now(client)
    for number, kind in enumerate(("decision", "later", "later", "later", "decision")):
        await made.event(number, kind)

    found, pages = await all_since(client, after=start, limit=2)
    past = await client.ask(EVENTS_AFTER, EventsAfter(cycle_id=made.cycle_id, limit=3))
    rest = await client.ask(EVENTS_AFTER, EventsAfter(cycle_id=made.cycle_id, sequence=3))

    assert [placed.event.sequence for placed in found] == [1, 5]
    assert [page.unreadable for page in pages] == [1, 2, 0]
    assert ([event.sequence for event in past.events], past.more, past.unreadable) == ([1], True, 2)
    assert ([event.sequence for event in rest.events], rest.more) == ([5], False)


async def test_a_position_that_the_tables_do_not_know_is_told(client: Client, made: Made) -> None:
    await made.event(0)
    other, _, _ = (await now(client)).rpartition("-")
    page = await client.ask(EVENTS_SINCE, EventsSince(after=f"{other}-00000000"))
    assert page.gap == "unknown"


async def test_a_type_that_no_event_has_is_refused(client: Client, made: Made) -> None:
    with pytest.raises(QuestionRefused, match="unknown event type 'decisions'"):
        await client.ask(EVENTS_SINCE, EventsSince(types=("decisions",)))
