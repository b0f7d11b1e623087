"""The rules on what moves together: the forecast of the whole account, and its clusters."""

from decimal import ROUND_HALF_UP, Decimal

from libs.quant.risk.facts import Leg, LegFinding, RiskFacts, floor_pct, pct, share_of_room

NAMES_TOLD_MAX = 5
_HUNDRED = Decimal(100)
_ZERO = Decimal(0)
_ONE = Decimal(1)


def account_volatility(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The ceiling on the forecast volatility of what is held with all buys; where it is too high,
    all buys shrink in proportion."""
    limit = facts.limits.volatility_pct_max
    forecast = facts.forecast
    room = facts.equity * limit / _HUNDRED
    scale = _scale(forecast.asked, forecast.between, forecast.held - room * room)
    known = facts.moves.moves.sessions
    measured = f"{known} sessions" if known else "no history"
    return LegFinding(
        min(leg.allocation_pct, floor_pct(leg.allocation_pct * scale)),
        f"{_of_equity(forecast.whole, facts)} a year with all buys, by {measured}",
        pct(limit),
        f"what is held with the buys may be forecast to move {pct(limit)} of equity a year",
    )


def _scale(squared: Decimal, between: Decimal, over: Decimal) -> Decimal:
    """The largest part, 0 to 1, of all buys for which `squared` x² + 2 `between` x + `over` is at
    most 0. No term is negative but the last, so that every smaller part is allowed too."""
    if squared + 2 * between + over <= 0:
        return _ONE
    if over >= 0:
        return _ZERO
    if squared == 0:
        return -over / (2 * between)
    return ((between * between - squared * over).sqrt() - between) / squared


def _of_equity(variance: Decimal, facts: RiskFacts) -> str:
    if not facts.equity:
        return "unknown"
    share = variance.sqrt() * _HUNDRED / facts.equity
    # The rules compute rounding down; what is shown is the nearest.
    return f"{share.quantize(Decimal('0.1'), ROUND_HALF_UP)}%"


def cluster_exposure(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The ceiling on the money in what moves with a pick, held and asked for."""
    limit = facts.limits.cluster_pct_max
    amounts = {other.ticker: facts.amount(other) for other in facts.legs}
    group = facts.moves.together_with(leg.ticker, {*facts.exposed_tickers, *amounts})
    tied = sum((facts.exposure(name) for name in group), _ZERO)
    others = sorted(group - {leg.ticker})
    names = ", ".join(others[:NAMES_TOLD_MAX]) + (" ..." if len(others) > NAMES_TOLD_MAX else "")
    why = "" if facts.moves.knows(leg.ticker) else ", as its own history is too short to say"
    return share_of_room(
        leg,
        facts,
        sum((amounts.get(name, _ZERO) for name in group), _ZERO),
        facts.equity * limit / _HUNDRED - tied,
        f"asked for in what moves with {names}{why}" if names else "asked for, moving by itself",
        f"what moves together may be at most {pct(limit)} of equity, with what is held",
    )
