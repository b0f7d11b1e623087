"""Exit signals at a running desk: by the command line and by NATS."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.integration.desk.caller import Caller, account_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


@pytest.fixture(scope="module")
def account(desk: Desk) -> str:
    """An account that holds AAPL since July and stands at the end of October 2012."""

    async def traded() -> str:
        async with desk.calling("user") as user:
            first = wish(universe=["AAPL"])
            assert (await user.run(first))["status"] == "completed"
            later = wish(as_of="2012-10-31", universe=["IBM"], pipelines=first["pipelines"])
            assert (await user.run(later))["status"] == "completed"
        return account_of(first)

    return asyncio.run(traded())


def test_a_position_is_checked_at_its_accounts_own_session(
    deskbus: CommandLine, account: str
) -> None:
    said = deskbus(f"exit-signals check aapl --account {account} --format full --json")

    (told,) = said.rows
    assert said.code == 0, said.err
    assert (told["ticker"], told["as_of"]) == ("AAPL", "2012-10-31")
    assert told["overall_assessment"] == "STRONG EXIT (momentum, regime)"
    assert told["position"]["opened_on"] == "2012-07-02"
    assert told["sizing"]["sell_pct"] == 75.0
    assert 0 < told["sizing"]["sell_quantity"] < told["position"]["shares"]


def test_a_person_reads_the_verdict_the_signals_and_the_sale(
    deskbus: CommandLine, account: str
) -> None:
    said = deskbus(f"exit-signals check AAPL --account {account} --format full")

    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert words.startswith("AAPL: STRONG EXIT (momentum, regime)")
    assert "momentum primary triggered" in words
    assert "sell" in words


def test_an_agent_gets_flags_and_the_path_of_the_saved_result(
    deskbus: CommandLine, desk: Desk, account: str
) -> None:
    said = deskbus(
        f"exit-signals check AAPL --account {account} --format agent --output file --json"
    )

    (told,) = said.rows
    assert [each["flag"] for each in told["flags"]] == ["strong_exit", "trade_recommended"]
    path = Path(told["file_path"])
    assert path.parent == desk.settings.data_dir.absolute() / "exit_signals"
    assert json.loads(path.read_text())["ticker"] == "AAPL"


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("check GONE --account {account}", 3),
        ("check AAPL --account nobody", 3),
        ("check AAPL --account {account} --as-of 2012-11-30", 1),
        ("check AAPL --account {account} --format long", 2),
        ("check no.ticker/at/all/whatever", 2),
        ("check AAPL --account Nobody!", 2),
    ],
)
def test_what_cannot_be_checked_has_its_exit_code_and_a_sentence(
    typed: str, code: int, deskbus: CommandLine, account: str
) -> None:
    said = deskbus("exit-signals " + typed.format(account=account))

    assert said.code == code
    assert said.out == ""
    assert said.err


async def test_anybodys_own_program_asks_over_nats(user: Caller, account: str) -> None:
    told = await user.query("check", owner="exit_signal", ticker="AAPL", account=account)

    assert told["answer"]["status"] == "success"
    assert told["answer"]["verdict"].startswith("AAPL: STRONG EXIT (momentum, regime) — sell ")


async def test_nobody_but_the_service_asks_what_an_account_holds(user: Caller) -> None:
    await user.nats.publish("desk.v1.qry.execution.holdings.user", b"{}")
    await user.nats.flush()
    await user.was_refused.wait()
    assert "permissions violation" in user.refused[0]
