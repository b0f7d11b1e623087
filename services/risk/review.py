"""The reviewer's half of the risk service: a model's word on the picks, before the rules in code.

The rules have the last word and trust nothing of it: what a review raises or adds is cut back here,
and would be cut by them all the same.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from contracts.reasons import CORRECTED_MAX
from contracts.risk import ADJUSTMENTS_MAX, PickReview, ReviewDraft, ReviewedPick, ReviewPicks
from contracts.trader import DailyPicks, StockPick
from libs.facts import desk
from libs.facts.compose import NO_REASON, Cited, Prose, argued, carried, own_words, settled
from libs.facts.fact import Fact, FactIndex
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.masking.codebook import SessionCalendar
from libs.llm.prompt import Prompt, task_for
from libs.llm.provider import ModelSize, Provider
from libs.llm.reasoning import Reasoning
from libs.llm.registry import limits_of
from libs.runtime.journal import Journal
from libs.runtime.settings import Settings

PROMPT = Path(__file__).parent / "prompts" / "risk_review.md"


def review_role(
    providers: Mapping[str, Provider], settings: Settings, sessions: SessionCalendar
) -> Role:
    """The reviewer's role, for the wiring."""
    return Role(
        "risk_review",
        "risk",
        ModelSize.MEDIUM,
        Prompt.load(PROMPT),
        providers,
        limits_of(settings),
        sessions=sessions,
    )


async def review_picks(command: ReviewPicks, journal: Journal, *, role: Role) -> PickReview:
    """The picks as the reviewer leaves them: smaller or gone, never larger, each with a reason."""
    daily = command.daily_picks
    task = task_for(
        command,
        facts=facts_given(command),
        about=[*(pick.ticker for pick in proposed_in(daily)), desk.ACCOUNT],
        plan=command.plan,
        constraints=dict(command.request.constraints),
        daily_picks=daily.model_dump(mode="json", exclude={"passed"}),
        quant_report=command.quant_report,
        research_report=command.research_report,
        portfolio=command.portfolio,
    )
    reasoning = Reasoning[ReviewDraft](task, lambda _, __: ())
    draft = await generate(role.played_for(command), task, ReviewDraft, journal, check=reasoning)
    return PickReview.of(
        command, llm=role.player(command), **reviewed(daily, draft, reasoning.facts)
    )


def facts_given(command: ReviewPicks) -> Iterator[Fact]:
    """The facts of the picks, of what the stages before have found, and of the account."""
    yield from desk.picks_facts(command.daily_picks)
    yield from desk.research_facts(command.research_report)
    yield from desk.quant_facts(command.quant_report)
    yield from desk.account_facts(command.portfolio)


def proposed_in(daily: DailyPicks) -> tuple[StockPick, ...]:
    """All that the trader proposes, buys first."""
    return (*daily.picks, *daily.sell_recommendations)


