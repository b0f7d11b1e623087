"""The trader by rules: buy what trends up and was researched, in proportion to its score.

It does not look at sectors, holdings or limits: that is the risk rules' work, which have the last
word whoever trades.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_DOWN, Decimal

from contracts.account import Portfolio
from contracts.reasons import ReasonDraft, Speaks
from contracts.research import AssetView, QuantReport, QuantSignal, ResearchFinding
from contracts.trader import PICKS_MAX, PickDraft, PicksDraft
from libs.llm.rules.rule_set import (
    CONFIDENCE_MAX,
    Ask,
    EvidenceIndex,
    RuleSet,
    TaskData,
    findings_in,
)

TECHNICAL_SCORE_MIN = 6.0
"""One net vote above neutral: the analyst must see the trend too."""
INVESTED_PCT = Decimal(90)
"""Share of the budget proposed in all; the rest stays for fees and for moves at the open."""
PICK_PCT_MAX = Decimal(40)
"""One pick's largest share, as the default limit on a position."""
FUNDAMENTAL_WEIGHT = 0.5
"""Sound figures add to a trend, half as much as the trend itself; absent ones add nothing."""
RISK_WEIGHT = 0.5
SOUGHT = "rising by the quant, and by the analyst's score of the trend"
"""What is bought."""
VERIFIED = "volume"
"""The quantity that nobody but the tool that verifies prices tells of a ticker."""


def ask(task: TaskData) -> tuple[Ask, ...]:
    """The own account, and the present price of everything that may be bought or sold."""
    tickers = [finding.ticker for finding, _ in _bought(task)]
    tickers += [position.ticker for position, _ in _sold(task)]
    prices = (Ask("get_stock_price", {"ticker": name}) for name in dict.fromkeys(tickers))
    return (Ask("get_portfolio", {}), *prices)


def answer(task: TaskData, evidence: EvidenceIndex) -> PicksDraft:
    """Buys by score, sales of what is held and trends down; nothing without a verified price."""
    buys = [pair for pair in _bought(task) if _is_verified(pair[0].ticker, evidence)]
    shares = _shares([_score(finding, view) for finding, view in buys])
    picks = tuple(
        _buy(finding, view, share, evidence)
        for (finding, view), share in zip(buys, shares, strict=True)
        if share > 0
    )
    sales = tuple(
        _sale(position.ticker, view, evidence)
        for position, view in _sold(task)
        if _is_verified(position.ticker, evidence)
    )
    return PicksDraft(
        picks=picks,
        sell_recommendations=sales,
        confidence=_mean([pick.confidence for pick in (*picks, *sales)]),
        answer=SOUGHT,
    )


def _bought(task: TaskData) -> list[tuple[ResearchFinding, AssetView]]:
    """Bullish for the quant, at least TECHNICAL_SCORE_MIN for the analyst; best score first."""
    views = _views(task)
    pairs = [
        (finding, views[finding.ticker])
        for finding in findings_in(task)
        if finding.ticker in views
        and views[finding.ticker].signal is QuantSignal.BULLISH
        and finding.technical_score >= TECHNICAL_SCORE_MIN
    ]
    ranked = sorted(pairs, key=lambda pair: (-_score(*pair), pair[0].ticker))
    return ranked[:PICKS_MAX]


def _sold(task: TaskData) -> list[tuple[ResearchFinding, AssetView]]:
    """Held and bearish for the quant."""
    views = _views(task)
    held = {item.ticker for item in Portfolio.model_validate(task["portfolio"]).positions}
    return [
        (finding, views[finding.ticker])
        for finding in findings_in(task)
        if finding.ticker in held
        and finding.ticker in views
        and views[finding.ticker].signal is QuantSignal.BEARISH
    ][:PICKS_MAX]


def _views(task: TaskData) -> Mapping[str, AssetView]:
    report = QuantReport.model_validate(task["quant_report"])
    return {view.ticker: view for view in report.assets}


def _score(finding: ResearchFinding, view: AssetView) -> float:
    known = finding.fundamental_score or 0.0
    score = finding.technical_score + FUNDAMENTAL_WEIGHT * known
    return max(score - RISK_WEIGHT * finding.risk_score, 0.0) * view.confidence


def _shares(scores: list[float]) -> list[Decimal]:
    """INVESTED_PCT in proportion to the scores, each at most PICK_PCT_MAX, to 0.01."""
    total = sum(scores)
    if total <= 0:
        return [Decimal(0)] * len(scores)
    parts = [INVESTED_PCT * Decimal(str(score / total)) for score in scores]
    return [min(part, PICK_PCT_MAX).quantize(Decimal("0.01"), ROUND_DOWN) for part in parts]


def _is_verified(ticker: str, evidence: EvidenceIndex) -> bool:
    return evidence.number(ticker, VERIFIED) is not None


def _buy(
    finding: ResearchFinding, view: AssetView, share: Decimal, evidence: EvidenceIndex
) -> PickDraft:
    name = finding.ticker
    scores = ("technical_score", "fundamental_score")[: 1 + bool(finding.fundamental_score)]
    risk = "measured_risk" if finding.measured_risk > finding.risk_score else "risk_score"
    return PickDraft(
        ticker=name,
        allocation_pct=share,
        confidence=min(view.confidence, CONFIDENCE_MAX),
        reasons=(
            *(
                reason
                for score in scores
                for reason in evidence.reason(name, score, speaks=Speaks.FOR)
            ),
            *_trend(name, evidence, up=Speaks.FOR, down=Speaks.AGAINST),
            *evidence.reason(name, risk, speaks=Speaks.AGAINST),
        ),
    )


def _sale(ticker: str, view: AssetView, evidence: EvidenceIndex) -> PickDraft:
    return PickDraft(
        ticker=ticker,
        allocation_pct=Decimal(100),
        confidence=min(view.confidence, CONFIDENCE_MAX),
        reasons=(
            *evidence.reason(ticker, "quant_signal", speaks=Speaks.FOR),
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
