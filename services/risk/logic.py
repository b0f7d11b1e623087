"""From picks, review and research to a validated proposal. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from contracts.account import Side
from contracts.constraints import constraints_of
from contracts.facts import Moves
from contracts.plugins import PluginVerdict
from contracts.risk import (
    Check,
    DecisionValidation,
    PickReview,
    PortfolioDecision,
    Recalibration,
    RuleOutcome,
    ValidateDecision,
)
from contracts.trader import DailyPicks, Recalibrated, StockPick
from libs.facts.compose import carried
from libs.quant.recalibration import recalibrated, recalibration, unproven
from libs.quant.risk.evaluation import ONE_PICK_PER_TICKER, evaluate, proposal_hash
from libs.quant.risk.evidence import evidence_of
from libs.quant.risk.plugins import plugin_ceilings
from libs.runtime.errors import DeskError

PROVEN_FROM = 30
"""From so many outcomes of its own on a proposer's confidence is worth something."""
REVIEW = "review"
"""What the reviewer did to a pick: kept, cut or removed it."""
REVIEW_ONLY_REDUCES = "review_only_reduces"
"""What the reviewer may not do, and is cut back: raise a pick, or add one."""


class BudgetCurrencyMismatch(DeskError):
    """The budget is in another currency than the account."""

    code = "currency_mismatch"


@dataclass(frozen=True, slots=True)
class Clamped:
    """The trader's picks as the review left them, and what was done to the review itself."""

    picks: tuple[StockPick, ...]
    checks: tuple[Check, ...]
    adjustments: tuple[str, ...]
    removed: tuple[str, ...]


def validate(
    command: ValidateDecision, moves: Moves, verdicts: Sequence[PluginVerdict] = ()
) -> DecisionValidation:
    """Clamp the review to the trader's picks, then apply the rules. `moves` are those of all that
    is held or was researched, `verdicts` those of the user's own rules, once they were asked.
    Raises BudgetCurrencyMismatch.
    """
    portfolio, budget = command.portfolio, command.request.budgets.money
    if budget is not None and budget.currency != portfolio.cash.currency:
        raise BudgetCurrencyMismatch(
            f"the budget is in {budget.currency}, account {portfolio.account} in "
            f"{portfolio.cash.currency}: state the budget in {portfolio.cash.currency}"
        )
    asked_for, planned = command.request.constraints, command.plan.constraints
    constraints = constraints_of(asked_for).also(constraints_of(planned))
    clamped = clamp(command.daily_picks, command.pick_review)
    table = _recalibration(command)
    lowest = _unproven(command) if table is None else None
    proposals = tuple(_recalibrated(pick, table, lowest) for pick in clamped.picks)
    evidence = evidence_of(command.research_report, command.quant_report, portfolio)
    verdict = evaluate(
        proposals,
        {item.ticker: item for item in evidence},
        portfolio,
        portfolio.limits,
        budget,
        # Research and this account stand at the same session's close, so its prices are current.
        {item.ticker: item.price for item in evidence},
        moves=moves,
        constraints=constraints,
        strategy=command.pipeline.provider,
        own_ceilings=plugin_ceilings((), verdicts),
    )
    passed = {decision.asset for decision in verdict.decisions}
    cited = carried(command.daily_picks, _reasoning_fields(command.daily_picks, verdict.decisions))
    return DecisionValidation.of(
        command,
        synthetic=portfolio.synthetic,
        passed=bool(verdict.decisions),
        checks=(*clamped.checks, *verdict.checks),
        decisions=verdict.decisions,
        adjustments=(*clamped.adjustments, *verdict.adjustments),
        vetoed_tickers=tuple(sorted({*clamped.removed, *verdict.vetoed} - passed)),
        proposal_hash=proposal_hash(verdict.decisions),
        proposals=proposals,
        evidence=evidence,
        moves=moves,
        limits=portfolio.limits,
        budget=budget,
        constraints=constraints,
        figures=cited.figures,
        loose=cited.loose,
        recalibration=table,
        plugins=tuple(verdicts),
    )


def _recalibration(command: ValidateDecision) -> Recalibration | None:
    """The table by the outcomes that the account's last memory knows of."""
    stated = command.agent_memory.stated if command.agent_memory else ()
    provider, least = command.pipeline.answers("trader"), command.recalibrated_from
    if command.request.proposal is not None:
        least = max(least, PROVEN_FROM)
    return recalibration(stated, provider, command.as_of, least)


def _unproven(command: ValidateDecision) -> Recalibrated | None:
    """What a proposer's confidence counts as whose outcomes are too few; None for the desk's own
    providers, whose stated confidence counts until then."""
    if command.request.proposal is None:
        return None
    stated = command.agent_memory.stated if command.agent_memory else ()
    provider, needed = command.pipeline.answers("trader"), command.recalibrated_from
    return unproven(stated, provider, command.as_of, max(needed, PROVEN_FROM))


def _recalibrated(
    pick: StockPick, table: Recalibration | None, lowest: Recalibrated | None
) -> StockPick:
    """A buy with its recalibrated confidence. A sale needs none: it lowers risk."""
    if pick.action is Side.SELL or (table is None and lowest is None):
        return pick
    if table is None:
        return pick.model_copy(update={"recalibrated": lowest})
    return pick.model_copy(update={"recalibrated": recalibrated(table, pick.confidence)})


