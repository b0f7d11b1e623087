"""Dead letters, from the message nobody can use to what a person is shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats.aio.client
import pytest
from nats.js.api import ConsumerConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from contracts.risk import PickReview
from contracts.subjects.commands import REVIEW_PICKS
from contracts.subjects.upkeep import DEAD_LETTERS
from contracts.upkeep import DeadLetter, DeadLettersQuery
from libs.bus.client import Client
from libs.bus.connection import connect
from libs.bus.dead_letters import BODY_CHARS_MAX, DeadLetters, readable
from libs.bus.permissions import PROVISIONER
from libs.bus.route import Routes, on_command
from libs.bus.service import ServiceRunner
from libs.bus.streams import COMMAND_STREAM, DEAD_LETTER_STREAM
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from tests.integration.console.over_http import client_of, serving

WAIT_S = 20
SUBJECT = "desk.v1.cmd.risk.review"


@asynccontextmanager
async def _as(identity: str, servers: Servers) -> AsyncIterator[nats.aio.client.Client]:
    connection = await connect(servers.nats_url, identity, servers.secrets_dir)
    yield connection
    await connection.close()


@pytest.fixture
async def arrivals(servers: Servers) -> AsyncIterator[JetStreamContext.PullSubscription]:
    """What reaches the dead-letter stream from now on."""
    async with _as(PROVISIONER, servers) as connection:
        subscription = await connection.jetstream().pull_subscribe(
            "", stream=DEAD_LETTER_STREAM, config=ConsumerConfig(deliver_policy="new")
        )
        yield subscription


async def _publish(servers: Servers, subject: str, body: bytes, **headers: str) -> None:
    async with _as("orchestrator", servers) as connection:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        await connection.publish(subject, body, headers=given)
        await connection.flush()


async def _newest(client: Client, limit: int = 20) -> tuple[DeadLetter, ...]:
    page = await client.ask(DEAD_LETTERS, DeadLettersQuery(limit=limit))
    return page.letters


async def _one(client: Client, sequence: int) -> DeadLetter:
    page = await client.ask(DEAD_LETTERS, DeadLettersQuery(sequence=sequence))
    return page.letters[0]


async def test_a_letter_shows_who_sent_it_why_it_is_dead_and_its_body(
    client: Client, servers: Servers, arrivals: JetStreamContext.PullSubscription
) -> None:
    why = {"Desk_Error": "büdget: Extra inputs", "Desk_Code": "invalid", "Desk_From": "user"}
    await _publish(servers, "desk.v1.dlq.orchestrator.request", b"{oops", **why)
    await arrivals.fetch(1, timeout=WAIT_S)

    listed = (await _newest(client, 1))[0]
    letter = await _one(client, listed.sequence)

    assert listed.failure.code == "invalid"
    assert listed.failure.message == "from user: büdget: Extra inputs"
    assert (listed.size_bytes, listed.body) == (5, None)
    assert letter.body == "{oops"


async def test_a_body_of_any_bytes_can_be_shown(
    client: Client, servers: Servers, arrivals: JetStreamContext.PullSubscription
) -> None:
    await _publish(servers, "desk.v1.dlq.orchestrator.request", b"a\x00b\xff", Desk_Code="invalid")
    await arrivals.fetch(1, timeout=WAIT_S)

    letter = await _one(client, (await _newest(client, 1))[0].sequence)

    assert letter.body == "a␀b�"


async def test_letters_come_newest_first_and_no_more_than_asked_for(
    client: Client, servers: Servers, arrivals: JetStreamContext.PullSubscription
) -> None:
    for number in range(3):
        await _publish(servers, "desk.v1.dlq.orchestrator.request", b"x" * (number + 1))
    for _ in range(3):
        await arrivals.fetch(1, timeout=WAIT_S)

    assert [letter.size_bytes for letter in await _newest(client, 2)] == [3, 2]


async def test_a_number_without_a_letter_gives_none(client: Client) -> None:
    query = DeadLettersQuery(sequence=1_000_000)
    page = await client.ask(DEAD_LETTERS, query)

    assert page.letters == ()


async def test_a_command_that_its_service_cannot_read_is_told_once(
    client: Client,
    servers: Servers,
    settings: Settings,
    arrivals: JetStreamContext.PullSubscription,
) -> None:
    """The service writes a letter and ends the delivery; the server then reports that end too."""
    route = on_command(REVIEW_PICKS, _never)
    runner = ServiceRunner(Routes("risk", (route,)), servers.nats_url, settings)
    await runner.start()
    await _publish(servers, SUBJECT, b'{"unreadable": "here"}')
    both = [(await arrivals.fetch(1, timeout=WAIT_S))[0].subject for _ in range(2)]
    await runner.stop()

    letters = [each for each in await _newest(client) if each.size_bytes == 22]

    assert any("MSG_TERMINATED" in subject for subject in both)
    assert [letter.subject for letter in letters] == ["desk.v1.dlq.risk.review"]
    assert letters[0].failure.code == "invalid"


async def test_a_command_delivered_too_often_is_found_with_its_body(
    client: Client, servers: Servers, arrivals: JetStreamContext.PullSubscription
) -> None:
    async with _as(PROVISIONER, servers) as connection:
        jetstream = connection.jetstream()
        impatient = await jetstream.pull_subscribe(
            SUBJECT,
            durable="impatient",
            stream=COMMAND_STREAM,
            config=ConsumerConfig(deliver_policy="new", ack_wait=0.2, max_deliver=1),
        )
        await _publish(servers, SUBJECT, b'{"poison": 1}')
        await impatient.fetch(1, timeout=WAIT_S)
        advisory = (await arrivals.fetch(1, timeout=WAIT_S))[0]
        await jetstream.delete_consumer(COMMAND_STREAM, "impatient")

    letter = await _one(client, (await _newest(client, 1))[0].sequence)

    assert "MAX_DELIVERIES" in advisory.subject
    assert letter.failure.code == "undeliverable"
    assert "impatient: given up after 1 deliveries" in letter.failure.message
    assert letter.body == '{"poison": 1}'


def test_a_long_body_is_cut_and_says_by_how_much() -> None:
    text = readable(b"x" * (BODY_CHARS_MAX + 1_234))

    assert len(text) < BODY_CHARS_MAX + 40
    assert text.endswith("… 1,234 more bytes")


async def _never(*_: object) -> PickReview:
    raise AssertionError("an unreadable command must not reach the handler")


async def test_the_first_page_comes_also_while_there_is_no_stream_of_letters(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: DeadLetters, __: int) -> None:
        raise NotFoundError(description="stream not found")

    monkeypatch.setattr(DeadLetters, "newest", gone)
    async with serving(settings) as url, client_of(url) as http:
        answer = await http.get("/")

    assert answer.status_code == 200
    assert "dead letters cannot be counted" in answer.text
