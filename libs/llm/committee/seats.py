"""The committee's seats, one an agent: from a request's facts to an answer in reasons. Pure.

Where a seat computes (votes, scores, room), it stands on the stated rules of `libs.llm.rules`; what
it does with that is its own: it reads headlines, speaks of them, sizes by conviction, and sells on
bad news. It is no judgement of anybody, and no advice.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from types import MappingProxyType

from pydantic import BaseModel

from contracts.account import Portfolio
from contracts.memory import MemoryDraft
from contracts.reasons import REASONS_MAX, ReasonDraft, Speaks
from contracts.research import (
    FindingDraft,
    PlanDraft,
    QuantDraft,
    QuantReport,
    QuantSignal,
    ResearchDraft,
    ResearchFinding,
)
from contracts.risk import ReviewedPick
from contracts.sentiment import MoodDraft, SentimentDraft
from contracts.strategy import StrategyDraft
from contracts.trader import (
    PICKS_MAX,
    BuyDraft,
    DailyPicks,
    PassedDraft,
    PickDraft,
    PicksDraft,
)
from libs.facts.desk import BEING_SOLD, NOT_TO_BUY, REVIEW_DUE, ROOM
from libs.llm.committee import arguments, lines
from libs.llm.committee.lines import LABEL, chosen
from libs.llm.rules import analyst, designer, memory, planner, quant, risk_review, sentiment
from libs.llm.rules.lexicon import tone
from libs.llm.rules.rule_set import CONFIDENCE_MAX, EvidenceIndex, TaskData, findings_in
from libs.llm.rules.rule_set import LABEL as RULES_LABEL
from libs.llm.rules.trader import VERIFIED

OWN_CONFIDENCE = 1.4
"""Times the confidence of the stated rules, which read no context; the committee does."""
SURE_MAX = 0.85
MOOD_SOLD = -0.2
"""News as bad as this is a reason to sell what is held."""
TREND_MIN = 6.0
TREND_WITH_NEWS_MIN = 5.0
"""With good news a trend that is merely not broken will do: a mistake that it makes gladly."""
MOOD_BOUGHT = 0.15
ROOM_ASKED = Decimal("1.6")
"""It asks for more than the rules have room for: they cut it, and say by which rule."""
SHARE_MAX = Decimal(40)
INVESTED_MAX = Decimal(95)
STOP_ATR, STOP_ATR_CALM = 2.5, 3.0
HORIZON_SESSIONS = 40
TRIMMED = Decimal("0.75")
RISK_TRIMMED = 3.5
"""From this risk on the reviewer takes a quarter of the position."""
TEXT_CHARS_MAX = 4_000


def sentiment_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """Moods by the tone of each headline, with what it means for a holder."""
    draft = sentiment.answer(task, evidence)
    views = tuple(_mood(view, evidence, _day(task)) for view in draft.tickers)
    heard = [view for view in views if view.reasons]
    notes = "the newest headlines count most" if heard else "no headline worth a score"
    return SentimentDraft(tickers=views, market_mood=draft.market_mood, notes=f"{LABEL}{notes}")


def _mood(view: MoodDraft, evidence: EvidenceIndex, day: str) -> MoodDraft:
    toned = [
        (item, value) for item in evidence.headlines(view.ticker) if (value := tone(item.title))
    ]
    reasons = tuple(
        ReasonDraft(fact=item.name, speaks=side, why=chosen(lines.NEWS[side], day, item.name))
        for item, value in sorted(toned, key=lambda pair: -abs(pair[1]))[:REASONS_MAX]
        for side in (arguments.side(value),)
    )
    return view.model_copy(update={"reasons": reasons, "confidence": _sure(view.confidence)})


def planner_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """The rules' plan in the committee's words."""
    draft = planner.answer(task, evidence)
    names = ", ".join(draft.assets)
    held = Portfolio.model_validate(task["portfolio"]).positions
    objective = (
        f"decide between {names}: what leads, what is held without a reason"
        if held
        else f"find the leaders among {names} and size them by their stops"
    )
    remarks = tuple(map(_without_label, draft.remarks))
    return PlanDraft(**{**dict(draft), "objective": f"{LABEL}{objective}", "remarks": remarks})


def quant_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """The rules' votes, surer, each with its reason in words."""
    draft = quant.answer(task, evidence)
    views = tuple(
        view.model_copy(
            update={
                "confidence": _sure(view.confidence),
                "reasons": arguments.spoken(view.reasons, view.ticker, _day(task)),
            }
        )
        for view in draft.assets
    )
    leaders = [view.ticker for view in views if view.signal is QuantSignal.BULLISH]
    leading = f"{', '.join(leaders)} lead" if leaders else "nobody leads"
    return QuantDraft(
        signal=draft.signal,
        confidence=_sure(draft.confidence),
        answer=f"{LABEL}trend, momentum and their quarrels; {leading}",
        assets=views,
    )


