"""How an account stands against its limits: the command, HTTP and the page say the same."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from contracts.account import AccountLimits
from libs.report.risk_use import LIMITS
from tests.integration.desk.caller import Caller, account_of, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk


@pytest.fixture
async def account(user: Caller) -> str:
    asked = wish(as_of="2012-06-29")
    assert (await user.run(asked))["status"] == "completed"
    return account_of(asked)


async def test_use_and_cuts_are_the_books_and_the_records(
    desk: Desk, account: str, http: httpx2.AsyncClient, site: httpx2.AsyncClient, tmp_path: Path
) -> None:
    over_http = (await http.get("/risk", params={"account": account})).json()
    use = {each["limit"]: each for each in over_http["limits"]}
    assert set(use) == {name for name, value in AccountLimits() if not isinstance(value, bool)}
    assert set(LIMITS) == set(use), "each is in words"
    assert use["gross_exposure_pct_max"]["allowed"] == "100"
    assert "with all buys" in use["volatility_pct_max"]["measured"]
    for cut in over_http["cuts"]:
        assert cut["cut"] + cut["vetoed"] > 0
        assert cut["reason"]

    deskbus = CommandLine(desk.settings.data_dir, tmp_path)
    said = await asyncio.to_thread(deskbus, f"risk {account} --json")
    assert said.rows == [over_http], said.err
    page = (await site.get("/risk", params={"account": account})).text
    assert "limits.sector_pct_max" in page
    assert "Halt" in page


async def test_an_account_that_there_is_not_is_named(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/risk", params={"account": "nobody"})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_account")
