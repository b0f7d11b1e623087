"""What one cycle hands to the next of its account, over the real bus: memory and outcomes."""

from decimal import Decimal
from pathlib import Path
from uuid import UUID

import orjson
import pytest

from tests.integration.desk.caller import Caller, Json, operation_of, picked, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk
from tests.integration.desk.test_replay import replayed

DAY, FOURTH, FIFTH, TWENTIETH = "2012-06-29", "2012-07-06", "2012-07-09", "2012-07-30"
TAKERS = ("plan", "picks", "memorize")


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


async def command_of(desk: Desk, user: Caller, view: Json, step: str) -> Json:
    """The command of one of a cycle's steps, exactly as it was sent."""
    nodes = (await user.query("operations", cycle_id=view["cycle_id"]))["operations"]
    op_id = operation_of(nodes, step)
    async with desk.postgres() as db:
        body = await db.fetchval("select command from operations where op_id = $1", op_id)
    found: Json = orjson.loads(body)
    return found


def body_for(account: str, as_of: str) -> Json:
    return wish(as_of=as_of, pipelines=[{"name": "rules", "account": account}])


async def test_a_cycles_commands_carry_the_memory_of_the_accounts_last_one_from_before_its_day(
    desk: Desk, user: Caller
) -> None:
    first = await user.run(body_for("handed-on", DAY))
    same_day = await user.run(body_for("handed-on", DAY))
    second = await user.run(body_for("handed-on", FOURTH))
    elsewhere = await user.run(body_for("not-handed-on", FOURTH))
    third = await user.run(body_for("handed-on", FIFTH))

    for step in TAKERS:
        assert "agent_memory" not in await command_of(desk, user, first, step)
        assert "agent_memory" not in await command_of(desk, user, same_day, step)
        assert "agent_memory" not in await command_of(desk, user, elsewhere, step)
        given = (await command_of(desk, user, second, step))["agent_memory"]
        # Of two memories of one day the one that was finished last.
        assert given == picked(same_day, "agent_memory")
        given = (await command_of(desk, user, third, step))["agent_memory"]
        assert given == picked(second, "agent_memory")


async def test_outcomes_reach_the_past_decision_the_next_prompt_and_a_person(
    desk: Desk, user: Caller, deskbus: CommandLine
) -> None:
    account = "looked-back"
    decided = await user.run(body_for(account, DAY))
    views = {day: await user.run(body_for(account, day)) for day in (FOURTH, FIFTH, TWENTIETH)}

    def told(day: str) -> list[int]:
        outcomes = picked(views[day], "agent_memory")["outcomes"]
        mine = [each for each in outcomes if each["cycle_id"] == decided["cycle_id"]]
        return [each["sessions"] for each in mine]

    assert {day: told(day) for day in views} == {FOURTH: [], FIFTH: [5], TWENTIETH: [20]}

    seen = await user.query("cycle", cycle_id=decided["cycle_id"])
    week, month = seen["pipelines"][0]["outcomes"]
    assert (week["session"], month["session"]) == (FIFTH, TWENTIETH)
    fills = {each["asset"]: each for each in picked(decided, "execution_result")["fills"]}
    for pick in week["picks"]:
        assert (pick["fate"], pick["basis"]) == ("filled", "fill")
        assert Decimal(pick["entry_price"]["amount"]) == round(
            Decimal(fills[pick["ticker"]]["price"]["amount"]), 4
        )
    assert week["benchmark"]["counted"] == 5
    # From the prices in the file: MSFT bought at the open of 2 July, its close on 9 July.
    microsoft = next(each for each in week["picks"] if each["ticker"] == "MSFT")
    assert Decimal(microsoft["exit_price"]["amount"]) == Decimal("30.00")

    after = await user.run(body_for(account, "2012-07-31"))
    memory = (await command_of(desk, user, after, "plan"))["agent_memory"]
    assert any(
        line.startswith(f"{DAY} after 20 sessions: bought ") for line in memory["track_record"]
    )

    story = deskbus(f"cycle show {decided['cycle_id']}")
    assert story.code == 0
    assert f"after 5, {FIFTH}  after 20, {TWENTIETH}" in story.out
    assert "5 candidates in equal parts" in story.out
    later = deskbus(f"cycle show {views[FIFTH]['cycle_id']}")
    assert "Learned" in later.out
    assert f"{DAY} after 5 sessions: bought " in later.out
    evidence = deskbus(f"cycle show {decided['cycle_id']} --evidence MSFT")
    assert f"after 5 sessions, {FIFTH}: " in evidence.out

    assert (await replayed(desk, views[FIFTH]["cycle_id"])).same
    assert (await replayed(desk, views[TWENTIETH]["cycle_id"])).same


async def test_the_prices_behind_an_outcome_are_on_record_as_a_read(
    desk: Desk, user: Caller
) -> None:
    await user.run(body_for("on-record", DAY))
    later = await user.run(body_for("on-record", FIFTH))
    async with desk.postgres() as db:
        entries = await db.fetch(
            "select j.entry from journal j join operations o using (op_id) "
            "where o.cycle_id = $1 and o.step = 'memorize' order by j.index",
            UUID(later["cycle_id"]),
        )
    calls = [orjson.loads(row["entry"]) for row in entries]
    assert [call["name"] for call in calls] == [
        "outcome after 5 sessions",
        "rules:rules",
        "check of MemoryDraft",
    ]
    assert calls[0]["request"]["as_of"] == FIFTH
    assert calls[0]["reply"]["picks"]
