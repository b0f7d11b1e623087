"""The trader by rules: buy what trends up and was researched, in proportion to its score.

It does not look at sectors, holdings or limits: that is the risk rules' work, which have the last
word whoever trades.
"""

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal

from contracts.account import Portfolio
from contracts.research import AssetView, QuantReport, QuantSignal, ResearchFinding
from contracts.trader import PICKS_MAX, PickDraft, PicksDraft
from libs.llm.rules.rule_set import (
    CONFIDENCE_MAX,
    LABEL,
    Ask,
    Found,
    RuleSet,
    TaskData,
    findings_in,
    said,
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
PRICE_MOVE_PCT_MAX = 2.0
"""Since research the price should not have moved at all (same as_of); more is said in words."""


def ask(task: TaskData) -> tuple[Ask, ...]:
    """The own account, and the present price of everything that may be bought or sold."""
    tickers = [finding.ticker for finding, _ in _bought(task)]
    tickers += [position.ticker for position, _ in _sold(task)]
    prices = (Ask("get_stock_price", {"ticker": name}) for name in dict.fromkeys(tickers))
    return (Ask("get_portfolio", {}), *prices)


def answer(task: TaskData, found: Found) -> PicksDraft:
    """Buys by score, sales of what is held and trends down; nothing without a verified price."""
    buys = [pair for pair in _bought(task) if found.result("get_stock_price", pair[0].ticker)]
    shares = _shares([_score(finding, view) for finding, view in buys])
    picks = tuple(
        _buy(finding, view, share, found)
        for (finding, view), share in zip(buys, shares, strict=True)
        if share > 0
    )
    sales = tuple(
        _sale(position.ticker, view)
        for position, view in _sold(task)
        if found.result("get_stock_price", position.ticker)
    )
    return PicksDraft(
        picks=picks,
        sell_recommendations=sales,
        confidence=_mean([pick.confidence for pick in (*picks, *sales)]),
        market_summary=said(_summary(task, picks, sales)),
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
    score = finding.technical_score + FUNDAMENTAL_WEIGHT * finding.fundamental_score
    return max(score - RISK_WEIGHT * finding.risk_score, 0.0) * view.confidence


def _shares(scores: list[float]) -> list[Decimal]:
    """INVESTED_PCT in proportion to the scores, each at most PICK_PCT_MAX, to 0.01."""
    total = sum(scores)
    if total <= 0:
        return [Decimal(0)] * len(scores)
    parts = [INVESTED_PCT * Decimal(str(score / total)) for score in scores]
    return [min(part, PICK_PCT_MAX).quantize(Decimal("0.01"), ROUND_DOWN) for part in parts]


def _buy(finding: ResearchFinding, view: AssetView, share: Decimal, found: Found) -> PickDraft:
    price = Decimal(str(found.result("get_stock_price", finding.ticker)["price"]))
    moved = _moved_pct(finding.current_price, price)
    words = f"quant {view.signal.value}, technical score {finding.technical_score:.1f}, "
    words += f"{_fundamental_words(finding)}, risk {finding.risk_score:.1f}, "
    words += f"price verified at {price}"
    if abs(moved) > PRICE_MOVE_PCT_MAX:
        words += f", {moved:+.1f}% since research"
    return PickDraft(
        ticker=finding.ticker,
        allocation_pct=share,
        reasoning=said(words),
        confidence=min(view.confidence, CONFIDENCE_MAX),
    )


def _fundamental_words(finding: ResearchFinding) -> str:
    # 0 is what the analyst writes where there are no figures: unknown, not bad.
    score = finding.fundamental_score
    return f"fundamental {score:.1f}" if score > 0 else "no fundamental score"


def _sale(ticker: str, view: AssetView) -> PickDraft:
    return PickDraft(
        ticker=ticker,
        allocation_pct=Decimal(100),
        reasoning=said(f"held, and bearish for the quant: {view.reasoning.removeprefix(LABEL)}"),
        confidence=min(view.confidence, CONFIDENCE_MAX),
    )


def _moved_pct(before: Decimal, now: Decimal) -> float:
    return float((now / before - 1) * 100) if before > 0 else 0.0


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0


def _summary(task: TaskData, picks: tuple[PickDraft, ...], sales: tuple[PickDraft, ...]) -> str:
    quant = QuantReport.model_validate(task["quant_report"])
    if not picks and not sales:
        return f"nothing to buy or sell: {quant.reasoning.removeprefix(LABEL)}"
    total = sum((pick.allocation_pct for pick in picks), start=Decimal(0))
    return (
        f"{len(picks)} to buy for {total}% of the budget, {len(sales)} to sell; "
        f"market {quant.signal.value}: {quant.reasoning.removeprefix(LABEL)}"
    )


RULES = RuleSet(answer=answer, ask=ask)
