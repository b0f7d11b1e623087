"""On a desk that knows what came of its confidences a buy is cut by it, and everybody hears so."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import httpx2
import orjson
import pytest

from libs.runtime.http_address import http_address
from services.console.pages.words import dated
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, operation_of, picked, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in
from tests.integration.desk.test_replay import replayed

BEFORE, KNOWN, DAY = "2009-12-31", "2009-12-30", "2010-01-04"
"""At DAY the stated rules are as sure of three buys as they ever are: 0.6."""
OUTCOMES = 84
SAID = f"stated 0.60, recalibrated 0.57 from {OUTCOMES} outcomes known until {KNOWN}"
"""Of what was stated with 0.6 four of seven came true."""


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk with its console."""
    with desk_in(make_open_dir(), own_environment_in, http_enabled=True, http_port=0) as running:
        yield running


@pytest.fixture
def deskbus(desk: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(desk.settings.data_dir, tmp_path)


async def remembering(user: Caller, account: str) -> Json:
    """A cycle before DAY that buys nothing, whose memory the next one begins with."""
    pipelines = [{"name": "rules", "account": account}]
    return await user.run(wish(as_of=BEFORE, pipelines=pipelines, constraints={"no_buys": "true"}))


async def made_up(desk: Desk, user: Caller, view: Json, known_on: str) -> None:
    """The memory of a cycle knows that of what was stated with 0.6 four of seven came true."""
    row = {"on": "2009-12-01", "known_on": known_on, "provider": "rules", "stated": 0.6}
    stated = [{**row, "beat": number % 7 < 4} for number in range(OUTCOMES)]
    nodes = (await user.query("operations", cycle_id=view["cycle_id"]))["operations"]
    memory = {**picked(view, "agent_memory"), "stated": stated}
    async with desk.postgres() as db:
        await db.execute(
            "update operations set result = $2 where op_id = $1",
            operation_of(nodes, "memorize"),
            orjson.dumps(memory),
        )


async def decided(user: Caller, account: str) -> Json:
    return await user.run(wish(as_of=DAY, pipelines=[{"name": "rules", "account": account}]))


def bought(view: Json) -> dict[str, Decimal]:
    orders = picked(view, "execution_result")["orders"]
    return {each["asset"]: Decimal(each["quantity"]) for each in orders if each["type"] == "market"}


async def test_a_buy_is_cut_by_what_came_of_the_like(
    desk: Desk, user: Caller, deskbus: CommandLine
) -> None:
    await remembering(user, "knows-nothing")
    await made_up(desk, user, await remembering(user, "knows-it"), KNOWN)
    await made_up(desk, user, await remembering(user, "knows-too-early"), DAY)
    as_ever, cut, early = [
        await decided(user, account) for account in ("knows-nothing", "knows-it", "knows-too-early")
    ]
    assert bought(early) == bought(as_ever), "what is known at as_of is not known before it"
    assert bought(cut).keys() == bought(as_ever).keys()
    assert all(bought(cut)[ticker] <= shares for ticker, shares in bought(as_ever).items())
    assert bought(cut)["AAPL"] < bought(as_ever)["AAPL"]

    validation = picked(cut, "decision_validation")
    table = validation["recalibration"]
    assert (table["outcomes"], table["known_until"]) == (OUTCOMES, KNOWN)
    (row,) = [
        check
        for check in validation["checks"]
        if (check["rule"], check["ticker"]) == ("risk_per_trade", "AAPL")
    ]
    assert SAID in row["reason"]
    assert row["outcome"] == "cut"
    assert "recalibration" not in picked(as_ever, "decision_validation")

    shown = deskbus(f"cycle show {cut['cycle_id']}")
    assert f"Confidence AAPL: {SAID} " in " ".join(shown.out.split()), shown.out
    address = http_address(desk.settings)
    assert address is not None
    async with httpx2.AsyncClient(base_url=address.url, verify=False, timeout=30) as http:
        page = await http.get(f"/decisions/{cut['cycle_id']}/rules")
    assert dated(SAID) in " ".join(page.text.split())
    (told,) = deskbus(f"cycle show {cut['cycle_id']} --json").rows
    (decision,) = [
        each for each in picked(told, "decision_validation")["decisions"] if each["asset"] == "AAPL"
    ]
    assert decision["confidence"] == 0.6
    assert decision["recalibrated"]["outcomes"] == OUTCOMES
    assert (await replayed(desk, cut["cycle_id"])).same
