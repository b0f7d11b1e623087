"""Junk from one key: little of it is held, others are answered, nobody's letters are pushed out."""

import asyncio

import pytest

from contracts.cycle import RequestAnswer
from contracts.message import Message
from contracts.subjects.cycles import CANCEL_CYCLE, REQUEST_CYCLE
from contracts.types import Failure
from libs.bus.codec import MessageInvalid
from libs.bus.dead_letters import REASON_CHARS_MAX, DeadLetters
from libs.bus.publisher import Publisher
from libs.bus.server import UNREADABLE_BYTES_KEPT, Server, UnreadableMessage
from libs.bus.streams import LETTERS_KEPT_MAX
from tests.integration.bus.conftest import Connect

REQUESTS = 60
REQUEST_BYTES = 900_000
CANCEL = b'{"cycle_id":"12345678-1234-4234-8234-123456789abc","reason":"enough"}'


@pytest.mark.usefixtures("provisioner")
async def test_a_flood_of_large_junk_is_held_in_part_and_a_cancel_is_answered(
    connected: Connect,
) -> None:
    orchestrator, user, cli = [await connected(name) for name in ("orchestrator", "user", "cli")]
    held: list[UnreadableMessage] = []
    gate = asyncio.Event()

    async def answer(_caller: str, _message: Message) -> Message:
        return RequestAnswer(outcome="accepted")

    async def refuse(_caller: str, unreadable: UnreadableMessage) -> Message:
        held.append(unreadable)
        await gate.wait()
        return RequestAnswer(outcome="rejected", code="invalid")

    server = Server(orchestrator, "orchestrators")
    await server.serve(REQUEST_CYCLE, answer, refuse)
    await server.serve(CANCEL_CYCLE, answer, refuse)
    await orchestrator.flush()
    inbox, answers = user.new_inbox(), asyncio.Semaphore(0)

    async def answered(_message: object) -> None:
        answers.release()

    await user.subscribe(inbox, cb=answered)
    async with asyncio.timeout(60):
        for number in range(REQUESTS):
            body = b"%d" % number + b"x" * REQUEST_BYTES
            await user.publish(REQUEST_CYCLE.by("user"), body, reply=inbox)
        await user.flush(60)
        cancelled = await cli.request(CANCEL_CYCLE.by("cli"), CANCEL, timeout=30)
        assert b"accepted" in cancelled.data
        gate.set()
        for _ in range(REQUESTS):
            await answers.acquire()
    await server.stop()

    assert {len(each.body) for each in held} == {UNREADABLE_BYTES_KEPT}
    assert all(each.size_bytes > REQUEST_BYTES for each in held)


def _junk(number: int) -> UnreadableMessage:
    body = b"junk %d" % number
    return UnreadableMessage(body, len(body), MessageInvalid("body: not JSON"))


@pytest.mark.usefixtures("provisioner")
async def test_the_letters_of_one_sender_push_out_its_own_and_nobody_elses(
    connected: Connect,
) -> None:
    orchestrator = await connected("orchestrator")
    publisher = Publisher(orchestrator)
    manager = (await connected("provisioner")).jsm()
    await manager.purge_stream("DEAD_LETTERS")
    why = Failure(code="invalid", message="body: not JSON")

    await publisher.dead_letter("request", _junk(0), why, "cli")
    for number in range(LETTERS_KEPT_MAX + 20):
        await publisher.dead_letter("request", _junk(number), why, "user")

    info = await manager.stream_info("DEAD_LETTERS", subjects_filter=">")
    assert info.state.subjects == {
        "desk.v1.dlq.orchestrator.request.cli": 1,
        "desk.v1.dlq.orchestrator.request.user": LETTERS_KEPT_MAX,
    }


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Desk-Cut", "many"),
        ("Desk-Cut", "9" * 5_000),
        ("Desk-Cut", "-1"),
        ("Desk-Error", "x" * 20_000),
        ("Desk-From", "x" * 20_000),
        ("Desk-Code", "x" * 20_000),
    ],
)
@pytest.mark.usefixtures("provisioner")
async def test_a_letter_is_read_whatever_its_sender_has_written_into_its_headers(
    connected: Connect, header: str, value: str
) -> None:
    research, orchestrator = await connected("research"), await connected("orchestrator")
    letters = DeadLetters(orchestrator)
    before = await letters.last()

    stream = research.jetstream()
    await stream.publish("desk.v1.dlq.research.plan", b"{}", headers={header: value})

    (letter,) = await letters.between(before + 1, await letters.last())
    assert (letter.subject, letter.size_bytes) == ("desk.v1.dlq.research.plan", 2)
    assert len(letter.failure.message) <= REASON_CHARS_MAX
    assert [one.sequence for one in await letters.newest(1)] == [letter.sequence]
