"""Dead letters on a running desk: sent again, thrown away, and by whom."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from nats.aio.client import Client
from nats.js.api import ConsumerConfig
from nats.js.client import JetStreamContext

from libs.bus.connection import connect
from libs.bus.permissions import PROVISIONER
from libs.bus.streams import DEAD_LETTER_STREAM
from libs.runtime import ids
from tests.integration.desk.caller import Caller, Json, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

WAIT_S = 20.0
STRANGERS = ("trader", "exit_signal", "execution", "provisioner")


@pytest.fixture
async def arrivals(desk: Desk) -> AsyncIterator[JetStreamContext.PullSubscription]:
    """What reaches the dead-letter stream from now on."""
    client: Client = await connect(desk.url, PROVISIONER, desk.secrets_dir)
    yield await client.jetstream().pull_subscribe(
        "", stream=DEAD_LETTER_STREAM, config=ConsumerConfig(deliver_policy="new")
    )
    await client.close()


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


class Letter:
    """Writes letters as the trader does, and tells their numbers."""

    def __init__(self, desk: Desk, arrivals: JetStreamContext.PullSubscription) -> None:
        self._desk = desk
        self._arrivals = arrivals

    async def about(self, body: bytes) -> int:
        async with self._desk.calling("trader") as trader:
            await trader.nats.publish(
                "desk.v1.dlq.trader.picks", body, headers={"Desk-Code": "invalid"}
            )
            await trader.nats.flush()
        return await self.arrived()

    async def arrived(self) -> int:
        message = (await self._arrivals.fetch(1, timeout=WAIT_S))[0]
        return int(message.metadata.sequence.stream)


@pytest.fixture
def letter(desk: Desk, arrivals: JetStreamContext.PullSubscription) -> Letter:
    return Letter(desk, arrivals)


def naming(op_id: UUID) -> bytes:
    return json.dumps({"op_id": str(op_id), "torn": True}).encode()


async def deciding(user: Caller) -> UUID:
    """A new cycle that has come to its trader; the trader's operation."""
    cycle_id = await user.accepted(wish())
    await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
    return ids.operation_id(UUID(cycle_id), "rules", "deciding", "picks", 1)


async def retry(caller: Caller, sequence: int) -> Json:
    return await caller.ask({"sequence": sequence}, "retry_letter")


async def sendings(desk: Desk, op_id: UUID) -> int:
    async with desk.postgres() as db:
        found: int = await db.fetchval("select sends from operations where op_id = $1", op_id)
        return found


async def test_a_retry_sends_the_open_operations_own_command(
    desk: Desk, user: Caller, letter: Letter
) -> None:
    async with desk.held_back("trader-picks"):
        op_id = await deciding(user)
        number = await letter.about(naming(op_id))
        before = await sendings(desk, op_id)

        answer = await retry(user, number)

        assert (answer["outcome"], answer["op_id"]) == ("accepted", str(op_id))
        assert await sendings(desk, op_id) > before
    said = await user.events.first(type="letter_retried", cycle_id=answer["cycle_id"])
    assert (said["data"]["sequence"], said["data"]["by"]) == (number, "user")
    assert (await user.ended(answer["cycle_id"]))["status"] == "completed"
    kept = await user.query("dead_letters", sequence=number)
    assert len(kept["letters"]) == 1


async def test_a_retry_of_an_ended_operation_sends_nothing(
    desk: Desk, user: Caller, letter: Letter
) -> None:
    view = await user.run(wish())
    op_id = ids.operation_id(UUID(view["cycle_id"]), "rules", "deciding", "picks", 1)
    before = await sendings(desk, op_id)

    answer = await retry(user, await letter.about(naming(op_id)))

    assert (answer["outcome"], answer["code"]) == ("rejected", "ended")
    assert "completed" in answer["message"]
    assert await sendings(desk, op_id) == before


async def test_a_retry_leaves_work_alone_that_somebody_does(
    desk: Desk, user: Caller, letter: Letter
) -> None:
    async with desk.held_back("trader-picks"):
        op_id = await deciding(user)
        number = await letter.about(naming(op_id))
        async with desk.calling("trader") as trader:
            claim = {"op_id": str(op_id), "instance": "test"}
            granted = await trader.query("claim", "orchestrator", **claim)

            answer = await retry(user, number)

            failure = {"code": "given_up", "message": "the test ends it"}
            end = {"op_id": str(op_id), "epoch": granted["epoch"], "failure": failure}
            await trader.query("result", "orchestrator", **end)

    assert (answer["outcome"], answer["code"]) == ("rejected", "at_work")


