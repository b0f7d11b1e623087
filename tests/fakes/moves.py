"""Movements of tickers, made up."""

from collections.abc import Collection, Mapping

from contracts.facts import Moves


def moving(
    volatility_pct: Mapping[str, float], together: Mapping[tuple[str, str], float] | None = None
) -> Moves:
    """Tickers with these volatilities; pairs (in alphabetical order) that are not named are
    independent."""
    tickers = sorted(volatility_pct)
    pairs = [(one, two) for high, two in enumerate(tickers) for one in tickers[:high]]
    return Moves(
        sessions=252,
        tickers=tuple(tickers),
        volatility_pct=tuple(volatility_pct[ticker] for ticker in tickers),
        correlations=tuple((together or {}).get(pair, 0.0) for pair in pairs),
    )


def calm(tickers: Collection[str]) -> Moves:
    """Each moves by itself, and hardly."""
    return moving(dict.fromkeys(tickers, 5.0))
