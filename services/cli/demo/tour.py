"""The tour of the filled demo: a few links with a sentence each, read from the record."""

from collections.abc import Iterator, Mapping

from contracts.approval import ApprovalsQuery
from contracts.cycle import DECISION, CycleStatus
from contracts.cycle_query import CyclesQuery
from contracts.execution import DecisionsQuery
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from contracts.subjects.approvals import APPROVALS, DECISIONS
from contracts.subjects.cycles import CYCLES
from libs.bus.client import Client
from libs.facts import amounts
from libs.llm.committee import Slip, slip_of
from libs.quant.ticks import priced
from libs.report import performance
from libs.runtime import extras, ids
from libs.runtime.model_settings import SCRIPTED
from services.cli.demo.filling import EXTRA
from services.cli.demo.sealed import MAIN

ROWS_MAX = 200


async def tour(client: Client) -> Mapping[str, str]:
    """The places to look at, in the order of a story: a sentence by address below the console's."""
    did = await client.ask(PERFORMANCE, PerformanceQuery(account=MAIN, trips=ROWS_MAX))
    stops = dict(_worst_trade(did))
    decisions = await client.ask(DECISIONS, DecisionsQuery(account=MAIN, limit=ROWS_MAX))
    for entry in decisions.decisions:
        if entry.decision.loose:
            text = f'an invented number, "{entry.decision.loose[0].text}": not from evidence'
            stops[f"{_page(entry.cycle_id, entry.pipeline)}#evidence-title"] = text
            break
    cycles = (await client.ask(CYCLES, CyclesQuery(kind=DECISION, limit=ROWS_MAX))).cycles
    for cycle in cycles:
        if cycle.cycle_id and cycle.as_of and slip_of("sentiment", cycle.as_of) is Slip.BROKEN:
            op_id = ids.operation_id(cycle.cycle_id, SCRIPTED, "scanning", "sentiment", 1)
            text = "an answer that was refused twice, then corrected: chat, tokens and cost"
            stops[f"/operations/{op_id}"] = text
            break
    waiting = (await client.ask(APPROVALS, ApprovalsQuery())).approvals
    if any(entry.account == MAIN for entry in waiting):
        stops["/approvals"] = "approve the waiting proposal, or reduce it; follow its order"
    stops["/leaderboard"] = "the scripted pipeline against the rules, cash and buy-and-hold"
    stops["/studies"] = of_the_study()
    failed = next((cycle for cycle in cycles if cycle.status is CycleStatus.FAILED), None)
    if failed is not None:
        stops[f"/cycles/{amounts.short(failed.cycle_id)}"] = "a cycle that failed, and why"
    return stops


def of_the_study() -> str:
    """The sentence of the study, or what brings one where it needs packages that are missing."""
    if extras.is_installed(EXTRA):
        return "do the rules beat a coin? A study says what can be told; it fills in now"
    return f"empty, as are strategies: {extras.installing(EXTRA)}, then deskbus demo --fresh"


def _worst_trade(did: PerformanceView) -> Iterator[tuple[str, str]]:
    closed = [trip for trip in did.trips if trip.closed and trip.entry_cycle_id]
    worst = min(closed, key=lambda trip: trip.gain, default=None)
    if worst is None:
        return
    lost = amounts.change(priced(worst.gain, did.currency or ""))
    why = performance.why_sold(worst)
    dates = f"bought {worst.opened}, sold {worst.closed} ({why})"
    yield f"/performance?account={MAIN}#trips", f"the worst trade: {worst.ticker}, {lost}, {dates}"
    text = f"why {worst.ticker} was bought, and which rule reduced the order"
    yield _page(worst.entry_cycle_id, worst.entry_pipeline), text


def _page(cycle_id: object, pipeline: object) -> str:
    return f"/decisions/{amounts.short(cycle_id)}/{pipeline}"
