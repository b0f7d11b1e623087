"""docs/risk.md says what the code does: each rule with its reason, each limit with its default."""

from pathlib import Path

import pytest

from contracts.account import AccountLimits
from contracts.constraints import ENFORCED, TAKES
from libs.quant.risk.constraints import CONSTRAINT_CEILINGS, CONSTRAINT_GATES, SALE_CEILINGS
from libs.quant.risk.evaluation import ONE_PICK_PER_TICKER, WHOLE_SHARES
from libs.quant.risk.facts import RiskRule
from libs.quant.risk.rules import (
    ALLOCATION_PCT_MAX,
    BUY_CEILINGS,
    BUY_GATES,
    EXIT_GATES,
    LEAST_SIZE,
    SELL_GATES,
)
from libs.quant.sizing import CASH_RESERVE_BPS
from services.risk.logic import REVIEW, REVIEW_ONLY_REDUCES

LIMITS = AccountLimits()
RULES = {rule.name: rule for rule in (*BUY_GATES, *BUY_CEILINGS, LEAST_SIZE, *EXIT_GATES)}
FURTHER = {WHOLE_SHARES, ONE_PICK_PER_TICKER, REVIEW, REVIEW_ONLY_REDUCES}
DEFAULTS = {
    "risk_needs_catalyst": f"over {LIMITS.risk_score_max:g} of 10",
    "daily_loss": f"{LIMITS.daily_loss_pct_max}% of equity",
    "cooling_off": f"{LIMITS.cooling_off_sessions} sessions after a sale",
    "price_drift": f"{LIMITS.price_move_pct_max}% either way",
    "allocation_total": f"{ALLOCATION_PCT_MAX}% of the budget",
    "sector_allocation": f"{LIMITS.sector_pct_max}% of the allocations",
    "sector_exposure": f"{LIMITS.sector_pct_max}% of equity",
    "position_size": f"{LIMITS.position_pct_max}% of equity",
    "order_size": f"{LIMITS.order_pct_max}% of equity",
    "gross_exposure": f"{LIMITS.gross_exposure_pct_max}% of equity",
    "one_share_class": "of several buys of one issuer the largest",
    "exit_rules": "no exit rule of the account that would sell it",
    "report_window": f"{LIMITS.report_sessions} sessions",
    "risk_per_trade": f"{LIMITS.risk_per_trade_pct_max}% of equity",
    "account_volatility": f"{LIMITS.volatility_pct_max}% a year",
    "cluster_exposure": f"{LIMITS.cluster_pct_max}% of equity",
    "least_size": f"{LIMITS.position_shares_min} shares and {LIMITS.position_value_min} of",
    "cash": f"less {CASH_RESERVE_BPS / 100:g}% for fee",
}
"""How the page words the default of each rule that has a number."""


@pytest.fixture
def rows() -> dict[str, list[str]]:
    """The cells of the page's table rows, by the name in the first one."""
    page = Path(__file__).parents[4] / "docs/risk.md"
    lines = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_the_page_has_every_rule_and_every_limit_and_no_other(rows):
    assert set(rows) == {*RULES, *FURTHER, *AccountLimits.model_fields, *ENFORCED}


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_each_rule_stands_there_with_its_side_and_its_reason(rows, rule: RiskRule):
    on, _, why = rows[rule.name]
    buys = rule.name in {each.name for each in (*BUY_GATES, *BUY_CEILINGS, LEAST_SIZE)}
    sales = rule.name in {each.name for each in SELL_GATES}
    if rule.name in {each.name for each in EXIT_GATES} - {each.name for each in SELL_GATES}:
        assert (on, why) == ("exits", rule.why)
        return
    assert on == {(True, True): "both", (True, False): "buys", (False, True): "sales"}[buys, sales]
    assert why == rule.why


@pytest.mark.parametrize("name", ENFORCED)
def test_each_constraint_stands_there_with_what_it_takes(rows, name):
    side = "sales" if name in {rule.name for rule in SALE_CEILINGS} else "buys"
    assert rows[name][:2] == [side, TAKES[name]]
    every = (*CONSTRAINT_GATES, *CONSTRAINT_CEILINGS, *SALE_CEILINGS)
    rules = {rule.name: rule.why for rule in every}
    assert rows[name][2] == rules.get(name, rows[name][2])


@pytest.mark.parametrize("name", DEFAULTS)
def test_each_rules_default_is_the_codes(rows, name):
    assert DEFAULTS[name] in rows[name][1]


@pytest.mark.parametrize("name", AccountLimits.model_fields)
def test_each_limits_default_is_the_codes(rows, name):
    value = getattr(LIMITS, name)
    assert rows[name][0] == (str(value).lower() if isinstance(value, bool) else f"{value:g}")
