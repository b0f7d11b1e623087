"""The kill switch as a person and a program use it, on a running desk."""

import asyncio
from pathlib import Path
from uuid import uuid4

import nats.errors
import pytest

from tests.integration.desk.caller import Caller, account_of, picked, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


@pytest.fixture
async def account(user: Caller) -> str:
    """An account that has traded once."""
    body = wish()
    await user.run(body)
    return account_of(body)


async def test_a_halted_account_decides_and_buys_nothing_until_it_is_resumed(
    user: Caller, deskbus: CommandLine, account: str
) -> None:
    typed = f"halt --account {account} --reason drill --json"
    said = await asyncio.to_thread(deskbus, typed)  # the loop hears events meanwhile
    assert (said.code, said.rows[0]["changed"]) == (0, True)
    (halt,) = [each for each in said.rows[0]["halts"] if each["account"] == account]
    assert (halt["by"], halt["reason"]) == ("cli", "drill")

    body = wish(as_of="2012-09-28", pipelines=[{"name": "rules", "account": account}])
    view = await user.run(body)
    assert view["status"] == "completed"
    validation = picked(view, "decision_validation")
    assert [d for d in validation["decisions"] if d["action"] == "buy"] == []
    assert any("halted" in text and "drill" in text for text in validation["adjustments"])

    shown, doctor = deskbus(f"portfolio {account}"), deskbus("doctor --json")
    assert f"buys of {account} are halted since" in shown.out
    assert "drill" in shown.out
    trading = [row for row in doctor.rows if row["name"] == "trading"]
    assert (doctor.code, trading[0]["verdict"]) == (0, "off")
    assert f"deskbus resume --account {account}" in trading[0]["todo"]
    assert account in deskbus("halt --status").out

    ended = deskbus(f"resume --account {account} --json")
    assert (ended.code, ended.rows[0]["changed"]) == (0, True)
    assert account not in deskbus("halt --status").out
    again = deskbus(f"resume --account {account}")
    assert (again.code, "nothing changed" in again.err) == (0, True)


def test_an_account_that_is_not_there_is_3_and_no_name_at_all_is_2(deskbus: CommandLine) -> None:
    missing, wrong = deskbus("halt --account nobodys"), deskbus("halt --account 'No Name'")

    assert (missing.code, missing.out) == (3, "")
    assert "nobodys" in missing.err
    assert (wrong.code, wrong.out) == (2, "")


async def test_a_program_halts_by_json_and_everybody_hears_of_it(
    user: Caller, account: str
) -> None:
    mark = uuid4().hex
    subject = f"desk.v1.req.execution.{{}}.{user.identity}"
    body = f'{{"account": "{account}", "reason": "{mark}"}}'.encode()
    await user.nats.request(subject.format("halt"), body, timeout=10)
    event = await user.events.first(type="trading_halted", data=_data(account, mark))
    assert (event["owner"], event["sequence"]) == ("execution", 1)
    await user.nats.request(subject.format("resume"), body, timeout=10)
    await user.events.first(type="trading_resumed", data=_data(account, mark))


def _data(account: str, mark: str) -> dict[str, str]:
    return {"account": account, "reason": mark, "by": "user"}


async def test_a_halt_with_an_unknown_field_is_refused_by_its_name(user: Caller) -> None:
    subject = f"desk.v1.req.execution.halt.{user.identity}"
    answer = await user.nats.request(subject, b'{"acount": "main"}', timeout=10)

    assert answer.data == b""
    assert "acount" in str(answer.headers)
    assert (await user.query("halts"))["halts"] == []


@pytest.mark.parametrize("identity", ["trader", "risk", "mcp_requester"])
async def test_no_part_of_the_desk_can_resume(desk: Desk, identity: str) -> None:
    async with desk.calling(identity) as caller:
        subject = f"desk.v1.req.execution.resume.{identity}"
        with pytest.raises((nats.errors.TimeoutError, nats.errors.NoRespondersError)):
            await caller.nats.request(subject, b"{}", timeout=0.5)
        assert any("permissions violation" in each for each in caller.refused)
