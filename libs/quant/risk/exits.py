"""The rules about what is being sold or was sold: no order works against an exit or repeats it."""

from decimal import Decimal

from contracts.types import shortened
from libs.quant.risk.facts import Leg, LegFinding, RiskFacts, gate, share_class

WORDS_CHARS_MAX = 400
"""As a contract's short text."""
_ZERO = Decimal(0)


def cooling_off(leg: Leg, facts: RiskFacts) -> LegFinding:
    """Whole sessions lie between a sale and the next buy, which fills at the open after as_of."""
    limit = facts.limits.cooling_off_sessions
    sold = {sale.ticker: sale for sale in facts.portfolio.cooling_off}
    sales = [sold[name] for name in facts.classes(leg.ticker, sold)]
    sale = min(sales, key=lambda sale: sale.sessions_ago, default=None)
    ok = sale is None or sale.sessions_ago >= limit
    return gate(
        leg,
        ok=ok,
        value="not sold lately"
        if sale is None
        else f"{share_class(sale.ticker, leg.ticker)}sold on {sale.sold_on}, "
        f"{_counted(sale.sessions_ago)} ago",
        limit=f"{_counted(limit)} after a sale",
        kept="it was not sold so lately that buying it would undo that",
        vetoed="it was sold too lately to be bought again",
    )


def _counted(sessions: int) -> str:
    return f"{sessions} session{'' if sessions == 1 else 's'}"


def not_being_sold(leg: Leg, facts: RiskFacts) -> LegFinding:
    """Nobody buys what an exit, or anybody else, is selling."""
    others = facts.classes(leg.ticker, facts.open_sells)
    sold = others[0] if others else leg.ticker
    selling = facts.open_sells.get(sold, _ZERO)
    return gate(
        leg,
        ok=selling == 0,
        value=f"{share_class(sold, leg.ticker)}{selling.normalize():f} shares in an open sale",
        limit="no open sale",
        kept="nothing of it is being sold",
        vetoed="it is being sold, and nobody buys what an exit is selling",
    )


def exit_rules(leg: Leg, facts: RiskFacts) -> LegFinding:
    """Nothing is bought that the account's own exit rules would sell at the same close. A rule that
    cannot be evaluated sells nothing; rules that cannot be read let nothing pass."""
    evidence, watched = facts.evidence.get(leg.ticker), facts.limits.exits_veto_buys
    signals = evidence.exits if evidence else ()
    note = f"; {evidence.exits_note}" if evidence and evidence.exits_note else ""
    fired = [signal for signal in signals or () if signal.triggered]
    shown = fired or [signal for signal in signals or () if signal.failed]
    value = "; ".join(f"{signal.rule}: {signal.detail}" for signal in shown)
    # The value names the rules: no other part of the sentence does so again.
    limits = "; ".join(f"{signal.rule}: {signal.limit}" for signal in fired)
    rules = "rules"
    if len(fired) == 1:
        limits, rules = fired[0].limit, "rule"
    return gate(
        leg,
        ok=not watched or (signals is not None and not fired),
        value="unknown" if signals is None else shortened(value or "none fires", WORDS_CHARS_MAX),
        limit=shortened(limits or "no exit rule that fires", WORDS_CHARS_MAX)
        if watched
        else "not watched",
        kept=f"no exit rule of the account would sell it at this close{note}"
        if watched
        else "exit rules do not limit what this account buys",
        vetoed="the account's exit rules cannot be read; `deskbus exit-signals check` says why"
        if signals is None
        else f"the account's own exit {rules} would sell it at the same close{note}",
    )


def one_exit_a_session(leg: Leg, facts: RiskFacts) -> LegFinding:
    """A second exit of a session waits until the first is done."""
    selling = facts.open_sells.get(leg.ticker, _ZERO)
    return gate(
        leg,
        ok=selling == 0,
        value=f"{selling.normalize():f} shares in an open sale",
        limit="no open sale",
        kept="nothing of it is being sold yet",
        vetoed="it is being sold already, and an account exits a position once a session",
    )
