"""Checks of a trader's picks beyond their schema, and the picks as they go on. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from contracts.account import Portfolio, Side
from contracts.constraints import constraints_of
from contracts.facts import Moves
from contracts.not_bought import Cause, NotBought
from contracts.reasons import CORRECTED_MAX
from contracts.research import ResearchReport
from contracts.risk import Evidence
from contracts.trader import (
    NOT_BOUGHT_MAX,
    BuyDraft,
    PickDraft,
    PickPlan,
    PicksDraft,
    PickTrades,
    StockPick,
)
from libs.facts import desk
from libs.facts.compose import NO_REASON, Cited, Prose, argued, own_words, settled
from libs.facts.fact import Fact, FactIndex
from libs.llm.naming import repeated, strangers
from libs.quant.risk.evaluation import Room, room_for
from libs.quant.risk.rules import ALLOCATION_PCT_MAX


def pick_problems(
    draft: PicksDraft, report: ResearchReport, portfolio: Portfolio
) -> tuple[str, ...]:
    """Buys must have been researched, sales must be held, and shares sum to at most 100%."""
    researched = [finding.ticker for finding in report.tickers]
    held = [position.ticker for position in portfolio.positions]
    buys = [pick.ticker for pick in draft.picks]
    sales = [pick.ticker for pick in draft.sell_recommendations]
    total = sum((pick.allocation_pct for pick in draft.picks), start=Decimal(0))
    too_much = f"picks: the allocations may sum to {ALLOCATION_PCT_MAX}% at most; lower some"
    both = (
        f"sell_recommendations.{place}: the same ticker as picks.{buys.index(name)}; leave one out"
        for place, name in enumerate(sales)
        if name in buys
    )
    return (
        *strangers("picks", buys, researched, "not researched"),
        *strangers("sell_recommendations", sales, held, "not held"),
        *repeated("picks", buys),
        *repeated("sell_recommendations", sales),
        *both,
        *([too_much] if total > ALLOCATION_PCT_MAX else ()),
    )


def rooms_of(command: PickTrades, evidence: Sequence[Evidence], moves: Moves) -> Mapping[str, Room]:
    """The amount that the rules let each researched ticker be bought for; nothing is known of it
    where the budget is in a currency that the rules refuse.
    """
    budget, portfolio = command.request.budgets.money, command.portfolio
    if budget is not None and budget.currency != portfolio.cash.currency:
        return {}
    asked_for, planned = command.request.constraints, command.plan.constraints
    return room_for(
        (finding.ticker for finding in command.research_report.tickers),
        {item.ticker: item for item in evidence},
        portfolio,
        budget,
        moves=moves,
        constraints=constraints_of(asked_for).also(constraints_of(planned)),
    )


def closed_problems(draft: PicksDraft, rooms: Mapping[str, Room]) -> tuple[str, ...]:
    """The buys that no rule can let pass, each with the reason that the facts gave for it."""
    return tuple(
        f"picks.{place}: it cannot be bought: {rooms[pick.ticker].why}; leave it out"
        for place, pick in enumerate(draft.picks)
        if pick.ticker in rooms and not rooms[pick.ticker].allocation_pct
    )


def facts_given(command: PickTrades, rooms: Mapping[str, Room]) -> Iterator[Fact]:
    """The facts of what the stages before have found, of the account, and of what it may buy."""
    yield from desk.account_facts(command.portfolio)
    yield from desk.room_facts(rooms, command.as_of)
    yield from desk.research_facts(command.research_report)
    yield from desk.quant_facts(command.quant_report)
    yield from desk.sentiment_facts(command.sentiment_report)
    yield from desk.digest_facts(command.signal_digest)


def tradable(command: PickTrades) -> Iterator[str]:
    """The tickers that may be bought or sold: those researched, then those held."""
    yield from (finding.ticker for finding in command.research_report.tickers)
    yield from (position.ticker for position in command.portfolio.positions)


def asked_about(command: PickTrades) -> Iterator[str]:
    """Whose facts are offered first: what may be traded, then the account."""
    yield from tradable(command)
    yield desk.ACCOUNT


@dataclass(frozen=True, slots=True)
class Ahead:
    """The sessions that follow as_of's, in order, as far as a plan may reach and the calendar
    knows."""

    sessions: Sequence[date]

    def after(self, count: int) -> date | None:
        """The session so many sessions from now; None where the calendar does not reach so far."""
        return self.sessions[count - 1] if count <= len(self.sessions) else None

    def on_or_after(self, day: date) -> date | None:
        """The first session on a day or after it; None for one that has passed."""
        if not self.sessions or day < self.sessions[0]:
            return None
        return next((session for session in self.sessions if session >= day), None)


def daily_picks(
    draft: PicksDraft,
    facts: FactIndex,
    report: ResearchReport,
    ahead: Ahead,
    notes: Sequence[str] = (),
    *,
    rooms: Mapping[str, Room] | None = None,
    thresholds: Iterable[NotBought] = (),
) -> dict[str, Any]:
    """The fields of the day's picks: the judgements, with the texts that code writes of them, what
    was corrected (`notes` first), and why others were passed over: by the rules that leave them no
    room, by the `thresholds` of stated rules, in the model's words."""
    exchanges = {finding.ticker: finding.exchange for finding in report.tickers}
    summary = Prose(_counted(draft))
    words = own_words(draft.answer)
    if words.text:
        summary.say(": ").add(words)
    texts = {"market_summary": summary}
    corrected = [*notes]

    def picked(field: str, picks: Sequence[PickDraft], side: Side) -> Iterator[StockPick]:
        for place, pick in enumerate(picks):
            reasons, fell = settled(pick.reasons, facts)
            corrected.extend(f"{pick.ticker}: {text}" for text in fell)
            text = argued(reasons, facts, pick.ticker)
            texts[f"{field}.{place}.reasoning"] = text
            plan = None
            if isinstance(pick, BuyDraft):
                plan, left_out = planned(pick, facts, ahead)
                corrected.extend(f"{pick.ticker}: {text}" for text in left_out)
            yield StockPick(
                ticker=pick.ticker,
                allocation_pct=pick.allocation_pct,
                confidence=pick.confidence,
                reasons=reasons,
                reasoning=text.text or NO_REASON,
                exchange=exchanges.get(pick.ticker, ""),
                action=side,
                plan=plan,
            )

    buys = tuple(picked("picks", draft.picks, Side.BUY))
    sales = tuple(picked("sell_recommendations", draft.sell_recommendations, Side.SELL))
    bought = {pick.ticker for pick in buys}
    closed = (_closed(name, room) for name, room in (rooms or {}).items() if name not in bought)
    passed = [*filter(None, closed), *thresholds][:NOT_BOUGHT_MAX]
    for one in draft.passed[: NOT_BOUGHT_MAX - len(passed)]:
        if one.ticker not in bought:
            texts[f"passed.{len(passed)}.why"] = why = own_words(one.why)
            passed.append(NotBought(ticker=one.ticker, cause=Cause.OWN_WORDS, why=why.text))
    cited = Cited.of(texts)
    return {
        "passed": tuple(passed),
        "picks": buys,
        "sell_recommendations": sales,
        "confidence": draft.confidence,
        "market_summary": summary.text,
        "figures": cited.figures,
        "loose": cited.loose,
        "corrected": tuple(corrected[:CORRECTED_MAX]),
    }


