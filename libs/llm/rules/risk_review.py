"""The risk reviewer by rules: does the evidence carry the confidence, and is the risk explained?

What can be computed exactly (sectors, holdings, limits, sums) is enforced in code after every
review. These rules name concentrations and holdings in the notes and leave the exact cut to that
code; they cut and veto where the quality of evidence must be judged.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal

from contracts.account import Portfolio
from contracts.facts import UNKNOWN_SECTOR
from contracts.reasons import ReasonDraft, Speaks
from contracts.research import ResearchFinding
from contracts.risk import ReviewDraft, ReviewedPick
from contracts.trader import DailyPicks, StockPick
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet, TaskData, findings_in, labelled

RISK_SCORE_MAX = 7.0
"""Above it a pick needs a dated event as its catalyst."""
SECTOR_PCT_MAX = Decimal(50)
CONFIDENCE_PER_SCORE = 0.1
"""A confidence of 0.6 wants a technical or fundamental score of 6 of 10 behind it."""
EVIDENCE_MIN = 2
"""One tool result is a number without a second look: the allocation is halved."""


def answer(task: TaskData, evidence: EvidenceIndex) -> ReviewDraft:
    """The same picks, some smaller, some gone, each change with its reason."""
    daily = DailyPicks.model_validate(task["daily_picks"])
    portfolio = Portfolio.model_validate(task["portfolio"])
    findings = {finding.ticker: finding for finding in findings_in(task)}
    judged = tuple(
        _judge(pick, findings.get(pick.ticker), evidence) for pick in _as_proposed(daily.picks)
    )
    picks = tuple(pick for pick in judged if pick.allocation_pct)
    return ReviewDraft(
        picks=judged,
        sell_recommendations=_as_proposed(daily.sell_recommendations),
        confidence=_confidence(daily, picks),
        notes=labelled(_notes(picks, findings, portfolio)),
        vetoed_tickers=tuple(pick.ticker for pick in judged if not pick.allocation_pct),
    )


def _as_proposed(picks: Sequence[StockPick]) -> tuple[ReviewedPick, ...]:
    return tuple(
        ReviewedPick(
            ticker=pick.ticker, allocation_pct=pick.allocation_pct, confidence=pick.confidence
        )
        for pick in picks
    )


def _judge(
    pick: ReviewedPick, finding: ResearchFinding | None, evidence: EvidenceIndex
) -> ReviewedPick:
    if finding is None or not finding.evidence:
        why = "no research evidence stands behind it"
        return _less(pick, Decimal(0), _against(pick, evidence, "allocation_pct", why))
    if finding.risk > RISK_SCORE_MAX and finding.catalyst_event is None:
        risk = "measured_risk" if finding.measured_risk > finding.risk_score else "risk_score"
        why = "above the limit, and no dated event is its catalyst"
        return _less(pick, Decimal(0), _against(pick, evidence, risk, why))
    pick = _with_earned_confidence(pick, finding, evidence)
    if len(finding.evidence) < EVIDENCE_MIN:
        why = "halved: only one tool result stands behind it"
        half = _scaled(pick.allocation_pct, Decimal("0.5"))
        pick = _less(pick, half, _against(pick, evidence, "allocation_pct", why))
    return pick


def _with_earned_confidence(
    pick: ReviewedPick, finding: ResearchFinding, evidence: EvidenceIndex
) -> ReviewedPick:
    """Confidence above what the scores carry is cut, and the allocation with it."""
    scores = {"technical_score": finding.technical_score}
    if finding.fundamental_score is not None:
        scores["fundamental_score"] = finding.fundamental_score
    best = max(scores, key=lambda name: scores[name])
    earned = round(scores[best] * CONFIDENCE_PER_SCORE, 3)
    if pick.confidence <= earned:
        return pick
    share = _scaled(pick.allocation_pct, Decimal(str(earned)) / Decimal(str(pick.confidence)))
    why = "above what its scores carry"
    against = _against(pick, evidence, "pick_confidence", why, beside=best)
    return _less(pick, share, against).model_copy(update={"confidence": earned})


def _against(
    pick: ReviewedPick, evidence: EvidenceIndex, quantity: str, why: str, beside: str = ""
) -> tuple[ReasonDraft, ...]:
    return evidence.reason(pick.ticker, quantity, beside=beside, speaks=Speaks.AGAINST, why=why)


def _less(pick: ReviewedPick, share: Decimal, reasons: tuple[ReasonDraft, ...]) -> ReviewedPick:
    both = (*pick.reasons, *reasons)
    return pick.model_copy(update={"allocation_pct": share, "reasons": both})


def _scaled(share: Decimal, factor: Decimal) -> Decimal:
    return (share * factor).quantize(Decimal("0.01"), ROUND_DOWN)


def _confidence(daily: DailyPicks, picks: Sequence[ReviewedPick]) -> float:
    if not picks:
        return 0.0 if daily.picks else daily.confidence
    return min(daily.confidence, round(sum(pick.confidence for pick in picks) / len(picks), 3))


def _place(sector: str) -> str:
    return "of no known sector" if sector == UNKNOWN_SECTOR else f"in {sector}"


def _notes(
    picks: Sequence[ReviewedPick], findings: Mapping[str, ResearchFinding], portfolio: Portfolio
) -> str:
    if not picks:
        return "nothing is left to buy"
    sectors: dict[str, Decimal] = {}
    for pick in picks:
        sector = findings[pick.ticker].sector
        sectors[sector] = sectors.get(sector, Decimal(0)) + pick.allocation_pct
    notes = [
        f"most of the budget is {_place(sector)}: the rules in code cut it"
        for sector, share in sorted(sectors.items())
        if share > SECTOR_PCT_MAX
    ]
    held = {position.ticker for position in portfolio.positions}
    doubled = [pick.ticker for pick in picks if pick.ticker in held]
    if doubled:
        notes.append(f"{', '.join(doubled)}: held already, the rules in code veto doubling down")
    return "; ".join(notes) or "no concentration seen"


RULES = RuleSet(answer=answer)
