"""A person between the rules and execution: over the real bus, with nothing but JSON."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Set
from pathlib import Path

import pytest

from tests.integration.desk.caller import Caller, Json, account_of, picked, wish
from tests.integration.desk.command_line import PATIENCE_S, CommandLine
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")


@pytest.fixture
async def cli(desk: Desk) -> AsyncIterator[Caller]:
    """A second approver."""
    async with desk.calling("cli") as caller:
        yield caller


async def waiting(user: Caller, **fields: object) -> Json:
    """A cycle's proposal, once it waits."""
    cycle_id = await user.accepted(wish(approval_required=True, **fields))
    await user.events.first(cycle_id=cycle_id, type="approval_requested")
    page = await user.query("approvals", cycle_id=cycle_id)
    (found,) = page["approvals"]
    asked: Json = found
    return asked


def answer(asked: Json, verdict: str = "approve", **fields: object) -> Json:
    return {
        "cycle_id": asked["cycle_id"],
        "proposal_hash": asked["proposal"]["proposal_hash"],
        "verdict": verdict,
        **fields,
    }


async def ordered(user: Caller, account: str) -> list[Json]:
    view = await user.query("account", account=account)
    found: list[Json] = view["fills"]
    return found


async def test_an_approved_proposal_is_executed_as_it_was_shown(user: Caller) -> None:
    asked = await waiting(user)
    assert await ordered(user, asked["account"]) == []

    said = await user.ask(answer(asked, reason="go"), "approval")
    ended = await user.ended(asked["cycle_id"])
    again = await user.ask(answer(asked, reason="go"), "approval")

    assert (said["outcome"], ended["status"]) == ("accepted", "completed")
    assert (again["outcome"], again["status"]) == ("accepted", "completed")
    wanted = {each["asset"] for each in asked["proposal"]["decisions"]}
    assert {each["asset"] for each in await ordered(user, asked["account"])} == wanted
    view = await user.query("cycle", cycle_id=asked["cycle_id"])
    approval = picked(view, "approval")
    assert (approval["approver"], approval["verdict"], approval["reason"]) == (
        "user",
        "approve",
        "go",
    )
    decided = await user.events.first(cycle_id=asked["cycle_id"], type="approval_decided")
    assert decided["data"]["proposal_hash"] == asked["proposal"]["proposal_hash"]
    assert (await user.query("approvals", cycle_id=asked["cycle_id"]))["approvals"] == []


async def test_a_rejected_proposal_orders_nothing_and_is_remembered(user: Caller) -> None:
    asked = await waiting(user)
    await user.ask(answer(asked, "reject", reason="too hot"), "approval")
    ended = await user.ended(asked["cycle_id"])
    assert (ended["status"], "too hot" in ended["reason"]) == ("rejected", True)
    view = await user.query("cycle", cycle_id=asked["cycle_id"])
    assert "too hot" in picked(view, "agent_memory")["short_term_summary"]
    assert await ordered(user, asked["account"]) == []


async def test_a_proposal_that_nobody_answers_expires(desk: Desk, user: Caller) -> None:
    asked = await waiting(user)
    async with desk.postgres() as db:
        await db.execute(
            "update operations set deadline_at = clock_timestamp() where op_id = $1",
            asked["op_id"],
        )
    ended = await user.ended(asked["cycle_id"])
    late = await user.ask(answer(asked), "approval")
    assert ended["status"] == "expired"
    assert "was not answered" in ended["reason"]
    await user.events.first(cycle_id=asked["cycle_id"], type="approval_expired")
    assert (late["outcome"], late["code"], late["status"]) == ("rejected", "expired", "expired")
    assert await ordered(user, asked["account"]) == []


async def test_an_edit_orders_less_and_never_more(user: Caller) -> None:
    asked = await waiting(user)
    first, *rest = asked["proposal"]["decisions"]
    more = [{"asset": first["asset"], "quantity": "1000000"}]
    up = await user.ask(answer(asked, "edit", edits=more), "approval")
    assert (up["outcome"], up["code"]) == ("rejected", "invalid")
    assert "can only make it smaller" in up["message"]

    less = [{"asset": first["asset"], "quantity": "1"}]
    less += [{"asset": each["asset"], "quantity": "0"} for each in rest]
    assert (await user.ask(answer(asked, "edit", edits=less), "approval"))["outcome"] == "accepted"
    assert (await user.ended(asked["cycle_id"]))["status"] == "completed"
    (fill,) = await ordered(user, asked["account"])
    assert (fill["asset"], float(fill["quantity"])) == (first["asset"], 1.0)


async def test_another_hash_is_refused_and_the_proposal_waits_on(user: Caller) -> None:
    asked = await waiting(user)
    said = await user.ask({**answer(asked), "proposal_hash": "0" * 64}, "approval")
    assert (said["outcome"], said["code"], said["field"]) == (
        "rejected",
        "proposal_changed",
        "proposal_hash",
    )
    assert (await user.ask(answer(asked), "approval"))["outcome"] == "accepted"


async def test_the_second_approver_loses(user: Caller, cli: Caller) -> None:
    asked = await waiting(user)
    assert (await cli.ask(answer(asked, "reject"), "approval"))["outcome"] == "accepted"
    second = await user.ask(answer(asked), "approval")
    assert (second["outcome"], second["code"]) == ("rejected", "decided")
    assert "rejected by cli at" in second["message"]
    assert (await user.ended(asked["cycle_id"]))["reason"] == "rejected by cli"


