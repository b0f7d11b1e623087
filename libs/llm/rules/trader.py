"""The trader by rules: buy what trends up, more so where sentiment, figures and reports agree.

It buys where the quant is bullish, sells where it is bearish, and in between leaves all as it is.
So between a purchase and a sale two of the five votes must turn: one vote moves the net by two,
and turns by noise as soon as a close crosses an average (docs/decisions/0030-hysteresis.md).

What was to be looked at again by now is kept only while its trend and the rest still speak for it:
by then the thesis that it was bought for has had its time.

It asks for nothing that no rule can let pass, and for no more than the rules have said there is
room for by itself. How far a confidence carries, and how picks limit one another, is the risk
rules' work, which have the last word whoever trades.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_DOWN, Decimal

from contracts.account import Portfolio
from contracts.not_bought import Cause, NotBought
from contracts.reasons import ReasonDraft, Speaks
from contracts.research import AssetView, QuantReport, QuantSignal, ResearchFinding
from contracts.trader import PICKS_MAX, BuyDraft, PickDraft, PicksDraft
from contracts.types import Money
from libs.facts.desk import BEING_SOLD, NEXT_REPORT, NOT_TO_BUY, REVIEW_DUE, ROOM
from libs.llm.rules.quant import NET_VOTES_MIN, signal_of
from libs.llm.rules.rule_set import (
    CONFIDENCE_MAX,
    EvidenceIndex,
    RuleSet,
    TaskData,
    ToolRequest,
    account_and_prices,
    confidence,
    findings_in,
)
from libs.llm.rules.technical import MOMENTUM_3M_PCT_MIN, VOTES_MAX, Votes, vote, voted_values
from libs.quant.ticks import PRICE_STEP

NEUTRAL = 5.0
"""A score without a direction."""
CONVICTION_MIN = 6.0
"""One net vote above neutral, of the trend and of all that speaks beside it."""
INVESTED_PCT = Decimal(90)
"""Share of the budget proposed in all; the rest stays for fees and for moves at the open."""
FUNDAMENTAL_WEIGHT = 0.5
"""Figures add half as much as the trend itself, which moves faster; absent ones add nothing."""
SENTIMENT_WEIGHT = 1.0
"""Headlines that all agree, and are sure of it, weigh as much as one vote on the trend."""
EVENT_WEIGHT = 1.0
"""Reports and filings likewise, however many of them there are."""
EVENTS = frozenset({"filing", "report", "eps_actual"})
"""Quantities of what a company has reported. Headlines are in the sentiment already."""
SOUGHT = "rising by the analyst's score of the trend, with sentiment, figures and reports"
"""What is bought."""
SPEAKS_NO_MORE = "too little speaks for it now"
"""Why a position whose time is up is sold."""
VERIFIED = "volume"
"""The quantity that nobody but the tool that verifies prices tells of a ticker."""


def ask(task: TaskData) -> tuple[ToolRequest, ...]:
    """The own account, and the present price of everything that may be bought or sold."""
    tickers = [finding.ticker for finding in _bullish(task)]
    tickers += [finding.ticker for finding, _ in _held(task)]
    return account_and_prices(dict.fromkeys(tickers))


def answer(task: TaskData, evidence: EvidenceIndex) -> PicksDraft:
    """Buys by conviction, sales of what is held and trends down; nothing without a verified price,
    and nothing that no rule lets pass or that is being sold already."""
    scored = {
        finding.ticker: _conviction(finding, evidence)
        for finding in _bullish(task)
        if may_be_bought(finding.ticker, evidence)
    }
    findings = {finding.ticker: finding for finding in findings_in(task)}
    sought = [name for name, score in scored.items() if score >= CONVICTION_MIN]
    # Of equal ones the analyst's first: a name is no reason.
    best = sorted(sought, key=lambda name: -scored[name])[:PICKS_MAX]
    sure = {name: confidence((scored[name] - NEUTRAL) / NEUTRAL) for name in best}
    shares = _shares({name: _room(name, evidence) for name in best})
    picks = tuple(
        _buy(findings[name], sure[name], shares[name], evidence) for name in best if shares[name]
    )
    sales = tuple(
        _sale(finding.ticker, view, evidence)
        for finding, view in _held(task)
        if _has_lost_its_reason(finding, view, evidence)
        and is_verified(finding.ticker, evidence)
        and evidence.number(finding.ticker, BEING_SOLD) is None
    )[:PICKS_MAX]
    return PicksDraft(
        picks=picks,
        sell_recommendations=sales,
        confidence=_mean([pick.confidence for pick in (*picks, *sales)]),
        answer=SOUGHT,
    )


def passed(task: TaskData, evidence: EvidenceIndex) -> Iterator[NotBought]:
    """Of each finding that is neither held nor picked, the first threshold that it does not meet,
    with the price above which it would, all else unchanged."""
    views = _views(task)
    held = {item.ticker for item in Portfolio.model_validate(task["portfolio"]).positions}
    picked = {pick.ticker for pick in answer(task, evidence).picks}
    for finding in findings_in(task):
        name = finding.ticker
        if name in held or name in picked:
            continue
        votes = vote(voted_values(name, evidence))
        unmet = _unmet(finding, views.get(name), votes, evidence)
        if unmet is not None:
            yield unmet


def _unmet(
    finding: ResearchFinding, view: AssetView | None, votes: Votes, evidence: EvidenceIndex
) -> NotBought | None:
    name = finding.ticker
    conviction = _conviction(finding, evidence)
    # The quant and the analyst may be models: then votes explain neither.
    voted = view is not None and signal_of(votes) is view.signal
    net = f", net votes {votes.net:+d} of {VOTES_MAX}" if voted else ""
    what: tuple[str, str, str]
    if view is None:
        what = ("quant", "no view of it", "bullish")
    elif view.signal is not QuantSignal.BULLISH:
        needs = f", net votes {NET_VOTES_MIN:+d}" if voted else ""
        what = ("quant", f"{view.signal.value}{net}", f"bullish{needs}")
    elif finding.technical_score < NEUTRAL:
        what = ("technical score", f"{finding.technical_score:g}", f"{NEUTRAL:g}")
    elif not is_verified(name, evidence):
        what = ("price", "not verified by get_stock_price", "verified")
    elif evidence.has(name, NOT_TO_BUY):
        return None
    elif conviction < CONVICTION_MIN:
        what = ("conviction", f"{conviction:.2f}", f"{CONVICTION_MIN:.2f}")
    else:
        what = ("places", "others have more conviction", f"one of {PICKS_MAX} places")
    named = dict(zip(("name", "value", "limit"), what, strict=True))
    above = _buys_above(finding, conviction, votes, evidence) if voted else None
    return NotBought(ticker=name, cause=Cause.THRESHOLD, buys_above=above, **named)


def _buys_above(
    finding: ResearchFinding, conviction: float, votes: Votes, evidence: EvidenceIndex
) -> Money | None:
    """The lowest level above the close at which enough votes turn, where averages and MACD stay as
    they are: an average, or 5% above or below the close of a quarter ago."""
    values = voted_values(finding.ticker, evidence)
    close, moved = values.get("close"), values.get("momentum_3m_pct")
    if close is None or finding.technical_score != round(NEUTRAL + votes.net, 2):
        return None
    before = None if moved is None else close / (1 + moved / 100)
    levels = [values[name] for name in ("sma_50", "sma_200") if name in values]
    if before is not None:
        levels += [before * (1 + pct / 100) for pct in (-MOMENTUM_3M_PCT_MIN, MOMENTUM_3M_PCT_MIN)]
    for level in sorted(level for level in levels if level >= close):
        at = level * (1 + 1e-9)
        then = {**values, "close": at}
        if before is not None:
            then["momentum_3m_pct"] = (at / before - 1) * 100
        if "macd_histogram" in values:
            then["macd_histogram"] = values["macd_histogram"] * at / close
        turned = vote(then)
        enough = conviction + turned.net - votes.net >= CONVICTION_MIN
        if enough and signal_of(turned) is QuantSignal.BULLISH:
            amount = Decimal(str(level)).quantize(PRICE_STEP)
            return Money(amount=amount, currency=finding.currency)
    return None


def _bullish(task: TaskData) -> list[ResearchFinding]:
    """Bullish for the quant, and no net vote against the trend for the analyst."""
    views = _views(task)
    return [
        finding
        for finding in findings_in(task)
        if finding.ticker in views
        and views[finding.ticker].signal is QuantSignal.BULLISH
        and finding.technical_score >= NEUTRAL
    ]


def may_be_bought(ticker: str, evidence: EvidenceIndex) -> bool:
    """Whether its price is verified and no rule forbids a buy of it."""
    return is_verified(ticker, evidence) and not evidence.has(ticker, NOT_TO_BUY)


def _conviction(finding: ResearchFinding, evidence: EvidenceIndex) -> float:
    """The score of the trend, 5 to 10, moved by all else that is known of the company."""
    known = finding.fundamental_score
    figures = 0.0 if known is None else known - NEUTRAL
    sentiment = evidence.number(finding.ticker, "sentiment") or 0.0
    heard = (evidence.number(finding.ticker, "sentiment_confidence") or 0.0) / CONFIDENCE_MAX
    return (
        finding.technical_score
        + FUNDAMENTAL_WEIGHT * figures
        + SENTIMENT_WEIGHT * sentiment * min(heard, 1.0)
        + EVENT_WEIGHT * _events(finding)
    )


def _events(finding: ResearchFinding) -> float:
    """The analyst's view of reports and filings, from -1 to 1; 0 where there are none."""
    votes = [
        1 if reason.speaks is Speaks.FOR else -1
        for reason in finding.reasons
        if reason.about == finding.ticker and _quantity(reason, finding.ticker) in EVENTS
    ]
    return sum(votes) / len(votes) if votes else 0.0