def _reasoning_fields(
    daily: DailyPicks, decisions: Sequence[PortfolioDecision]
) -> Mapping[str, str]:
    """Where the trader's reasoning stands among the decisions, by where it stood before."""
    places = {
        (decision.action.value, decision.asset): f"decisions.{place}.reasoning"
        for place, decision in enumerate(decisions)
    }
    legs = {"picks": daily.picks, "sell_recommendations": daily.sell_recommendations}
    return {
        f"{name}.{place}.reasoning": places[pick.action.value, pick.ticker]
        for name, picks in legs.items()
        for place, pick in enumerate(picks)
        if (pick.action.value, pick.ticker) in places
    }


def clamp(daily: DailyPicks, review: PickReview) -> Clamped:
    """The trader's picks, each at most what the review leaves of it.

    A buy that the review leaves out is gone. A sale passes through unless the review trims or
    vetoes it: it lowers risk. What the review raises is cut back, what it adds is dropped.
    """
    vetoed = set(review.vetoed_tickers)
    proposed = {**_by_leg(daily.picks), **_by_leg(daily.sell_recommendations, Side.SELL)}
    reviewed = {**_by_leg(review.picks), **_by_leg(review.sell_recommendations, Side.SELL)}
    picks: list[StockPick] = []
    checks = _doubles((*daily.picks, *daily.sell_recommendations), len(proposed))
    for leg, pick in sorted(proposed.items()):
        left = _left_of(pick, reviewed.get(leg), vetoed)
        checks += _checks_of(pick, left, reviewed.get(leg))
        if left > 0:
            picks.append(pick.model_copy(update={"allocation_pct": left}))
    checks += [_added(reviewed[leg]) for leg in sorted(reviewed.keys() - proposed.keys())]
    adjustments = tuple(_sentence(check) for check in checks if not check.passed)
    return Clamped(
        picks=tuple(picks),
        checks=tuple(checks),
        adjustments=(*review.adjustments, *adjustments),
        removed=tuple(sorted({ticker for _, ticker in proposed} - {p.ticker for p in picks})),
    )


_Leg = tuple[Side, str]


def _by_leg(picks: Iterable[StockPick], side: Side | None = None) -> dict[_Leg, StockPick]:
    """Picks by side and ticker, the smallest of several; `side` overrules what each says."""
    smallest: dict[_Leg, StockPick] = {}
    for pick in sorted(picks, key=lambda p: (-p.allocation_pct, p.model_dump_json())):
        action = side or pick.action
        smallest[action, pick.ticker] = pick.model_copy(update={"action": action})
    return smallest


def _left_of(pick: StockPick, reviewed: StockPick | None, vetoed: set[str]) -> Decimal:
    if pick.ticker in vetoed:
        return Decimal(0)
    if reviewed is None:
        return pick.allocation_pct if pick.action is Side.SELL else Decimal(0)
    return min(pick.allocation_pct, reviewed.allocation_pct)


def _checks_of(pick: StockPick, left: Decimal, reviewed: StockPick | None) -> list[Check]:
    allocation = pick.allocation_pct
    if left == 0:
        return [_check(REVIEW, pick, RuleOutcome.VETOED, left, "the reviewer removed it")]
    if left < allocation:
        return [_check(REVIEW, pick, RuleOutcome.CUT, left, f"the reviewer cut it to {left}%")]
    if reviewed is not None and reviewed.allocation_pct > allocation:
        why = (
            f"the reviewer raised it to {reviewed.allocation_pct}%, which a review may not; "
            f"it stays at {allocation}%"
        )
        return [_check(REVIEW_ONLY_REDUCES, pick, RuleOutcome.CUT, reviewed.allocation_pct, why)]
    return [_check(REVIEW, pick, RuleOutcome.KEPT, left, "the reviewer kept it")]


def _doubles(picks: Sequence[StockPick], legs: int) -> list[Check]:
    if len(picks) == legs:
        return []
    return [
        Check(
            rule=ONE_PICK_PER_TICKER,
            outcome=RuleOutcome.CUT,
            passed=False,
            value=f"{len(picks)} picks",
            limit=f"{legs}, one a ticker and side",
            reason="the trader proposed a ticker more than once; only its smallest pick counts",
        )
    ]


def _added(pick: StockPick) -> Check:
    why = "the reviewer added it; only what the trader proposed can be bought or sold"
    outcome, value = RuleOutcome.VETOED, pick.allocation_pct
    return _check(REVIEW_ONLY_REDUCES, pick, outcome, value, why, note="nothing")


def _check(
    rule: str, pick: StockPick, outcome: RuleOutcome, value: Decimal, why: str, note: str = ""
) -> Check:
    limit = note or f"{pick.allocation_pct}%"
    return Check(
        rule=rule,
        ticker=pick.ticker,
        outcome=outcome,
        passed=outcome is RuleOutcome.KEPT,
        value=f"{value}% after review",
        limit=f"{limit} proposed",
        reason=f"{pick.action.value} of {pick.ticker}: {why}",
    )


def _sentence(check: Check) -> str:
    about = check.ticker or "all picks"
    return f"{about}: {check.rule}: {check.reason} ({check.value}; limit {check.limit})"
