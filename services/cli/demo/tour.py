"""The tour of the filled demo: a few links with a sentence each, read from the record."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.approval import ApprovalsQuery
from contracts.cycle import DECISION, CycleStatus
from contracts.cycle_query import CyclesPage, CyclesQuery
from contracts.execution import DecisionsQuery
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from contracts.subjects.approvals import APPROVALS, DECISIONS
from contracts.subjects.cycles import CYCLES
from libs.bus.client import Client
from libs.facts import amounts
from libs.llm.committee.slips import Slip, slip_of
from libs.quant.ticks import priced
from libs.report import performance
from libs.runtime import ids
from services.cli.demo.sealed import MAIN

DECISIONS_MAX = 100
TRIPS_MAX = 200
PIPELINE = "scripted"


@dataclass(frozen=True)
class Stop:
    """One place to look at: its address below the console's, and a sentence."""

    path: str
    words: str


async def tour(client: Client) -> Sequence[Stop]:
    """The stops, in the order of a story: a trade, its reasons, mistakes, what waits for you."""
    did = await client.ask(PERFORMANCE, PerformanceQuery(account=MAIN, trips=TRIPS_MAX))
    cycles = await client.ask(CYCLES, CyclesQuery(kind=DECISION, limit=DECISIONS_MAX))
    return [
        *_worst_trade(did),
        *await _loose(client, cycles),
        *_refused(cycles),
        *await _waiting(client),
        Stop("/leaderboard", "the scripted pipeline beside the rules, cash and buy-and-hold"),
        *await _failed(client),
    ]


def _worst_trade(did: PerformanceView) -> Sequence[Stop]:
    closed = [trip for trip in did.trips if trip.closed and trip.entry_cycle_id]
    worst = min(closed, key=lambda trip: trip.gain, default=None)
    if worst is None:
        return ()
    lost = amounts.change(priced(worst.gain, did.currency or ""))
    bought = _page(worst.entry_cycle_id, worst.entry_pipeline)
    return (
        Stop(
            f"/performance?account={MAIN}#trips",
            f"the worst trade: {worst.ticker}, {lost}, bought {worst.opened}, sold "
            f"{worst.closed} ({performance.why_sold(worst)})",
        ),
        Stop(bought, f"why {worst.ticker} was bought, and which rule cut it, from what to what"),
    )


async def _loose(client: Client, cycles: CyclesPage) -> Sequence[Stop]:
    """The newest decision with a number in it that no fact has."""
    for cycle in cycles.cycles:
        if cycle.as_of is None or slip_of("trader", cycle.as_of) is not Slip.LOOSE:
            continue
        page = await client.ask(DECISIONS, DecisionsQuery(cycle_id=str(cycle.cycle_id)))
        for entry in page.decisions:
            if entry.decision.loose:
                words = (
                    f'a number out of nowhere, "{entry.decision.loose[0].text}": not from evidence'
                )
                return (Stop(f"{_page(entry.cycle_id, entry.pipeline)}#evidence-title", words),)
    return ()


def _refused(cycles: CyclesPage) -> Sequence[Stop]:
    """The newest answer that was sent back twice before it was right."""
    for cycle in cycles.cycles:
        if cycle.cycle_id and cycle.as_of and slip_of("sentiment", cycle.as_of) is Slip.BROKEN:
            op_id = ids.operation_id(cycle.cycle_id, PIPELINE, "scanning", "sentiment", 1)
            words = "an answer refused twice, then mended: the chat, its tokens and cost"
            return (Stop(f"/operations/{op_id}", words),)
    return ()


def _page(cycle_id: object, pipeline: object) -> str:
    return f"/decisions/{amounts.short(cycle_id)}/{pipeline}"


async def _waiting(client: Client) -> Sequence[Stop]:
    page = await client.ask(APPROVALS, ApprovalsQuery())
    if not any(entry.account == MAIN for entry in page.approvals):
        return ()
    return (Stop("/approvals", "approve the proposal that waits, or buy less; follow its order"),)


async def _failed(client: Client) -> Sequence[Stop]:
    page = await client.ask(CYCLES, CyclesQuery(status=CycleStatus.FAILED, limit=1))
    return tuple(
        Stop(f"/cycles/{amounts.short(cycle.cycle_id)}", "a cycle that failed, and why")
        for cycle in page.cycles
    )
