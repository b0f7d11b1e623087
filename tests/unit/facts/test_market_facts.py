"""Every market tool's result is laid out as facts, each with where and of when it is."""

import re
from datetime import date
from pathlib import Path

import pytest

from libs.facts.fact import FactIndex
from libs.facts.market import AGE_DAYS_MAX, LAYOUTS, ToolAnswer, market_facts
from libs.facts.written import value_of
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from tests.data.fixture_market.make_fixture import HERE as FIXTURE_DIRECTORY

AS_OF = date(2024, 3, 15)
SEEN = {
    "get_stock_price": "ALFA.close",
    "get_technical_indicators": "ALFA.sma_200",
    "get_stock_history": "ALFA.change_5d_pct",
    "get_fundamentals": "ALFA.pe_ratio",
    "get_earnings_calendar": "days_to_report",
    "get_earnings": "eps_actual",
    "get_news": "headline@",
    "get_filings": "filing@",
    "search_eu_stocks": ".sector",
}
ARGUMENTS = {
    "get_earnings_calendar": {},
    "search_eu_stocks": {"query": "a"},
    "get_stock_history": {"ticker": "ALFA", "days": 64},
}


async def facts_of(tool: str) -> FactIndex:
    market = ReplayMarket(ReplayStore(FIXTURE_DIRECTORY))
    result = await MarketTools(market, AS_OF, MARKET_TOOL_NAMES).call(
        tool, ARGUMENTS.get(tool, {"ticker": "ALFA"})
    )
    return FactIndex.of(market_facts([ToolAnswer("E3", tool, result)]))


def test_every_market_tool_has_a_layout():
    assert set(LAYOUTS) == MARKET_TOOL_NAMES


@pytest.mark.parametrize("tool", sorted(MARKET_TOOL_NAMES))
async def test_a_result_has_facts_that_say_where_they_are_from(tool):
    facts = await facts_of(tool)
    assert any(SEEN[tool] in name for name in facts.by_name)
    for name, each in facts.by_name.items():
        assert (each.name, each.call) == (name, "E3")
        assert each.label
        assert each.source
        assert each.known
        assert value_of(each)


async def test_changes_are_computed_from_the_history_over_stated_sessions():
    facts = await facts_of("get_stock_history")
    closes = {name: each for name, each in facts.by_name.items() if name.startswith("ALFA.close@")}
    assert len(closes) == 4
    before = min(closes.values(), key=lambda each: each.key.on)
    week = facts.by_name["ALFA.change_63d_pct"]
    high, fall = facts.by_name["ALFA.recent_high"], facts.by_name["ALFA.below_high_pct"]
    last = before.number * (1 + week.number / 100)
    assert last == pytest.approx(high.number * (1 - fall.number / 100), rel=1e-5)


async def test_a_headlines_source_is_its_publisher():
    facts = await facts_of("get_news")
    assert facts.publishers
    assert set(facts.publishers.values()) == {"Fixture Wire"}
    assert set(facts.publishers) == {name for name in facts.by_name if ".headline@" in name}


def test_errors_and_other_tools_results_have_no_facts():
    failed = ToolAnswer("E0", "get_stock_price", {"error": {"code": "x", "message": "y"}})
    other = ToolAnswer("E1", "save_assessment", {"ticker": "A", "price": 1})
    assert market_facts([failed, other]) == ()


@pytest.mark.parametrize(("ended", "is_offered"), [("2023-12-31", True), ("2014-12-31", False)])
def test_a_fact_too_old_for_its_kind_is_not_offered(ended, is_offered):
    figures = {
        "known_at": "2018-02-05",
        "currency": "USD",
        "eps_fiscal_year": 2.5,
        "fiscal_year_end": ended,
    }
    result = {"ticker": "AAA", "as_of": "2024-02-05", "figures": figures}
    facts = market_facts([ToolAnswer("E1", "get_fundamentals", result)])
    assert any(fact.key.quantity == "eps_fiscal_year" for fact in facts) is is_offered


def test_the_page_of_own_data_has_every_age_limit():
    page = (Path(__file__).parents[3] / "docs/own-data.md").read_text()
    section = page.partition("### How old a fact may be")[2].partition("###")[0]
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| [^|]+ \|$", section, re.MULTILINE)
    shown = {label: int(days) for labels, days in rows for label in labels.split(", ")}
    assert shown == AGE_DAYS_MAX


async def test_each_age_limit_names_a_label_that_facts_have():
    """A limit of a label that nothing has any more would let all of that kind through."""
    labels = {fact.label for tool in LAYOUTS for fact in (await facts_of(tool)).by_name.values()}
    assert AGE_DAYS_MAX.keys() - labels <= {"earnings per share (fiscal year)"}, "tested above"
