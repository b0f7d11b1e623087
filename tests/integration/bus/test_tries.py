"""What a service does with a command that it cannot answer: an outage is waited for, in place."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import nats.errors
import orjson
import pytest

from contracts.account import OpenBooks
from contracts.cycle import CycleRequest
from contracts.message import Command, Contract, Message, Pipeline
from contracts.operation import (
    CallKind,
    Claim,
    ClaimAnswer,
    Record,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.sentiment import BuildDigest
from contracts.subjects.commands import COMMANDS
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from libs.bus import pull
from libs.bus import service as service_module
from libs.bus.connection import Client
from libs.bus.permissions import PROVISIONER
from libs.bus.route import Routes, on_command
from libs.bus.server import Server
from libs.bus.service import DEFECTS_MAX, ServiceRunner
from libs.bus.streams import COMMAND_STREAM, DELIVERIES_MAX
from libs.market.errors import SourceUnavailable
from libs.postgres.pool import DatabaseUnavailable
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.settings import Settings
from tests.integration.bus.conftest import Connect
from tests.integration.own_servers import OwnServers

ROWS = {row.message: row for row in COMMANDS if row.message in {OpenBooks, BuildDigest}}
PATIENCE_S = 20.0

pytestmark = pytest.mark.usefixtures("provisioner")

Start = Callable[["Tried", type[Command]], "asyncio.Future[ServiceRunner]"]


class Done(Contract):
    """What the handler answers."""


class Tried:
    """A handler that raises what it is given, one after the other, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.tries = 0

    async def __call__(self, command: Command, _: Journal) -> Contract:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return Done.of(command)


class Orchestrator:
    """Grants every claim, and keeps the results."""

    def __init__(self) -> None:
        self.results: asyncio.Queue[Result] = asyncio.Queue()
        self.claims = 0
        self.steps: list[str] = []
        self.recorded = 0

    async def claim(self, _: str, message: Message) -> Message:
        assert isinstance(message, Claim)
        self.claims += 1
        return ClaimAnswer(outcome="granted", epoch=1, lease_s=10.0)

    async def record(self, _: str, message: Message) -> Message:
        assert isinstance(message, Record)
        self.recorded += len(message.entries)
        if message.progress is not None:
            self.steps.append(message.progress.step)
        return RecordAnswer(outcome="ok", lease_s=10.0)

    async def result(self, _: str, message: Message) -> Message:
        assert isinstance(message, Result)
        self.results.put_nowait(message)
        return ResultAnswer(outcome="ok")

    async def told(self) -> Result:
        return await asyncio.wait_for(self.results.get(), PATIENCE_S)


@pytest.fixture
async def orchestrator(publisher: Client) -> AsyncIterator[Orchestrator]:
    found, server = Orchestrator(), Server(publisher, "orchestrators")
    await server.serve(CLAIM, found.claim)
    await server.serve(RECORD, found.record)
    await server.serve(RESULT, found.result)
    await publisher.flush()
    yield found
    await server.stop()


@pytest.fixture
async def start(
    servers: OwnServers, monkeypatch: pytest.MonkeyPatch, publisher: Client
) -> AsyncIterator[Start]:
    """Begins a service with one handler; stops it in the end."""
    monkeypatch.setattr(service_module, "RETRY_DELAY_S", 0.01)
    monkeypatch.setattr(service_module, "RETRY_DELAY_S_MAX", 0.02)
    async with AsyncExitStack() as stack:

        async def begin(handle: Tried, hears: type[Command]) -> ServiceRunner:
            row = ROWS[hears]
            routes = Routes(row.owner, commands=(on_command(row, handle),))
            settings = Settings(secrets_dir=servers.secrets_dir)
            runner = ServiceRunner(routes, servers.nats_url, settings)
            await runner.start()
            stack.push_async_callback(runner.stop)
            return runner

        yield lambda handle, hears: asyncio.ensure_future(begin(handle, hears))


