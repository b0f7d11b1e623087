"""Large bodies: kept in parts as they come, read as asked for. Who reads compares hashes."""

import base64
from collections.abc import Awaitable

from contracts.body import BodyPart, KeepPart, PartKept, PartQuery
from contracts.subjects.strategies import BODY_PART, KEEP_PART
from contracts.subjects.subject import Answered
from libs.bus.server import Server
from libs.postgres.pool import Pool
from libs.runtime.errors import Unavailable
from services.orchestrator.store import sql


class Bodies:
    """Answers the two questions about bodies."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def serve(self, server: Server) -> None:
        """Begin to answer."""
        await server.serve(KEEP_PART, lambda _, part: _if_available(self._keep(part)))
        await server.serve(BODY_PART, lambda _, query: _if_available(self._read(query)))

    async def _keep(self, part: KeepPart) -> PartKept:
        body = base64.b64decode(part.data)
        sha256 = bytes.fromhex(part.sha256)
        await self._pool.execute(sql.keep_part, sha256, part.part, part.parts, body)
        return PartKept()

    async def _read(self, query: PartQuery) -> BodyPart:
        row = await self._pool.fetchrow(sql.body_part, bytes.fromhex(query.sha256), query.part)
        if row is None:
            return BodyPart(found=False)
        return BodyPart(parts=row["parts"], data=base64.b64encode(row["bytes"]).decode())


async def _if_available(answer: Awaitable[Answered]) -> Answered | None:
    try:
        return await answer
    except Unavailable:
        return None  # unanswered: another orchestrator, or this one later, is asked again