async def test_a_retry_sends_no_proposal_that_a_person_is_to_answer(
    desk: Desk, user: Caller, letter: Letter
) -> None:
    cycle_id = await user.accepted(wish(approval_required=True))
    await user.events.first(cycle_id=cycle_id, type="approval_requested")
    (asked,) = (await user.query("approvals", cycle_id=cycle_id))["approvals"]
    op_id = UUID(asked["op_id"])
    before = await sendings(desk, op_id)

    answer = await retry(user, await letter.about(naming(op_id)))

    assert (answer["outcome"], answer["code"]) == ("rejected", "waits_for_person")
    assert "deskbus approvals list" in answer["message"]
    assert await sendings(desk, op_id) == before
    assert (await user.ask({"cycle_id": cycle_id}, "cancel"))["outcome"] == ("accepted")


async def test_an_unreadable_request_is_never_sent_again_and_the_answer_says_what_to_do(
    user: Caller, letter: Letter
) -> None:
    await user.ask(b"{torn")

    answer = await retry(user, await letter.arrived())

    assert (answer["outcome"], answer["code"]) == ("rejected", "not_a_command")
    assert "only its sender can send" in answer["message"]


@pytest.mark.parametrize("body", [b"{torn", b"[1]", naming(UUID(int=7)), b'{"op_id": 7}'])
async def test_a_letter_without_a_known_operation_cannot_be_sent_again(
    body: bytes, user: Caller, letter: Letter
) -> None:
    answer = await retry(user, await letter.about(body))

    assert (answer["outcome"], answer["code"]) == ("rejected", "no_operation")


async def test_a_discarded_letter_is_gone_and_the_event_says_who_and_why(
    user: Caller, letter: Letter
) -> None:
    number = await letter.about(b"{torn")

    answer = await user.ask({"sequence": number, "reason": "a test"}, "discard_letter")
    again = await user.ask({"sequence": number}, "discard_letter")

    assert (answer["outcome"], again["code"]) == ("accepted", "not_found")
    assert (await user.query("dead_letters", sequence=number))["letters"] == []
    said = (await user.events.first(type="letter_discarded"))["data"]
    assert (said["sequence"], said["by"], said["reason"]) == (number, "user", "a test")


async def test_the_servers_word_on_a_discarded_letter_goes_with_it(
    desk: Desk, user: Caller, letter: Letter
) -> None:
    body = json.dumps({"unreadable": uuid4().hex}).encode()
    async with desk.calling("orchestrator") as forger:
        await forger.nats.publish("desk.v1.cmd.risk.review", body)
    both = [await letter.arrived(), await letter.arrived()]
    listed = [each["sequence"] for each in await newest(user)]
    (shown,) = set(both) & set(listed)

    await user.ask({"sequence": shown}, "discard_letter")

    assert not set(both) & {each["sequence"] for each in await newest(user)}


async def newest(user: Caller) -> list[Any]:
    found: list[Any] = (await user.query("dead_letters", limit=20))["letters"]
    return found


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("what", ["retry_letter", "discard_letter"])
async def test_no_part_of_the_desk_touches_letters_not_even_in_a_users_name(
    stranger: str, what: str, desk: Desk, user: Caller, letter: Letter
) -> None:
    number = await letter.about(b"{torn")
    async with desk.calling(stranger) as caller:
        for name in (stranger, "user"):
            caller.was_refused.clear()
            subject = f"desk.v1.req.orchestrator.{what}.{name}"
            await caller.nats.publish(subject, json.dumps({"sequence": number}).encode())
            async with asyncio.timeout(WAIT_S):
                await caller.was_refused.wait()

    assert len((await user.query("dead_letters", sequence=number))["letters"]) == 1


async def test_on_the_command_line(user: Caller, letter: Letter, deskbus: CommandLine) -> None:
    number = await letter.about(b"{torn")

    # Not on the loop's thread: NATS gives up whoever does not answer its pings for some seconds.
    typed = (
        f"dlq retry {number}",
        "dlq retry 1000000 --json",
        *(f"dlq {command} 99999999999999999999" for command in ("show", "retry", "discard")),
        f"dlq discard {number} --reason cleaned-up --json",
        f"dlq discard {number} --reason {'x' * 401}",
    )
    said = [await asyncio.to_thread(deskbus, each) for each in typed]
    refused, missing, *beyond, done, wrong = said

    assert (refused.code, refused.out, "no_operation" in refused.err) == (4, "", True)
    assert (missing.code, missing.out) == (3, "")
    for each in beyond:
        assert each.code == 3
        assert "dead letter 99999999999999999999 does not exist" in each.err
    assert (done.code, done.rows[0]["outcome"]) == (0, "accepted")
    assert wrong.code == 2
    event = (await user.events.first(type="letter_discarded"))["data"]
    assert (event["by"], event["reason"]) == ("cli", "cleaned-up")
