"""The servers that all contenders share: the desk's own embedded pair, with its own settings.

Everything lies in a temporary folder and is gone afterwards, the credentials too. `bench` is a NATS
identity that may do everything; a contender that wants the desk's identities adds them here.
"""

import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.contenders.deskbus_core import COMMANDS
from contracts.subjects import Subject
from libs.bus.permissions import permissions
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.accounts import NatsPermissions
from libs.runtime.embedded import embedded_servers

IDENTITY: Final = "bench"
SUPERUSER: Final = "postgres"
EVERYTHING: Final = NatsPermissions(publish=(">",), subscribe=(">",))


@dataclass(frozen=True)
class BenchServers:
    """Where the servers listen, and the keys to all of them."""

    nats_url: str
    nkey_seed_path: Path
    postgres_dsn: str


@asynccontextmanager
async def running_servers(
    commands: Sequence[Subject] = COMMANDS,
) -> AsyncIterator[BenchServers]:
    """Start both, wait until they are ready, and end them with the block."""
    with temporary_folder() as folder:
        allowed = {**permissions(commands), IDENTITY: EVERYTHING}
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
