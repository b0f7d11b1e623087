"""The user's own risk rules: they cut and veto buys, and no fault of theirs lets one pass."""

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from contracts.account import Position, Side
from contracts.operation import JournalEntry
from contracts.plugins import BuyQuestion, PluginVerdict
from contracts.risk import DecisionAction, DecisionValidation, RuleOutcome
from contracts.types import Money
from libs.market.replay.market import ReplayMarket
from libs.market.replay.store import ReplayStore
from libs.quant.risk.evidence import evidence_of
from libs.quant.risk.facts import Leg, RiskFacts
from libs.quant.risk.plugins import plugin_ceilings, questions_of, verdict_of
from libs.runtime import plugin_process
from libs.runtime.journal import Journal, RecordedJournal
from libs.runtime.own_code import source_sha256
from libs.runtime.plugin_process import NOT_SET
from services.risk.handler import validate_decision
from tests.fakes.moves import calm
from tests.unit.services.risk.test_logic import (
    command,
    daily,
    finding,
    pick,
    research,
    review,
    validate,
)

D = Decimal
RULE = "my_rules:penny_stock"
SOURCE = """
def penny_stock(buy):
    if buy["price"] < 5:
        return 0, "costs less than 5"
    return 7, "seven are enough"

def raises(buy):
    raise RuntimeError("not today")
"""
HELD = Position(
    ticker="BBB",
    quantity=D(100),
    average_cost=Money(amount=D(10)),
    price=Money(amount=D(10)),
)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my_rules.py"
    file.write_text(SOURCE)
    return file


def asked(*plugins: str, price: int = 10) -> Any:
    """A buy of AAA and a sale of BBB."""
    sale = pick("BBB", 100, Side.SELL)
    wanted, found = pick("AAA", 20), finding("AAA", current_price=D(price))
    whole = command(
        daily(wanted, sells=(sale,)),
        review(wanted, sell_recommendations=(sale,)),
        research(found, finding("BBB")),
        (HELD,),
    )
    return whole.model_copy(update={"plugins": plugins})


def decided(
    wanted: Any, allowed: tuple[str, ...] = (RULE,), record: list[JournalEntry] | None = None
) -> DecisionValidation:
    kept = [] if record is None else record

    async def keep(entries: Any, *_: object) -> None:
        kept.extend(entries)

    async def run() -> DecisionValidation:
        journal = Journal((), keep)
        market = ReplayMarket(ReplayStore(None))
        result = await validate_decision(wanted, journal, market=market, plugins=allowed)
        await journal.flush()
        return result

    return asyncio.run(run())


def bought(validation: DecisionValidation) -> dict[str, Decimal]:
    buys = (it for it in validation.decisions if it.action is DecisionAction.BUY)
    return {it.asset: it.quantity for it in buys}


def sold(validation: DecisionValidation) -> dict[str, Decimal]:
    sales = (it for it in validation.decisions if it.action is DecisionAction.SELL)
    return {it.asset: it.quantity for it in sales}


@pytest.fixture
def calm_market(monkeypatch: pytest.MonkeyPatch) -> None:
    async def moves_read(*_: object) -> Any:
        return calm(("AAA", "BBB"))

    monkeypatch.setattr("services.risk.handler.moves_read", moves_read)


pytestmark = pytest.mark.usefixtures("module", "calm_market")


def test_rules_that_wait_too_long_hold_up_no_sale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_process, "ALL_S_MAX", 0.0)
    validation = decided(asked(RULE))
    assert (bought(validation), list(sold(validation))) == ({}, ["BBB"])
    (verdict,) = validation.plugins
    assert "not all was answered within 0 s" in verdict.reason
    assert verdict.sha256 == source_sha256(RULE.partition(":")[0])


def test_a_plug_in_cuts_a_buy_to_its_shares_and_is_named() -> None:
    # Seven shares of 100 are above the least size of 500.
    validation = decided(asked(RULE, price=100))
    assert bought(validation) == {"AAA": 7}
    (check,) = [it for it in validation.checks if it.rule == RULE]
    assert (check.outcome, check.limit) == (RuleOutcome.CUT, "7 shares")
    assert "seven are enough" in check.reason


def test_a_plug_in_vetoes_a_buy_and_sales_pass() -> None:
    free, bound = decided(asked(price=4)), decided(asked(RULE, price=4))
    assert bought(free)
    assert bought(bound) == {}
    assert sold(bound) == sold(free) == {"BBB": D(100)}
    (check,) = [it for it in bound.checks if it.rule == RULE]
    assert check.outcome is RuleOutcome.VETOED
    assert "costs less than 5" in check.reason
    assert "AAA" in bound.vetoed_tickers


