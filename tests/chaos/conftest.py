"""One desk of processes for the session, in the session's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.chaos.desk import ONE_PROCESS_ROLES, QUICK, ChaosDesk, chaos_desk
from tests.chaos.load import User, user_of
from tests.open_folder import open_folder

WHOLE_TIMEOUT_S = 60.0


@pytest.fixture(scope="session", autouse=True)
def buys_against_exit_rules() -> Iterator[None]:
    """Desks of these tests may buy what their exit rules would sell: many tests buy AAPL on
    2012-06-29, which they would. That rule has tests of its own, with the setting as it is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DESKBUS_LIMITS", '{"exits_veto_buys": false}')
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def desk() -> AsyncIterator[ChaosDesk]:
    """The desk; every test leaves it running and whole."""
    with open_folder() as folder:
        async with chaos_desk(folder, QUICK) as running:
            yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def joined_desk() -> AsyncIterator[ChaosDesk]:
    """The desk as two processes, inside which claims, records and results are calls."""
    with open_folder() as folder:
        async with chaos_desk(folder, QUICK, ONE_PROCESS_ROLES) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="session")
async def user(desk: ChaosDesk) -> AsyncIterator[User]:
    """A user of its own for each test, on a desk that has got over the test before."""
    async with asyncio.timeout(WHOLE_TIMEOUT_S):
        await desk.whole()
    async with user_of(desk.settings) as connected:
        yield connected