def _closed(ticker: str, room: Room) -> NotBought | None:
    """The rule that leaves a ticker no room; None where it has some."""
    if room.allocation_pct:
        return None
    return NotBought(
        ticker=ticker,
        cause=Cause.RULE,
        name=room.rule,
        value=room.value,
        limit=room.limit,
        why=room.why,
    )


def nothing_to_trade() -> dict[str, Any]:
    """The fields of picks that no model was asked for."""
    return {
        "confidence": 0.0,
        "market_summary": "nothing to buy or sell",
        "corrected": ("no model was asked: nothing was researched and nothing is held",),
    }


def planned(pick: BuyDraft, facts: FactIndex, ahead: Ahead) -> tuple[PickPlan, Sequence[str]]:
    """The plan of a buy, with the session at which it is looked at again: the end of its horizon,
    or the day of the event that it names where that comes first. What names none is told."""
    ends, event, fell = ahead.after(pick.horizon_sessions), "", []
    fact = facts.get(pick.review_event)
    if pick.review_event.strip():
        named = fact is not None and fact.key.entity == pick.ticker
        day = fact.value if named and fact is not None and isinstance(fact.value, date) else None
        session = None if day is None else ahead.on_or_after(day)
        if fact is None or session is None:
            fell.append("no event to come of it is named to look at it again by")
        elif ends is None or session <= ends:
            ends, event = session, f"{fact.label} of {day}"
    plan = PickPlan(
        horizon_sessions=pick.horizon_sessions,
        stop_atr=pick.stop_atr,
        review_by=ends,
        review_event=event,
    )
    return plan, fell


def _counted(draft: PicksDraft) -> str:
    """`2 to buy for 73.59% of the budget, 1 to sell`."""
    total = sum((pick.allocation_pct for pick in draft.picks), start=Decimal(0))
    buys = f"{len(draft.picks)} to buy for {total.normalize():f}% of the budget"
    sales = f"{len(draft.sell_recommendations)} to sell"
    words = [buys] * bool(draft.picks) + [sales] * bool(draft.sell_recommendations)
    return ", ".join(words) or "nothing to buy or sell"
