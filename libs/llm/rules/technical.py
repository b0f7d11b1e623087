"""Votes on a ticker's indicators, and its risk: shared by the quant's and the analyst's rules.

Each vote is +1 (for a rise), -1 (against) or 0, by a threshold that stands here with its reason,
and names the fact that it was cast by.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from contracts.reasons import ReasonDraft, Speaks
from libs.llm.rules.rule_set import EvidenceIndex

MOMENTUM_3M_PCT_MIN = 5.0
"""A quarter's move below it is within the noise of one volatile month."""
MACD_NOISE_PCT = 0.05
"""A MACD histogram smaller than this share of the price changes its sign from day to day."""
RSI_OVERBOUGHT = 70.0
RSI_OVERSOLD = 30.0
"""Wilder's levels."""
VOTES_MAX = 5
VOTED_BY = {
    "close": "close",
    "sma_50": "sma_50",
    "sma_200": "sma_200",
    "macd_histogram": "macd_histogram",
    "momentum_3m_pct": "change_63d_pct",
    "rsi_14": "rsi_14",
}
"""Indicators that votes are cast by, and the facts that hold them."""
VOLATILE_PCT = 35.0
"""About what a single large share has in a usual year: from here on it speaks against."""
FAR_BELOW_PCT = 10.0
"""What stands a tenth below its high has lost holders."""
RISK_PER_VOLATILITY_PCT = 0.1
"""35% a year, usual for a single large share, gives 3.5 of 10."""
RISK_PER_DRAWDOWN_PCT = 0.05
"""A share 40% below its high adds 2: what fell that far fell for a reason."""
RISK_RSI_EXTREME = 1.5
RISK_UNKNOWN = 8.0
"""Too short a history to measure volatility is a risk by itself, above the desk's limit of 7."""


@dataclass(frozen=True)
class Vote:
    """One vote, and the facts that it was cast by: the one that decided, the one beside it."""

    value: int
    quantity: str
    beside: str = ""


@dataclass(frozen=True)
class Votes:
    """The votes of each side, and all that could be cast."""

    votes: tuple[Vote, ...]

    @property
    def bull(self) -> int:
        """Votes for a rise."""
        return sum(vote.value > 0 for vote in self.votes)

    @property
    def bear(self) -> int:
        """Votes against one."""
        return sum(vote.value < 0 for vote in self.votes)

    @property
    def cast(self) -> int:
        """Votes that could be cast."""
        return len(self.votes)

    @property
    def net(self) -> int:
        """Bull minus bear."""
        return self.bull - self.bear

    def reasons(self, ticker: str, evidence: EvidenceIndex) -> tuple[ReasonDraft, ...]:
        """The votes that were cast for a side."""
        return tuple(
            reason
            for vote in self.votes
            if vote.value
            for reason in evidence.reason(
                ticker,
                vote.quantity,
                beside=vote.beside,
                speaks=Speaks.FOR if vote.value > 0 else Speaks.AGAINST,
            )
        )


def vote(values: Mapping[str, float]) -> Votes:
    """The five votes: close on SMA50, close on SMA200, SMA50 on SMA200, MACD, 3-month momentum."""
    ballots = [
        _above(values, "close", "sma_50"),
        _above(values, "close", "sma_200"),
        _above(values, "sma_50", "sma_200"),
        _macd(values),
        _momentum(values),
    ]
    return Votes(tuple(ballot for ballot in ballots if ballot is not None))


def voted_values(ticker: str, evidence: EvidenceIndex) -> dict[str, float]:
    """The indicators of a ticker that votes are cast by, as far as there are facts of them."""
    known = {name: evidence.number(ticker, fact) for name, fact in VOTED_BY.items()}
    return {name: value for name, value in known.items() if value is not None}


def risk_score(ticker: str, evidence: EvidenceIndex) -> tuple[float, tuple[ReasonDraft, ...]]:
    """0 (calm) to 10, from volatility, the fall from the high and RSI extremes, with what it
    rests on."""
    volatility = evidence.number(ticker, "volatility_3m_pct")
    if volatility is None:
        return RISK_UNKNOWN, ()
    score = volatility * RISK_PER_VOLATILITY_PCT
    side = Speaks.AGAINST if volatility >= VOLATILE_PCT else Speaks.FOR
    reasons = evidence.reason(ticker, "volatility_3m_pct", speaks=side)
    fall = evidence.number(ticker, "below_high_pct")
    if fall is not None:
        score += fall * RISK_PER_DRAWDOWN_PCT
        if fall >= FAR_BELOW_PCT:
            reasons += evidence.reason(ticker, "below_high_pct", speaks=Speaks.AGAINST)
    rsi = evidence.number(ticker, "rsi_14")
    if rsi is not None and not RSI_OVERSOLD <= rsi <= RSI_OVERBOUGHT:
        score += RISK_RSI_EXTREME
        reasons += evidence.reason(ticker, "rsi_14", speaks=Speaks.AGAINST, why="an extreme")
    return round(min(score, 10.0), 2), reasons


def _above(values: Mapping[str, float], name: str, level: str) -> Vote | None:
    if name not in values or level not in values:
        return None
    return Vote(1 if values[name] > values[level] else -1, name, level)


def _macd(values: Mapping[str, float]) -> Vote | None:
    if "macd_histogram" not in values or "close" not in values:
        return None
    share_pct = values["macd_histogram"] / values["close"] * 100
    noise = abs(share_pct) < MACD_NOISE_PCT
    return Vote(0 if noise else 1 if share_pct > 0 else -1, "macd_histogram")


def _momentum(values: Mapping[str, float]) -> Vote | None:
    moved = values.get("momentum_3m_pct")
    if moved is None:
        return None
    noise = abs(moved) < MOMENTUM_3M_PCT_MIN
    return Vote(0 if noise else 1 if moved > 0 else -1, "change_63d_pct")
