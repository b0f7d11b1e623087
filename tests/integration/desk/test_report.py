"""The daily report of a running desk: what it says, where it is, and what needs a person."""

import asyncio
from pathlib import Path

import pytest

from tests.integration.desk.caller import Caller, Json, account_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


def asked(account: str, **other: object) -> Json:
    return wish(pipelines=[{"name": "rules", "account": account}], **other)


async def told(user: Caller, account: str, session: str) -> Json:
    """The report as the desk tells it."""
    day: Json = (await user.query("report", account=account, session=session))["report"]
    return day


def contents(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


async def test_a_report_cycle_writes_what_the_command_shows(
    user: Caller, deskbus: CommandLine
) -> None:
    body = wish()
    account = account_of(body)
    await user.run(body)
    view = await user.run(asked(account, kind="report", as_of="2012-07-03"))

    written = view["pipelines"][0]["contracts"]["daily_report"]
    name = f"{account}-2012-07-03.md"
    assert written["file_path"] == str(deskbus.data_dir.absolute() / "reports" / name)
    shown = await asyncio.to_thread(deskbus, f"report 2012-07-03 --account {account}")
    # They were made a moment apart.
    assert shown.out.splitlines()[:-1] == contents(written["file_path"])[:-1]

    day = written["report"]
    earned, ever = day["worth"]["earned"], day["worth"]["ever"]
    before = await told(user, account, "2012-07-02")
    change = float(day["worth"]["equity"]) - float(before["worth"]["equity"])
    parts = [float(earned[name]) for name in ("realised", "unrealised", "dividends")]
    assert sum(parts) - float(earned["fees"]) == pytest.approx(change, abs=0.01)
    assert [fill["asset"] for fill in before["fills"]] == ["AAPL", "MSFT"]
    assert float(ever["fees"]) > 0
    assert {each["ticker"] for each in day["held"]} == {"AAPL", "MSFT"}


async def test_the_session_of_a_decision_tells_it_and_what_it_ordered(user: Caller) -> None:
    body = wish()
    view = await user.run(body)
    day = await told(user, account_of(body), body["as_of"])

    (cycle,) = day["cycles"]
    assert (cycle["cycle_id"], cycle["status"]) == (view["cycle_id"], "completed")
    ordered = [order["asset"] for order in day["orders"] if order["type"] == "market"]
    assert [each["asset"] for each in cycle["decisions"]] == ordered
    stops = [order["asset"] for order in day["orders"] if order["type"] == "stop"]
    assert stops == ordered
    assert {each["what"] for each in day["attention"]} <= {"dead_letters"}


async def test_what_needs_a_person_is_told_with_the_command_that_helps(
    user: Caller, deskbus: CommandLine
) -> None:
    body = wish(approval_required=True)
    account = account_of(body)
    answer = await user.ask(body)
    await user.events.first(type="approval_requested", cycle_id=answer["cycle_id"])
    await asyncio.to_thread(deskbus, f"halt --account {account} --reason drill")

    day = await told(user, account, body["as_of"])
    found = {each["what"]: each for each in day["attention"]}
    assert found["approval"]["todo"] == f"deskbus approvals approve {answer['cycle_id'][:8]}"
    assert found["halt"]["todo"] == f"deskbus resume --account {account}"
    assert "drill" in found["halt"]["text"]

    short = answer["cycle_id"][:8]
    assert (await asyncio.to_thread(deskbus, f"approvals reject {short}")).code == 0
    await asyncio.to_thread(deskbus, f"resume --account {account}")
    later = await told(user, account, body["as_of"])
    assert {each["what"] for each in later["attention"]} <= {"dead_letters"}


async def test_a_failed_cycle_and_a_close_that_is_not_there_need_a_person(user: Caller) -> None:
    body = wish()
    account = account_of(body)
    await user.run(body)
    # Alone it would be refused before it is a cycle: beside one that can begin, it fails.
    lanes = [
        {"name": "rules", "account": account},
        {"name": "beside", "provider": "rules", "account": f"{account}-beside"},
    ]
    failed = await user.run(wish(pipelines=lanes, main="rules", as_of="2012-06-28"))
    assert failed["status"] == "failed"

    day = await told(user, account, "2012-06-28")
    found = {each["what"]: each for each in day["attention"]}
    assert "clock_back" in found["failed"]["text"] or "has seen" in found["failed"]["text"]
    assert found["failed"]["todo"] == f"deskbus cycle show {failed['cycle_id'][:8]}"
    assert (day["worth"], day["held"]) == (None, [])

    later = await told(user, account, "2013-02-01")
    (gap,) = [each for each in later["attention"] if each["what"] == "no_close"]
    assert "newest session is" in gap["text"]
    assert "--kind snapshot --as-of 2013-02-01" in gap["todo"]


async def test_what_waits_now_stands_in_the_newest_report_and_in_none_before_it(
    user: Caller, deskbus: CommandLine
) -> None:
    body = wish()
    account = account_of(body)
    await user.run(body)
    await user.run(asked(account, kind="snapshot", as_of="2012-07-05"))
    await asyncio.to_thread(deskbus, f"halt --account {account} --reason drill")
    newest = await told(user, account, "2012-07-05")
    before = await told(user, account, "2012-07-03")
    await asyncio.to_thread(deskbus, f"resume --account {account}")

    assert "halt" in {each["what"] for each in newest["attention"]}
    assert {each["what"] for each in before["attention"]} & {"halt", "dead_letters"} == set()


async def test_a_day_without_a_session_has_no_report_and_names_the_session_before(
    user: Caller, deskbus: CommandLine
) -> None:
    body = wish()
    account = account_of(body)
    await user.run(body)
    saturday = await user.query("report", account=account, session="2012-06-30")
    assert not saturday["found"]
    assert saturday["message"] == (
        "Sat 2012-06-30 is a weekend, no session; the one before is 2012-06-29"
    )
    shown = await asyncio.to_thread(deskbus, f"report 2012-06-30 --account {account}")
    assert (shown.code, "2012-06-29" in shown.err) == (3, True)


def test_an_account_that_is_not_there_is_3_and_what_is_no_date_2(deskbus: CommandLine) -> None:
    missing, wrong = deskbus("report --account nobodys"), deskbus("report someday")
    assert (missing.code, wrong.code) == (3, 2)
    assert "nobodys" in missing.err
