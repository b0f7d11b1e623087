"""The tables of scores, rules and constraints in docs/risk.md, made from the code."""

from collections.abc import Callable, Mapping

from contracts.account import AccountLimits
from contracts.constraints import ENFORCED, TAKES
from libs.quant.risk.constraints import CONSTRAINT_CEILINGS, CONSTRAINT_GATES, SALE_CEILINGS
from libs.quant.risk.evaluation import ONE_PICK_PER_TICKER, WHOLE_SHARES
from libs.quant.risk.rules import (
    ALLOCATION_PCT_MAX,
    BUY_CEILINGS,
    BUY_GATES,
    EXIT_GATES,
    LEAST_SIZE,
    SELL_GATES,
)
from libs.quant.risk.score import STEPS
from libs.quant.sizing import CASH_RESERVE_BPS
from services.risk.logic import REVIEW, REVIEW_ONLY_REDUCES

LIMITS = AccountLimits()
LETS_PASS: Mapping[str, str] = {
    "halted": "no halt",
    "equities_only": "equities",
    "research_evidence": "one finding with a price that cites a tool result",
    "own_reason": "one reason that names a fact of its own ticker",
    "exchange_rate": "a rate into the account's currency, at most 7 days old",
    "risk_needs_catalyst": (
        f"a risk score over {LIMITS.risk_score_max:g} of 10 only with a dated event"
    ),
    "no_doubling_down": "nothing held, nothing ordered",
    "not_being_sold": "no open sale of it",
    "exit_rules": "no exit rule of the account that would sell it at the same close",
    "cooling_off": f"{LIMITS.cooling_off_sessions} sessions after a sale",
    "daily_loss": f"at most {LIMITS.daily_loss_pct_max}% of equity lost in the session",
    "tick_size": ("a tick of at most 1% of the price ([fills](portfolio.md#orders-and-fills))"),
    "price_drift": f"at most {LIMITS.price_move_pct_max}% either way since research",
    "report_window": (
        f"no report within {LIMITS.report_sessions} sessions; passes, and says so, without a "
        "calendar"
    ),
    "allocation_total": f"{ALLOCATION_PCT_MAX}% of the budget",
    "sector_allocation": (
        f"{LIMITS.sector_pct_max}% of the allocations; all unknown sectors count as one"
    ),
    "sector_exposure": f"{LIMITS.sector_pct_max}% of equity, with what is held",
    "one_share_class": "of several buys of one issuer the largest",
    "position_size": f"{LIMITS.position_pct_max}% of equity",
    "order_size": f"{LIMITS.order_pct_max}% of equity",
    "gross_exposure": f"{LIMITS.gross_exposure_pct_max}% of equity",
    "cash": f"free cash less {CASH_RESERVE_BPS / 100:g}% for fee, slippage and a small gap",
    "risk_per_trade": (
        f"{LIMITS.risk_per_trade_pct_max}% of equity lost at the stop, times the confidence, "
        "recalibrated where that is lower (at least half)"
    ),
    "account_volatility": f"{LIMITS.volatility_pct_max}% a year, of holdings and all buys",
    "cluster_exposure": (
        f"{LIMITS.cluster_pct_max}% of equity in what moves together, with what is held"
    ),
    "least_size": (
        f"{LIMITS.position_shares_min} shares and {LIMITS.position_value_min} of the account's "
        "currency, after all other rules"
    ),
    "something_to_sell": "some of it held, with a price, and not promised",
    "one_exit_a_session": "no open sale of it",
}
"""What each rule lets pass by default, for people."""
SHAPED: Mapping[str, tuple[str, str]] = {
    WHOLE_SHARES: (
        "one share, or one [lot](own-data.md); a sale: any part of a share that is held",
        "less cannot be ordered",
    ),
    ONE_PICK_PER_TICKER: ("one a side", "of several picks for one ticker the smallest counts"),
    REVIEW: (
        "what the review leaves of the trader's pick",
        "the model that reviews may cut and veto",
    ),
    REVIEW_ONLY_REDUCES: (
        "the trader's pick",
        "it may never raise or add: what it raises is cut back, what it adds is dropped",
    ),
}
"""Rules of both sides that are no row of the rules' table: what they let pass, and why."""
LOWERS: Mapping[str, str] = {
    "max_sector_pct": "lowers `sector_pct_max` for this cycle",
    "max_risk_score": "lowers `risk_score_max` for this cycle",
}
"""Constraints that lower a limit and need no rule of their own."""


def score() -> str:
    """One row a step of the desk's own risk score."""
    head = ["| score | volatility from | drawdown from | meaning |", "| --- | --- | --- | --- |"]
    rows = [
        f"| {step.score:g} | {step.volatility_pct:g}% | {step.drawdown_pct:g}% | {step.meaning} |"
        for step in STEPS
    ]
    return "\n".join([*head, *rows])


def rules() -> str:
    """One row a rule: the side that it judges, what passes by default, and why it is there."""
    buys = {rule.name: rule.why for rule in (*BUY_GATES, *BUY_CEILINGS, LEAST_SIZE)}
    sales = {rule.name: rule.why for rule in SELL_GATES}
    exits = {rule.name: rule.why for rule in EXIT_GATES}
    rows = []
    for name, why in {**buys, **sales, **exits}.items():
        if name in buys and name in sales:
            side = "both"
        else:
            side = "buys" if name in buys else "sales" if name in sales else "exits"
        rows.append((name, side, LETS_PASS[name], why))
    rows += [(name, "both", *words) for name, words in SHAPED.items()]
    return _table("rule", "passes by default", rows)


def constraints() -> str:
    """One row a constraint that code enforces: its side, what it takes, and why it is there."""
    every = (*CONSTRAINT_GATES, *CONSTRAINT_CEILINGS, *SALE_CEILINGS)
    why = {**LOWERS, **{rule.name: rule.why for rule in every}}
    of_sales = {rule.name for rule in SALE_CEILINGS}
    rows = [
        (name, "sales" if name in of_sales else "buys", TAKES[name], why[name]) for name in ENFORCED
    ]
    return _table("constraint", "takes", rows)


def _table(first: str, third: str, rows: list[tuple[str, str, str, str]]) -> str:
    head = [f"| {first} | on | {third} | why it is there |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *(f"| `{row[0]}` | {' | '.join(row[1:])} |" for row in rows)])


TABLES: Mapping[str, Callable[[], str]] = {
    "score": score,
    "rules": rules,
    "constraints": constraints,
}
"""The page's tables by the name in their marks."""
