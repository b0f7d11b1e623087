"""Messages from somebody who may not send them, or that no honest service would send."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from libs.runtime import ids
from tests.integration.desk.caller import Caller, Json, picked, wish
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

REFUSAL_S = 10.0
LETTER_S = 30.0
ENTRY = {
    "index": 0,
    "kind": "tool",
    "name": "get_stock_price",
    "request_sha256": "0" * 64,
    "request": {},
    "reply": {"price": 1},
}


@asynccontextmanager
async def waiting_for_the_trader(desk: Desk, user: Caller) -> AsyncIterator[UUID]:
    """A cycle that waits for its trader while the block runs; the trader's operation."""
    async with desk.held_back("trader-picks"):
        cycle_id = await user.accepted(wish())
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
        yield ids.operation_id(UUID(cycle_id), "rules", "deciding", "picks", 1)
    await user.ended(cycle_id)


async def told(service: Caller, what: str, **fields: object) -> Json:
    return await service.query(what, "orchestrator", **fields)


async def test_nobody_claims_records_or_answers_anothers_operation(
    desk: Desk, user: Caller
) -> None:
    async with waiting_for_the_trader(desk, user) as op_id, desk.calling("risk") as risk:
        forged = {
            "claim": {"instance": "evil"},
            "record": {"epoch": 1, "entries": [ENTRY]},
            "result": {"epoch": 1, "contract": {"picks": []}},
        }
        for what, fields in forged.items():
            for _ in range(3):
                answer = await told(risk, what, op_id=str(op_id), **fields)
                assert answer["outcome"] == "forbidden"

    refused = [e for e in user.events.heard if e["type"] == "message_refused"]
    assert [e["data"] for e in refused] == [
        {"step": "picks", "service": "risk", "what": what, "owner": "trader"} for what in forged
    ]
    cycle_id = refused[0]["cycle_id"]
    assert (await user.ended(cycle_id))["status"] == "completed"
    detail = await user.query("operation", op_id=str(op_id))
    assert (detail["operation"]["epoch"], detail["operation"]["status"]) == (1, "completed")
    assert all(entry["request_sha256"] != "0" * 64 for entry in detail["journal"])


FORBIDDEN = [
    ("risk", "desk.v1.qry.orchestrator.result.trader"),
    ("risk", "desk.v1.qry.orchestrator.claim.trader"),
    ("risk", "desk.v1.cmd.execution.execute"),
    ("risk", "desk.v1.req.orchestrator.cycle.user"),
    ("risk", "desk.v1.evt.orchestrator.decision.x"),
    ("research", "desk.v1.ctl.trader.cancel"),
    ("trader", "desk.v1.dlq.risk.review"),
    ("sentiment", "$JS.API.STREAM.DELETE.COMMANDS"),
    ("execution", "desk.v1.evt.execution.order_filled.x"),
    ("console", "desk.v1.req.orchestrator.cycle.cli"),
    ("console", "desk.v1.req.orchestrator.discard_letter.user"),
    ("console", "$JS.API.STREAM.LIST"),
    ("console", "$JS.API.STREAM.MSG.DELETE.DEAD_LETTERS"),
    ("console", "$JS.API.CONSUMER.DELETE.COMMANDS.risk-review"),
    ("user", "desk.v1.req.orchestrator.cycle.cli"),
    ("user", "desk.v1.qry.orchestrator.claim.user"),
    ("user", "desk.v1.qry.orchestrator.result.execution"),
    ("user", "desk.v1.cmd.execution.execute"),
    ("user", "desk.v1.evt.orchestrator.cycle_ended.x"),
    ("user", "$JS.API.STREAM.PURGE.DECISIONS"),
]


@pytest.mark.parametrize(("identity", "subject"), FORBIDDEN)
async def test_nobody_publishes_under_anothers_name_or_beyond_its_part(
    identity: str, subject: str, desk: Desk
) -> None:
    async with desk.calling(identity) as caller:
        await caller.nats.publish(subject, b"{}", reply=caller.nats.new_inbox())
        await asyncio.wait_for(caller.was_refused.wait(), REFUSAL_S)

        assert any(f'publish to "{subject.lower()}"' in said for said in caller.refused)
        assert all("permissions violation" in said for said in caller.refused)


@pytest.mark.parametrize(
    ("identity", "subject"),
    [
        ("risk", "desk.v1.evt.>"),
        ("risk", "desk.v1.cmd.trader.picks"),
        ("user", "desk.v1.req.orchestrator.cycle.user"),
        ("user", "desk.v1.qry.>"),
        ("user", "_INBOX_cli.>"),
        ("trader", "_INBOX_execution.>"),
        ("cli", ">"),
    ],
)
async def test_nobody_listens_to_what_is_not_for_it(
    identity: str, subject: str, desk: Desk
) -> None:
    async with desk.calling(identity) as caller:
        await caller.nats.subscribe(subject)
        await asyncio.wait_for(caller.was_refused.wait(), REFUSAL_S)

        assert any("permissions violation for subscription" in said for said in caller.refused)