def _quantity(reason: ReasonDraft, ticker: str) -> str:
    return reason.fact.removeprefix(f"{ticker}.").partition("@")[0]


def _room(ticker: str, evidence: EvidenceIndex) -> Decimal:
    return Decimal(str(evidence.number(ticker, ROOM) or 0.0))


def _held(task: TaskData) -> list[tuple[ResearchFinding, AssetView]]:
    """The positions that were looked into."""
    views = _views(task)
    held = {item.ticker for item in Portfolio.model_validate(task["portfolio"]).positions}
    return [
        (finding, views[finding.ticker])
        for finding in findings_in(task)
        if finding.ticker in held and finding.ticker in views
    ]


def _has_lost_its_reason(
    finding: ResearchFinding, view: AssetView, evidence: EvidenceIndex
) -> bool:
    """Bearish for the quant; or due to be looked at again, and no more speaks for it than against:
    a net vote against its trend, or too little conviction."""
    if view.signal is QuantSignal.BEARISH:
        return True
    speaks_for_it = (
        finding.technical_score >= NEUTRAL and _conviction(finding, evidence) >= CONVICTION_MIN
    )
    return evidence.has(finding.ticker, REVIEW_DUE) and not speaks_for_it


def _views(task: TaskData) -> Mapping[str, AssetView]:
    report = QuantReport.model_validate(task["quant_report"])
    return {view.ticker: view for view in report.assets}


