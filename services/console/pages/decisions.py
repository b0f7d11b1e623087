"""Decisions: the newest, and one with why: evidence, reports, rules, approval, orders."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Response

from contracts.approval import ApprovalsQuery
from contracts.message import PAGE_MAX
from contracts.operation import OperationsQuery
from contracts.types import Name
from libs.report import exits, orders, rules, story, tickers
from libs.report.sections import ShownItems
from libs.report.story import PipelineStory
from libs.report.view import Table
from services.console import handler, logic
from services.console.http.problems import not_found
from services.console.http.queries import OrAll
from services.console.http.requests import Desk, DeskAccess
from services.console.http.short_ids import CycleId, cycle_of
from services.console.pages.folded import Shown, folded, with_results
from services.console.pages.show import ShowPage

DECISIONS_SHOWN = 40
DECISIONS_LOOKED_AT = 400
"""Of these, those that did something; what did nothing in between is folded."""
CHARTED_MAX = 12
"""Tickers whose prices can be looked at, those that were picked first."""


pages = APIRouter(prefix="/decisions")


@pages.get("")
async def decisions_page(
    desk: Desk,
    show: ShowPage,
    account: Annotated[Name | None, OrAll, Query()] = None,
    everything: Annotated[bool | None, OrAll, Query()] = None,
) -> Response:
    """The newest decisions."""
    accounts = await desk.store.accounts()
    waiting = await handler.approvals(ApprovalsQuery(limit=PAGE_MAX), store=desk.store)
    return show(
        "decisions.html",
        waiting={(one.cycle_id, one.pipeline) for one in waiting.approvals},
        decisions=await _listed(desk, account, everything=bool(everything)),
        everything=everything,
        accounts=accounts,
        account=account,
    )


@pages.get("/{cycle_id}/{pipeline}")
async def decision_page(desk: Desk, show: ShowPage, cycle_id: CycleId, pipeline: Name) -> Response:
    """One pipeline's decision with why."""
    view = await cycle_of(desk, str(cycle_id))
    if pipeline not in {entry.name for entry in view.pipelines}:
        raise not_found(f"cycle {cycle_id} has no pipeline {pipeline}")
    asked = OperationsQuery(cycle_id=cycle_id, limit=PAGE_MAX)
    nodes = (await handler.operations(asked, store=desk.store)).operations
    cycle = story.tell(view, nodes)
    one = cycle.of(pipeline)
    account = await desk.store.account(one.account)
    return show(
        "decision.html",
        it=view,
        story=cycle,
        one=one,
        reports=one.reports,
        tables=tables_of(one, view.as_of),
        # Before its account is open nobody can say how far prices may be shown.
        charted=_charted(one) if account else (),
    )


async def _listed(desk: DeskAccess, account: str | None, *, everything: bool) -> Sequence[Shown]:
    """The newest decisions, those that did nothing folded unless `everything` is asked for."""
    if everything:
        newest = await desk.store.newest_decisions(None, account, DECISIONS_SHOWN)
        return await with_results(list(map(logic.decision_view, newest)), store=desk.store)
    rows = await desk.store.decisions_briefly(DECISIONS_LOOKED_AT, account)
    return await with_results(folded(rows, DECISIONS_SHOWN), store=desk.store)


def tables_of(one: PipelineStory, as_of: date | None) -> Mapping[str, Table]:
    """Nothing of them is left out here, as it is in the terminal."""
    tables = {
        "exits": exits.table(ShownItems(one.exits.items), one.account, as_of),
        "tickers": tickers.table(one.tickers, one.account, as_of),
        "rules": rules.table(ShownItems(one.rules.items), with_reasons=True),
        "kept": rules.table(ShownItems(one.kept), with_reasons=True),
    }
    return (
        tables
        if one.execution is None
        else tables | {"orders": orders.table(one.orders, one.execution)}
    )


def _charted(entry: PipelineStory) -> Sequence[str]:
    """Tickers to draw: those that were looked into, or the positions that were checked."""
    looked_into = [row.ticker for row in entry.tickers]
    names = dict.fromkeys([*looked_into, *(row.check.ticker for row in entry.exits.items)])
    return list(names)[:CHARTED_MAX]
