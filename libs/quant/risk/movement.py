"""Common movement of tickers, as the rules judge it, exact to the last place."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from contracts.facts import Moves
from libs.quant.risk.score import STEPS

CLUSTER_CORRELATION = Decimal("0.6")
"""From here on more than a third of what one does is what the other does (0.6 squared)."""
UNKNOWN_VOLATILITY_PCT = Decimal(str(STEPS[-1].volatility_pct))
"""Of what has no history that could be measured: the highest step of the risk score's scale."""
_ZERO, _ONE = Decimal(0), Decimal(1)


@dataclass(frozen=True)
class Movement:
    """Correlations and volatilities by ticker. What is not known moves with everything."""

    moves: Moves

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {ticker: place for place, ticker in enumerate(self.moves.tickers)}

    @cached_property
    def _correlations(self) -> Sequence[Decimal]:
        """Of pairs, as measured; 0 for what moved against the other: it is no hedge to count on."""
        return [max(_ZERO, Decimal(str(measured))) for measured in self.moves.correlations]

    def knows(self, ticker: str) -> bool:
        """Whether its history could be measured."""
        return ticker in self._place

    def volatility_pct(self, ticker: str) -> Decimal:
        """A year's volatility as forecast; of what is not known the highest of the scale."""
        if not self.knows(ticker):
            return UNKNOWN_VOLATILITY_PCT
        return Decimal(str(self.moves.volatility_pct[self._place[ticker]]))

    def correlation(self, one: str, other: str) -> Decimal:
        """0 to 1; 1 where either is not known."""
        place, beside = self._place.get(one), self._place.get(other)
        if one == other or place is None or beside is None:
            return _ONE
        low, high = (place, beside) if place < beside else (beside, place)
        return self._correlations[high * (high - 1) // 2 + low]

    def covariance(self, money: Mapping[str, Decimal], other: Mapping[str, Decimal]) -> Decimal:
        """A year's covariance of two lists of holdings, in money times money."""
        moving = {name: value * self.volatility_pct(name) for name, value in money.items()}
        beside = {name: value * self.volatility_pct(name) for name, value in other.items()}
        total = sum(
            (
                self.correlation(one, two) * risk * risk_beside
                for one, risk in moving.items()
                for two, risk_beside in beside.items()
            ),
            _ZERO,
        )
        return total / (100 * 100)

    def together_with(self, ticker: str, tickers: Collection[str]) -> set[str]:
        """Those of the tickers that move with one, itself among them: all that a chain of
        correlations of CLUSTER_CORRELATION or more connects, and what is not known. All of them
        move with one that is not known."""
        known = {name for name in tickers if self.knows(name)}
        if not self.knows(ticker):
            return {ticker, *tickers}
        cluster, new = {ticker}, [ticker]
        while new:
            one = new.pop()
            near = {
                two for two in known - cluster if self.correlation(one, two) >= CLUSTER_CORRELATION
            }
            cluster |= near
            new += near
        return cluster | (set(tickers) - known)
