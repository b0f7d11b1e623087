"""Samples of the trader's answer: what most of them agree on is traded, the rest is left out. Pure.

The answer that stands is one of them, the one that has most of what was agreed on: so its weights
fit together. What it lacks of that is taken, with its own reasons, from the most typical of the
answers that have it, where it fits into the budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from contracts.trader import PICKS_MAX, PickDraft, PicksDraft, Unstable
from libs.quant.agreement import Agreement, agreement
from libs.quant.risk.rules import ALLOCATION_PCT_MAX

BUY, SELL, NEITHER = "buy", "sell", "neither"
FIELDS = {BUY: "picks", SELL: "sell_recommendations"}


@dataclass(frozen=True, slots=True)
class Agreed:
    """The answer that stands, what the samples did not agree on, and a sentence about each ticker
    that they have changed."""

    draft: PicksDraft
    unstable: tuple[Unstable, ...] = ()
    notes: tuple[str, ...] = ()


def agreed(drafts: Sequence[PicksDraft]) -> Agreed:
    """The samples as one answer."""
    if len(drafts) == 1:
        return Agreed(drafts[0])
    judged = [_judged(draft) for draft in drafts]
    tickers = sorted({ticker for one in judged for ticker in one})
    shared = {ticker: _agreement(ticker, judged) for ticker in tickers}
    stable = {ticker: item.verdict for ticker, item in shared.items() if item.stable}
    kept = {ticker: verdict for ticker, verdict in stable.items() if verdict != NEITHER}

    def typical(number: int) -> int:
        verdicts = judged[number]
        return sum(_verdict(verdicts, ticker) == verdict for ticker, verdict in stable.items())

    order = sorted(range(len(drafts)), key=lambda number: -typical(number))
    chosen, notes = drafts[order[0]], []
    parts: dict[str, list[PickDraft]] = {
        side: [pick for pick in getattr(chosen, field) if pick.ticker in kept]
        for side, field in FIELDS.items()
    }
    for ticker, side in kept.items():
        if ticker in judged[order[0]]:
            continue
        pick = next(judged[at][ticker][1] for at in order if ticker in judged[at])
        fits = _fits(pick, parts[side], side)
        if fits:
            parts[side].append(pick)
        notes.append(_lacked(pick, side, round(shared[ticker].share * len(drafts)), drafts, fits))
    unstable = tuple(
        _unstable(ticker, shared[ticker], judged) for ticker in tickers if not shared[ticker].stable
    )
    return Agreed(
        chosen.model_copy(update={FIELDS[side]: tuple(picks) for side, picks in parts.items()}),
        unstable,
        (*map(in_words, unstable), *notes),
    )


def in_words(left_out: Unstable) -> str:
    """The sentence about a ticker that was left out."""
    counts = [f"{left_out.buy} would buy"] * bool(left_out.buy)
    counts += [f"{left_out.sell} would sell"] * bool(left_out.sell)
    return (
        f"{left_out.ticker}: unstable, left out: of {left_out.samples} answers on the same "
        f"evidence {' and '.join(counts)}, with weights that differ by {left_out.spread:.0%}"
    )


def _fits(pick: PickDraft, beside: Sequence[PickDraft], side: str) -> bool:
    """Whether it has a place beside these, a buy in the budget too."""
    total = sum((one.allocation_pct for one in beside), start=Decimal(0))
    is_paid = side == SELL or total + pick.allocation_pct <= ALLOCATION_PCT_MAX
    return len(beside) < PICKS_MAX and is_paid


def _lacked(
    pick: PickDraft, side: str, count: int, drafts: Sequence[PicksDraft], fits: bool
) -> str:
    """The sentence about what was agreed on and the answer that stands lacks."""
    sentence = (
        f"{pick.ticker}: {count} of {len(drafts)} answers on the same evidence would {side} it, "
        "the most typical one would not"
    )
    if fits:
        return f"{sentence}: taken from the most typical of those that would"
    return (
        f"{sentence}, and {pick.allocation_pct.normalize():f}% more do not fit beside it: left out"
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
