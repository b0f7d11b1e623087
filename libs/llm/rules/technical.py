"""Votes on a ticker's indicators, and its risk: shared by the quant's and the analyst's rules.

Each vote is +1 (for a rise), -1 (against) or 0, by a threshold that stands here with its reason,
and names the fact that it was cast by.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from contracts.reasons import ReasonDraft, Speaks
from libs.llm.rules.rule_set import Found

MOMENTUM_3M_PCT_MIN = 5.0
"""A quarter's move below it is within the noise of one volatile month."""
MACD_NOISE_PCT = 0.05
"""A MACD histogram smaller than this share of the price changes its sign from day to day."""
RSI_OVERBOUGHT = 70.0
RSI_OVERSOLD = 30.0
"""Wilder's levels."""
VOTES_MAX = 5
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
    words: str = ""


@dataclass(frozen=True)
class Votes:
    """How many votes each side has, and all that could be cast."""

    votes: tuple[Vote, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """All that could be cast, in words."""
        return tuple(vote.words for vote in self.votes)

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

    def reasons(self, ticker: str, found: Found) -> tuple[ReasonDraft, ...]:
        """The votes that were cast for a side."""
        return tuple(
            reason
            for vote in self.votes
            if vote.value
            for reason in found.reason(
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


def risk_score(values: Mapping[str, float], drawdown_pct: float | None) -> tuple[float, str]:
    """0 (calm) to 10, from volatility, the fall from the high and RSI extremes, with the why.

    `drawdown_pct` is how far the close is below the highest close of the history, in percent.
    """
    volatility = values.get("volatility_3m_pct")
    if volatility is None:
        return RISK_UNKNOWN, "too short a history to measure volatility"
    score = volatility * RISK_PER_VOLATILITY_PCT
    words = [f"volatility {volatility:.0f}% a year"]
    if drawdown_pct is not None:
        score += drawdown_pct * RISK_PER_DRAWDOWN_PCT
        words.append(f"{drawdown_pct:.0f}% below its high")
    rsi = values.get("rsi_14")
    if rsi is not None and not RSI_OVERSOLD <= rsi <= RSI_OVERBOUGHT:
        score += RISK_RSI_EXTREME
        words.append(f"RSI {rsi:.0f} is extreme")
    return round(min(score, 10.0), 2), ", ".join(words)


def _above(values: Mapping[str, float], name: str, level: str) -> Vote | None:
    if name not in values or level not in values:
        return None
    higher = values[name] > values[level]
    words = f"{_called(name)} {values[name]:.2f} {'above' if higher else 'not above'} "
    return Vote(1 if higher else -1, name, level, f"{words}{_called(level)} {values[level]:.2f}")


def _macd(values: Mapping[str, float]) -> Vote | None:
    if "macd_histogram" not in values or "close" not in values:
        return None
    share_pct = values["macd_histogram"] / values["close"] * 100
    noise = abs(share_pct) < MACD_NOISE_PCT
    words = f"MACD histogram {values['macd_histogram']:+.3f}{' (noise)' if noise else ''}"
    return Vote(0 if noise else 1 if share_pct > 0 else -1, "macd_histogram", "", words)


def _momentum(values: Mapping[str, float]) -> Vote | None:
    moved = values.get("momentum_3m_pct")
    if moved is None:
        return None
    noise = abs(moved) < MOMENTUM_3M_PCT_MIN
    words = f"3-month momentum {moved:+.1f}%{' (noise)' if noise else ''}"
    return Vote(0 if noise else 1 if moved > 0 else -1, "change_63d_pct", "", words)


def _called(name: str) -> str:
    return name.replace("sma_", "SMA")
