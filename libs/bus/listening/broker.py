"""FastStream's broker over the desk's own connection."""

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import nats.errors
import structlog
from faststream.nats import NatsBroker

from libs.bus.connection import Connection, connect

GRACE_S = 5.0
"""How long handlers that run may take to end when the program stops."""

log = structlog.get_logger()


class DeskBroker(NatsBroker):
    """NatsBroker, but that it connects as everything of the desk does: by key and inbox prefix, TLS
    as the address says, reconnecting for ever, telling when a key is refused. FastStream's own
    gives up after 60 tries, and then turns in circles."""

    def __init__(
        self,
        url: str,
        identity: str,
        secrets_dir: Path,
        *,
        on_closed: Callable[[], Awaitable[None]],
        on_lost: Callable[[], None],
        middlewares: Sequence[Any] = (),
    ) -> None:
        super().__init__(
            url.split(","),
            middlewares=middlewares,
            graceful_timeout=GRACE_S,
            # Bodies are decoded by libs.bus.codec; what goes wrong is told by our log.
            apply_types=False,
            logger=None,
        )
        self._reach = (url, identity, secrets_dir)
        self._callbacks: dict[str, Any] = {"on_closed": on_closed, "on_lost": on_lost}

    async def _connect(self) -> Connection:
        connection = await connect(*self._reach, **self._callbacks)
        self.config.connect(connection)
        return connection

    async def stop(self, *_: Any) -> None:
        """Stop all subscribers and leave NATS, whether it is there or not."""
        connection = self._connection
        try:
            await super().stop()
        except* nats.errors.Error as errors:
            log.info("listening.left_unconnected", error=repr(errors.exceptions[0])[:300])
        finally:
            if connection is not None and not connection.is_closed:
                # One that is broken cannot be written to, which asyncio's own transports of Python
                # 3.12 and 3.13 tell by a TypeError; it is closed all the same.
                with contextlib.suppress(OSError, TypeError):
                    await connection.close()
