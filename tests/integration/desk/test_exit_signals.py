"""Exit signals at a running desk: by the command line and by NATS."""

import asyncio
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import ANY
from uuid import uuid4

import pytest

from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, account_of, picked, wish
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in

WIDE = {"risk_per_trade_pct_max": 100, "volatility_pct_max": 100, "cluster_pct_max": 100}


def wish_to_exit(account: str, as_of: str, **fields: object) -> Json:
    """A request to check all that the account holds."""
    pipelines = [{"name": "rules", "account": account}]
    return wish(kind="exit", as_of=as_of, pipelines=pipelines, **fields)


async def sales(desk: Desk, account: str) -> list[tuple[str, str, str, int]]:
    """Sell orders of exits and of decisions, without the stops of entries: type, status, ticker,
    shares."""
    async with desk.postgres() as db:
        rows = await db.fetch(
            "select type, status, ticker, quantity::int from orders"
            " where account = $1 and side = 'sell' and (type = 'market' or exit)"
            " order by placed_at, type",
            account,
        )
    return [tuple(row) for row in rows]


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk whose positions are large enough to be sold in parts."""
    with desk_in(make_open_dir(), own_environment_in, limits=WIDE) as held:
        yield held


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
    assert words.startswith("AAPL: STRONG EXIT ")
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


async def test_the_distances_are_a_table_for_people_and_the_answer_of_the_bus_for_machines(
    deskbus: CommandLine, user: Caller, account: str
) -> None:
    # In threads: a connection whose loop stands still for some seconds is closed by NATS.
    typed = f"exit-signals distances --account {account}"
    words = await asyncio.to_thread(deskbus, typed)
    exact = await asyncio.to_thread(deskbus, f"{typed} --json")

    assert (words.code, exact.code) == (0, 0), words.err + exact.err
    line = next(each for each in words.out.splitlines() if each.startswith("AAPL"))
    assert "STRONG EXIT" in line
    assert "fired" in line
    told = await user.query("distances", owner="exit_signal", account=account)
    assert exact.rows == [told]
    assert [each["ticker"] for each in told["positions"]] == ["AAPL"]


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("check GONE --account {account}", 3),
        ("check AAPL --account nobody", 3),
        ("check AAPL --account {account} --as-of 2012-11-30", 1),
        ("check AAPL --account {account} --format long", 2),
        ("check no.ticker/at/all/whatever", 2),
        ("check AAPL --account Nobody!", 2),
        ("distances --account nobody", 3),
        ("distances --account Nobody!", 2),
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
    assert told["answer"]["verdict"].startswith("AAPL: STRONG EXIT ")


async def test_nobody_but_the_service_asks_what_an_account_holds(user: Caller) -> None:
    await user.nats.publish("desk.v1.qry.execution.holdings.user", b"{}")
    await user.nats.flush()
    await user.was_refused.wait()
    assert "permissions violation" in user.refused[0]


# --- cycles -----------------------------------------------------------------------------------


@pytest.fixture
async def holder(user: Caller) -> str:
    """An account of its own that bought AAPL, and stands where it did."""
    first = wish(universe=["AAPL"])
    assert (await user.run(first))["status"] == "completed"
    return account_of(first)


def test_what_was_just_bought_is_held_and_was_not_at_the_close_before(
    deskbus: CommandLine, holder: str
) -> None:
    now = deskbus(f"exit-signals check AAPL --account {holder} --format full --json")
    then = deskbus(f"exit-signals check AAPL --account {holder} --as-of 2012-06-29")

    (told,) = now.rows
    assert (now.code, told["as_of"]) == (0, "2012-06-29")
    assert told["position"]["opened_on"] == "2012-07-02"
    assert told["position"]["shares"] == 68
    assert then.code == 3
    assert "68 are bought" in then.err


async def test_an_exit_cycle_checks_proposes_and_sells(
    desk: Desk, user: Caller, holder: str
) -> None:
    view = await user.run(wish_to_exit(holder, "2012-10-31"))

    assert (view["status"], view["reason"]) == ("completed", "")
    (check,) = picked(view, "exit_report")["checks"]
    assert check["assessment"] == "STRONG EXIT (momentum, regime)"
    assert check["sell_pct"] == "75"
    (decision,) = picked(view, "decision_validation")["decisions"]
    assert (decision["action"], decision["asset"]) == ("sell", "AAPL")
    assert decision["quantity"] == check["quantity"]
    acts = {"rules": ["momentum"], "month": "2012-10", "asked": check["quantity"]}
    assert decision["exit"] == {"stop_price": None, "acts": {**acts, "held": ANY}}
    assert await sales(desk, holder) == [("market", "filled", "AAPL", int(check["quantity"]))]

    (listed,) = (await user.query("decisions", cycle_id=view["cycle_id"]))["decisions"]
    assert (listed["kind"], listed["decision"]["decisions"]) == ("exit", [decision])
    assert listed["execution"]["fills"][0]["asset"] == "AAPL"


async def test_the_checks_are_told_as_an_event(user: Caller, holder: str) -> None:
    cycle_id = await user.accepted(wish_to_exit(holder, "2012-10-31"))
    told = await user.events.first(cycle_id=cycle_id, type="exits_checked")
    decided = await user.events.first(cycle_id=cycle_id, type="decision")

    assert [each["ticker"] for each in told["data"]["checks"]] == ["AAPL"]
    assert decided["data"]["decisions"][0]["asset"] == "AAPL"
    assert told["state"] == "checking_exits"
    await user.ended(cycle_id)


async def test_a_second_check_of_a_session_sells_nothing(
    desk: Desk, user: Caller, holder: str
) -> None:
    await user.run(wish_to_exit(holder, "2012-10-31"))
    again = await user.run(wish_to_exit(holder, "2012-10-31"))

    assert again["status"] == "completed"
    assert again["reason"] == "nothing to sell: no exit was proposed"
    assert "sells 51 shares already" in picked(again, "exit_report")["checks"][0]["note"]
    assert len(await sales(desk, holder)) == 1


async def test_the_next_sessions_of_the_month_do_not_sell_on_the_signal_again(
    desk: Desk, user: Caller, holder: str
) -> None:
    await user.run(wish_to_exit(holder, "2012-10-31"))
    for as_of in ("2012-11-01", "2012-11-02"):
        again = await user.run(wish_to_exit(holder, as_of))
        (check,) = picked(again, "exit_report")["checks"]
        assert check["assessment"].startswith("STRONG EXIT (momentum")
        assert (check["quantity"], check["sell_pct"]) == (None, None)
        assert "sold 51 of 68 shares" in check["note"]
    assert await sales(desk, holder) == [("market", "filled", "AAPL", 51)]


async def test_checks_at_once_place_one_exit(desk: Desk, user: Caller, holder: str) -> None:
    bodies = [wish_to_exit(holder, "2012-10-31") for _ in range(8)]
    views = await asyncio.gather(*(user.run(body) for body in bodies))

    assert {view["status"] for view in views} == {"completed"}
    placed = [sale for sale in await sales(desk, holder) if sale[1] != "rejected"]
    assert len(placed) == 1


async def test_what_the_request_does_not_name_is_not_checked(user: Caller, holder: str) -> None:
    view = await user.run(wish_to_exit(holder, "2012-10-31", universe=["IBM"]))

    assert view["reason"].startswith("nothing to sell: ")
    assert picked(view, "exit_report")["checks"] == []


async def test_an_exit_waits_for_the_person_who_was_asked_for(
    deskbus: CommandLine, desk: Desk, user: Caller, holder: str
) -> None:
    cycle_id = await user.accepted(wish_to_exit(holder, "2012-10-31", approval_required=True))
    await user.events.first(cycle_id=cycle_id, type="approval_requested")
    assert await sales(desk, holder) == []

    said = await asyncio.to_thread(deskbus, f"approvals approve {cycle_id} --quantity AAPL=7")
    assert said.code == 0, said.err
    await user.ended(cycle_id)
    assert await sales(desk, holder) == [("market", "filled", "AAPL", 7)]
    # What the person struck off is not asked for again.
    later = await user.run(wish_to_exit(holder, "2012-11-01"))
    (check,) = picked(later, "exit_report")["checks"]
    assert "sold 7 of 68 shares" in check["note"]


def test_the_command_asks_for_an_exit_cycle_shows_it_and_replays_it(
    deskbus: CommandLine, desk: Desk
) -> None:
    bought = deskbus(
        "cycle request --as-of 2012-06-29 --universe AAPL --wait --json --account told"
    )
    assert bought.code == 0, bought.err
    said = deskbus("cycle request --kind exit --as-of 2012-10-31 --account told --wait")

    assert said.code == 0, said.err
    again = deskbus("exit-signals check AAPL --account told")
    words = " ".join(again.out.split())
    assert "sold 51 of 68 shares" in words
    full = deskbus("exit-signals check AAPL --account told --format full --json").rows[0]
    (held,) = deskbus("portfolio told --json").rows[0]["portfolio"]["positions"]
    assert full["position"]["shares"] == float(held["quantity"])
    assert held["sector"] == "Information Technology"
    words = " ".join(said.out.split())
    assert "Exit of Wed 2012-10-31 completed" in words
    assert "(momentum, regime) 51" in words
    assert "sell AAPL filled 51" in words
    replayed = deskbus("cycle replay")
    assert replayed.code == 0, replayed.err


def test_a_person_sells_now_what_no_rule_would(deskbus: CommandLine) -> None:
    bought = deskbus(
        "cycle request --as-of 2012-06-29 --universe AAPL --wait --json --account byhand"
    )
    assert bought.code == 0, bought.err
    (before,) = deskbus("portfolio byhand --json").rows[0]["portfolio"]["positions"]
    said = deskbus("exit now aapl --share 50% --account byhand --as-of 2012-07-03")

    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    assert "EXIT BY HAND" in words
    assert "P&L after fees" in words, "its sale is filled: what it brought is known"
    (after,) = deskbus("portfolio byhand --json").rows[0]["portfolio"]["positions"]
    sold = Decimal(before["quantity"]) // 2
    assert Decimal(before["quantity"]) - Decimal(after["quantity"]) == sold
    missing = deskbus("exit now IBM --account byhand --as-of 2012-07-06")
    assert missing.code == 1
    assert "IBM" in missing.out + missing.err
    unknown = deskbus("exit now AAPLE --account byhand --as-of 2012-07-06")
    assert unknown.code == 4
    assert "AAPLE" in unknown.err
    assert "AAPL" in unknown.err.replace("AAPLE", "")
    nobodys = deskbus("exit now AAPL --account byhandd --as-of 2012-07-06")
    assert nobodys.code == 3
    assert "byhandd" in nobodys.err
    assert deskbus("portfolio byhandd").code == 3  # nor was one opened
    for typed in ("--share 0", "--share 101", "--share half"):
        assert deskbus(f"exit now AAPL --account byhand {typed}").code == 2


def test_everything_is_shown_and_sold_once_by_its_hash(deskbus: CommandLine) -> None:
    bought = deskbus("cycle request --as-of 2012-06-29 --wait --json --account everything")
    assert bought.code == 0, bought.err
    moved = deskbus("cycle request --kind exit --as-of 2012-07-02 --account everything --wait")
    assert moved.code == 0, moved.err
    held = deskbus("portfolio everything --json").rows[0]["portfolio"]["positions"]
    assert held

    command = "exit now --all --account everything"
    shown = deskbus(command)
    assert shown.code == 0, shown.err
    assert all(position["ticker"] in shown.out for position in held)
    digest = deskbus(f"{command} --json").rows[0]["hash"]
    assert f"{command} --hash {digest[:12]}" in shown.err
    assert deskbus(f"{command} --hash {'0' * 12}").code == 4
    assert deskbus("portfolio everything --json").rows[0]["portfolio"]["positions"] == held

    sold = deskbus(f"{command} --hash {digest}")
    assert sold.code == 0, sold.err
    assert "sold by hand" in " ".join(sold.out.split())
    after = deskbus("portfolio everything --json").rows[0]["portfolio"]
    assert after["positions"] == []
    again = deskbus(f"{command} --hash {digest}")
    assert again.code == 0
    assert "has no positions" in again.err
    for typed in ("exit now", "exit now AAPL --all", "exit now --all --share 50"):
        assert deskbus(typed).code == 2


@pytest.mark.parametrize(
    "sales", [{"sell_now": {"ticker": "AAPL"}}, {"sell_all": [{"ticker": "AAPL"}]}]
)
async def test_a_model_of_another_program_sells_nothing_by_hand(
    desk: Desk, sales: dict[str, Any]
) -> None:
    body = {"idempotency_key": uuid4().hex, "kind": "exit", "as_of": "2012-07-03", **sales}
    async with desk.calling("mcp_requester") as caller:
        subject = "desk.v1.req.orchestrator.cycle.mcp_requester"
        answer = await caller.nats.request(subject, json.dumps(body).encode(), timeout=10)
    said = json.loads(answer.data)
    assert (said["outcome"], said["code"]) == ("rejected", "not_a_person")


def test_a_stop_waits_on_the_rest_and_the_portfolio_shows_it(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn, tmp_path: Path
) -> None:
    rules = tmp_path / "exit_signals.toml"
    rules.write_text("[default]\nstop_pct = 5\n")
    with desk_in(make_open_dir(), own_environment_in, exit_rules_file=rules, limits=WIDE) as desk:
        deskbus = CommandLine(desk.settings.data_dir, tmp_path)
        deskbus("cycle request --as-of 2012-06-29 --universe AAPL --wait")
        exited = deskbus("cycle request --kind exit --as-of 2012-10-31 --wait")
        moved = deskbus("cycle request --kind exit --as-of 2012-11-02 --universe IBM --wait")
        shown = deskbus("portfolio")
        checked = deskbus("exit-signals check AAPL --format full --json")
        later = deskbus("cycle request --kind exit --as-of 2012-11-09 --universe IBM --wait")
        after = deskbus("portfolio --json")
        triggered = after.rows[0]["fills"][0]["session"]
        waiting, done = deskbus("report 2012-11-02"), deskbus(f"report {triggered}")

    assert (exited.code, moved.code, later.code) == (0, 0, 0)
    assert "1 stop placed" in exited.out
    assert "open order: sell 17 AAPL" in shown.out
    assert checked.rows[0]["position"]["open_orders"] == [
        {
            "side": "sell",
            "quantity": 17,
            "order_type": "stop",
            "stop_price": "565.56",
            "stop_currency": "USD",
        }
    ]
    (books,) = after.rows
    assert books["portfolio"]["positions"] == []
    assert books["portfolio"]["open_orders"] == []
    assert books["fills"][0]["quantity"].startswith("17")
    assert "| AAPL    |     17 | 565.56 USD | Wed 2012-10-31 |" in waiting.out
    assert "| sell at its stop |     17 | AAPL  |" in done.out
    assert "stop on" not in done.out
