"""Plug-ins at a running desk: what they say is done, and what is wrong with one stops nothing."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from libs.runtime.own_code import source_sha256
from tests.fakes.proposers import added
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, account_of, picked, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in
from tests.integration.desk.holding import holding
from tests.integration.desk.test_exit_signals import WIDE, sales, wish_to_exit

NEWEST = "2013-03-01"
"""Of the prices that come with Deskbus."""
RULES = """
def few(buy):
    return min(buy["quantity"], 7), "seven are enough"
"""
EXITS = """
import time

def tired(position):
    return 10, "it is tired"

def hangs(position):
    time.sleep(60)

def raises(position):
    raise RuntimeError("not today")

def nan(position):
    return float("nan"), "it is none"
"""
FAULTY = ("hangs", "raises", "nan")
WRONG = {
    "hangs": "it did not answer within 1 s",
    "raises": "RuntimeError: not today",
    "nan": "its result holds NaN or an infinite number",
}


@dataclass(frozen=True)
class PluggedDesk:
    """A desk with plug-ins, the folder of their modules, and the token of a proposer."""

    desk: Desk
    folder: Path
    token: str

    @property
    def cli(self) -> CommandLine:
        return CommandLine(self.desk.settings.data_dir, self.folder)


@pytest.fixture(scope="module")
def plugged(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn
) -> Iterator[PluggedDesk]:
    folder, modules = make_open_dir(), make_open_dir()
    (modules / "my_rules.py").write_text(RULES)
    (modules / "my_exits.py").write_text(EXITS)
    (modules / "exit_signals.toml").write_text("[default]\nstop_pct = 5\n")
    (token,) = added(folder / "data" / "secrets", {"agent": {"approval_required": True}}).values()
    plugins: dict[str, Any] = {
        "plugins": ("my_rules:few",),
        "exit_plugins": ("my_exits:tired", *(f"my_exits:{name}" for name in FAULTY)),
    }
    with pytest.MonkeyPatch.context() as patch:
        # A plug-in is found in the folder where the desk was started.
        patch.chdir(modules)
        with desk_in(folder, own_environment_in, limits=WIDE, **plugins) as desk:
            yield PluggedDesk(desk, modules, token)


@pytest.fixture
async def user(plugged: PluggedDesk) -> Any:
    async with plugged.desk.calling("user") as caller:
        yield caller


async def bought(user: Caller) -> tuple[Json, str]:
    """A cycle that bought AAPL, and its account."""
    body = wish(universe=["AAPL"])
    view = await user.run(body)
    assert view["status"] == "completed"
    return view, account_of(body)


# --- a risk rule --------------------------------------------------------------------------------


async def test_a_rule_cuts_a_buy_and_the_answer_is_on_record_and_replayed(
    plugged: PluggedDesk, user: Caller
) -> None:
    view, account = await bought(user)
    validation = picked(view, "decision_validation")
    (verdict,) = validation["plugins"]
    assert (verdict["plugin"], verdict["ceiling"]) == ("my_rules:few", "7")
    assert verdict["sha256"] == source_sha256("my_rules")
    assert picked(view, "execution_result")["fills"][0]["quantity"] == "7"

    cycle = view["cycle_id"]
    shown = await asyncio.to_thread(plugged.cli, f"risk {account}")
    assert "my_rules:few" in shown.out, shown.out + shown.err
    (plugged.folder / "my_rules.py").write_text(f"{RULES}\n# another one\n")
    try:
        replayed = await asyncio.to_thread(plugged.cli, f"cycle replay {cycle} --json")
        strict = await asyncio.to_thread(plugged.cli, f"cycle replay {cycle} --strict")
    finally:
        (plugged.folder / "my_rules.py").write_text(RULES)
    assert replayed.code == 0, replayed.err
    assert replayed.rows[0]["same"]
    assert "plug-in my_rules:few has changed" in replayed.rows[0]["changed"][0]
    assert strict.code == 4


async def test_a_rule_speaks_in_a_preview_in_what_waits_and_in_a_smaller_approval(
    plugged: PluggedDesk, user: Caller
) -> None:
    desk = plugged.desk
    async with desk.calling("cli") as owner:
        await holding(owner, "agent", {"IBM": 60}, "60000")
    pick = {"ticker": "GOOG", "action": "buy", "allocation_pct": "60", "confidence": 0.9}
    async with desk.calling("proposer-agent") as agent:
        for preview in (True, False):
            body = {"proposal_id": "p1", "picks": [pick], "preview": preview}
            answer = await agent.ask(body, "propose")
            assert answer["outcome"] == "accepted", answer
            view = await left(agent, preview=preview)
            (decision,) = view["decisions"]
            assert (decision["ticker"], decision["quantity"]) == ("GOOG", "7")
            assert "my_rules:few" in {cut["rule"] for cut in view["cuts"]}
    (asked,) = (await user.query("approvals", cycle_id=answer["cycle_id"]))["approvals"]
    assert asked["proposal"]["decisions"][0]["quantity"] == "7"
    for quantity, outcome in (("8", "rejected"), ("5", "accepted")):
        said = await user.ask(
            {
                "cycle_id": answer["cycle_id"],
                "proposal_hash": asked["proposal"]["proposal_hash"],
                "verdict": "edit",
                "edits": [{"asset": "GOOG", "quantity": quantity}],
            },
            "approval",
        )
        assert said["outcome"] == outcome, said
    await user.ended(answer["cycle_id"])
    async with desk.postgres() as db:
        rows = await db.fetch("select quantity::int, status from orders where account = 'agent'")
    assert [tuple(row) for row in rows if row["status"] != "cancelled"][:1] == [(5, "working")]


async def left(agent: Caller, *, preview: bool) -> Json:
    """What the rules left of the proposal, once they have spoken."""
    async with asyncio.timeout(60):
        while True:
            view = await agent.query("proposal", proposal_id="p1", preview=preview)
            if view["status"] != "running" or view["state"] == "awaiting_approval":
                return view
            await asyncio.sleep(0.2)


# --- exit rules ---------------------------------------------------------------------------------


async def test_an_exit_rule_sells_and_those_that_fail_stop_nothing(
    plugged: PluggedDesk, user: Caller
) -> None:
    desk = plugged.desk
    _, account = await bought(user)
    # Nothing of the desk's own fires three sessions after the buy.
    view = await user.run(wish_to_exit(account, "2012-07-05"))

    assert view["status"] == "completed"
    report = picked(view, "exit_report")
    (check,) = report["checks"]
    sha256 = source_sha256("my_exits")
    assert [(it["plugin"], it["sha256"]) for it in report["plugins"]] == [
        (f"my_exits:{name}", sha256) for name in ("tired", *FAULTY)
    ]
    signals = {signal["rule"]: signal for signal in check["signals"]}
    assert (signals["tired"]["triggered"], signals["tired"]["detail"]) == (True, "it is tired")
    for name in FAULTY:
        assert signals[name]["failed"]
        assert WRONG[name] in signals[name]["detail"]
        assert any(f"my_exits:{name} gave no answer" in each for each in report["warnings"])
    # A tenth of seven in whole shares; the stop of the rest is the desk's own.
    assert await sales(desk, account) == [
        ("market", "filled", "AAPL", 1),
        ("stop", "waiting", "AAPL", 6),
    ]

    replayed = await asyncio.to_thread(plugged.cli, f"cycle replay {view['cycle_id']} --json")
    assert replayed.code == 0, replayed.err
    assert (replayed.rows[0]["same"], replayed.rows[0]["changed"]) == (True, [])


async def test_the_desks_own_exit_rules_sell_beside_rules_that_fail(
    plugged: PluggedDesk, user: Caller
) -> None:
    _, account = await bought(user)
    view = await user.run(wish_to_exit(account, "2012-10-31"))
    (check,) = picked(view, "exit_report")["checks"]
    assert check["assessment"].startswith("STRONG EXIT (momentum")
    (decision,) = picked(view, "decision_validation")["decisions"]
    assert "momentum" in decision["exit"]["acts"]["rules"]
    assert [sale[:3] for sale in await sales(plugged.desk, account)] == [
        ("market", "filled", "AAPL")
    ]


async def test_a_sale_by_hand_asks_no_rule(plugged: PluggedDesk, user: Caller) -> None:
    _, account = await bought(user)
    typed = f"exit now AAPL --share 100% --account {account} --as-of 2012-07-03"
    said = await asyncio.to_thread(plugged.cli, typed)
    assert said.code == 0, said.err
    assert await sales(plugged.desk, account) == [("market", "filled", "AAPL", 7)]
    async with plugged.desk.postgres() as db:
        asked = await db.fetchval(
            "select count(*) from journal j join operations o using (op_id)"
            " join orders s on s.cycle_id = o.cycle_id where s.account = $1 and s.type = 'market'"
            " and s.side = 'sell' and convert_from(j.entry, 'UTF8') like '%plug-in %'",
            account,
        )
    assert asked == 0