async def claimed(trader: Caller, op_id: UUID) -> int:
    """The trader takes its operation; the epoch."""
    granted = await told(trader, "claim", op_id=str(op_id), instance="test")
    assert granted["outcome"] == "granted"
    return int(granted["epoch"])


NO_CONTRACT: dict[str, Json] = {
    "none at all": {},
    "of the wrong kind": {"signal": "bullish"},
    "of another operation": {
        "cycle_id": "12345678-1234-4234-8234-123456789abc",
        "op_id": "12345678-1234-4234-8234-123456789abc",
        "as_of": "2012-06-29",
        "llm": "rules",
        "pick_date": "2012-06-29",
        "confidence": 1,
        "market_summary": "buy everything",
    },
}


@pytest.mark.parametrize("name", NO_CONTRACT)
async def test_a_contract_that_is_not_the_owed_one_is_a_wrong_answer_and_asked_for_again(
    name: str, desk: Desk, user: Caller
) -> None:
    async with waiting_for_the_trader(desk, user) as op_id, desk.calling("trader") as trader:
        epoch = await claimed(trader, op_id)
        result = {"op_id": str(op_id), "epoch": epoch, "contract": NO_CONTRACT[name]}
        assert (await told(trader, "result", **result))["outcome"] == "ok"

    failed = await user.events.first(type="operation_failed")
    assert failed["data"]["code"] == "contract_invalid"
    view = await user.query("cycle", cycle_id=failed["cycle_id"])
    assert view["status"] == "completed"
    assert picked(view, "daily_picks")["market_summary"] != "buy everything"
    second = ids.operation_id(UUID(failed["cycle_id"]), "rules", "deciding", "picks", 2)
    command = (await user.query("operation", op_id=str(second)))["command"]
    assert command["errors"] == [failed["data"]["message"]]


async def test_a_result_of_an_older_epoch_does_not_count(desk: Desk, user: Caller) -> None:
    async with waiting_for_the_trader(desk, user) as op_id, desk.calling("trader") as trader:
        for epoch in (None, 0, 1, 7):
            answer = await told(trader, "result", op_id=str(op_id), epoch=epoch, contract={})
            assert answer["outcome"] == "fenced"
        record = await told(trader, "record", op_id=str(op_id), epoch=7)
        assert record["outcome"] == "fenced"

    assert (await user.events.first(type="cycle_ended"))["data"]["status"] == "completed"


async def test_what_a_service_says_and_nobody_can_read_is_kept(desk: Desk, user: Caller) -> None:
    async with desk.calling("trader") as trader:
        # A record that cannot be read has a paid call behind it: its sender is told to give up.
        for what, outcome in (("claim", "unknown"), ("record", "refused"), ("result", "refused")):
            answer = await told(trader, what, op_id="no id")
            assert answer["outcome"] == outcome
            letter = (await user.query("dead_letters", limit=1))["letters"][0]
            assert letter["subject"] == f"desk.v1.dlq.orchestrator.{what}.trader"
            assert letter["failure"]["message"].startswith("from trader: op_id: ")


async def test_an_operation_that_does_not_exist_is_unknown(desk: Desk) -> None:
    nowhere = "12345678-1234-4234-8234-123456789abc"
    async with desk.calling("trader") as trader:
        assert (await told(trader, "claim", op_id=nowhere, instance="t"))["outcome"] == "unknown"
        assert (await told(trader, "record", op_id=nowhere, epoch=1))["outcome"] == "unknown"
        assert (await told(trader, "result", op_id=nowhere))["outcome"] == "unknown"


async def letter_of(user: Caller, subject: str, size_bytes: int) -> Json:
    """The dead letter of this subject and size, once it is there: the desk's own commands are
    handed over inside its process, and do not wait behind what comes over NATS."""
    async with asyncio.timeout(LETTER_S):
        while True:
            letters = (await user.query("dead_letters", limit=20))["letters"]
            for letter in letters:
                if (letter["subject"], letter["size_bytes"]) == (subject, size_bytes):
                    return letter
            await asyncio.sleep(0.05)


# The empty one last: with it NATS 2.15 forgets the open request, and what it sends on it until the
# next one comes again only after the consumer's own time.
@pytest.mark.parametrize(
    "body",
    [b"{", json.dumps({"version": 2}).encode(), b"x" * 1024 * 1024, b""],
    ids=["malformed", "another version", "a megabyte", "empty"],
)
@pytest.mark.parametrize("step", ["risk.review", "execution.execute"])
async def test_a_command_that_cannot_be_read_is_buried_and_blocks_nothing(
    step: str, body: bytes, desk: Desk, user: Caller
) -> None:
    async with desk.calling("orchestrator") as forger:
        await forger.nats.publish(f"desk.v1.cmd.{step}", body)
        await forger.nats.flush()

    view = await user.run(wish())

    assert view["status"] == "completed"
    mine = await letter_of(user, f"desk.v1.dlq.{step}", len(body))
    assert mine["failure"]["code"] in {"invalid", "too_large"}
    shown = await user.query("dead_letters", sequence=mine["sequence"])
    assert shown["letters"][0]["body"].startswith(body[:100].decode())
