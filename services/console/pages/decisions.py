"""Decisions: the newest, and one with why: evidence, reports, marks, rules, approval, orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated
from uuid import UUID

import orjson
from fastapi import APIRouter, Depends, Query, Request, Response

from contracts.cycle import CycleStatus
from contracts.grounding import Checked, Grounding
from contracts.query import CycleQuery, DecisionsQuery, PipelineView
from contracts.risk import Check, RuleOutcome
from contracts.types import Name
from libs.facts import amounts
from libs.postgres.pool import Record
from libs.report.made import MADE_UP, Made, Row, rows
from libs.report.orders import in_short
from services.console import handler
from services.console.named import cycle_named
from services.console.pages import words
from services.console.pages.choices import OrAll
from services.console.pages.show import Show
from services.console.passing_on import Desk
from services.console.problems import not_found

DECISIONS_SHOWN = 40
CHARTED_MAX = 12
"""Tickers whose prices can be looked at, those that were picked first."""
TRADES_MAX = 200
"""Orders of the account that are drawn into the prices."""
ORDER = {RuleOutcome.VETOED: 0, RuleOutcome.CUT: 1, RuleOutcome.KEPT: 2}


def decisions(desk: Desk, show: Show) -> APIRouter:
    """The pages below /decisions."""
    router = APIRouter(prefix="/decisions")
    named = cycle_named(desk)

    @router.get("")
    async def decisions_page(
        request: Request, account: Annotated[Name | None, OrAll, Query()] = None
    ) -> Response:
        query = DecisionsQuery(account=account, limit=DECISIONS_SHOWN)
        page = await handler.decisions(query, store=desk.store)
        accounts = await desk.store.accounts()
        return show(
            request,
            "decisions.html",
            decisions=page.decisions,
            accounts=accounts,
            account=account,
            in_short=in_short,
        )

    @router.get("/{cycle_id}/{pipeline}")
    async def decision_page(
        request: Request, cycle_id: Annotated[UUID, Depends(named)], pipeline: Name
    ) -> Response:
        view = await handler.cycle(CycleQuery(cycle_id=str(cycle_id)), store=desk.store)
        if not view.found:
            raise not_found(view.message)
        found = next((each for each in view.pipelines if each.name == pipeline), None)
        if found is None:
            raise not_found(f"cycle {cycle_id} has no pipeline {pipeline}")
        made = Made.by(found)
        told = rows(made)
        charted = _charted(told, made)
        orders = await desk.store.orders_of_tickers(found.account, charted, TRADES_MAX)
        account = await desk.store.account(found.account)
        return show(
            request,
            "decision.html",
            it=view,
            pipeline=found,
            made=made,
            rows=told,
            checks=_checks(made),
            reports=_grounding(made),
            ending=ending(found, made, view.reason),
            ending_tone=ending_tone(found, made),
            made_up=MADE_UP,
            charted=charted,
            marks=_marks(orders),
            until=_until(view.as_of, account),
        )

    return router


def _charted(told: Sequence[Row], made: Made) -> Sequence[str]:
    """Tickers to draw: those that were looked into, or the positions that were checked."""
    checked = made.exits.checks if made.exits else ()
    names = dict.fromkeys([*(row.ticker for row in told), *(each.ticker for each in checked)])
    return list(names)[:CHARTED_MAX]


def _checks(made: Made) -> Sequence[Check]:
    """What the rules said, vetoes first."""
    found = made.validation.checks if made.validation else ()
    return sorted(found, key=lambda check: ORDER[check.outcome])


def _grounding(made: Made) -> Mapping[str, Grounding]:
    """By report, what the check of its figures found."""
    reports: Mapping[str, Checked | None] = {
        "sentiment": made.sentiment,
        "plan": made.plan,
        "quant": made.quant,
        "research": made.research,
        "picks": made.picks,
    }
    return {name: each.grounding for name, each in reports.items() if each and each.grounding}


def ending(pipeline: PipelineView, made: Made, reason: str) -> str:
    """In one sentence: what was traded, why nothing was, or why it did not come so far."""
    if pipeline.status is CycleStatus.RUNNING:
        return f"now {(pipeline.state or 'waiting').replace('_', ' ')}"
    if pipeline.status is not CycleStatus.COMPLETED:
        return pipeline.reason or reason
    if made.execution is not None and made.execution.orders:
        return in_short(made.execution)
    why = _nothing(made)
    return f"nothing ordered: {why}" if why else pipeline.reason or reason or "completed"


def ending_tone(pipeline: PipelineView, made: Made) -> str:
    """The tone of that sentence: what ordered nothing is no success, and no failure."""
    ordered = made.execution is not None and bool(made.execution.orders)
    if pipeline.status is CycleStatus.COMPLETED and not ordered:
        return "quiet"
    return words.tone(pipeline.status)


def _nothing(made: Made) -> str:
    """Why nothing was ordered; empty where that is not known."""
    if made.exits is not None:
        wanted = sum(each.quantity is not None for each in made.exits.checks)
        if wanted:
            return f"the rules left nothing of {amounts.count(wanted, 'exit')}"
        return f"none of {amounts.count(len(made.exits.checks), 'position')} is to be sold"
    if made.picks is not None and not made.wanted:
        return "the trader picked nothing"
    if made.validation is not None and not made.validation.decisions:
        return "the rules left nothing of what was proposed"
    return ""


@dataclass(frozen=True)
class _Mark:
    """An order as the chart has it."""

    ticker: str
    session: date | None
    side: str
    quantity: Decimal
    price: Decimal | None
    stop: Decimal | None
    status: str


def _marks(orders: Sequence[Record]) -> str:
    """The account's orders in the charted tickers, as JSON."""
    marks = [
        _Mark(
            ticker=row["ticker"],
            session=row["session"],
            side=row["side"],
            quantity=row["quantity"],
            price=row["price"],
            stop=row["stop_price"],
            status=row["status"],
        )
        for row in orders
    ]
    return orjson.dumps(marks, default=str).decode()


def _until(as_of: date | None, account: Record | None) -> date | None:
    """The newest session that the account has seen: prices are shown up to there."""
    clock = account["as_of"] if account is not None else None
    return max((each for each in (as_of, clock) if each is not None), default=None)
