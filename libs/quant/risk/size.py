"""The rules on the price and the size that a buy would have."""

from decimal import Decimal

from libs.quant.risk.entry import traded_price
from libs.quant.risk.facts import Leg, LegFinding, RiskFacts, gate, pct
from libs.quant.sizing import too_small, whole_shares
from libs.quant.ticks import TICK_PCT_MAX, is_too_coarse, tick_of

_HUNDRED = Decimal(100)


def tick_size(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The gate on a price that is too small to be written exactly: as it trades, and in the
    account's currency, in which the buy is sized."""
    both = (traded_price(leg.ticker, facts), facts.prices.get(leg.ticker))
    known = [price for price in both if price is not None and price > 0]
    if not known:
        return LegFinding(leg.allocation_pct, "no price", "a price", "there is no tick to judge")
    price = min(known)
    tick = tick_of(price)
    return gate(
        leg,
        ok=not is_too_coarse(price),
        value=f"one tick of {tick:f} is {pct(tick * _HUNDRED / price, TICK_PCT_MAX)} of the price",
        limit=pct(TICK_PCT_MAX),
        kept="its price has the places that a fair fill needs",
        vetoed="its price is so small that rounding it would decide what the buy costs",
    )


def least_size(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The gate on what is left of a buy after every other rule: whole shares, at least one."""
    price, limits = facts.price_to_size_by(leg.ticker), facts.limits
    shares = whole_shares(facts.amount(leg), price, facts.lot(leg.ticker))
    least = (limits.position_shares_min, limits.position_value_min)
    why = too_small(shares, shares * price, *least, facts.currency)
    return gate(
        leg,
        ok=not why,
        value=f"{shares:f} shares for {facts.money(shares * price)}",
        limit=f"{least[0]} shares and {least[1]:,f} {facts.currency}",
        kept="it is large enough to matter",
        vetoed=f"{why}: it is too small to matter, and would be sold whole by its first exit",
    )
