"""What is wrong with a trader's picks beyond their schema, and the picks as they go on. Pure."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from contracts.account import Portfolio, Side
from contracts.reasons import CORRECTED_MAX
from contracts.research import ResearchReport
from contracts.trader import PickDraft, PicksDraft, PickTrades, StockPick
from libs.facts import desk
from libs.facts.compose import NO_REASON, Cited, Prose, argued, own_words, settled
from libs.facts.fact import Fact, Facts
from libs.quant.risk.rules import ALLOCATION_PCT_MAX


def pick_problems(
    draft: PicksDraft, report: ResearchReport, portfolio: Portfolio
) -> tuple[str, ...]:
    """Buys must have been researched, sales must be held, and shares sum to at most 100%."""
    researched = {finding.ticker for finding in report.tickers}
    held = {position.ticker for position in portfolio.positions}
    total = sum((pick.allocation_pct for pick in draft.picks), start=Decimal(0))
    too_much = (f"picks: allocations sum to {total}%, at most {ALLOCATION_PCT_MAX}%",)
    return (
        *(
            f"picks: {pick.ticker} was not researched"
            for pick in draft.picks
            if pick.ticker not in researched
        ),
        *(
            f"sell_recommendations: {pick.ticker} is not held"
            for pick in draft.sell_recommendations
            if pick.ticker not in held
        ),
        *_twice((*draft.picks, *draft.sell_recommendations)),
        *(too_much if total > ALLOCATION_PCT_MAX else ()),
    )


def facts_given(command: PickTrades) -> Iterator[Fact]:
    """The facts of what the stages before have found, and of the account."""
    research = command.research_report
    currencies = {finding.ticker: finding.currency for finding in research.tickers}
    yield from desk.account_facts(command.portfolio)
    yield from desk.research_facts(research)
    yield from desk.quant_facts(command.quant_report, currencies)
    yield from desk.sentiment_facts(command.sentiment_report)
    yield from desk.digest_facts(command.signal_digest)


def asked_about(command: PickTrades) -> Iterator[str]:
    """Whose facts are offered first: what was researched, what is held, the account."""
    yield from (finding.ticker for finding in command.research_report.tickers)
    yield from (position.ticker for position in command.portfolio.positions)
    yield desk.ACCOUNT


def daily_picks(draft: PicksDraft, facts: Facts, report: ResearchReport) -> dict[str, Any]:
    """The fields of the day's picks: the judgements, with the texts that code writes of them."""
    exchanges = {finding.ticker: finding.exchange for finding in report.tickers}
    summary = Prose(_counted(draft))
    words = own_words(draft.answer)
    if words.text:
        summary.say(": ").add(words)
    texts = {"market_summary": summary}
    corrected: list[str] = []

    def picked(field: str, picks: Sequence[PickDraft], side: Side) -> Iterator[StockPick]:
        for place, pick in enumerate(picks):
            reasons, fell = settled(pick.reasons, facts)
            corrected.extend(f"{pick.ticker}: {text}" for text in fell)
            text = argued(reasons, facts, pick.ticker)
            texts[f"{field}.{place}.reasoning"] = text
            yield StockPick(
                ticker=pick.ticker,
                allocation_pct=pick.allocation_pct,
                confidence=pick.confidence,
                reasons=reasons,
                reasoning=text.text or NO_REASON,
                exchange=exchanges.get(pick.ticker, ""),
                action=side,
            )

    buys = tuple(picked("picks", draft.picks, Side.BUY))
    sales = tuple(picked("sell_recommendations", draft.sell_recommendations, Side.SELL))
    cited = Cited.of(texts)
    return {
        "picks": buys,
        "sell_recommendations": sales,
        "confidence": draft.confidence,
        "market_summary": summary.text,
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": tuple(corrected[:CORRECTED_MAX]),
    }


def _counted(draft: PicksDraft) -> str:
    """`2 to buy for 73.59% of the budget, 1 to sell`."""
    total = sum((pick.allocation_pct for pick in draft.picks), start=Decimal(0))
    buys = f"{len(draft.picks)} to buy for {total.normalize():f}% of the budget"
    sales = f"{len(draft.sell_recommendations)} to sell"
    words = [buys] * bool(draft.picks) + [sales] * bool(draft.sell_recommendations)
    return ", ".join(words) or "nothing to buy or sell"


def _twice(picks: Sequence[PickDraft]) -> tuple[str, ...]:
    names = [pick.ticker for pick in picks]
    return tuple(
        f"picks: {name} comes twice" for name in dict.fromkeys(names) if names.count(name) > 1
    )
