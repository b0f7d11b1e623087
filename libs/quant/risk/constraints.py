"""The rules that enforce the constraints of a request and a plan: each only tightens.

A rule is there only where its constraint is set. `max_sector_pct` and `max_risk_score` lower the
account's limits instead (`tightened`), since there is a rule for each already.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from contracts.account import AccountLimits
from contracts.constraints import POSITIONS_MAX, Constraints
from contracts.facts import RISK_UNKNOWN
from contracts.types import shortened
from libs.quant.risk.facts import Leg, LegFinding, RiskFacts, RiskRule, gate, pct, share_of_room

_ZERO, _HUNDRED = Decimal(0), Decimal(100)


def tightened(limits: AccountLimits, constraints: Constraints) -> AccountLimits:
    """The limits as the constraints leave them: never higher."""
    lower: dict[str, object] = {}
    if constraints.max_sector_pct is not None:
        lower["sector_pct_max"] = min(limits.sector_pct_max, constraints.max_sector_pct)
    if constraints.max_risk_score is not None:
        lower["risk_score_max"] = min(limits.risk_score_max, constraints.max_risk_score)
    return limits.model_copy(update=lower)


def gates_of(constraints: Constraints) -> Sequence[RiskRule]:
    """The gates of the constraints that are set."""
    return [rule for rule in CONSTRAINT_GATES if getattr(constraints, rule.name)]


def ceilings_of(constraints: Constraints) -> Sequence[RiskRule]:
    """The ceilings of the constraints that are set; 0 is a limit too."""
    return [rule for rule in CONSTRAINT_CEILINGS if getattr(constraints, rule.name) is not None]


def sale_ceilings_of(constraints: Constraints) -> Sequence[RiskRule]:
    """The ceilings of sales that are set."""
    return [rule for rule in SALE_CEILINGS if getattr(constraints, rule.name) is not None]


def _max_sales(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The largest sales come first; of equal ones by name: each is sold in the end."""
    wanted = facts.constraints.max_sales
    most = POSITIONS_MAX if wanted is None else wanted
    waiting = facts.sales_waiting
    first = sorted(facts.legs, key=lambda one: (-facts.sold(one), one.ticker))
    ok = leg in first[: max(0, most - waiting)]
    allowed = f"{most} sale{'' if most == 1 else 's'}"
    return LegFinding(
        leg.allocation_pct if ok else _ZERO,
        f"{waiting} waiting, {len(facts.legs)} asked for",
        allowed,
        f"the constraints allow {allowed} a session, and the largest come first",
    )


def _max_sold(leg: Leg, facts: RiskFacts) -> LegFinding:
    wanted = facts.constraints.max_sold_pct
    most = _HUNDRED if wanted is None else wanted
    asked = sum((facts.sold(one) for one in facts.legs), _ZERO)
    waiting = sum(
        (shares * facts.sale_price(ticker) for ticker, shares in facts.open_sells.items()), _ZERO
    )
    room = facts.equity * most / _HUNDRED - waiting
    why = f"the constraints let sales of one session be at most {pct(most)} of equity"
    found = share_of_room(leg, facts, asked, room, "asked to be sold", why)
    # Less than a lot is sold whole or not at all.
    if (
        found.allowed_pct < leg.allocation_pct
        and facts.sellable(leg.ticker) < facts.lot(leg.ticker) > 1
    ):
        return replace(found, allowed_pct=_ZERO)
    return found


def _no_buys(leg: Leg, _: RiskFacts) -> LegFinding:
    why = "the constraints of the request or the plan allow no buys"
    return gate(leg, ok=False, value="a buy", limit="no buys", kept="", vetoed=why)


def _exclude_tickers(leg: Leg, facts: RiskFacts) -> LegFinding:
    excluded = facts.constraints.exclude_tickers
    return gate(
        leg,
        ok=leg.ticker not in excluded,
        value=leg.ticker,
        limit=shortened(f"none of {', '.join(excluded)}", LIMIT_CHARS_MAX),
        kept="it is none of the tickers that the constraints exclude",
        vetoed="the constraints of the request or the plan exclude it",
    )


def _exclude_sectors(leg: Leg, facts: RiskFacts) -> LegFinding:
    sector = facts.sector(leg.ticker)
    excluded = [sector.strip().lower() for sector in facts.constraints.exclude_sectors]
    return gate(
        leg,
        ok=sector not in excluded,
        value=f"sector {sector}",
        limit=shortened(f"none of {', '.join(excluded)}", LIMIT_CHARS_MAX),
        kept="its sector is none of those that the constraints exclude",
        vetoed="the constraints of the request or the plan exclude its sector",
    )


def _max_allocation(leg: Leg, facts: RiskFacts) -> LegFinding:
    wanted = facts.constraints.max_allocation_pct
    most = leg.allocation_pct if wanted is None else wanted
    return LegFinding(
        min(leg.allocation_pct, most),
        pct(leg.allocation_pct),
        pct(most),
        f"the constraints let one buy take at most {pct(most)} of the budget",
    )


def _max_positions(leg: Leg, facts: RiskFacts) -> LegFinding:
    """The largest buys have the places that are free; of equal ones the surer, then those of less
    risk. Of more that are alike in all of it than there are places for none is bought: a name is
    no reason to prefer one.
    """
    wanted = facts.constraints.max_positions
    most = POSITIONS_MAX if wanted is None else wanted
    held = facts.exposed_tickers
    new = [other for other in facts.legs if other.ticker not in held]
    places = max(0, most - len(held))
    no_worse = sum(_standing(other, facts) <= _standing(leg, facts) for other in new)
    ok = leg.ticker in held or no_worse <= places
    allowed = f"{most} position{'' if most == 1 else 's'}"
    return LegFinding(
        leg.allocation_pct if ok else _ZERO,
        f"{len(held)} held, {len(new)} to buy",
        allowed,
        f"the constraints allow {allowed} in all, and the largest buys come first",
    )


def _standing(leg: Leg, facts: RiskFacts) -> tuple[Decimal, float, float, Decimal]:
    """Where a buy stands among others for a place, the first one lowest."""
    evidence = facts.evidence.get(leg.ticker)
    risk = RISK_UNKNOWN if evidence is None else evidence.risk
    volatility = facts.moves.volatility_pct(leg.ticker)
    return (-leg.allocation_pct, -leg.pick.confidence, risk, volatility)


LIMIT_CHARS_MAX = 200
CONSTRAINT_GATES: tuple[RiskRule, ...] = (
    RiskRule("no_buys", "sales only", _no_buys),
    RiskRule("exclude_tickers", "the requester does not want these", _exclude_tickers),
    RiskRule("exclude_sectors", "the requester does not want shares of these", _exclude_sectors),
)
CONSTRAINT_CEILINGS: tuple[RiskRule, ...] = (
    RiskRule("max_allocation_pct", "bounds a single bet", _max_allocation),
    RiskRule("max_positions", "bounds the positions to follow", _max_positions),
)
SALE_CEILINGS: tuple[RiskRule, ...] = (
    RiskRule("max_sales", "no account is emptied at once", _max_sales),
    RiskRule("max_sold_pct", "nor most of it", _max_sold),
)
