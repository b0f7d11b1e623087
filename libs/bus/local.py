"""No wire where there is none: the orchestrator and the services of its own process.

A service's claims, records and results, and the commands for it, are handed over as bytes, without
NATS. All else is as on the wire: what is said is encoded, so it has the same sizes and the same
schema; the same `Server` lets it in, in the caller's lane; and who asks is the identity that its
line was made for, never a name from a message. A line may say only what NATS would let that
identity publish.

Where nobody here answers or has a free worker, the wire is used as ever.
"""

from collections.abc import Callable, Sequence

from contracts.subjects.commands import COMMANDS
from contracts.subjects.subject import Answered, AnySubject, Asked, Subject
from libs.bus.permissions import permissions
from libs.bus.pull import LocalDelivery
from libs.bus.server import Server

Take = Callable[[LocalDelivery], bool]
"""Takes a command if a worker is free; False where it is to be sent over NATS."""
Free = Callable[[], int]
"""Says how many workers are free."""


def _unknown() -> int:
    """Nobody is promised a worker."""
    return 0


class LocalBus:
    """Joins one process: its orchestrator's server, and a line for each of its services.

    `commands` are the desk's, from which follows what each identity may do.
    """

    def __init__(self, commands: Sequence[AnySubject] = COMMANDS) -> None:
        self._permissions = permissions(commands)
        self._server: Server | None = None
        self._workers: dict[tuple[str, str], tuple[Take, Free]] = {}

    def open(self, server: Server) -> None:
        """From now on this server answers."""
        self._server = server

    def close(self) -> None:
        """Nobody answers here any more."""
        self._server = None

    def line(self, identity: str) -> "LocalLine":
        """The line of one service."""
        allowed = self._permissions.get(identity)
        return LocalLine(self, identity, frozenset(allowed.publish if allowed else ()))

    def hand_over(self, service: str, step: str, command: LocalDelivery) -> bool:
        """Give a service its command; False where it is not here or has no free worker."""
        workers = self._workers.get((service, step))
        return workers is not None and workers[0](command)

    def free_workers(self, service: str, step: str) -> int:
        """How many workers are free here for a service's command."""
        workers = self._workers.get((service, step))
        return 0 if workers is None else workers[1]()

    def put_worker(self, row: AnySubject, take: Take, free: Free) -> None:
        """From now on the row's commands are taken here."""
        self._workers[row.owner, row.what] = take, free

    async def ask(self, row: Subject[Asked, Answered], identity: str, body: bytes) -> bytes | None:
        """The answer of this process's orchestrator; None where it has none."""
        return None if self._server is None else await self._server.ask(row, identity, body)


class LocalLine:
    """The words of one identity inside its process; `may_publish` is what NATS lets it say."""

    def __init__(self, bus: LocalBus, identity: str, may_publish: frozenset[str]) -> None:
        self._bus = bus
        self._identity = identity
        self._may_publish = may_publish

    async def ask(self, row: Subject[Asked, Answered], body: bytes) -> bytes | None:
        """The answer to a question under the line's identity; None where nobody here answers, or
        where NATS would not let it ask."""
        if row.by(self._identity) not in self._may_publish:
            return None
        return await self._bus.ask(row, self._identity, body)

    def hear(self, row: AnySubject, take: Take, free: Free = _unknown) -> None:
        """Take the identity's own commands; as many as workers are `free` come with their claim.

        Raises ValueError for another service's.
        """
        if row.owner != self._identity:
            raise ValueError(f"{self._identity} does not own {row.address}")
        self._bus.put_worker(row, take, free)