def test_one_that_fails_vetoes_buys_alone_and_is_named() -> None:
    raises = "my_rules:raises"
    validation = decided(asked(raises), (raises,))
    assert bought(validation) == {}
    assert sold(validation) == {"BBB": D(100)}
    (check,) = [it for it in validation.checks if it.rule == raises]
    assert "RuntimeError: not today" in check.reason


@pytest.mark.parametrize("allowed", [(), (RULE,)])
def test_a_command_alone_runs_no_code(
    module: Path, tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    ran = tmp_path / "ran"
    module.write_text(f"open({str(ran)!r}, 'w')\n" + SOURCE)
    validation = decided(asked(RULE, price=100), allowed=allowed)
    assert ran.exists() is bool(allowed)
    assert bool(bought(validation)) is bool(allowed)
    assert (NOT_SET in validation.plugins[0].reason) is not bool(allowed)


def test_it_is_decided_again_from_the_record_without_the_plug_in(module: Path) -> None:
    record: list[JournalEntry] = []
    wanted = asked(RULE, price=100)
    first = decided(wanted, record=record)
    module.unlink()

    async def again() -> DecisionValidation:
        market = ReplayMarket(ReplayStore(None))
        return await validate_decision(wanted, RecordedJournal(record), market=market)

    assert asyncio.run(again()) == first
    assert len(first.plugins[0].sha256) == 64


def question() -> BuyQuestion:
    wanted = asked()
    evidence = evidence_of(wanted.research_report, wanted.quant_report, wanted.portfolio)
    (only,) = questions_of(validate(wanted).decisions, evidence, wanted.portfolio)
    return only


def test_a_question_is_plain_json_and_has_what_the_page_says() -> None:
    plain = json.loads(json.dumps(question().model_dump(mode="json")))
    assert plain["version"] == 1
    assert (plain["ticker"], plain["price"], plain["account"]) == ("AAA", 10.0, "main")
    assert plain["positions"][0] == {
        "ticker": "BBB",
        "quantity": 100.0,
        "price": 10.0,
        "value": 1000.0,
        "sector": "unknown",
    }


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        0,
        "0",
        [True, "yes"],
        ["3", "text"],
        [-1, "negative"],
        [10**9, "larger"],
        [float("nan"), "no number"],
        [float("inf"), "no number"],
        [3, ""],
        [3, " \n"],
        [3, None],
        [3, "why", "more"],
        {"ceiling": 3, "reason": "why"},
    ],
)
def test_what_is_no_quantity_with_a_reason_buys_nothing(answer: JsonValue) -> None:
    verdict = verdict_of(RULE, "", question(), answer)
    assert verdict.failed
    assert verdict.ceiling == 0
    assert verdict.reason.startswith("it gave no answer that counts: ")


def test_a_fraction_is_rounded_down_and_a_reason_is_one_line() -> None:
    verdict = verdict_of(RULE, "", question(), [3.9, "two\nlines\x1b[31m"])
    assert (verdict.ceiling, verdict.reason) == (3, "two lines [31m")


def test_a_plug_in_without_a_verdict_on_a_buy_allows_nothing_of_it() -> None:
    wanted = asked()
    facts = RiskFacts({}, wanted.portfolio, wanted.portfolio.limits, D(1000), {"AAA": D(10)})
    other = PluginVerdict(
        plugin=RULE, sha256="", ticker="ZZZ", asked=D(5), ceiling=D(5), reason="r"
    )
    leg = Leg("AAA", Side.BUY, D(50), pick("AAA", 50))
    rules = plugin_ceilings(("my_rules:newer",), (other,))
    assert [rule.name for rule in rules] == ["my_rules:newer", RULE]
    assert [rule.judge(leg, facts).allowed_pct for rule in rules] == [0, 0]


def test_shares_are_exact_whatever_percent_they_come_to() -> None:
    wanted = asked()
    facts = RiskFacts({}, wanted.portfolio, wanted.portfolio.limits, D(10**7), {"AAA": D("28.985")})
    verdict = PluginVerdict(
        plugin=RULE, sha256="", ticker="AAA", asked=D(50), ceiling=D(10), reason="r"
    )
    (rule,) = plugin_ceilings((), (verdict,))
    found = rule.judge(Leg("AAA", Side.BUY, D(50), pick("AAA", 50)), facts)
    assert found.shares_max == 10
    assert found.allowed_pct * facts.budget / 100 >= 10 * D("28.985")
