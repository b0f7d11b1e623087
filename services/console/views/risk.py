"""An account against its limits, and against another value of one."""

from datetime import timedelta
from decimal import Decimal

from pydantic import ValidationError

from contracts.account import Portfolio
from contracts.risk import DecisionValidation
from contracts.risk_use import LimitPreview, LimitQuery, RiskQuery, RiskView, RuleCuts
from contracts.types import shortened
from libs.quant.risk.rules import halt_words
from libs.quant.risk.use import MEASURED, buys_under, limits_used
from libs.runtime.nearest import UnknownAccount
from libs.runtime.settings import limits_with
from services.console.store import sql
from services.console.views import accounts
from services.console.views.desk import DeskViews
from services.console.views.summaries import summary

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
    used = limits_used(books, lost)
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


async def limit_preview(query: LimitQuery, desk: DeskViews) -> LimitPreview:
    """What another value of a limit means on the books of now, and would have meant for the newest
    decision. Raises UnknownAccount and WrongSetting."""
    known = await risk(RiskQuery(account=query.account, days=1), desk)
    one = await accounts.read(query.account, desk)
    if one is None:
        raise UnknownAccount(query.account, known.accounts)
    enforced = one.books.limits
    limits, others = (
        limits_with(enforced, query.limit, value) for value in (query.before, query.value)
    )
    use = next((it for it in known.limits if it.limit == query.limit), None)
    found = LimitPreview(
        in_force=getattr(enforced, query.limit),
        use=use and use.model_copy(update={"allowed": query.before}),
    )
    row = await desk.store.row(sql.newest_judged, query.account)
    if row is None:
        return found
    try:
        decision = DecisionValidation.model_validate_json(row["decision"])
        books = Portfolio.model_validate_json(row["books"])
    except ValidationError:
        return found  # a later release wrote them
    buys = buys_under(decision, books, limits, others)
    return found.model_copy(
        update={
            "cycle_id": row["cycle_id"],
            "decided_on": row["as_of"],
            "judged": len(buys),
            "buys": tuple(it for it in buys if it.shares != it.then),
        }
    )