def reviewed(daily: DailyPicks, draft: ReviewDraft, facts: FactIndex) -> dict[str, Any]:
    """The fields of the review: the picks as far as it leaves them, with the texts that code writes
    of what changed, and why.
    """
    picks, cut = trimmed(daily.picks, draft.picks, draft.vetoed_tickers)
    # A sale lowers risk: what the reviewer does not name passes.
    named = (*draft.sell_recommendations, *_unnamed(daily, draft))
    sales, cut_sales = trimmed(daily.sell_recommendations, named, draft.vetoed_tickers)
    words = {**_smallest(named), **_smallest(draft.picks)}
    left = {(pick.action, pick.ticker): pick for pick in (*picks, *sales)}
    changes = [Prose(text) for text in (*cut, *cut_sales)]
    fell: list[str] = []
    for pick in proposed_in(daily):
        word, now = words.get(pick.ticker), left.get((pick.action, pick.ticker))
        if word is None and pick.ticker not in draft.vetoed_tickers:
            continue
        reasons, lost = settled(word.reasons if word else (), facts)
        fell += (f"{pick.ticker}: {text}" for text in lost)
        changes += changed(pick, now, argued(reasons, facts, pick.ticker))
    notes = own_words(draft.notes)
    texts = {f"adjustments.{place}": text for place, text in enumerate(changes[:ADJUSTMENTS_MAX])}
    own = Cited.of({"risk_notes": notes, **texts})
    cited = own.also(carried(daily, _fields_kept(daily, picks, sales)))
    remaining = {ticker for _, ticker in left}
    names = dict.fromkeys(pick.ticker for pick in proposed_in(daily))
    return {
        "pick_date": daily.pick_date,
        "picks": picks,
        "sell_recommendations": sales,
        "confidence": min(draft.confidence, daily.confidence),
        "market_summary": daily.market_summary,
        "risk_notes": notes.text,
        "adjustments": tuple(text.text for text in texts.values()),
        "vetoed_tickers": tuple(name for name in names if name not in remaining),
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": (*cut, *cut_sales, *fell)[:CORRECTED_MAX],
    }


def _fields_kept(
    daily: DailyPicks, picks: Sequence[StockPick], sales: Sequence[StockPick]
) -> Mapping[str, str]:
    """Where the trader's texts stand in the review, by where they stood before."""
    before = _placed(daily.picks, daily.sell_recommendations)
    legs = {(pick.action, pick.ticker): place for place, pick in before}
    fields = {
        f"{legs[pick.action, pick.ticker]}.reasoning": f"{place}.reasoning"
        for place, pick in _placed(picks, sales)
    }
    return {"market_summary": "market_summary", **fields}


def _placed(
    picks: Sequence[StockPick], sales: Sequence[StockPick]
) -> Iterator[tuple[str, StockPick]]:
    yield from ((f"picks.{place}", pick) for place, pick in enumerate(picks))
    yield from ((f"sell_recommendations.{place}", pick) for place, pick in enumerate(sales))


def changed(before: StockPick, now: StockPick | None, why: Prose) -> tuple[Prose, ...]:
    """The review's change of one pick, with its reasons; nothing where it left it as it was."""
    share, sure = before.allocation_pct, before.confidence
    if now is None:
        done = "vetoed"
    elif now.allocation_pct < share:
        done = f"cut from {_plain(share)}% to {_plain(now.allocation_pct)}%"
    elif now.confidence < sure:
        done = f"confidence cut from {sure:g} to {now.confidence:g}"
    else:
        return ()
    text = Prose(f"{before.ticker}: {done}")
    return (text.say(". ").add(why) if why.text else text.say(f"; {NO_REASON}"),)


def _plain(share: Decimal) -> str:
    return f"{share.normalize():f}"


def _smallest(picks: Sequence[ReviewedPick]) -> Mapping[str, ReviewedPick]:
    """The review's allocation of each ticker; of several for one the smallest counts."""
    return {pick.ticker: pick for pick in sorted(picks, key=lambda pick: -pick.allocation_pct)}


def trimmed(
    proposed: Sequence[StockPick], reviewed: Sequence[ReviewedPick], vetoed: Collection[str]
) -> tuple[tuple[StockPick, ...], tuple[str, ...]]:
    """The proposed picks as far as the review leaves them, and what of the review did not count.

    Of several words on one pick the smallest counts. A raise is cut back, an addition dropped; a
    pick that the review leaves out, or leaves nothing of, is gone.
    """
    left = _smallest(reviewed)
    before = {pick.ticker for pick in proposed}
    picks = tuple(
        pick.model_copy(
            update={
                "allocation_pct": min(pick.allocation_pct, left[pick.ticker].allocation_pct),
                "confidence": min(pick.confidence, left[pick.ticker].confidence),
            }
        )
        for pick in proposed
        if pick.ticker in left and left[pick.ticker].allocation_pct and pick.ticker not in vetoed
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
