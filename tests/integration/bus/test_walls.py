"""No identity reaches an order or a stream but through its own door: over the nats.conf of
`deskbus secrets init`, with every key, against the table in walls.py.

A key that is stolen publishes what it likes, and names what reply subject it likes: then whoever
answers publishes there, a service of the desk, the holder of a second stolen key, or NATS itself.
"""

import asyncio
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.message import Message
from contracts.subjects.accounts import PORTFOLIO
from contracts.subjects.commands import COMMANDS
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.subject import AnySubject
from contracts.subjects.table import OF_SERVICES, QUERIES, REQUESTS
from libs.bus.connection import connect
from libs.bus.discovery import discoverable
from libs.bus.server import Server
from libs.bus.streams import Provisioner
from libs.keys.nats_config import NatsPlace
from libs.runtime.errors import DeskError
from libs.runtime.ports import choose_port
from libs.servers.binaries import find_nats_server
from services.provisioner.secrets import provision_secrets
from tests.fakes.proposers import added
from tests.integration.bus import walls

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEEPER = "provisioner"
"""It makes the streams, and so can do with them what it likes."""
FLUSH_S_MAX = 60
"""Thousands of words may be before it, on a machine that has other work."""
JUNK = b"junk"
"""No call of the JetStream API takes it, and no contract."""
FORGED = b'{"forged":true}'
BODIES = (b"", JUNK, b"{}")
ORDER = "desk.v1.cmd.execution.execute"
PURGE = "$JS.API.STREAM.PURGE.DECISIONS"
DELETE = "$JS.API.STREAM.DELETE.COMMANDS"
TARGETS = (
    ORDER,
    PURGE,
    DELETE,
    "$JS.API.CONSUMER.DELETE.COMMANDS.execution-execute",
    "$JS.ACK.COMMANDS.execution-execute.1.1.1.1.0",
    "desk.v1.evt.orchestrator.decision.7",
    "desk.v1.ctl.risk.cancel",
    "desk.v1.req.execution.resume.cli",
    "desk.v1.qry.orchestrator.result.risk",
    "_INBOX_cli.forged",
    "desk.v1.dlq.risk.review",
)
"""Reply subjects that a stranger might choose, each with something that it would do."""


class No(DeskError):
    """An answer with headers only: to JetStream a call without a body."""

    code = "no"


@dataclass
class Desk:
    """The server, two connections of every identity, and what arrived at whom."""

    clients: Mapping[str, Client]
    """Those of the desk: behind them are services that answer."""
    thieves: Mapping[str, Client]
    """Those of whoever has stolen the key: they hear what the identity may, and answer as told."""
    refused: Mapping[str, list[str]]
    heard: list[tuple[str, str]] = field(default_factory=list)

    async def settled(self) -> None:
        """Until what was published has come to everybody, and what they said to that too."""
        for _ in range(3):
            for client in (*self.clients.values(), *self.thieves.values()):
                await client.flush(timeout=FLUSH_S_MAX)
            # Answers are tasks of this loop.
            await asyncio.sleep(0.02)

    async def stored(self) -> Mapping[str, Mapping[str, int]]:
        """What each stream holds, by subject; a stream that is gone is not named."""
        manager = self.clients["provisioner"].jsm()
        found = {}
        for stream in await manager.streams_info():
            name = stream.config.name or ""
            info = await manager.stream_info(name, subjects_filter=">")
            found[name] = dict(info.state.subjects or {})
        return found

    async def provisioned(self) -> None:
        """The streams as new, each with something in it."""
        manager = self.clients["provisioner"].jsm()
        for stream in await manager.streams_info():
            await manager.delete_stream(stream.config.name or "")
        await Provisioner(self.clients["provisioner"], COMMANDS).provision()
        orchestrator = self.clients["orchestrator"]
        for row in COMMANDS:
            await orchestrator.publish(row.address, JUNK)
        await orchestrator.publish("desk.v1.evt.orchestrator.decision.1", JUNK)
        await orchestrator.publish("desk.v1.dlq.orchestrator.request.cli", JUNK)
        await self.settled()
        self.heard.clear()
        for refused in self.refused.values():
            refused.clear()

    def refusals(self, identity: str) -> set[str]:
        """What it was refused to publish, in lower case as nats-py tells it."""
        mark = 'violation for publish to "'
        said = (each.lower().partition(mark)[2] for each in self.refused[identity])
        return {each.partition('"')[0] for each in said}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walls") / "secrets"


