"""The quant by rules: a direction per asset from votes on its computed indicators."""

from contracts.reasons import Speaks
from contracts.research import PlanDraft, QuantDraft, QuantSignal, ViewDraft
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet, TaskData, confidence, labelled
from libs.llm.rules.technical import RSI_OVERBOUGHT, VOTES_MAX, Votes, vote, voted_values

NET_VOTES_MIN = 2
"""One vote more for a side is a coin's toss among five; two are a direction."""
SPLIT_VOTES_MIN = 2
"""Two votes on either side contradict each other: uncertain, not neutral."""
VOTES_CAST_MIN = 3
"""With fewer than three of the five votes the history is too short for a direction."""


def answer(task: TaskData, evidence: EvidenceIndex) -> QuantDraft:
    """One view per asset with indicators, and the one that most share; others are named."""
    plan = PlanDraft.model_validate(task["plan"])
    values = {ticker: voted_values(ticker, evidence) for ticker in plan.assets}
    views = tuple(_view(name, known, evidence) for name, known in values.items() if known)
    without = [name for name, known in values.items() if not known]
    signal = _overall(views)
    of_it = [view.confidence for view in views if view.signal is signal]
    missing = f"; no indicators for {', '.join(without)}" if without else ""
    return QuantDraft(
        signal=signal,
        confidence=round(sum(of_it) / len(of_it), 3) if of_it else 0.0,
        answer=labelled(f"votes on trend, MACD and momentum{missing}"),
        assets=views,
    )


def _view(ticker: str, values: dict[str, float], evidence: EvidenceIndex) -> ViewDraft:
    votes = vote(values)
    signal = signal_of(votes)
    rsi = values.get("rsi_14")
    hot = (
        evidence.reason(ticker, "rsi_14", speaks=Speaks.AGAINST, why="overbought")
        if rsi is not None and rsi > RSI_OVERBOUGHT
        else ()
    )
    return ViewDraft(
        ticker=ticker,
        signal=signal,
        confidence=_confidence(signal, votes),
        reasons=(*votes.reasons(ticker, evidence), *hot),
    )


def signal_of(votes: Votes) -> QuantSignal:
    """The direction that these votes are."""
    if votes.cast < VOTES_CAST_MIN:
        return QuantSignal.UNCERTAIN
    if votes.net >= NET_VOTES_MIN:
        return QuantSignal.BULLISH
    if votes.net <= -NET_VOTES_MIN:
        return QuantSignal.BEARISH
    if min(votes.bull, votes.bear) >= SPLIT_VOTES_MIN:
        return QuantSignal.UNCERTAIN
    return QuantSignal.NEUTRAL


def _confidence(signal: QuantSignal, votes: Votes) -> float:
    if signal in (QuantSignal.BULLISH, QuantSignal.BEARISH):
        return confidence(abs(votes.net) / VOTES_MAX)
    # The fewer votes contradict it, the surer "no direction" is; it is never sure.
    return confidence((votes.cast - abs(votes.net)) / VOTES_MAX / 2)


def _overall(views: tuple[ViewDraft, ...]) -> QuantSignal:
    bulls = sum(view.signal is QuantSignal.BULLISH for view in views)
    bears = sum(view.signal is QuantSignal.BEARISH for view in views)
    if bulls and bears:
        return QuantSignal.UNCERTAIN
    if bulls or bears:
        majority = QuantSignal.BULLISH if bulls else QuantSignal.BEARISH
        return majority if max(bulls, bears) * 2 >= len(views) else QuantSignal.NEUTRAL
    uncertain = sum(view.signal is QuantSignal.UNCERTAIN for view in views)
    return QuantSignal.UNCERTAIN if uncertain * 2 > len(views) else QuantSignal.NEUTRAL


RULES = RuleSet(answer=answer)
