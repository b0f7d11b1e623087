"""Which servers the suites of execution, console and desk run on: embedded, or containers.

The suites that kill and restart servers (runtime, and tests/chaos) always have embedded ones, and
deploy always has programs of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path

import pytest

from libs.bus.permissions import permissions
from libs.postgres.migrate import migrate
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.servers.embedded import embedded_servers
from libs.servers.embedded_thread import held_in_thread
from tests.integration.own_servers import (
    OwnServers,
    Starter,
    containers,
    docker_missing,
    own_servers,
)
from tests.open_folder import open_folder

ServersIn = Callable[[Path], AbstractContextManager[OwnServers]]
OwnEnvironmentIn = Callable[[Path], AbstractContextManager[Mapping[str, str]]]


@pytest.fixture(scope="session", autouse=True)
def buys_against_exit_rules() -> Iterator[None]:
    """Desks of these tests may buy what their exit rules would sell: many tests buy AAPL on
    2012-06-29, which they would. That rule has tests of its own, with the setting as it is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DESKBUS_LIMITS", '{"exits_veto_buys": false}')
        yield


@pytest.fixture(scope="session")
def starter(request: pytest.FixtureRequest) -> Starter | None:
    """Who starts servers of one's own; None: nobody, they are embedded."""
    if not request.config.getoption("--containers"):
        return None
    missing = docker_missing()
    if missing is not None:
        pytest.skip(missing)
    return containers


@pytest.fixture(scope="session")
def servers_in(starter: Starter | None) -> ServersIn:
    """A pair of servers in a folder that every user may enter, held while the block runs."""

    def opened(folder: Path) -> AbstractAsyncContextManager[OwnServers]:
        return embedded(folder) if starter is None else own_servers(folder, starter)

    return lambda folder: held_in_thread(lambda: opened(folder))


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[OwnServers]:
    """Embedded servers as a suite sees them, by the class that it sees containers by."""
    desk, owner = folder / "desk", OWNER_ROLE
    async with embedded_servers(desk, permissions(), ROLES, database_owner=owner) as held:
        host, port = held.postgres_host, held.postgres_port
        yield OwnServers(held.nats_url, host, port, held.data_dir, held.secrets_dir)


@contextmanager
def migrated_servers(servers_in: ServersIn) -> Iterator[OwnServers]:
    """A pair of servers of its own, with the desk's tables."""
    with open_folder() as folder, servers_in(folder) as held:
        asyncio.run(migrate(held.postgres_dsn(OWNER_ROLE)))
        yield held


@pytest.fixture(scope="session")
def own_environment_in(starter: Starter | None) -> OwnEnvironmentIn:
    """The environment that leads a desk to servers of its own; unchanged for embedded ones."""

    @contextmanager
    def environment(folder: Path) -> Iterator[Mapping[str, str]]:
        if starter is None:
            yield {}
            return
        with held_in_thread(lambda: own_servers(folder, starter)) as servers:
            yield servers.environment

    return environment