def analyst_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """The rules' findings with the news read, and the newest good headline as the catalyst."""
    draft = analyst.answer(task, evidence)
    findings = tuple(_finding(one, evidence, _day(task)) for one in draft.tickers)
    return ResearchDraft(
        tickers=findings,
        research_notes=f"{LABEL}chart, books and news were asked for each of them",
    )


def _finding(finding: FindingDraft, evidence: EvidenceIndex, day: str) -> FindingDraft:
    ticker = finding.ticker
    toned = [(name, tone(title)) for name, title in evidence.texts(ticker, "headline")]
    good = next((name for name, value in toned if value > 0), "")
    return finding.model_copy(
        update={
            "reasons": arguments.spoken(finding.reasons, ticker, day),
            "catalyst": finding.catalyst or good,
        }
    )


def trader_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """Buys of what leads, asked for in one go; sales of what lost its reason."""
    day = _day(task)
    findings = {finding.ticker: finding for finding in findings_in(task)}
    signals = _signals(task)
    held = {item.ticker for item in Portfolio.model_validate(task["portfolio"]).positions}
    wanted = {
        name: score
        for name, finding in findings.items()
        if _may_be_bought(name, evidence)
        and (score := _conviction(finding, signals.get(name), evidence)) is not None
    }
    best = sorted(wanted, key=lambda name: -wanted[name])[:PICKS_MAX]
    shares = _shares({name: _asked(name, evidence) for name in best})
    picks = tuple(
        _buy(findings[name], min(SURE_MAX, wanted[name] / 10), shares[name], evidence, day)
        for name in best
        if shares[name]
    )
    sales = tuple(
        sale
        for name in findings
        if name in held and (sale := _sale(name, signals.get(name), evidence, day)) is not None
    )[:PICKS_MAX]
    return PicksDraft(
        picks=picks,
        sell_recommendations=sales,
        confidence=_mean([pick.confidence for pick in (*picks, *sales)]),
        answer=f"{LABEL}{_session(bool(picks), bool(sales), day)}",
        passed=tuple(
            PassedDraft(ticker=name, why=f"{LABEL}{_passed(finding, signals.get(name), evidence)}")
            for name, finding in findings.items()
            if name not in held and name not in {pick.ticker for pick in picks}
        ),
    )


def _passed(finding: ResearchFinding, signal: QuantSignal | None, evidence: EvidenceIndex) -> str:
    """Why it is not bought, in the order in which it was decided."""
    if not _may_be_bought(finding.ticker, evidence):
        return "no rule of risk lets it pass, or its price was not verified"
    if signal is QuantSignal.BEARISH:
        return "the quant is bearish"
    if _conviction(finding, signal, evidence) is None:
        mood = evidence.number(finding.ticker, "sentiment") or 0.0
        return "the news is bad" if mood <= MOOD_SOLD else "the trend is too weak"
    return "others lead"


def _session(buys: bool, sells: bool, day: str) -> str:
    what = "both" if buys and sells else "buy" if buys else "sell" if sells else "none"
    return chosen(lines.MARKET[what], "market", day)


def _signals(task: TaskData) -> Mapping[str, QuantSignal]:
    report = QuantReport.model_validate(task["quant_report"])
    return {view.ticker: view.signal for view in report.assets}


def _may_be_bought(ticker: str, evidence: EvidenceIndex) -> bool:
    is_verified = evidence.number(ticker, VERIFIED) is not None
    return is_verified and not evidence.has(ticker, NOT_TO_BUY)


def _conviction(
    finding: ResearchFinding, signal: QuantSignal | None, evidence: EvidenceIndex
) -> float | None:
    """How much it is wanted, 0 to 10; None where it is not."""
    if signal is QuantSignal.BEARISH:
        return None
    mood = evidence.number(finding.ticker, "sentiment") or 0.0
    enough = TREND_WITH_NEWS_MIN if mood >= MOOD_BOUGHT else TREND_MIN
    if finding.technical_score < enough or mood <= MOOD_SOLD:
        return None
    figures = 0.0 if finding.fundamental_score is None else finding.fundamental_score - 5.0
    return min(max(finding.technical_score + 0.3 * figures + 2.0 * mood, 0.0), 10.0)


def _asked(ticker: str, evidence: EvidenceIndex) -> Decimal:
    room = Decimal(str(evidence.number(ticker, ROOM) or 0.0))
    return min(room * ROOM_ASKED, SHARE_MAX)


