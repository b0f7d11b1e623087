"""One desk of processes for the session, in the session's own event loop."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.desk import QUICK, ChaosDesk, chaos_desk
from tests.chaos.load import User, user_of

WHOLE_TIMEOUT_S = 60.0


@pytest.fixture(scope="session")
def open_dir() -> Iterator[Path]:
    """A folder that every user may enter (pytest's own tmp_path lies below a private one)."""
    folder = Path(tempfile.mkdtemp(prefix="deskbus-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def desk(open_dir: Path) -> AsyncIterator[ChaosDesk]:
    """The desk; every test leaves it running and whole."""
    async with chaos_desk(open_dir, QUICK) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def user(desk: ChaosDesk) -> AsyncIterator[User]:
    """A user of its own for each test, on a desk that has got over the test before."""
    async with asyncio.timeout(WHOLE_TIMEOUT_S):
        await desk.whole()
    async with user_of(desk.settings) as connected:
        yield connected
