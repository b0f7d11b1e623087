"""The reviewer's half of the risk service: a model's word on the picks, before the rules in code.

The rules have the last word and repeat nothing of what is trusted here: a review that raised an
allocation is sent back, and would be cut by them all the same.
"""

from collections.abc import Mapping
from pathlib import Path

from contracts.risk import PickReview, ReviewDraft, ReviewPicks
from contracts.trader import DailyPicks
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
        daily_picks=daily,
        quant_report=command.quant_report,
        research_report=command.research_report,
        portfolio=command.portfolio,
    )
    checked = Grounder[ReviewDraft](task, lambda review, _: review_problems(review, daily))
    draft = await generate(role.played_for(command), task, ReviewDraft, journal, check=checked)
    return PickReview.of(
        command,
        llm=command.pipeline.provider,
        pick_date=daily.pick_date,
        grounding=checked.grounding(draft),
        **dict(draft),
    )


def review_problems(review: ReviewDraft, daily: DailyPicks) -> tuple[str, ...]:
    """What is wrong with a review: larger or invented picks, and picks that vanished in silence."""
    before = {pick.ticker: pick.allocation_pct for pick in daily.picks}
    sales = {pick.ticker for pick in daily.sell_recommendations}
    after = [pick.ticker for pick in review.picks]
    return (
        *(f"picks: {name} was not proposed" for name in after if name not in before),
        *(f"picks: {name} comes twice" for name in dict.fromkeys(after) if after.count(name) > 1),
        *(
            f"picks: {pick.ticker} may not exceed the {before[pick.ticker]}% proposed"
            for pick in review.picks
            if pick.allocation_pct > before.get(pick.ticker, pick.allocation_pct)
        ),
        *(
            f"sell_recommendations: {pick.ticker} was not proposed"
            for pick in review.sell_recommendations
            if pick.ticker not in sales
        ),
        *(
            f"vetoed_tickers: {name} is gone from picks and must be named here"
            for name in before
            if name not in after and name not in review.vetoed_tickers
        ),
    )
