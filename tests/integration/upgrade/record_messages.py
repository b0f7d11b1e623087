"""Record what the version before says on its bus, into tests/data/messages (see its README).

A desk of the old tree on the fixture market, with one listener that may hear everything. Of each
kind of message the largest one is kept, since it has most of the fields.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import nats
from nats.aio.msg import Msg

from contracts.subjects.subject import AnySubject
from libs.bus.document.build import ROWS
from libs.bus.permissions import permissions
from libs.keys.accounts import NatsPermissions
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.servers.embedded import embedded_servers
from tests.integration.desk.caller import Caller, Json, calling, operation_of, wish
from tests.integration.upgrade.conftest import Desk, services_of, settings_of
from tests.integration.upgrade.old_release import RELEASE, ROOT, unpacked

MESSAGES: Final = ROOT / "tests" / "data" / "messages"
MARKET: Final = ROOT / "tests" / "data" / "fixture_market"
LISTENER: Final = "listener"
EVERYTHING: Final = NatsPermissions(publish=(), subscribe=(">",))
DAYS: Final = ("2024-03-15", "2024-03-18")
MESSAGE_BYTES_MAX: Final = 120_000


@dataclass
class Heard:
    """The largest message of each kind. Kinds are named by their class, events by their type."""

    bodies: dict[str, Json] = field(default_factory=dict)
    _awaited: dict[str, str] = field(default_factory=dict)
    _owed: dict[str, str] = field(default_factory=dict)

    async def take(self, message: Msg) -> None:
        name = self._awaited.pop(message.subject, None) or self._asked(message)
        if name is not None and message.data:
            self._keep(name, json.loads(message.data))

    def _asked(self, message: Msg) -> str | None:
        for row in ROWS:
            if _is_of(row, message.subject):
                if row.is_answered and message.reply and row.kind != "cmd":
                    self._awaited[message.reply] = row.reply.__name__
                if row.kind == "cmd":
                    self._owed[json.loads(message.data)["op_id"]] = row.reply.__name__
                return row.message.__name__
        return None

    def _keep(self, name: str, body: Json) -> None:
        kind = f"{name}.{body['type']}" if name == "Event" else name
        best = max(body, self.bodies.get(kind, body), key=_size)
        if _size(body) <= MESSAGE_BYTES_MAX and best is body:
            self.bodies[kind] = body
        if name == "Result" and body.get("contract"):
            self._keep(self._owed[body["op_id"]], body["contract"])


def _size(body: Json) -> int:
    return len(json.dumps(body))


def _is_of(row: AnySubject, subject: str) -> bool:
    """Whether a row's address, where `*` is any token, is the beginning of a subject."""
    told = subject.split(".")
    wanted = row.address.split(".")
    return len(told) >= len(wanted) and all(
        each in {"*", token} for each, token in zip(wanted, told, strict=False)
    )


async def _everything_is_said(caller: Caller) -> None:
    """Two sessions of one account, a cancelled cycle, a bad request, and every question."""
    pipelines = wish()["pipelines"]
    for day in DAYS:
        view = await caller.run(wish(as_of=day, pipelines=pipelines))
    cancelled = await caller.accepted(wish(as_of=DAYS[0]))
    await caller.ask({"cycle_id": cancelled}, "cancel")
    await caller.ended(cancelled)
    await caller.ask(b"{}")
    await caller.events.first(type="request_rejected")
    nodes = (await caller.query("operations", cycle_id=view["cycle_id"]))["operations"]
    op_id = str(operation_of(nodes, "picks"))
    account = pipelines[0]["account"]
    await caller.query("operations")
    await caller.query("cycles")
    await caller.query("operation", op_id=op_id)
    await caller.query("recording", cycle_id=view["cycle_id"])
    await caller.query("events", cycle_id=view["cycle_id"], limit=20)
    await caller.query("account", account=account)
    await caller.query("equity", account=account)
    await caller.query(
        "portfolio",
        owner="execution",
        cycle_id=view["cycle_id"],
        pipeline="rules",
        account=account,
        as_of=DAYS[-1],
    )
    letters = (await caller.query("dead_letters"))["letters"]
    await caller.ask({"sequence": letters[0]["sequence"]}, "retry_letter")
    await caller.ask({"sequence": letters[0]["sequence"], "reason": "seen"}, "discard_letter")


async def _recorded(folder: Path) -> Mapping[str, Any]:
    tree = unpacked(folder / "old")
    allowed = {**permissions(), LISTENER: EVERYTHING}
    async with embedded_servers(
        folder / "desk", allowed, ROLES, database_owner=OWNER_ROLE
    ) as servers:
        settings = settings_of(servers).changed(market={"replay_dir": MARKET})
        heard = Heard()
        seed = str(servers.nkey_seed_path(LISTENER))
        listener = await nats.connect(servers.nats_url, nkeys_seed=seed)
        await listener.subscribe(">", cb=heard.take)
        desk = Desk(servers, settings)
        try:
            await desk.migrate(tree)
            await desk.start("provisioner", tree)
            await desk.start("orchestrator", tree)
            await desk.start("services", tree, services_of(tree))
            async with calling(servers.nats_url, servers.secrets_dir, "user") as caller:
                await _everything_is_said(caller)
        finally:
            await desk.aclose()
        await listener.close()
    return heard.bodies


def main() -> None:
    """Write one file a kind; exits 1 with the kinds that were never said."""
    with tempfile.TemporaryDirectory(prefix="deskbus-messages-") as name:
        Path(name).chmod(0o755)
        bodies = asyncio.run(_recorded(Path(name)))
    MESSAGES.mkdir(exist_ok=True)
    for path in MESSAGES.glob("*.json"):
        path.unlink()
    for kind, body in sorted(bodies.items()):
        (MESSAGES / f"{kind}.json").write_text(json.dumps(body, sort_keys=True) + "\n")
    models = {row.message.__name__ for row in ROWS}
    models |= {row.reply.__name__ for row in ROWS if row.is_answered}
    heard = {kind.partition(".")[0] for kind in bodies}
    if missing := sorted(models - heard):
        sys.exit(f"written, but of {RELEASE[:12]} these were never said: {', '.join(missing)}")


if __name__ == "__main__":
    main()
