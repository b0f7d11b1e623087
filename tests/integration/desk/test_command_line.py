"""The commands as a person and a script use them, against a running desk."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.integration.desk.caller import Caller, Json, account_of, operation_of, wish
from tests.integration.desk.command_line import CommandLine, ended
from tests.integration.desk.conftest import Desk

NOWHERE = "12345678-1234-4234-8234-123456789abc"


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


@pytest.fixture
async def cycle(user: Caller) -> Json:
    """A completed cycle."""
    return await user.run(wish())


def test_a_cycle_is_asked_for_and_waited_for(deskbus: CommandLine) -> None:
    said = deskbus(
        "cycle request --as-of 2012-06-29 --universe aapl,msft --wait --json "
        "--provider rules@asked-by-a-person --key a-persons-key"
    )

    (view,) = said.rows
    assert (said.code, view["status"]) == (0, "completed")
    assert "deciding" in said.err
    again = deskbus("cycle request --as-of 2012-06-28 --key a-persons-key")
    assert (again.code, again.out) == (4, "")
    assert "a-persons-key" in again.err


async def test_a_cycle_that_fails_ends_the_command_with_1_and_the_reason(
    desk: Desk, deskbus: CommandLine
) -> None:
    typed = "cycle request --as-of 2012-06-29 --wait --json --timeout-s 0.001 --provider rules@late"
    # The sweep ends what is late: a fast cycle is through before it looks.
    async with desk.held_back("trader-picks"):
        said = await asyncio.to_thread(deskbus, typed)

    assert (said.code, said.rows[0]["status"]) == (1, "failed")
    assert "time limit of 0.001 s passed" in said.rows[0]["reason"]


def test_a_session_that_the_account_has_passed_is_refused_with_two_ways_out(
    deskbus: CommandLine,
) -> None:
    begun = deskbus("cycle request --as-of 2012-06-29 --wait --provider rules@goes-back")
    assert begun.code == 0
    said = deskbus("cycle request --as-of 2012-06-28 --wait --provider rules@goes-back")

    assert (said.code, said.out) == (4, "")
    words = " ".join(said.err.split())
    assert "account goes-back has seen 2012-06-29" in words
    assert "decide as of 2012-06-29, or for another account: --account test" in words


def test_what_there_is_not_is_refused_with_what_there_is(deskbus: CommandLine) -> None:
    said = deskbus("agent trigger --as-of 2013-03-02")

    assert (said.code, said.out) == (4, "")
    assert "after the sessions of source bokeh-sampledata" in " ".join(said.err.split())
    assert "2013-03-01" in said.err


@pytest.mark.parametrize(
    "typed",
    [
        "cycle request --as-of someday",
        "cycle request --colour red",
        "cycle list --status nice",
        "up --replicas research=3",
        "nonsense",
    ],
)
def test_what_is_typed_wrong_is_a_usage_error(typed: str, deskbus: CommandLine) -> None:
    said = deskbus(typed)

    assert (said.code, said.out) == (2, "")
    assert said.err
    assert "Traceback" not in said.err


def test_cycles_are_listed_and_shown(deskbus: CommandLine, cycle: Json) -> None:
    listed = deskbus("cycle list --limit 3 --json")
    shown = deskbus(f"cycle show {cycle['cycle_id'][:8]} --json")
    told = deskbus(f"cycle show {cycle['cycle_id']}")

    assert (listed.code, listed.rows[0]["cycle_id"]) == (0, cycle["cycle_id"])
    assert (shown.code, shown.rows) == (0, [cycle])
    assert told.code == 0
    assert "AAPL" in told.out


@pytest.mark.parametrize(
    "typed",
    [
        f"cycle show {NOWHERE} --json",
        f"cycle cancel {NOWHERE} --json",
        f"operations show {NOWHERE} --json",
        "portfolio nobodys --json",
        "dlq show 999999999 --json",
    ],
)
def test_what_is_not_there_is_3(typed: str, deskbus: CommandLine) -> None:
    said = deskbus(typed)

    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("deskbus:")


def test_a_cancel_that_comes_too_late_is_rejected(deskbus: CommandLine, cycle: Json) -> None:
    said = deskbus(f"cycle cancel {cycle['cycle_id']}")

    assert (said.code, said.out) == (4, "")
    assert "too_late" in said.err


async def test_a_cancel_in_time_ends_the_cycle(
    desk: Desk, user: Caller, deskbus: CommandLine
) -> None:
    async with desk.held_back("trader-picks"):
        cycle_id = await user.accepted(wish())
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
        typed = f"cycle cancel {cycle_id} --reason enough --json"
        said = await asyncio.to_thread(deskbus, typed)

    assert (said.code, said.rows[0]["status"]) == (0, "cancelled")
    assert (await user.ended(cycle_id))["reason"] == "enough"


def test_operations_are_listed_drawn_and_shown(deskbus: CommandLine, cycle: Json) -> None:
    nodes = deskbus(f"operations tree {cycle['cycle_id']} --json").rows
    op_id = str(operation_of(nodes, "picks"))
    listed = deskbus(f"operations list --cycle {cycle['cycle_id']} --type picks --json")
    shown = deskbus(f"operations show {op_id} --json")
    drawn = deskbus(f"operations tree {cycle['cycle_id']}")
    of_a_cycle = deskbus(f"operations show {cycle['cycle_id']}")
    stands = deskbus(f"operations status {op_id}")
    steps = deskbus(f"operations status {cycle['cycle_id']} --json")

    ids = {node["op_id"] for node in nodes}
    assert all(node["parent_id"] in ids for node in nodes if node["type"] != "cycle")
    assert [node["op_id"] for node in listed.rows] == [op_id]
    assert listed.err == ""
    assert (shown.code, shown.rows[0]["operation"]["op_id"]) == (0, op_id)
    assert shown.rows[0]["journal"]
    assert (drawn.code, "picks" in drawn.out) == (0, True)
    assert (of_a_cycle.code, "decision cycle" in of_a_cycle.out) == (0, True)
    assert "picks" in of_a_cycle.out
    assert (stands.code, "completed" in stands.out) == (0, True)
    assert {node["op_id"] for node in steps.rows} == ids


async def test_tail_tells_a_whole_cycle_from_its_first_event(
    user: Caller, deskbus: CommandLine, cycle: Json
) -> None:
    said = deskbus(f"tail --cycle {cycle['cycle_id']} --json")

    assert said.code == 0
    assert said.rows == user.events.of(cycle["cycle_id"])


async def test_tail_follows_live_until_it_has_enough(user: Caller, deskbus: CommandLine) -> None:
    with deskbus.started("tail decision -n 1 --json") as tail:
        assert tail.stderr is not None
        assert "listening" in tail.stderr.readline()
        cycle_id = (await user.run(wish()))["cycle_id"]
        out, _ = tail.communicate(timeout=30)

    assert tail.returncode == 0
    assert f'"cycle_id":"{cycle_id}"' in out
    assert out.count("\n") == 1


async def test_ctrl_c_leaves_a_wait_with_130_and_the_cycle_goes_on(
    desk: Desk, user: Caller, deskbus: CommandLine
) -> None:
    wanted = "cycle request --as-of 2012-06-29 --provider rules@left --wait --json"
    async with desk.held_back("trader-picks"):
        with deskbus.started(wanted) as waiting:
            event = await user.events.first(type="state_entered", state="deciding")
            said = ended(waiting, signal.SIGINT)

    assert (said.code, said.out) == (130, "")
    assert "Traceback" not in said.err
    assert (await user.ended(event["cycle_id"]))["status"] == "completed"


async def test_an_accounts_books_are_shown(user: Caller, deskbus: CommandLine) -> None:
    body = wish()
    await user.run(body)

    said = deskbus(f"portfolio {account_of(body)} --json")
    told = deskbus(f"portfolio {account_of(body)}")

    (view,) = said.rows
    assert {each["asset"] for each in view["fills"]} == {"AAPL", "MSFT"}
    assert (told.code, "AAPL" in told.out) == (0, True)


async def test_dead_letters_are_listed_and_shown(user: Caller, deskbus: CommandLine) -> None:
    await user.ask(b"\x1b[31mno json")

    newest = deskbus("dlq list --limit 1 --json").rows[0]
    shown = deskbus(f"dlq show {newest['sequence']} --json")
    told = deskbus(f"dlq show {newest['sequence']}")

    assert newest["subject"] == "desk.v1.dlq.orchestrator.request.user"
    assert shown.rows[0]["body"] == "\x1b[31mno json"
    assert (told.code, "\x1b" in told.out, "no json" in told.out) == (0, False, True)


def test_doctor_finds_a_running_desk_well(deskbus: CommandLine) -> None:
    said = deskbus("doctor --json")

    assert said.code == 0
    # What nobody has set up is off, and no fault: here only models that want a key or an address.
    assert {row["verdict"] for row in said.rows} == {"ok", "off"}, said.rows
    assert all(r["name"].startswith("model ") for r in said.rows if r["verdict"] == "off")
    assert {"nats", "console", "database", "services", "streams"} <= {r["name"] for r in said.rows}


def test_config_tells_every_setting_and_where_it_comes_from(deskbus: CommandLine) -> None:
    (deskbus.cwd / "deskbus.toml").write_text("[orchestrator]\nlease_s = 7.5\n")
    rows = {row["name"]: row for row in deskbus("config --json").rows}

    assert (rows["orchestrator.lease_s"]["value"], rows["orchestrator.lease_s"]["source"]) == (
        "7.5",
        "file",
    )
    assert rows["data_dir"]["source"] == "environment"
    assert rows["orchestrator.sweep_s"]["source"] == "default"
    (deskbus.cwd / "deskbus.toml").write_text("leese_s = 7.5\n")
    wrong = deskbus("config")
    assert (wrong.code, "leese_s" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    "typed",
    ["cycle list", "cycle request --as-of 2012-06-29", "tail"],
)
def test_without_a_running_desk_it_is_5_and_says_how_to_start_one(
    typed: str, tmp_path: Path
) -> None:
    said = CommandLine(tmp_path / "nowhere", tmp_path)(f"{typed} --json")

    assert (said.code, said.out) == (5, "")
    assert "deskbus up" in said.err


def test_doctor_without_a_running_desk_is_no_problem(tmp_path: Path) -> None:
    said = CommandLine(tmp_path / "nowhere", tmp_path)("doctor --json")

    assert said.code == 0
    assert {row["name"]: row["verdict"] for row in said.rows}["desk"] == "off"
