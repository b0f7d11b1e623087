"""The rules provider: deterministic, capped, labelled, and honest about what it does not know."""

import pytest

from contracts.reasons import Speaks
from contracts.types import ToolDef
from libs.llm.agent import Role
from libs.llm.errors import ProviderFault, ProviderUnknown
from libs.llm.portfolio_tool import PortfolioTool
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelRequest, ModelSize
from libs.llm.rules.coin import CoinProvider
from libs.llm.rules.provider import RULE_SETS, RulesProvider
from libs.llm.rules.rule_set import CONFIDENCE_MAX, EvidenceIndex, confidence
from libs.llm.rules.technical import RISK_UNKNOWN, risk_score, vote

UP = {"close": 120.0, "sma_50": 110.0, "sma_200": 100.0, "macd_histogram": 1.0}


def test_every_vote_counts_for_its_side():
    assert vote({**UP, "momentum_3m_pct": 12.0}).net == 5
    down = {"close": 80.0, "sma_50": 90.0, "sma_200": 100.0, "macd_histogram": -1.0}
    assert vote({**down, "momentum_3m_pct": -12.0}).net == -5


def test_moves_within_the_noise_do_not_vote():
    noise = vote({**UP, "macd_histogram": 0.01, "momentum_3m_pct": 4.9})
    assert (noise.bull, noise.bear, noise.cast) == (3, 0, 5)


def test_indicators_that_are_absent_cast_no_vote():
    assert vote({"close": 10.0}).cast == 0


def known(**values: float) -> EvidenceIndex:
    return EvidenceIndex((), {f"A.{name}": value for name, value in values.items()})


def test_risk_grows_with_volatility_drawdown_and_an_extreme_rsi():
    calm, _ = risk_score("A", known(volatility_3m_pct=15.0, rsi_14=50.0, below_high_pct=0.0))
    hot, reasons = risk_score("A", known(volatility_3m_pct=40.0, rsi_14=75.0, below_high_pct=20.0))
    assert calm < hot
    assert [(each.fact, each.speaks) for each in reasons] == [
        ("A.volatility_3m_pct", Speaks.AGAINST),
        ("A.below_high_pct", Speaks.AGAINST),
        ("A.rsi_14", Speaks.AGAINST),
    ]


def test_an_unknown_volatility_is_a_risk_above_the_limit():
    assert risk_score("A", known())[0] == RISK_UNKNOWN > 7


def test_rules_never_claim_more_than_their_cap():
    assert confidence(9.0) == CONFIDENCE_MAX
    assert confidence(-1.0) == 0.0


async def test_an_agent_without_rules_is_a_fault_that_names_those_with():
    request = ModelRequest(
        agent="astrologer", model="rules", system="", system_sha256="", messages=()
    )
    with pytest.raises(ProviderFault, match="analyst"):
        await RulesProvider().complete(request)


def test_rules_are_free_and_every_agent_has_a_set():
    assert set(RULE_SETS) == {
        "sentiment",
        "planner",
        "quant",
        "analyst",
        "trader",
        "risk_review",
        "memory",
        "designer",
        "assessor",
    }


async def test_the_portfolio_tool_shows_the_own_account_whatever_name_is_asked(desk_portfolio):
    tool = PortfolioTool(desk_portfolio)
    mine = await tool.call("get_portfolio", {})
    other = await tool.call("get_portfolio", {"llm_name": "claude", "account": "rich"})
    assert mine == other
    assert mine["cash"] == str(desk_portfolio.cash.amount)
    [definition] = tool.definitions()
    assert isinstance(definition, ToolDef)


def test_an_unknown_provider_names_what_the_desk_has(make_plan_command):
    role = Role("planner", "planner", ModelSize.MEDIUM, Prompt.of(""), {"rules": RulesProvider()})
    command = make_plan_command(provider="gpt")
    with pytest.raises(ProviderUnknown, match="this desk has rules"):
        role.played_for(command)


def test_a_pipeline_may_name_the_model_of_a_stage(make_plan_command):
    role = Role("planner", "planner", ModelSize.MEDIUM, Prompt.of(""), {"rules": RulesProvider()})
    assert role.played_for(make_plan_command()).model == "rules"
    assert role.played_for(make_plan_command(models={"planner": "own-1"})).model == "own-1"


def test_a_stage_that_is_given_to_another_provider_is_answered_by_its_own_model(make_plan_command):
    providers = {"rules": RulesProvider(), "coin": CoinProvider()}
    role = Role("planner", "planner", ModelSize.MEDIUM, Prompt.of(""), providers)
    command = make_plan_command(provider="coin", models={"planner": "own-1"})
    assert role.played_for(command).model == "own-1"

    pipeline = command.pipeline.model_copy(update={"stages": {"planner": "rules"}})
    agent = role.played_for(command.model_copy(update={"pipeline": pipeline}))

    assert (agent.provider.name, agent.model) == ("rules", "rules")
