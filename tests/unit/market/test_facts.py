"""What the desk knows of a ticker beside its prices: its dated events."""

from datetime import date

import pytest

from contracts.facts import CATALYST_DAYS_MAX, EventKind
from libs.market.facts import dated_events
from libs.market.replay.market import ReplayMarket

ANNOUNCED = date(2024, 4, 11)
"""The day of FOXT's report, known since 10 March; that it was made is not on record."""


@pytest.mark.parametrize(
    ("as_of", "near"),
    [
        (date(2024, 3, 11), False),
        (date(2024, 3, 12), True),
        (date(2024, 4, 11), True),
        (date(2024, 4, 12), False),
    ],
)
async def test_a_report_is_an_event_from_a_month_before_it_to_its_day(
    fixture: ReplayMarket, as_of: date, near: bool
) -> None:
    assert CATALYST_DAYS_MAX == 30
    events = await dated_events(fixture, "FOXT", as_of)
    announced = [event.on for event in events if event.kind is EventKind.ANNOUNCED]
    assert announced == [ANNOUNCED] * near
