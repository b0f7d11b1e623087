"""Whole cycles in which agents make facts up: no limit asks a model what is so.

The agents answer freely, as a model would, with fields that nobody asked them for; everything else
is as shipped.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from contracts.cycle import CycleRequest, CycleStatus
from libs.llm.rules.provider import RULE_SETS
from libs.llm.rules.rule_set import EvidenceIndex, TaskData
from libs.runtime.settings import Settings
from tests.fakes.in_process_desk import InProcessDesk, broker_of_the_imagination
from tests.fakes.reasons import drafted
from tests.flow.conftest import thinking_routes

AS_OF = date(2012, 6, 29)
NO_EXIT = date(2012, 8, 31)
"""No exit rule would sell any of the four at this close."""
EQUITY = Decimal(100_000)
SECTOR = "Information Technology"
"""Of all that the bundled prices hold."""


class Said(BaseModel):
    """An answer with whatever fields a model writes."""

    model_config = ConfigDict(extra="allow")


def invents(task: TaskData, found: EvidenceIndex) -> Said:
    """Findings in which each ticker has a sector, a date and a price of its own, and no risk."""
    told: Any = RULE_SETS["analyst"].answer(task, found).model_dump(mode="json")
    for each in told["tickers"]:
        ticker = each["ticker"]
        each |= {"technical_score": 10, "fundamental_score": 10, "risk_score": 0}
        each |= {"sector": f"sector-{ticker}", "currency": "USD", "measured_risk": 0}
        price = found.result("get_stock_price", ticker)["price"]
        each |= {"reasons": [{"fact": f"{ticker}.close", "speaks": "for"}]}
        each |= {"current_price": price, "catalyst": "an exceptional takeover"}
    return Said(**told)


def buys_all(task: TaskData, _: EvidenceIndex) -> Said:
    """A quarter of the budget for each of the first four tickers researched."""
    report: Any = task["research_report"]
    picks = [
        {"ticker": each["ticker"], "action": "buy", "allocation_pct": "25", "confidence": 1}
        | {"reasons": [drafted(each["ticker"])], "exchange": "XMOON"}
        for each in report["tickers"][:4]
    ]
    return Said(picks=picks, confidence=1, answer="up")


def agrees(task: TaskData, _: EvidenceIndex) -> Said:
    """A reviewer that keeps all as it is."""
    daily: Any = task["daily_picks"]
    return Said(picks=daily["picks"], confidence=1)


@pytest.fixture
def inventing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Mapping[str, Callable[[TaskData, EvidenceIndex], BaseModel]] = {
        "analyst": invents,
        "trader": buys_all,
        "risk_review": agrees,
    }
    sets = {name: replace(RULE_SETS[name], answer=answer) for name, answer in answers.items()}
    monkeypatch.setattr("libs.llm.rules.provider.RULE_SETS", {**RULE_SETS, **sets})


async def decided(**fields: Any) -> tuple[InProcessDesk, list[Any], Mapping[str, Any]]:
    """A desk after one cycle, its decisions, and what the rules changed by their names."""
    settings = Settings()
    desk = InProcessDesk([*await thinking_routes(settings), *broker_of_the_imagination()], settings)
    asked = CycleRequest(**{"idempotency_key": "a", "as_of": AS_OF, **fields})
    ended = await desk.run(asked)
    assert ended.state.status is CycleStatus.COMPLETED, ended.state.reason
    validation: Any = desk.contract("validate")
    changed = {each["rule"]: each for each in validation["checks"] if not each["passed"]}
    return desk, validation["decisions"], changed


@pytest.mark.usefixtures("inventing")
async def test_a_sector_of_its_own_for_each_ticker_passes_no_sector_limit() -> None:
    """F1: 98.7% of equity went into one sector, which the model had called four."""
    desk, decisions, changed = await decided(as_of=NO_EXIT)
    bought = sum(Decimal(each["quantity"]) * Decimal(each["price"]["amount"]) for each in decisions)
    assert 0 < bought <= EQUITY / 2
    assert "sector_allocation" in changed
    research: Any = desk.contract("analyst")
    assert {each["sector"] for each in research["tickers"]} == {SECTOR}
    assert research["sectors_analyzed"] == [SECTOR]


@pytest.mark.usefixtures("inventing")
async def test_a_share_that_is_risky_by_its_prices_is_not_bought_on_a_claim() -> None:
    """Facebook had 30 sessions of prices: nobody can know its risk, whatever is said of it."""
    desk, decisions, changed = await decided(universe=("FB",))
    assert decisions == []
    assert changed["risk_needs_catalyst"]["value"] == "10 (research 0, prices 10), no dated event"
    finding: Any = desk.contract("analyst")["tickers"][0]  # type: ignore[index]
    assert (finding["risk_score"], finding["measured_risk"]) == (0, 10)
    assert (finding["catalyst"], finding["catalyst_event"]) == ("", None)


@pytest.mark.usefixtures("inventing")
@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("max_positions", "1", "max_positions"),
        ("max_allocation_pct", "5%", "max_allocation_pct"),
        ("max_sector_pct", "10", "sector_allocation"),
        ("max_risk_score", "1", "risk_needs_catalyst"),
        ("exclude_tickers", "aapl, goog", "exclude_tickers"),
        ("exclude_sectors", SECTOR, "exclude_sectors"),
        ("no_buys", "true", "no_buys"),
    ],
)
async def test_a_constraint_of_the_request_binds_whatever_the_agents_want(
    key: str, value: str, rule: str
) -> None:
    _, decisions, changed = await decided(constraints={key: value})
    assert rule in changed
    bought = {each["asset"]: Decimal(each["allocation_pct"]) for each in decisions}
    held = {
        "max_positions": len(bought) == 1,
        "max_allocation_pct": bought and max(bought.values()) <= 5,
        "max_sector_pct": bought and sum(bought.values()) <= 10,
        "max_risk_score": not bought,
        "exclude_tickers": bought and not {"AAPL", "GOOG"} & set(bought),
        "exclude_sectors": not bought,
        "no_buys": not bought,
    }
    assert held[key]


@pytest.mark.usefixtures("inventing")
async def test_a_constraint_of_the_plan_tightens_and_never_loosens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def plans(task: TaskData, found: EvidenceIndex) -> Said:
        plan: Any = RULE_SETS["planner"].answer(task, found).model_dump(mode="json")
        limits = {"max_positions": 2, "max_allocation_pct": 100, "max_risk_score": "careful"}
        return Said(**{**plan, "limits": limits, "remarks": ["be careful"]})

    sets = {**RULE_SETS, "planner": replace(RULE_SETS["planner"], answer=plans)}
    for name, answer in (("analyst", invents), ("trader", buys_all), ("risk_review", agrees)):
        sets[name] = replace(RULE_SETS[name], answer=answer)
    monkeypatch.setattr("libs.llm.rules.provider.RULE_SETS", sets)
    desk, decisions, changed = await decided(
        as_of=NO_EXIT, constraints={"max_allocation_pct": "10"}
    )
    assert len(decisions) == 2
    assert changed["max_positions"]["limit"] == "2 positions"
    assert all(Decimal(each["allocation_pct"]) <= 10 for each in decisions)
    stated: Any = desk.contract("validate")
    assert stated["constraints"]["max_positions"] == 2
    assert Decimal(stated["constraints"]["max_allocation_pct"]) == 10


async def test_without_a_headline_no_model_is_asked_how_it_is_spoken_of() -> None:
    desk, _, _ = await decided()
    report: Any = desk.contract("sentiment")
    assert report["tickers"] == []
    assert {each["ticker"] for each in report["unscored"]} >= {"AAPL", "GOOG", "IBM", "MSFT"}
    assert all(
        "news" in each["reason"] or "headline" in each["reason"] for each in report["unscored"]
    )
    assert desk.named("sentiment").journal == []
