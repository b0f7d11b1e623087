"""The reviewer's half of the risk service: a model's word on the picks, before the rules in code.

The rules have the last word and trust nothing of it: what a review raises or adds is cut back here,
and would be cut by them all the same.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from contracts.risk import ADJUSTMENTS_MAX, PickReview, ReviewDraft, ReviewedPick, ReviewPicks
from contracts.trader import DailyPicks, StockPick
from libs.llm.agent import Role
from libs.llm.grounding import Grounder
from libs.llm.loop import generate
from libs.llm.prompt import Prompt, task_for
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of
from libs.runtime.journal import Journal
from libs.runtime.settings import Settings

PROMPT = Path(__file__).parent / "prompts" / "risk_review.md"


def review_role(providers: Mapping[str, Provider], settings: Settings) -> Role:
    """The reviewer's role, for the wiring."""
    return Role(
        "risk_review",
        "risk",
        ModelSize.MEDIUM,
        Prompt.load(PROMPT),
        providers,
        limits_of(settings),
    )


async def review_picks(command: ReviewPicks, journal: Journal, *, role: Role) -> PickReview:
    """The picks as the reviewer leaves them: smaller or gone, never larger, each with a reason."""
    daily = command.daily_picks
    task = task_for(
        command,
        plan=command.plan,
        constraints=dict(command.request.constraints) if command.request else {},
        daily_picks=daily,
        quant_report=command.quant_report,
        research_report=command.research_report,
        portfolio=command.portfolio,
    )
    checked = Grounder[ReviewDraft](task, lambda _, __: ())
    draft = await generate(role.played_for(command), task, ReviewDraft, journal, check=checked)
    picks, cut = trimmed(daily.picks, draft.picks, draft.vetoed_tickers)
    # A sale lowers risk: what the reviewer does not name passes.
    sales, cut_sales = trimmed(
        daily.sell_recommendations,
        [*draft.sell_recommendations, *_unnamed(daily, draft)],
        draft.vetoed_tickers,
    )
    kept = {pick.ticker for pick in (*picks, *sales)}
    proposed = [pick.ticker for pick in (*daily.picks, *daily.sell_recommendations)]
    return PickReview.of(
        command,
        llm=command.pipeline.provider,
        pick_date=daily.pick_date,
        grounding=checked.grounding(draft),
        corrected=(*cut, *cut_sales),
        picks=picks,
        sell_recommendations=sales,
        confidence=min(draft.confidence, daily.confidence),
        market_summary=daily.market_summary,
        risk_notes=draft.risk_notes,
        adjustments=(*cut, *cut_sales, *draft.adjustments)[:ADJUSTMENTS_MAX],
        vetoed_tickers=tuple(name for name in dict.fromkeys(proposed) if name not in kept),
    )


def trimmed(
    proposed: Sequence[StockPick], reviewed: Sequence[ReviewedPick], vetoed: Collection[str]
) -> tuple[tuple[StockPick, ...], tuple[str, ...]]:
    """The proposed picks as far as the review leaves them, and what of the review did not count.

    Of several words on one pick the smallest counts. A raise is cut back, an addition dropped; a
    pick that the review leaves out is gone.
    """
    left = {pick.ticker: pick for pick in sorted(reviewed, key=lambda p: -p.allocation_pct)}
    before = {pick.ticker for pick in proposed}
    picks = tuple(
        pick.model_copy(
            update={
                "allocation_pct": min(pick.allocation_pct, left[pick.ticker].allocation_pct),
                "confidence": min(pick.confidence, left[pick.ticker].confidence),
            }
        )
        for pick in proposed
        if pick.ticker in left and pick.ticker not in vetoed
    )
    raised = tuple(
        f"{pick.ticker}: the reviewer raised it to {left[pick.ticker].allocation_pct}%, which a "
        f"review may not; it stays at {pick.allocation_pct}%"
        for pick in picks
        if left[pick.ticker].allocation_pct > pick.allocation_pct
    )
    silent = tuple(
        f"{pick.ticker}: the reviewer left it out without a word, which counts as a veto"
        for pick in proposed
        if pick.ticker not in left and pick.ticker not in vetoed
    )
    added = tuple(
        f"{name}: the reviewer added it; only what the trader proposed can be bought or sold"
        for name in left
        if name not in before
    )
    return picks, (*raised, *silent, *added)


def _unnamed(daily: DailyPicks, draft: ReviewDraft) -> list[ReviewedPick]:
    named = {pick.ticker for pick in draft.sell_recommendations}
    return [
        ReviewedPick(
            ticker=pick.ticker, allocation_pct=pick.allocation_pct, confidence=pick.confidence
        )
        for pick in daily.sell_recommendations
        if pick.ticker not in named
    ]
