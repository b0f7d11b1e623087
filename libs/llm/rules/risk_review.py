"""The risk reviewer by rules: does the evidence carry the confidence, and is the risk explained?

What can be computed exactly (sectors, holdings, limits, sums) is enforced in code after every
review. These rules name concentrations and holdings in the notes and leave the exact cut to that
code; they cut and veto where the quality of evidence must be judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from contracts.account import Portfolio
from contracts.research import ResearchFinding
from contracts.risk import ReviewDraft, ReviewedPick
from contracts.trader import DailyPicks, StockPick
from libs.llm.rules.rule_set import Found, RuleSet, TaskData, findings_in, said

RISK_SCORE_MAX = 7.0
"""Above it a pick needs a dated event as its catalyst."""
SECTOR_PCT_MAX = Decimal(50)
CONFIDENCE_PER_SCORE = 0.1
"""A confidence of 0.6 wants a technical or fundamental score of 6 of 10 behind it."""
EVIDENCE_MIN = 2
"""One tool result is a number without a second look: the allocation is halved."""


@dataclass(frozen=True)
class Verdict:
    """What became of one pick; `pick` is None where it was vetoed."""

    pick: ReviewedPick | None
    words: tuple[str, ...] = ()


def answer(task: TaskData, found: Found) -> ReviewDraft:
    """The same picks, some smaller, some gone, each change with its reason."""
    del found
    daily = DailyPicks.model_validate(task["daily_picks"])
    portfolio = Portfolio.model_validate(task["portfolio"])
    findings = {finding.ticker: finding for finding in findings_in(task)}
    proposed = _as_proposed(daily.picks)
    verdicts = {pick.ticker: _judge(pick, findings.get(pick.ticker)) for pick in proposed}
    kept = tuple(verdict.pick for verdict in verdicts.values() if verdict.pick is not None)
    return ReviewDraft(
        picks=kept,
        sell_recommendations=_as_proposed(daily.sell_recommendations),
        confidence=_confidence(daily, kept),
        risk_notes=said(_notes(kept, findings, portfolio)),
        adjustments=tuple(
            said(f"{ticker}: {words}")
            for ticker, verdict in verdicts.items()
            for words in verdict.words
        ),
        vetoed_tickers=tuple(
            ticker for ticker, verdict in verdicts.items() if verdict.pick is None
        ),
    )


def _as_proposed(picks: Sequence[StockPick]) -> tuple[ReviewedPick, ...]:
    return tuple(
        ReviewedPick(
            ticker=pick.ticker, allocation_pct=pick.allocation_pct, confidence=pick.confidence
        )
        for pick in picks
    )


def _judge(pick: ReviewedPick, finding: ResearchFinding | None) -> Verdict:
    if finding is None or not finding.evidence:
        return Verdict(None, ("vetoed: no research evidence stands behind it",))
    if finding.risk > RISK_SCORE_MAX and finding.catalyst_event is None:
        score = f"risk score {finding.risk:.1f} is above {RISK_SCORE_MAX:.0f}"
        return Verdict(None, (f"vetoed: {score} and no dated event is its catalyst",))
    words: list[str] = []
    pick = _with_earned_confidence(pick, finding, words)
    if len(finding.evidence) < EVIDENCE_MIN:
        half = _scaled(pick.allocation_pct, Decimal("0.5"))
        words.append(f"halved to {half}%: only {len(finding.evidence)} tool result behind it")
        pick = pick.model_copy(update={"allocation_pct": half})
    return Verdict(pick, tuple(words))


def _with_earned_confidence(
    pick: ReviewedPick, finding: ResearchFinding, words: list[str]
) -> ReviewedPick:
    """Confidence above what the scores carry is cut, and the allocation with it."""
    score = max(finding.technical_score, finding.fundamental_score)
    earned = round(score * CONFIDENCE_PER_SCORE, 3)
    if pick.confidence <= earned:
        return pick
    share = _scaled(pick.allocation_pct, Decimal(str(earned)) / Decimal(str(pick.confidence)))
    words.append(
        f"cut to {share}%: confidence {pick.confidence} is above what its scores carry ({earned})"
    )
    return pick.model_copy(update={"confidence": earned, "allocation_pct": share})


def _scaled(share: Decimal, factor: Decimal) -> Decimal:
    return (share * factor).quantize(Decimal("0.01"), ROUND_DOWN)


def _confidence(daily: DailyPicks, kept: Sequence[ReviewedPick]) -> float:
    if not kept:
        return 0.0 if daily.picks else daily.confidence
    return min(daily.confidence, round(sum(pick.confidence for pick in kept) / len(kept), 3))


def _notes(
    kept: Sequence[ReviewedPick], findings: Mapping[str, ResearchFinding], portfolio: Portfolio
) -> str:
    if not kept:
        return "nothing is left to buy"
    sectors: dict[str, Decimal] = {}
    for pick in kept:
        sector = findings[pick.ticker].sector
        sectors[sector] = sectors.get(sector, Decimal(0)) + pick.allocation_pct
    notes = [
        f"{sector} has {share}% of the budget, over {SECTOR_PCT_MAX}%: the rules in code cut it"
        for sector, share in sorted(sectors.items())
        if share > SECTOR_PCT_MAX
    ]
    held = {position.ticker for position in portfolio.positions}
    doubled = [pick.ticker for pick in kept if pick.ticker in held]
    if doubled:
        notes.append(f"{', '.join(doubled)}: held already, the rules in code veto doubling down")
    return "; ".join(notes) or "no concentration seen"


RULES = RuleSet(answer=answer)