def _shares(asked: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
    """The shares asked for, in proportion where it comes to more than INVESTED_MAX."""
    total = sum(asked.values(), Decimal(0))
    part = min(Decimal(1), INVESTED_MAX / total) if total else Decimal(1)
    return {
        name: (share * part).quantize(Decimal("0.1"), ROUND_DOWN) for name, share in asked.items()
    }


def _buy(
    finding: ResearchFinding, sure: float, share: Decimal, evidence: EvidenceIndex, day: str
) -> BuyDraft:
    ticker = finding.ticker
    volatile = (evidence.number(ticker, "volatility_3m_pct") or 0.0) > 30
    risk = "measured_risk" if finding.measured_risk > finding.risk_score else "risk_score"
    named = [
        *arguments.of_news(ticker, evidence, day),
        *evidence.reason(ticker, "technical_score", speaks=Speaks.FOR),
        *arguments.of_trend(ticker, evidence, rise=Speaks.FOR),
        *arguments.of_figures(finding, evidence),
        *evidence.reason(ticker, risk, speaks=Speaks.AGAINST),
    ]
    return BuyDraft(
        ticker=ticker,
        allocation_pct=share,
        confidence=round(sure, 2),
        reasons=arguments.spoken(named, ticker, day)[:REASONS_MAX],
        horizon_sessions=HORIZON_SESSIONS,
        stop_atr=STOP_ATR if volatile else STOP_ATR_CALM,
    )


def _sale(
    ticker: str, signal: QuantSignal | None, evidence: EvidenceIndex, day: str
) -> PickDraft | None:
    """A sale of all of it: the quant is bearish, the news is bad, or its time is up."""
    if evidence.number(ticker, VERIFIED) is None or evidence.has(ticker, BEING_SOLD):
        return None
    mood = evidence.number(ticker, "sentiment") or 0.0
    is_bearish, is_bad, is_due = (
        signal is QuantSignal.BEARISH,
        mood <= MOOD_SOLD,
        evidence.has(ticker, REVIEW_DUE) and signal is not QuantSignal.BULLISH,
    )
    if not (is_bearish or is_bad or is_due):
        return None
    side = Speaks.FOR if is_bearish else Speaks.AGAINST
    named = [
        *(arguments.of_news(ticker, evidence, day, sale=True) if is_bad else ()),
        *evidence.reason(ticker, "quant_signal", speaks=side),
        *(evidence.reason(ticker, REVIEW_DUE, speaks=Speaks.FOR) if is_due else ()),
        *arguments.of_trend(ticker, evidence, rise=Speaks.AGAINST),
    ]
    return PickDraft(
        ticker=ticker,
        allocation_pct=Decimal(100),
        confidence=0.7 if is_bearish else 0.6,
        reasons=arguments.spoken(named, ticker, day, sale=True)[:REASONS_MAX],
    )


def reviewer_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """The rules' review, and a quarter less of what swings much."""
    draft = risk_review.answer(task, evidence)
    daily = DailyPicks.model_validate(task["daily_picks"])
    risks = {finding.ticker: finding.risk for finding in findings_in(task)}
    buys = {pick.ticker for pick in daily.picks}
    picks = tuple(
        _trimmed(pick, risks.get(pick.ticker, 0.0), evidence, _day(task))
        if pick.ticker in buys
        else pick
        for pick in draft.picks
    )
    notes = _without_label(draft.notes)
    return draft.model_copy(update={"picks": picks, "notes": f"{LABEL}{notes}"})


def _trimmed(pick: ReviewedPick, risk: float, evidence: EvidenceIndex, day: str) -> ReviewedPick:
    if risk < RISK_TRIMMED or not pick.allocation_pct:
        return pick
    less = (pick.allocation_pct * TRIMMED).quantize(Decimal("0.01"), ROUND_DOWN)
    named = evidence.reason(pick.ticker, "measured_risk", speaks=Speaks.AGAINST)
    reasons = (*pick.reasons, *arguments.spoken(named, pick.ticker, day))[:REASONS_MAX]
    return pick.model_copy(update={"allocation_pct": less, "reasons": reasons})


def memory_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """The rules' summary under the committee's label."""
    draft = memory.answer(task, evidence)
    return MemoryDraft(
        short_term_summary=f"{LABEL}{_without_label(draft.short_term_summary)}"[:TEXT_CHARS_MAX],
        active_hypotheses=tuple(map(_relabelled, draft.active_hypotheses)),
        next_steps=tuple(map(_relabelled, draft.next_steps)),
    )


def designer_seat(task: TaskData, evidence: EvidenceIndex) -> BaseModel:
    """The rules' draw under the committee's label."""
    draft = designer.answer(task, evidence)
    return StrategyDraft.model_validate(
        {**draft.model_dump(), "hypothesis": _relabelled(draft.hypothesis)}
    )


def _day(task: TaskData) -> str:
    return str(task["as_of"])


def _sure(confidence: float) -> float:
    """A confidence of the stated rules as the committee's."""
    return round(min(confidence * OWN_CONFIDENCE, SURE_MAX, CONFIDENCE_MAX * OWN_CONFIDENCE), 2)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0


def _without_label(text: str) -> str:
    return text.removeprefix(RULES_LABEL)


def _relabelled(text: str) -> str:
    return f"{LABEL}{_without_label(text)}"


Seat = Callable[[TaskData, EvidenceIndex], BaseModel]
SEATS: Mapping[str, Seat] = MappingProxyType(
    {
        "sentiment": sentiment_seat,
        "planner": planner_seat,
        "quant": quant_seat,
        "analyst": analyst_seat,
        "trader": trader_seat,
        "risk_review": reviewer_seat,
        "memory": memory_seat,
        "designer": designer_seat,
    }
)
"""By the agent's name. The assessor answers with a tool call, which the provider makes."""