@pytest.fixture(scope="module")
def url(secrets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = choose_port(None, set())
    monitor_port = choose_port(None, {port})
    store = tmp_path_factory.mktemp("store")
    added(secrets, {name.removeprefix("proposer-"): {} for name in walls.PROPOSERS})
    provision_secrets(secrets, NatsPlace("127.0.0.1", port, monitor_port, store))
    argv = [find_nats_server(), "--config", secrets / "nats.conf"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        while "Server is ready" not in running.stderr.readline():
            assert running.poll() is None
        # It writes a line about each refusal, and would stand still where nobody reads.
        Thread(target=running.stderr.read, daemon=True).start()
        yield f"nats://127.0.0.1:{port}"
        running.terminate()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(url: str, secrets: Path) -> AsyncIterator[Desk]:
    """Every identity, and in the place of each service one that answers as the desk does."""
    async with AsyncExitStack() as stack:
        refused: dict[str, list[str]] = {name: [] for name in walls.IDENTITIES}
        clients, thieves, servers = {}, {}, []
        for name in walls.IDENTITIES:
            for held in (clients, thieves):
                held[name] = client = await connect(url, name, secrets)
                stack.push_async_callback(client.close)
                client._error_cb = _noting(refused[name])
        desk = Desk(clients, thieves, refused)
        for name in walls.DESK:
            server = Server(clients[name], name)
            servers.append(server)
            for row in _answered_by(name):
                await server.serve(row, _no)
            await discoverable(clients[name], name, server.endpoints)
        for name, thief in thieves.items():
            for subject in _listened_to(name):
                await thief.subscribe(subject, cb=_hearing(desk, name))
        await desk.settled()
        yield desk
        for server in servers:
            await server.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def desk(opened: Desk) -> Desk:
    await opened.provisioned()
    return opened


def _noting(said: list[str]) -> object:
    async def on_error(error: Exception) -> None:
        said.append(str(error))

    return on_error


def _hearing(desk: Desk, name: str) -> object:
    async def on_message(message: Msg) -> None:
        desk.heard.append((name, message.subject))

    return on_message


async def _no(_caller: str, _message: Message) -> Message:
    raise No("no")


def _answered_by(name: str) -> Sequence[AnySubject]:
    rows = (*REQUESTS, *QUERIES, *OF_SERVICES, CLAIM, RECORD, RESULT, PORTFOLIO)
    return [row for row in dict.fromkeys(rows) if row.owner == name]


def _listened_to(name: str) -> Sequence[str]:
    """What could be heard of a forgery; the inbox of its own replies aside."""
    mine = [f"_INBOX_{name}.forged"]
    if name in {"cli", "user", "console"}:
        mine.append("desk.v1.evt.>")
    if name in walls.DESK and name != "provisioner":
        kinds = {"orchestrator": ("req", "qry"), "console": ("qry",)}.get(name, ("ctl", "qry"))
        mine += [f"desk.v1.{kind}.{name}.>" for kind in kinds]
        mine += ["desk.v1.req.execution.>"] * (name == "execution")
    return mine


@pytest.mark.parametrize("identity", walls.IDENTITIES)
async def test_an_identity_publishes_what_the_table_names_and_nothing_else(
    identity: str, desk: Desk
) -> None:
    client = desk.clients[identity]
    tried = dict(walls.everything())

    for subject in tried:
        await client.publish(subject, JUNK)
    await desk.settled()

    allowed = {each for each in tried if each.lower() not in desk.refusals(identity)}
    assert allowed == {subject for subject, whose in tried.items() if identity in whose}


@pytest.mark.parametrize("identity", walls.IDENTITIES)
async def test_nobody_makes_a_service_or_nats_itself_publish_where_it_may_not(
    identity: str, desk: Desk
) -> None:
    """Everything that it may say, with each reply subject that it may not."""
    client = desk.clients[identity]
    table = dict(walls.everything())
    mine = [subject for subject, whose in table.items() if identity in whose]
    chosen = [each for each in TARGETS if not _is_its_own(identity, each)]
    before = await desk.stored()

    sent: Counter[str] = Counter()
    for reply in chosen:
        for subject in mine:
            for body in _bodies(subject):
                await client.publish(subject, body, reply=reply)
                sent[subject] += 1
    await desk.settled()

    after = await desk.stored()
    if identity != KEEPER:
        assert _more(before, after, sent) == []
    meant = {(name, subject) for subject in mine for name in walls.heard_by(subject)}
    if identity in walls.OVER_HTTP:
        # Who looks for services has no name in the subject: what they say of themselves goes into
        # the inbox of anybody who may look.
        meant.add(("cli", "_INBOX_cli.forged"))
    assert {each for each in desk.heard if each not in meant} == set()


def _is_its_own(identity: str, subject: str) -> bool:
    """What it may say by itself, and what it alone hears: it can always talk to itself."""
    return identity in dict(walls.everything())[subject] or identity in walls.heard_by(subject)


def _bodies(subject: str) -> Sequence[bytes]:
    if subject.startswith("$JS.API.CONSUMER.MSG.NEXT"):
        # What there is, which is one message, and then that there is nothing.
        return (b'{"batch":1,"no_wait":true}',) * 2
    if subject.startswith("$JS.API."):
        # With none the keeper of the streams would delete them, as it may.
        return (JUNK,)
    return BODIES


def _more(
    before: Mapping[str, Mapping[str, int]],
    after: Mapping[str, Mapping[str, int]],
    sent: Mapping[str, int],
) -> Sequence[str]:
    """What the streams hold that nobody sent there, or do not hold any more."""
    gone = [
        f"{name}: {each}" for name in before for each in before[name].keys() - after[name].keys()
    ]
    return gone + [
        f"{name}: {subject}"
        for name, held in after.items()
        for subject, count in held.items()
        if count < before[name].get(subject, 0)
        or count > before[name].get(subject, 0) + sent[subject] * _is_kept(name, subject)
    ]


def _is_kept(stream: str, subject: str) -> bool:
    kinds = {"COMMANDS": "cmd", "DECISIONS": "evt", "NOTICES": "ntc", "DEAD_LETTERS": "dlq"}
    return subject.startswith(f"desk.v1.{kinds[stream]}.")


PAIRS = sorted(
    {
        (caller, what.partition(".")[0])
        for rows in (walls.REQUESTS, walls.QUESTIONS)
        for what, callers in rows.items()
        for caller in callers
    }
    | {(looker, name) for looker in walls.OVER_HTTP for name in walls.DESK}
)


@pytest.mark.parametrize("answerer", sorted({answerer for _, answerer in PAIRS}))
async def test_two_stolen_keys_together_publish_no_more_than_each_alone(
    answerer: str, desk: Desk
) -> None:
    """One asks and names the reply subject, the other answers there with what it likes."""
    second = desk.thieves[answerer]
    table = dict(walls.everything())
    before = await desk.stored()
    met: set[str] = set()

    async def answer(message: Msg) -> None:
        if message.reply and "." in message.reply:
            met.add(message.reply)
            for body in (b"", FORGED):
                await message.respond(body)

    chosen = [each for each in TARGETS if not _is_its_own(answerer, each)]
    asked = {
        (caller, subject)
        for caller, whom in PAIRS
        if whom == answerer
        for subject, whose in table.items()
        if caller in whose
        and answerer in walls.heard_by(subject)
        and not subject.startswith(("_INBOX_", "desk.v1.evt."))
    }
    subscriptions = [
        await second.subscribe(subject, cb=answer) for subject in {each for _, each in asked}
    ]
    await desk.settled()
    for reply in chosen:
        for caller, subject in asked:
            if not _is_its_own(caller, reply):
                await desk.clients[caller].publish(subject, FORGED, reply=reply)
    await desk.settled()
    for subscription in subscriptions:
        await subscription.unsubscribe()

    assert met, "nobody was asked anything"
    assert await desk.stored() == before
    meant = {(name, subject) for _, subject in asked for name in walls.heard_by(subject)}
    assert {each for each in desk.heard if each not in meant} == set()


async def test_1a_the_console_does_not_order_by_a_ping_that_it_sends_itself(desk: Desk) -> None:
    console, before = desk.thieves["console"], await desk.stored()

    async def answer(message: Msg) -> None:
        await message.respond(FORGED)

    hears = await console.subscribe("$SRV.PING", cb=answer)
    await console.publish("$SRV.PING", b"", reply=ORDER)
    await desk.settled()
    await hears.unsubscribe()

    assert ORDER in desk.refusals("console")
    assert await desk.stored() == before


async def test_1b_a_user_and_a_thinking_service_do_not_order_together(desk: Desk) -> None:
    sentiment, before = desk.thieves["sentiment"], await desk.stored()

    async def answer(message: Msg) -> None:
        await message.respond(FORGED)

    hears = await sentiment.subscribe("desk.v1.qry.sentiment.providers.user", cb=answer)
    await sentiment.flush()
    await desk.clients["user"].publish("desk.v1.qry.sentiment.providers.user", b"{}", reply=ORDER)
    await desk.settled()
    await hears.unsubscribe()

    assert ORDER in desk.refusals("sentiment")
    assert await desk.stored() == before


@pytest.mark.parametrize("call", [PURGE, DELETE])
@pytest.mark.parametrize(
    ("identity", "asks"), [("mcp", "console.cycles"), ("user", "execution.portfolio")]
)
async def test_1c_an_unreadable_question_neither_purges_nor_deletes_a_stream(
    identity: str, asks: str, call: str, desk: Desk
) -> None:
    before = await desk.stored()

    await desk.clients[identity].publish(f"desk.v1.qry.{asks}.{identity}", JUNK, reply=call)
    await desk.settled()

    assert await desk.stored() == before


async def test_1d_the_read_only_key_makes_nobody_tell_a_decision(desk: Desk) -> None:
    forged = "desk.v1.evt.orchestrator.decision.7"
    before = await desk.stored()

    await desk.clients["mcp"].publish("desk.v1.qry.console.cycles.mcp", JUNK, reply=forged)
    await desk.clients["user"].publish("$SRV.PING", b"", reply=forged)
    await desk.settled()

    assert await desk.stored() == before
    assert [each for each in desk.heard if each[1] == forged] == []


@pytest.mark.parametrize("call", [PURGE, DELETE])
async def test_a_service_does_not_delete_a_stream_by_a_pull_that_nats_answers_with_nothing(
    call: str, desk: Desk
) -> None:
    """What NATS says of an empty consumer has headers and no body, as those calls want it."""
    before = await desk.stored()

    for _ in range(2):
        await desk.clients["trader"].publish(
            "$JS.API.CONSUMER.MSG.NEXT.COMMANDS.trader-picks",
            b'{"batch":1,"no_wait":true}',
            reply=call,
        )
    await desk.settled()

    assert await desk.stored() == before


async def test_an_answer_goes_into_the_askers_inbox(desk: Desk) -> None:
    """The walls let through what they are there for."""
    for caller, asks in (("user", "console.cycles"), ("trader", "orchestrator.claim")):
        client = desk.clients[caller]
        answer = await client.request(f"desk.v1.qry.{asks}.{caller}", b"{}", timeout=5)
        assert answer.headers is not None