async def sent(publisher: Client, message: type[Command]) -> UUID:
    """Publish a command; its operation."""
    request = CycleRequest(idempotency_key=uuid4().hex, as_of=date(2012, 6, 29))
    command = message(
        cycle_id=uuid4(),
        op_id=uuid4(),
        as_of=date(2012, 6, 29),
        now=datetime.now(UTC),
        pipeline=Pipeline(name="rules"),
        state="state",
        step="step",
        workflow_version=1,
        seed=1,
        request=request,
    )
    await publisher.publish(ROWS[message].address, orjson.dumps(command.model_dump(mode="json")))
    return command.op_id


async def deliveries(provisioning: Client, message: type[Command]) -> int:
    """How often anything was delivered to a service so far."""
    info = await provisioning.jsm().consumer_info(COMMAND_STREAM, ROWS[message].durable)
    assert info.delivered is not None
    return info.delivered.consumer_seq


@pytest.fixture
def acknowledgements(publisher: Client, monkeypatch: pytest.MonkeyPatch) -> "asyncio.Queue[bytes]":
    """What services say to NATS of their messages: empty where one is dealt with."""
    kind, found = type(publisher), asyncio.Queue[bytes]()
    publish = kind.publish

    async def noted(self: Client, subject: str, payload: bytes = b"", **more: Any) -> None:
        if subject.startswith("$JS.ACK"):
            found.put_nowait(payload)
        await publish(self, subject, payload, **more)

    monkeypatch.setattr(kind, "publish", noted)
    return found


OUTAGES = (
    DatabaseUnavailable("Postgres is away"),
    ConnectionRefusedError("refused"),
    TimeoutError("no answer"),
    SourceUnavailable("prices of AAPL", "HTTP 500"),
    nats.errors.NoRespondersError(),
)


@pytest.mark.parametrize("message", [OpenBooks, BuildDigest])
async def test_an_outage_longer_than_all_deliveries_is_waited_for_and_uses_up_none(
    publisher: Client,
    orchestrator: Orchestrator,
    start: Start,
    connected: Connect,
    message: type[Command],
) -> None:
    provisioning = await connected(PROVISIONER)
    before = await deliveries(provisioning, message)
    handler = Tried(*OUTAGES * DELIVERIES_MAX)
    await start(handler, message)
    op_id = await sent(publisher, message)
    result = await orchestrator.told()

    assert (result.op_id, result.failure) == (op_id, None)
    assert handler.tries == len(OUTAGES) * DELIVERIES_MAX + 1
    assert orchestrator.claims == (message is BuildDigest)
    assert await deliveries(provisioning, message) == before + 1


async def test_what_an_operation_waits_for_can_be_seen(
    publisher: Client, orchestrator: Orchestrator, start: Start
) -> None:
    handler = Tried(SourceUnavailable("prices of AAPL", "HTTP 500"))
    await start(handler, BuildDigest)
    await sent(publisher, BuildDigest)
    assert (await orchestrator.told()).failure is None
    assert orchestrator.steps == [
        "waits: no answer for prices of AAPL: HTTP 500; try again later, or replay recorded data"
    ]


async def test_a_defect_of_a_plain_command_is_a_failure_after_its_tries(
    publisher: Client, orchestrator: Orchestrator, start: Start
) -> None:
    handler = Tried(*[ZeroDivisionError("defect")] * 9)
    await start(handler, OpenBooks)
    await sent(publisher, OpenBooks)
    result = await orchestrator.told()

    assert result.failure is not None
    assert result.failure.code == "internal_error"
    assert handler.tries == DEFECTS_MAX


async def test_outages_between_them_do_not_count_as_tries(
    publisher: Client, orchestrator: Orchestrator, start: Start
) -> None:
    defect, outage = ZeroDivisionError("defect"), ConnectionResetError("away")
    handler = Tried(outage, defect, outage, outage, defect, outage, outage)
    await start(handler, OpenBooks)
    await sent(publisher, OpenBooks)
    assert (await orchestrator.told()).failure is None


