"""An account against its limits."""

from datetime import timedelta
from decimal import Decimal

from contracts.risk_use import RiskQuery, RiskView, RuleCuts
from contracts.types import shortened
from libs.quant.risk.rules import halt_words
from libs.quant.risk.use import MEASURED, limits_used
from services.console.store import sql
from services.console.views import accounts
from services.console.views.desk import DeskViews
from services.console.views.summaries import at_risk, summary

RULES_MAX = 60
"""Rules that have cut; there are not so many."""
WORDS = 200
NOTHING = Decimal(0)


async def risk(query: RiskQuery, desk: DeskViews) -> RiskView:
    """The use of each limit, and the cuts of the last days."""
    names = tuple(await desk.store.accounts())
    one = await accounts.read(query.account, desk)
    if one is None:
        return RiskView(found=False, accounts=names)
    books = one.books
    since = books.as_of - timedelta(days=query.days)
    stands = None if one.standing is None else summary(books, one.standing)
    lost = None if stands is None or stands.day_gain_pct is None else -stands.day_gain_pct
    losses = {ticker: loss + bare for ticker, (loss, bare) in at_risk(books).items()}
    used = limits_used(books, losses, lost)
    newest = {
        row["rule"]: row
        for row in await desk.store.rows(
            sql.newest_checks, query.account, since, [*MEASURED.values()]
        )
    }
    rows = await desk.store.rows(sql.risk_cuts, query.account, since, RULES_MAX)
    return RiskView(
        accounts=names,
        currency=books.equity.currency,
        as_of=books.as_of,
        equity=books.equity.amount,
        at_stops=NOTHING if stands is None else stands.risk,
        unprotected=NOTHING if stands is None else stands.unprotected,
        halted="" if books.halt is None else shortened(halt_words(books.halt), WORDS),
        limits=tuple(
            it.model_copy(
                update={
                    "measured": newest[MEASURED[it.limit]]["value"],
                    "measured_on": newest[MEASURED[it.limit]]["as_of"],
                }
            )
            if MEASURED.get(it.limit) in newest
            else it
            for it in used
        ),
        since=since,
        cuts=tuple(
            RuleCuts.model_validate({**row, "reason": shortened(row["reason"], WORDS)})
            for row in rows
        ),
    )
