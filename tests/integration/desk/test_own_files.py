"""Market files of one's own: one that cannot be used costs its ticker, never the desk."""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.desk.command_line import CommandLine, Said, ended, up

BUYS = '{"risk_per_trade_pct_max": 100, "volatility_pct_max": 100, "exits_veto_buys": false}'
ROW = "2012-03-12,abc,1,1,1,1,0,1"
WHY = "line 300: open is 'abc': not a number"


@dataclass(frozen=True)
class Told:
    """What the commands said while one file, then also that of a held share, was bad."""

    check: Said
    started: str
    status: Said
    broken_rules: Said
    check_of_rules: Said
    exits: Said
    judged: Said
    doctor_of_rules: Said
    bought: Said
    doctor: Said
    held: Said
    portfolio: Said
    sold: Said


@pytest.fixture(scope="module")
def told(make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("own")
    settings = (
        ("DESKBUS_MARKET_REPLAY_DIR", str(folder / "data")),
        ("DESKBUS_LIMITS", BUYS),
    )
    deskbus = CommandLine(make_open_dir() / "desk", folder, settings)
    assert deskbus("init").code == 0
    (folder / "exit_signals.toml").write_text("[default]\nstop_pct = 1\n")
    (folder / "data" / "ACME (1).csv").write_text('junk;"')
    spoil(folder / "data" / "IBM.csv")
    check = deskbus("check")
    with up(deskbus) as (process, _):
        bought = deskbus("cycle request --as-of 2012-06-22 --wait")
        doctor = deskbus("doctor --json")
        status = deskbus("status")
        rules = folder / "exit_signals.toml"
        whole = rules.read_text()
        rules.write_text("[default]\nstop_pc = 1\n[default.hold_period]\nsessions = 0\n")
        broken_rules = deskbus("status")
        check_of_rules = deskbus("check")
        exits = deskbus("exit-signals distances --json")
        judged = deskbus("cycle request --as-of 2012-06-25 --wait --json")
        doctor_of_rules = deskbus("doctor --json")
        rules.write_text(whole)
        started = ended(process, signal.SIGINT).err
    spoil(folder / "data" / "AAPL.csv")
    with up(deskbus) as (process, _):
        held = deskbus("cycle request --as-of 2012-06-29 --wait --json")
        portfolio = deskbus("portfolio main --json")
        sold = deskbus("cycle request --kind exit --as-of 2012-07-24 --wait --json")
        ended(process, signal.SIGINT)
    rules_said = (broken_rules, check_of_rules, exits, judged, doctor_of_rules)
    return Told(check, started, status, *rules_said, bought, doctor, held, portfolio, sold)


def spoil(path: Path) -> None:
    lines = path.read_text().splitlines()
    lines[299] = ROW
    path.write_text("\n".join([*lines, ""]))


def orders_of(contracts: Mapping[str, Any]) -> Sequence[Any]:
    executed = contracts.get("execution_result") or {}
    return [it for it in executed.get("orders", ()) if it.get("kind") != "stop"]


def test_check_names_each_file_and_its_fault_without_a_desk(told: Told) -> None:
    assert told.check.code == 1
    assert f"IBM.csv, {WHY}" in told.check.err
    assert "prices of AAPL" in told.check.out
    assert "its name is not a ticker; it is ignored" in told.check.out


def test_a_bad_file_is_named_at_the_start_by_doctor_and_in_the_decision(told: Told) -> None:
    assert f"IBM.csv, {WHY}" in told.started
    assert "ACME (1).csv" in told.started
    checks = {each["name"]: each["said"] for each in told.doctor.rows}
    assert f"IBM.csv, {WHY}" in checks["market files"]
    assert f"IBM.csv, {WHY}" in " ".join(told.status.out.split())
    assert told.bought.code == 0
    assert f"IBM: bad_replay_data: IBM.csv, {WHY}" in " ".join(told.bought.out.split())


def test_exit_rules_that_broke_after_the_start_are_a_line_of_status(told: Told) -> None:
    assert "exit rules" not in told.status.out
    shown = " ".join(told.broken_rules.out.split())
    assert "exit rules exit_signals.toml " in shown
    assert "default.stop_pc: " in shown
    assert "default.hold_period.sessions: " in shown
    assert "the desk keeps using the exit rules it has" in shown


def test_a_running_desk_keeps_the_last_good_exit_rules_and_says_so(told: Told) -> None:
    fault = "default.stop_pc: unknown field"
    assert told.check_of_rules.code == 1
    assert fault in " ".join(told.check_of_rules.err.split())
    assert told.exits.code == 0
    assert fault in " ".join(told.exits.rows[0]["warnings"])
    rules = next(row for row in told.doctor_of_rules.rows if row["name"] == "exit rules")
    assert fault in rules["said"]
    assert "a running desk keeps its current rules" in str(rules)


def test_a_decision_says_that_the_last_good_exit_rules_judged_its_buys(told: Told) -> None:
    contracts = told.judged.rows[0]["pipelines"][0]["contracts"]
    fault = "the exit rules read before stand: exit_signals.toml cannot be used"
    for where in (
        contracts["research_report"]["tickers"],
        contracts["decision_validation"]["evidence"],
    ):
        assert where
        assert all(fault in each["exits_note"] for each in where)


def test_a_held_share_whose_file_is_bad_makes_the_equity_incomplete_and_nothing_is_bought(
    told: Told,
) -> None:
    (view,) = told.held.rows
    assert view["status"] == "completed"
    contracts = view["pipelines"][0]["contracts"]
    assert WHY in contracts["portfolio"]["incomplete"]
    assert not [it for it in orders_of(contracts) if it["side"] == "buy"]
    incomplete = told.portfolio.rows[0]["portfolio"]
    held = {each["ticker"]: each.get("priced_on") for each in incomplete["positions"]}
    assert held["AAPL"] is not None, "it counts at its last known close"
    assert held["MSFT"] is None


def test_other_shares_are_still_sold(told: Told) -> None:
    (view,) = told.sold.rows
    assert view["status"] == "completed"
    contracts = view["pipelines"][0]["contracts"]
    assert [it["ticker"] for it in contracts["portfolio"]["positions"]] == ["AAPL"], (
        "MSFT was sold at its stop"
    )
    assert f"AAPL.csv, {WHY}" in str(contracts["exit_report"]).replace("\\'", "'")


def test_without_listings_a_desk_buys_nothing_and_still_sells(
    make_open_dir: Callable[[], Path], tmp_path: Path
) -> None:
    settings = (("DESKBUS_MARKET_REPLAY_DIR", str(tmp_path / "data")), ("DESKBUS_LIMITS", BUYS))
    deskbus = CommandLine(make_open_dir() / "desk", tmp_path, settings)
    assert deskbus("init").code == 0
    (tmp_path / "exit_signals.toml").write_text("[default]\nstop_pct = 1\n")
    with up(deskbus) as (process, _):
        assert deskbus("cycle request --as-of 2012-06-22 --wait").code == 0
        ended(process, signal.SIGINT)
    (tmp_path / "data" / "sectors.csv").write_bytes(b"PK\x03\x04no table")
    assert "sectors.csv" in deskbus("check").err
    with up(deskbus) as (process, _):
        (held,) = deskbus("cycle request --as-of 2012-06-29 --wait --json").rows
        shown = deskbus("status").out + deskbus("doctor").out
        (sold,) = deskbus("cycle request --kind exit --as-of 2012-07-24 --wait --json").rows
        ended(process, signal.SIGINT)
    assert shown.count("sectors.csv") >= 2
    assert (held["status"], sold["status"]) == ("completed", "completed")
    before, after = (it["pipelines"][0]["contracts"] for it in (held, sold))
    assert "sectors.csv" in before["portfolio"]["incomplete"]
    assert not [it for it in orders_of(before) if it["side"] == "buy"]
    assert len(after["portfolio"]["positions"]) < len(before["portfolio"]["positions"])