def _shares(rooms: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
    """The rooms, in proportion where they come to more than INVESTED_PCT, to 0.01."""
    total = sum(rooms.values(), Decimal(0))
    part = min(Decimal(1), INVESTED_PCT / total) if total else Decimal(1)
    return {
        name: (room * part).quantize(Decimal("0.01"), ROUND_DOWN) for name, room in rooms.items()
    }


def is_verified(ticker: str, evidence: EvidenceIndex) -> bool:
    """Whether the tool has answered for it."""
    return evidence.number(ticker, VERIFIED) is not None


def _buy(
    finding: ResearchFinding, sure: float, share: Decimal, evidence: EvidenceIndex
) -> BuyDraft:
    name = finding.ticker
    scores = ("technical_score", "fundamental_score")[: 1 + (finding.fundamental_score is not None)]
    risk = "measured_risk" if finding.measured_risk > finding.risk_score else "risk_score"
    report = f"{name}.{NEXT_REPORT}"
    return BuyDraft(
        ticker=name,
        allocation_pct=share,
        confidence=sure,
        reasons=(
            *(
                reason
                for score in scores
                for reason in evidence.reason(
                    name, score, speaks=_side(getattr(finding, score) - NEUTRAL)
                )
            ),
            *_sentiment(name, evidence),
            *_trend(name, evidence, up=Speaks.FOR, down=Speaks.AGAINST),
            *evidence.reason(name, risk, speaks=Speaks.AGAINST),
        ),
        review_event=report if evidence.has(name, NEXT_REPORT) else "",
    )


def _sentiment(ticker: str, evidence: EvidenceIndex) -> Iterator[ReasonDraft]:
    if score := evidence.number(ticker, "sentiment"):
        yield from evidence.reason(ticker, "sentiment", speaks=_side(score))


def _side(value: float) -> Speaks:
    return Speaks.FOR if value >= 0 else Speaks.AGAINST


def _sale(ticker: str, view: AssetView, evidence: EvidenceIndex) -> PickDraft:
    return PickDraft(
        ticker=ticker,
        allocation_pct=Decimal(100),
        confidence=min(view.confidence, CONFIDENCE_MAX),
        reasons=(
            *evidence.reason(
                ticker,
                "quant_signal",
                speaks=Speaks.FOR if view.signal is QuantSignal.BEARISH else Speaks.AGAINST,
            ),
            *evidence.reason(ticker, REVIEW_DUE, speaks=Speaks.FOR, why=SPEAKS_NO_MORE),
            *_trend(ticker, evidence, up=Speaks.AGAINST, down=Speaks.FOR),
        ),
    )


def _trend(
    ticker: str, evidence: EvidenceIndex, *, up: Speaks, down: Speaks
) -> Iterator[ReasonDraft]:
    """The long trend and the last three months, each for the side that it is on."""
    close, average = evidence.number(ticker, "close"), evidence.number(ticker, "sma_200")
    if close is not None and average is not None:
        side = up if close > average else down
        yield from evidence.reason(ticker, "close", beside="sma_200", speaks=side)
    moved = evidence.number(ticker, "change_63d_pct")
    if moved:
        yield from evidence.reason(ticker, "change_63d_pct", speaks=up if moved > 0 else down)


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0


RULES = RuleSet(answer=answer, ask=ask)
