"""From proposed exits to a validated proposal. Pure."""

from contracts.account import Side
from contracts.exit_signal import ExitCheck
from contracts.risk import (
    Check,
    DecisionValidation,
    ExitPlan,
    PortfolioDecision,
    ValidateExits,
)
from contracts.trader import StockPick
from libs.quant.risk.evaluation import evaluate, proposal_hash
from libs.quant.risk.rules import EXIT_GATES

STRATEGY = "exit_signals"
PROPOSALS_TOLD_MAX = 100
"""Of more proposals only those checks are told that changed something: else they fill a message."""


def validate(command: ValidateExits) -> DecisionValidation:
    """Judge the proposed sales by the rules for exits, and size them again."""
    portfolio = command.portfolio
    proposed = {
        check.ticker: check
        for check in command.exit_report.checks
        if check.quantity is not None and check.sell_pct is not None
    }
    picks = tuple(map(_pick, proposed.values()))
    verdict = evaluate(
        picks, {}, portfolio, portfolio.limits, None, {}, strategy=STRATEGY, sell_gates=EXIT_GATES
    )
    decisions = tuple(_exit(decision, proposed[decision.asset]) for decision in verdict.decisions)
    return DecisionValidation.of(
        command,
        synthetic=command.portfolio.synthetic,
        passed=bool(decisions),
        checks=_shortened(verdict.checks, len(picks)),
        decisions=decisions,
        adjustments=verdict.adjustments,
        vetoed_tickers=verdict.vetoed,
        proposal_hash=proposal_hash(decisions),
        proposals=picks,
        limits=portfolio.limits,
    )


def _pick(check: ExitCheck) -> StockPick:
    if check.sell_pct is None:
        raise ValueError(f"{check.ticker} has no sale to propose")
    fired = [signal.severity for signal in check.signals if signal.triggered and signal.primary]
    return StockPick(
        ticker=check.ticker,
        action=Side.SELL,
        allocation_pct=check.sell_pct,
        reasoning=check.assessment,
        confidence=max(fired, default=0.0),
    )


def _exit(decision: PortfolioDecision, check: ExitCheck) -> PortfolioDecision:
    """The sale as the check asked for it: a percentage has too few places for many shares."""
    asked = decision.quantity if check.quantity is None else check.quantity
    plan = ExitPlan(stop_price=check.stop_price, acts=check.acts)
    quantity = min(decision.quantity, asked)
    return decision.model_copy(update={"quantity": quantity, "exit": plan})


def _shortened(checks: tuple[Check, ...], proposals: int) -> tuple[Check, ...]:
    if proposals <= PROPOSALS_TOLD_MAX:
        return checks
    return tuple(check for check in checks if not check.passed)