async def test_a_refusal_is_the_answer_at_once(
    publisher: Client, orchestrator: Orchestrator, start: Start
) -> None:
    handler = Tried(DeskError("no"))
    await start(handler, OpenBooks)
    await sent(publisher, OpenBooks)
    result = await orchestrator.told()
    assert result.failure is not None
    assert (result.failure.code, handler.tries) == ("desk_error", 1)


async def test_a_command_that_the_sweep_sends_again_is_not_worked_on_twice(
    publisher: Client,
    orchestrator: Orchestrator,
    start: Start,
    acknowledgements: "asyncio.Queue[bytes]",
) -> None:
    gate, began = asyncio.Event(), asyncio.Event()

    class Slow(Tried):
        async def __call__(self, command: Command, _: Journal) -> Contract:
            self.tries += 1
            began.set()
            await gate.wait()
            return Done.of(command)

    handler = Slow()
    await start(handler, OpenBooks)
    await sent(publisher, OpenBooks)
    await asyncio.wait_for(began.wait(), PATIENCE_S)
    body = await publisher.jsm().get_last_msg(COMMAND_STREAM, ROWS[OpenBooks].address)
    await publisher.publish(ROWS[OpenBooks].address, body.data or b"")
    # The second one is acknowledged; the first one waits for its answer.
    assert await asyncio.wait_for(acknowledgements.get(), PATIENCE_S) == b""
    gate.set()
    await orchestrator.told()
    assert handler.tries == 1
    assert orchestrator.results.empty()


async def test_a_command_that_takes_long_is_not_delivered_again(
    publisher: Client,
    orchestrator: Orchestrator,
    start: Start,
    acknowledgements: "asyncio.Queue[bytes]",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pull, "ACK_WAIT_S", 0.03)
    gate = asyncio.Event()

    class Slow(Tried):
        async def __call__(self, command: Command, _: Journal) -> Contract:
            await gate.wait()
            return Done.of(command)

    await start(Slow(), OpenBooks)
    await sent(publisher, OpenBooks)
    assert await asyncio.wait_for(acknowledgements.get(), PATIENCE_S) == b"+WPI"
    gate.set()
    assert (await orchestrator.told()).failure is None


class Looks(Tried):
    """Reads once, free of charge, then answers or refuses. `chars` is the size of what it reads."""

    def __init__(self, chars: int, *errors: DeskError) -> None:
        super().__init__()
        self._chars = chars
        self._errors = list(errors)

    async def __call__(self, command: Command, journal: Journal) -> Contract:
        async def read() -> Reply:
            return Reply("x" * self._chars)

        await journal.call(Call(CallKind.READ, "look", {}, read))
        if self._errors:
            raise self._errors.pop(0)
        return Answered.of(command, text="y" * self._chars)


class Answered(Contract):
    """A contract of any size."""

    text: str


@pytest.mark.parametrize("errors", [(), (DeskError("no"),)])
async def test_free_calls_of_a_claim_travel_with_its_result(
    publisher: Client, orchestrator: Orchestrator, start: Start, errors: tuple[DeskError, ...]
) -> None:
    await start(Looks(10, *errors), BuildDigest)
    await sent(publisher, BuildDigest)

    result = await orchestrator.told()

    assert [entry.name for entry in result.entries] == ["look"]
    assert (result.failure is None) == (not errors)
    assert orchestrator.recorded == 0


async def test_calls_that_do_not_fit_beside_the_result_are_recorded_before_it(
    publisher: Client, orchestrator: Orchestrator, start: Start
) -> None:
    await start(Looks(300_000), BuildDigest)
    await sent(publisher, BuildDigest)

    result = await orchestrator.told()

    assert result.entries == ()
    assert result.failure is None
    assert orchestrator.recorded == 1


async def test_a_plain_command_has_no_calls_to_tell(
    publisher: Client, orchestrator: Orchestrator, start: Start
) -> None:
    await start(Looks(10), OpenBooks)
    await sent(publisher, OpenBooks)

    assert (await orchestrator.told()).entries == ()