async def test_a_cancel_while_it_waits_ends_the_cycle(user: Caller) -> None:
    asked = await waiting(user)
    assert (await user.ask({"cycle_id": asked["cycle_id"]}, "cancel"))["outcome"] == "accepted"
    assert (await user.ended(asked["cycle_id"]))["status"] == "cancelled"
    late = await user.ask(answer(asked), "approval")
    assert (late["outcome"], late["code"]) == ("rejected", "too_late")


async def test_a_cycle_that_asks_nobody_takes_no_approval(user: Caller) -> None:
    body = wish()
    view = await user.run(body)
    said = await user.ask(
        {"cycle_id": view["cycle_id"], "proposal_hash": "0" * 64, "verdict": "approve"}, "approval"
    )
    assert (said["outcome"], said["code"]) == ("rejected", "not_waiting")
    assert len(await ordered(user, account_of(body))) > 0


def all_listed(deskbus: CommandLine, accounts: Set[str]) -> Mapping[str, Json]:
    """The proposals by account, once those of all these accounts wait."""
    until = time.monotonic() + PATIENCE_S
    while True:
        listed = {each["account"]: each for each in deskbus("approvals list --json").rows}
        if accounts <= listed.keys():
            return listed
        assert time.monotonic() < until, listed.keys()


def test_proposals_are_listed_approved_and_rejected_by_command(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    deskbus = CommandLine(desk.settings.data_dir, tmp_path_factory.mktemp("typed"))
    asking = "cycle request --as-of 2012-06-29 --approval --json --provider"
    first = deskbus(f"{asking} rules@asked-one").rows[0]["cycle_id"]
    with deskbus.started(f"{asking} rules@asked-two --wait") as second:
        assert second.stderr is not None
        next(line for line in second.stderr if "asked-two waits for your approval; buy" in line)
        line = next(line for line in second.stderr if "approvals approve|reject" in line)
        listed = all_listed(deskbus, {"asked-one", "asked-two"})
        shown = deskbus("approvals list")
        other = listed["asked-two"]["cycle_id"]
        rejected = deskbus(f"approvals reject {other} --reason nope --json")
        out, _ = second.communicate(timeout=60)

    assert other[:8] in line
    assert "deskbus approvals approve" in shown.out
    assert listed["asked-one"]["cycle_id"] == first
    assert (rejected.code, rejected.rows[0]["outcome"]) == (0, "accepted")
    assert second.returncode == 4
    assert "rejected by cli: nope" in out

    asset = listed["asked-one"]["proposal"]["decisions"][0]["asset"]
    waits = deskbus(f"cycle show {first}")
    assert "deskbus approvals list" in waits.out
    usage = deskbus(f"approvals approve {first} --quantity {asset}")
    stale = deskbus(f"approvals approve {first} --hash 0000")
    up = deskbus(f"approvals approve {first} --quantity {asset}=9999999")
    done = deskbus(f"approvals approve {first} --quantity {asset}=1")
    again = deskbus(f"approvals approve {first} --quantity {asset}=1 --json")
    lost = deskbus(f"approvals reject {first}")
    assert [said.code for said in (usage, stale, up, done, again, lost)] == [2, 4, 4, 0, 0, 4]
    assert done.out == f"{first} approved in part\n"
    other_one = deskbus(f"approvals reject {first} --pipeline nobodys")
    assert (other_one.code, "pipeline nobodys" in other_one.err) == (4, True)
    assert "decided" in lost.err
    told = deskbus(f"cycle show {first}")
    assert f"{asset} 1 of " in told.out
    nobody = deskbus("approvals approve 12345678-1234-4234-8234-123456789abc")
    assert nobody.code == 3


async def test_a_proposal_that_this_version_cannot_read_is_named_and_can_be_cancelled(
    desk: Desk, user: Caller, tmp_path: Path
) -> None:
    deskbus = CommandLine(desk.settings.data_dir, tmp_path)
    asked, other = await waiting(user), await waiting(user)
    short = asked["cycle_id"][:8]
    async with desk.postgres() as db:
        newer = b'{"of": "a later version"}'
        await db.execute(
            "update operations set command = $2 where op_id = $1", asked["op_id"], newer
        )

    typed = ("approvals list", "approvals list --json", f"approvals approve {short}")
    listed, rows, approved = [await asyncio.to_thread(deskbus, each) for each in typed]
    said = await user.ask(answer(asked), "approval")
    done = [await user.ask({"cycle_id": each["cycle_id"]}, "cancel") for each in (asked, other)]

    assert (listed.code, rows.code, approved.code, said["code"]) == (0, 0, 4, "unreadable")
    assert f"`deskbus cycle cancel {asked['cycle_id']}`" in said["message"]
    assert [row["cycle_id"] for row in rows.rows] == [other["cycle_id"]]
    for each in (listed, rows, approved):
        assert f"`deskbus cycle cancel {short}`" in " ".join(each.err.split())
    assert [each["outcome"] for each in done] == ["accepted", "accepted"]
    assert (await user.ended(asked["cycle_id"]))["status"] == "cancelled"
