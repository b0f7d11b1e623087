"""What proposers see: their own proposals, their own account, their own limits. Nothing else."""

from collections import Counter
from collections.abc import Sequence

from contracts.account import OrderType
from contracts.account_query import AccountQuery
from contracts.approval import ApprovalsQuery, Verdict
from contracts.cycle import PREVIEW
from contracts.cycle_query import CycleQuery, CycleView, PipelineView
from contracts.not_bought import Cause
from contracts.proposal import key_of
from contracts.proposal_query import (
    CUTS_MAX,
    HELD_MAX,
    ORDERS_MAX,
    LeftOut,
    ProposalCut,
    ProposalLimits,
    ProposalLimitsQuery,
    ProposalQuery,
    ProposalView,
    ProposedDecision,
)
from contracts.risk import PortfolioDecision
from contracts.types import Money
from libs.facts import amounts
from libs.report.reports import Reports
from libs.runtime import ids
from libs.runtime.proposers import OPEN_MAX, Proposers
from services.console import handler
from services.console.store import sql
from services.console.views import accounts
from services.console.views.desk import DeskViews


async def proposal(caller: str, query: ProposalQuery, desk: DeskViews) -> ProposalView:
    """A proposal of the caller's. Its cycle's id is made of the caller's name, so that no id leads
    to another's. Raises NotAProposer."""
    proposer = Proposers(desk.settings.secrets_path).calling(caller)
    key = key_of(query.proposal_id, preview=query.preview)
    cycle_id = ids.cycle_id(caller, key)
    view = await handler.cycle(CycleQuery(cycle_id=str(cycle_id)), store=desk.store)
    what, other, how = ("proposal", "preview", "true")
    if query.preview:
        what, other, how = (other, what, "false")
    if not view.found or view.requester != caller:
        hint = f"for a {other} of this id ask with preview {how}"
        return ProposalView(
            found=False, message=f"you have made no {what} {query.proposal_id}; {hint}"
        )
    pipeline = view.pipelines[0]
    waiting = await handler.approvals(ApprovalsQuery(cycle_id=str(cycle_id)), store=desk.store)
    return _seen(view, pipeline).model_copy(
        update={
            "account": proposer.account,
            "preview": query.preview,
            "answer_by": next((one.expires_at for one in waiting.approvals), None),
        }
    )


def _seen(view: CycleView, pipeline: PipelineView) -> ProposalView:
    made = Reports.of(pipeline)
    validated, approved = made.validation, made.approval
    decisions = None if validated is None else tuple(made.decisions.values())
    if approved is not None and approved.verdict is Verdict.REJECT:
        decisions = ()
    return ProposalView(
        cycle_id=view.cycle_id,
        session=view.as_of,
        received_at=view.accepted_at,
        status=view.status,
        state=pipeline.state,
        outcome=_outcome(view, pipeline, decisions),
        reason=pipeline.reason or view.reason,
        decisions=None
        if decisions is None
        else tuple(
            ProposedDecision(
                action=one.action.value,
                ticker=one.asset,
                quantity=one.quantity,
                price=one.price,
                allocation_pct=one.allocation_pct,
            )
            for one in decisions
        ),
        cuts=tuple(
            ProposalCut.model_validate(check.model_dump())
            for check in (validated.checks if validated else ())
            if not check.passed
        )[:CUTS_MAX],
        left_out=tuple(
            LeftOut(ticker=one.ticker, why=one.why)
            for one in (made.picks.passed if made.picks else ())
            if one.cause is Cause.OWN_WORDS  # the provider's: others were not proposed
        ),
        orders=pipeline.results[:ORDERS_MAX],
    )


def _outcome(
    view: CycleView, pipeline: PipelineView, decisions: Sequence[PortfolioDecision] | None
) -> str:
    """What came of it in one sentence, with its orders as they are by now; of a preview, what would
    be asked for."""
    if view.kind == PREVIEW and decisions is not None:
        return f"the rules would leave {amounts.count(len(decisions), 'order')}; nothing is ordered"
    statuses = Counter(it.status for it in pipeline.results if it.type is OrderType.MARKET)
    if not statuses:
        return view.outcome
    return "; ".join(f"{amounts.count(n, 'order')} {status}" for status, n in statuses.items())


async def limits(caller: str, _: ProposalLimitsQuery, desk: DeskViews) -> ProposalLimits:
    """The caller's limits, and its account at its newest close. Raises NotAProposer."""
    proposer = Proposers(desk.settings.secrets_path).calling(caller)
    counted = await desk.store.row(sql.count_proposals, caller)
    lately, open_ = (counted["lately"], counted["open"]) if counted else (0, 0)
    view = await accounts.account(AccountQuery(account=proposer.account, fills=0), desk)
    known = view.portfolio is not None and view.closed_on is not None
    currency = view.portfolio.cash.currency if view.portfolio else "USD"
    return ProposalLimits(
        proposer=proposer.name,
        account=proposer.account,
        approval_required=proposer.approval_required,
        sales_max=proposer.sales_max,
        sold_pct_max=proposer.sold_pct_max,
        per_hour_max=proposer.per_hour_max,
        left_this_hour=max(0, proposer.per_hour_max - lately),
        open=open_,
        open_max=OPEN_MAX,
        closed_on=view.closed_on,
        cash=Money(amount=view.cash, currency=currency) if known else None,
        equity=Money(amount=view.equity, currency=currency) if known else None,
        held=view.held[:HELD_MAX],
    )
