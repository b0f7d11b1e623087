"""Inside one process: the same door as on the wire, for the same identities."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

import pytest
import structlog

from contracts.message import Message
from contracts.operation import Claim, ClaimAnswer, Record, RecordAnswer, Result, ResultAnswer
from contracts.subjects.commands import COMMANDS
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.subject import AGENTS, USERS, AnySubject
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.connection import Client
from libs.bus.local import LocalBus
from libs.bus.operation import Orchestrator
from libs.bus.permissions import CONSOLE, PROVISIONER, permissions
from libs.bus.pull import LocalDelivery, Pull
from libs.bus.server import Server, UnreadableMessage
from libs.bus.streams import COMMAND_STREAM
from tests.integration.bus.conftest import Connect

PATIENCE_S = 20.0
ANSWERS: Mapping[AnySubject, Message] = {
    CLAIM: ClaimAnswer(outcome="granted", epoch=1, lease_s=10.0),
    RECORD: RecordAnswer(outcome="ok", lease_s=10.0),
    RESULT: ResultAnswer(outcome="ok"),
}
ASKED: Mapping[AnySubject, Message] = {
    CLAIM: Claim(op_id=UUID(int=1), instance="here"),
    RECORD: Record(op_id=UUID(int=1), epoch=1),
    RESULT: Result(op_id=UUID(int=1), contract={}),
}
SERVICES = sorted({row.owner for row in COMMANDS})
OTHERS = (*USERS, *AGENTS, CONSOLE, PROVISIONER, "notifier", "study", "nobody", "*", ">")


class Desk:
    """An orchestrator's server and a bus inside the process; what was heard, and from whom."""

    def __init__(self, client: Client) -> None:
        self.heard: list[tuple[str, str]] = []
        self.unreadable: list[UnreadableMessage] = []
        self.bound: list[Mapping[str, object]] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked = asyncio.Event()
        self.server = Server(client, "orchestrators")
        self.local = LocalBus()

    async def serve(self) -> None:
        for row in ANSWERS:

            async def say(caller: str, _: Message, row: AnySubject = row) -> Message:
                self.heard.append((row.what, caller))
                self.asked.set()
                self.bound.append(structlog.contextvars.get_contextvars())
                await self.go_on.wait()
                return ANSWERS[row]

            async def refuse(_: str, refused: UnreadableMessage, row: AnySubject = row) -> Message:
                self.unreadable.append(refused)
                return ANSWERS[row]

            await self.server.serve(row, say, refuse)
        self.local.open(self.server)


@pytest.fixture
async def desk(publisher: Client) -> AsyncIterator[Desk]:
    desk = Desk(publisher)
    await desk.serve()
    await publisher.flush()
    yield desk
    await desk.server.stop()


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row.what)
@pytest.mark.parametrize("identity", [*SERVICES, *OTHERS])
async def test_whoever_may_ask_on_the_wire_may_ask_here_under_its_own_name_and_nobody_else(
    desk: Desk, identity: str, row: AnySubject
) -> None:
    answer = await desk.local.line(identity).ask(row, encode(ASKED[row]))

    if identity in SERVICES:
        assert answer is not None
        assert decode(row.reply, answer) == ANSWERS[row]
        assert desk.heard == [(row.what, identity)]
    else:
        assert answer is None
        assert desk.heard == []


@pytest.mark.parametrize("identity", SERVICES)
def test_a_service_hears_its_own_commands_alone(identity: str) -> None:
    line = LocalBus().line(identity)

    for row in COMMANDS:
        if row.owner == identity:
            line.hear(row, lambda _: True)
        else:
            with pytest.raises(ValueError, match="does not own"):
                line.hear(row, lambda _: True)


@pytest.mark.parametrize(
    "body", [b"{", b'{"op_id": 7}', b'"' + b"x" * 600_000 + b'"', b'{"note": "\\u0000"}']
)
async def test_what_could_not_be_said_on_the_wire_is_refused_here_too(
    desk: Desk, body: bytes
) -> None:
    await desk.local.line("risk").ask(RESULT, body)

    assert desk.heard == []
    assert len(desk.unreadable) == 1
    with pytest.raises(MessageInvalid):
        decode(Result, body)


async def test_without_an_orchestrator_in_the_process_the_wire_is_used(
    desk: Desk, connected: Connect
) -> None:
    client = await connected("risk")
    asking = Orchestrator(client, "risk", PATIENCE_S, desk.local.line("risk"))
    sent = client.stats["out_msgs"]
    await asking.result(Result(op_id=UUID(int=1), contract={}))
    assert client.stats["out_msgs"] == sent, "it was said over NATS"

    desk.local.close()
    await asking.result(Result(op_id=UUID(int=1), contract={}))

    assert client.stats["out_msgs"] == sent + 1
    assert desk.heard == [("result", "risk")] * 2


async def test_who_is_stopped_while_it_asks_has_said_it_all_the_same(desk: Desk) -> None:
    desk.go_on.clear()
    asking = asyncio.create_task(desk.local.line("risk").ask(RECORD, encode(ASKED[RECORD])))
    await desk.asked.wait()
    asking.cancel()
    await asyncio.wait({asking})
    assert asking.cancelled()

    tasks = list(desk.server._tasks)
    desk.go_on.set()

    assert [await task for task in tasks] == [encode(ANSWERS[RECORD])]


async def test_the_answer_has_a_context_of_its_own(desk: Desk) -> None:
    with structlog.contextvars.bound_contextvars(op_id="the asker's"):
        await desk.local.line("risk").ask(RESULT, encode(ASKED[RESULT]))

    assert "op_id" not in desk.bound[0]


@pytest.mark.usefixtures("provisioner")
async def test_a_command_is_taken_while_a_worker_is_free_and_none_while_the_service_stops(
    connected: Connect,
) -> None:
    row = COMMANDS[0]
    go_on, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def work(_: object = None) -> None:
        begun.release()
        await go_on.wait()

    pull = Pull(await connected(row.owner), COMMAND_STREAM, row.durable, work, 2, 1)
    await pull.start()
    local = LocalBus()
    local.line(row.owner).hear(row, lambda _: pull.take(work))
    handed = LocalDelivery(b"{}", "")

    assert [local.hand_over(row.owner, row.what, handed) for _ in range(3)] == [True, True, False]
    assert not local.hand_over("nobody", row.what, handed)
    async with asyncio.timeout(PATIENCE_S):
        await begun.acquire()
        await begun.acquire()
    go_on.set()
    await pull.drain(PATIENCE_S)
    assert not local.hand_over(row.owner, row.what, handed)


def test_every_identity_of_the_desk_is_in_the_matrix() -> None:
    assert {*SERVICES, *OTHERS} >= set(permissions()) - {"orchestrator"}
