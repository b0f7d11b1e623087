"""The servers that all contenders share: the desk's own embedded pair, with its own settings.

Everything lies in a temporary folder and is gone afterwards, the credentials too. `floors` is
a NATS identity of its own: it speaks to itself under `floor.`, and manages the streams.
"""

import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.contenders.deskbus_core import COMMANDS
from contracts.subjects.subject import AnySubject
from libs.bus.permissions import permissions
from libs.keys.accounts import NatsPermissions
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.servers.embedded import embedded_servers

IDENTITY: Final = "floors"
SUPERUSER: Final = "postgres"
FLOORS: Final = NatsPermissions(
    publish=("floor.>", "_INBOX.>", "$JS.API.>"), subscribe=("floor.>", "_INBOX.>")
)


@dataclass(frozen=True)
class BenchServers:
    """Where the servers listen, and the keys to all of them."""

    nats_url: str
    nkey_seed_path: Path
    postgres_dsn: str


@asynccontextmanager
async def running_servers(
    commands: Sequence[AnySubject] = COMMANDS,
) -> AsyncIterator[BenchServers]:
    """Start both, wait until they are ready, and end them with the block."""
    with temporary_folder() as folder:
        allowed = {**permissions(commands), IDENTITY: FLOORS}
        async with embedded_servers(
            folder / "desk", allowed, ROLES, database_owner=OWNER_ROLE
        ) as servers:
            yield BenchServers(
                nats_url=servers.nats_url,
                nkey_seed_path=servers.nkey_seed_path(IDENTITY),
                postgres_dsn=servers.postgres_dsn(SUPERUSER),
            )


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder while the block runs."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # Started by root, the servers drop its rights, and have to come in all the same.
        Path(folder).chmod(0o711)
        yield Path(folder)
