"""Samples of the trader's answer: what most of them agree on is traded, the rest is left out. Pure.

The answer that stands is one of them, whole: the one that has most of what was agreed on. So its
weights fit together, and its reasons are its own.
"""

from collections.abc import Mapping, Sequence

from contracts.trader import PickDraft, PicksDraft, Unstable
from libs.quant.study.agreement import Agreement, agreement

BUY, SELL, NEITHER = "buy", "sell", "neither"


def agreed(drafts: Sequence[PicksDraft]) -> tuple[PicksDraft, tuple[Unstable, ...]]:
    """The answer that stands, less what the samples do not agree on, and that."""
    if len(drafts) == 1:
        return drafts[0], ()
    judged = [_judged(draft) for draft in drafts]
    tickers = sorted({ticker for one in judged for ticker in one})
    shared = {ticker: _agreement(ticker, judged) for ticker in tickers}
    stable = {ticker: item.verdict for ticker, item in shared.items() if item.stable}

    def typical(number: int) -> int:
        verdicts = judged[number]
        return sum(_verdict(verdicts, ticker) == verdict for ticker, verdict in stable.items())

    chosen = max(range(len(drafts)), key=lambda number: (typical(number), -number))
    kept = {ticker for ticker, verdict in stable.items() if verdict != NEITHER}
    draft = drafts[chosen]
    update = {
        "picks": tuple(pick for pick in draft.picks if pick.ticker in kept),
        "sell_recommendations": tuple(
            pick for pick in draft.sell_recommendations if pick.ticker in kept
        ),
    }
    unstable = tuple(
        _unstable(ticker, shared[ticker], judged) for ticker in tickers if not shared[ticker].stable
    )
    return draft.model_copy(update=update), unstable


def in_words(left_out: Unstable) -> str:
    """The sentence about a ticker that was left out."""
    counts = [f"{left_out.buy} would buy"] * bool(left_out.buy)
    counts += [f"{left_out.sell} would sell"] * bool(left_out.sell)
    return (
        f"{left_out.ticker}: unstable, left out: of {left_out.samples} answers on the same "
        f"evidence {' and '.join(counts)}, with weights that differ by {left_out.spread:.0%}"
    )


_Judged = Mapping[str, tuple[str, PickDraft]]


def _judged(draft: PicksDraft) -> _Judged:
    buys = {pick.ticker: (BUY, pick) for pick in draft.picks}
    return {**buys, **{pick.ticker: (SELL, pick) for pick in draft.sell_recommendations}}


def _verdict(judged: _Judged, ticker: str) -> str:
    return judged[ticker][0] if ticker in judged else NEITHER


def _weight(judged: _Judged, ticker: str) -> float:
    return float(judged[ticker][1].allocation_pct) if ticker in judged else 0.0


def _agreement(ticker: str, judged: Sequence[_Judged]) -> Agreement:
    return agreement(
        [_verdict(one, ticker) for one in judged], [_weight(one, ticker) for one in judged]
    )


def _unstable(ticker: str, held: Agreement, judged: Sequence[_Judged]) -> Unstable:
    verdicts = [_verdict(one, ticker) for one in judged]
    return Unstable(
        ticker=ticker,
        samples=len(judged),
        buy=verdicts.count(BUY),
        sell=verdicts.count(SELL),
        spread=held.spread,
    )
