"""Large bodies: kept in parts as they come, read as asked for. Who reads compares hashes."""

import base64

from contracts.body import BodyPart, KeepPart, PartKept, PartQuery
from contracts.message import Message
from contracts.subjects import BODY_PART, KEEP_PART
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
        await server.serve(KEEP_PART, self._answer)
        await server.serve(BODY_PART, self._answer)

    async def _answer(self, _caller: str, message: Message) -> Message | None:
        try:
            match message:
                case KeepPart():
                    return await self._keep(message)
                case PartQuery():
                    return await self._read(message)
                case _:
                    raise TypeError(f"a body's part expected, {type(message).__name__} came")
        except Unavailable:
            return None  # unanswered: another orchestrator, or this one later, is asked again

    async def _keep(self, given: KeepPart) -> PartKept:
        body = base64.b64decode(given.data)
        sha256 = bytes.fromhex(given.sha256)
        await self._pool.execute(sql.keep_part, sha256, given.part, given.parts, body)
        return PartKept()

    async def _read(self, asked: PartQuery) -> BodyPart:
        row = await self._pool.fetchrow(sql.body_part, bytes.fromhex(asked.sha256), asked.part)
        if row is None:
            return BodyPart(found=False)
        return BodyPart(parts=row["parts"], data=base64.b64encode(row["bytes"]).decode())
