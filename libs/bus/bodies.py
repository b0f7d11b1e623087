"""Large bodies through the orchestrator: in parts there, put together and compared here."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.body import PART_BYTES_MAX, PARTS_MAX, BodyPart, KeepPart, PartQuery
from contracts.subjects.strategies import BODY_PART, KEEP_PART
from contracts.subjects.subject import Answered, Asked, Subject
from libs.bus.client import Client, DeskNotReachable, open_client
from libs.runtime.errors import DeskError

RETRY_AFTER_S = 0.5
TRIES_MAX = 20


class KeptBodyTooLarge(DeskError):
    """The body is larger than the limit."""

    code = "body_too_large"


class BodyMissing(DeskError):
    """No body has this name, or its content does not match its name."""

    code = "body_missing"


class BusBodies:
    """Keeps and reads bodies under one identity."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def keep(self, sha256: str, body: bytes) -> None:
        """Keep a body; the same one again changes nothing. Raises KeptBodyTooLarge."""
        pieces = [body[at : at + PART_BYTES_MAX] for at in range(0, len(body), PART_BYTES_MAX)]
        if len(pieces) > PARTS_MAX:
            most = PART_BYTES_MAX * PARTS_MAX
            raise KeptBodyTooLarge(
                f"the model has {len(body)} bytes, {most} is the most: use fewer or flatter trees, "
                "or smaller layers"
            )
        for part, piece in enumerate(pieces):
            data = base64.b64encode(piece).decode()
            await self._insist(
                KEEP_PART, KeepPart(sha256=sha256, part=part, parts=len(pieces), data=data)
            )

    async def read(self, sha256: str) -> bytes:
        """The body of that hash. Raises BodyMissing."""
        first = await self._part(sha256, 0)
        rest = [await self._part(sha256, part) for part in range(1, first.parts)]
        body = b"".join(base64.b64decode(part.data) for part in (first, *rest))
        if hashlib.sha256(body).hexdigest() != sha256:
            raise BodyMissing(f"what is kept under {sha256} has another hash: train it again")
        return body

    async def _part(self, sha256: str, part: int) -> BodyPart:
        body_part = await self._insist(BODY_PART, PartQuery(sha256=sha256, part=part))
        if not body_part.found:
            raise BodyMissing(f"part {part} of {sha256} is not kept: train it again")
        return body_part

    async def _insist(self, row: Subject[Asked, Answered], message: Asked) -> Answered:
        """Ask until somebody answers, as the operation's own questions do, for a while."""
        for left in reversed(range(TRIES_MAX)):
            try:
                return await self._client.ask(row, message)
            except DeskNotReachable:
                if not left:
                    raise
                await asyncio.sleep(RETRY_AFTER_S)
        raise AssertionError("the last round returns or raises")


@asynccontextmanager
async def open_bodies(url: str, secrets_dir: Path, identity: str) -> AsyncIterator[BusBodies]:
    """Bodies over a connection of one identity's own, closed after the block."""
    async with open_client(url, secrets_dir, identity) as client:
        yield BusBodies(client)
