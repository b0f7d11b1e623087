"""Every calendar of exchange_calendars: about half a minute, so in the soak run."""

import exchange_calendars
import pytest

from libs.market.calendar import WITHOUT_CLOSE, exchange_calendar
from tests.fakes.calendars import works

NAMES = exchange_calendars.get_calendar_names(include_aliases=False)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted({*NAMES} - WITHOUT_CLOSE))
def test_a_calendar_works_within_its_own_years(name: str) -> None:
    works(exchange_calendar(name))
