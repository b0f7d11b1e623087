"""The short form of tests.chaos.notices: each process that a notice passes through, struck once."""

from pathlib import Path

import pytest

from tests.chaos.notices import FREEZE, TARGETS, survive
from tests.open_folder import open_folder

SEED = 20


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_whatever_is_killed_every_event_is_sent_and_no_repeat_is_unexplained() -> None:
    with open_folder() as folder:
        outcome = await survive(Path(folder), len((*TARGETS, FREEZE)), SEED)
    assert outcome.broken == []
    # How many there are is a matter of the machine's pace; each blow has to meet some.
    assert outcome.events > 4 * outcome.moments
