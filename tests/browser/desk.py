"""The desk that the pages are looked at on: a whole one, with something of everything on record."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from libs.runtime.http_address import http_address
from tests.integration.desk.caller import Json, account_of, wish
from tests.integration.desk.conftest import Desk, desk_in


@dataclass(frozen=True)
class Shown:
    """The desk with what is on record there: cycles by how they ended."""

    desk: Desk
    url: str
    decided: Json
    account: str
    waiting: str
    failed: str
    operation: str


@contextmanager
def shown_desk() -> Iterator[Shown]:
    """The desk with its HTTP side, while the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="deskbus-test-"))
    # As root the servers run as another user, who must be able to come in.
    folder.chmod(0o755)
    given = {"http": True, "http_port": 0, "strategies_dir": folder / "strategies"}
    try:
        with desk_in(folder, lambda _: nullcontext({}), **given) as desk:
            yield asyncio.run(_filled(desk))
    finally:
        shutil.rmtree(folder)


async def _filled(desk: Desk) -> Shown:
    address = http_address(desk.settings)
    assert address is not None
    async with desk.calling("user") as caller, desk.calling("cli") as cli:
        body = wish()
        decided = await caller.run(body)
        nodes = (await caller.query("operations", cycle_id=decided["cycle_id"]))["operations"]
        researched = next(each["op_id"] for each in nodes if each["name"] == "analyst")
        failed = await caller.accepted(wish(universe=["NOPE"]))
        await caller.ended(failed)
        waiting = await caller.accepted(wish(approval_required=True))
        await caller.events.first(cycle_id=waiting, type="approval_requested")
        await caller.ask(b"{torn")
        await cli.ask({"account": account_of(body), "reason": "a drill"}, "halt", "execution")
    return Shown(desk, address.url, decided, account_of(body), waiting, failed, researched)
