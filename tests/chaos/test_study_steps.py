"""A study whose desk, all in one process, is killed between every two steps of its clock."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.crash_matrix import ONE_PROCESS, MortalDesk, mortal_desk
from tests.chaos.studies import MANNER
from tests.chaos.study_steps import STEPS, struck

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(module_dir: Path) -> AsyncIterator[MortalDesk]:
    folder = module_dir / "steps"
    folder.mkdir(mode=0o755)
    async with mortal_desk(folder, ONE_PROCESS, MANNER, study_cells_max=1) as running:
        yield running


@pytest.mark.timeout(180)
@pytest.mark.parametrize("step", STEPS)
async def test_killed_at_any_step_a_study_has_each_cell_once_and_pays_for_nothing_on_record_again(
    desk: MortalDesk, step: str
) -> None:
    assert await struck(desk, step) == []
