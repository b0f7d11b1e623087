"""That the subject table's types bite. mypy reads this module (`make check`); nobody runs it.

A wrong use carries the error that it must give: should mypy let it pass, the comment that expects
it is an error of its own (`warn_unused_ignores`, part of `strict`).
"""

from typing import assert_type

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.cycle_query import CyclesPage, CyclesQuery, CycleView
from contracts.message import Message
from contracts.operation import CancelOperation, Claim, ClaimAnswer, RecordAnswer
from contracts.risk import PickReview
from contracts.subjects.commands import MAKE_PLAN, PICK_TRADES
from contracts.subjects.cycles import CYCLES, REQUEST_CYCLE
from contracts.subjects.halts import HALT
from contracts.subjects.operations import CLAIM, STOP
from contracts.trader import DailyPicks, PickTrades
from libs.bus.client import Client
from libs.bus.desk_link import DeskLink
from libs.bus.operation import Orchestrator
from libs.bus.route import on_command, on_query, on_request
from libs.bus.server import Server, UnreadableMessage
from libs.runtime.journal import Journal
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import Claimed


async def questions(
    client: Client, desk: DeskLink, service: Orchestrator, claim: Claim, stop: CancelOperation
) -> None:
    """The row says what may be asked, and what the answer is."""
    assert_type(await client.ask(CYCLES, CyclesQuery()), CyclesPage)
    assert_type(await desk.ask(CYCLES, CyclesQuery()), CyclesPage)
    assert_type(await service.claim(claim), ClaimAnswer)
    view: CycleView = await client.ask(CYCLES, CyclesQuery())  # type: ignore[arg-type]
    del view
    await client.ask(HALT, CyclesQuery())  # type: ignore[misc]
    await desk.ask(HALT, CyclesQuery())  # type: ignore[misc]
    await client.ask(STOP, stop)  # type: ignore[type-var]


async def inputs(committer: Committer, claimed: Claimed) -> None:
    """The input says what is answered after its commit."""
    assert_type(await committer.ask(claimed), ClaimAnswer)


async def page_of(_caller: str, _query: CyclesQuery) -> CyclesPage | None:
    """None: whoever asks is to ask another instance."""
    return None


async def claimed(_caller: str, _claim: Claim) -> ClaimAnswer:
    """A handler of claims."""
    return ClaimAnswer(outcome="busy")


async def recorded(_caller: str, _claim: Claim) -> RecordAnswer:
    """Takes what the row of claims carries, and gives another row's answer."""
    return RecordAnswer(outcome="ok")


async def anything(_caller: str, _message: Message) -> ClaimAnswer:
    """Takes more than its row carries, which is no mistake."""
    return ClaimAnswer(outcome="busy")


async def unread(_caller: str, _message: UnreadableMessage) -> RecordAnswer:
    """A refusal in another row's words."""
    return RecordAnswer(outcome="unknown")


async def doors(server: Server) -> None:
    """A handler takes what its row carries and gives what it owes, also where it refuses."""
    await server.serve(CYCLES, page_of)
    await server.serve(CLAIM, claimed)
    await server.serve(CLAIM, anything)
    await server.serve(CYCLES, claimed)  # type: ignore[arg-type]
    await server.serve(CLAIM, recorded)  # type: ignore[arg-type]
    await server.serve(CLAIM, claimed, unread)  # type: ignore[arg-type]


async def pick(_command: PickTrades, _journal: Journal, *, most: int) -> DailyPicks:
    """A handler with something wired to it."""
    raise NotImplementedError(most)


async def review(_command: PickTrades, _journal: Journal) -> PickReview:
    """Answers with another command's contract."""
    raise NotImplementedError


async def page(_query: CyclesQuery) -> CyclesPage:
    """A query's handler."""
    return CyclesPage()


async def request(_caller: str, _request: CycleRequest) -> RequestAnswer:
    """A request's handler."""
    return RequestAnswer(outcome="accepted")


def routes() -> None:
    """The same of a service's table, and of what is wired to its handlers."""
    on_command(PICK_TRADES, pick, most=1)
    on_command(PICK_TRADES, pick)  # type: ignore[call-arg]
    on_command(PICK_TRADES, pick, most="all")  # type: ignore[arg-type]
    on_command(MAKE_PLAN, pick, most=1)  # type: ignore[misc]
    on_command(PICK_TRADES, review)  # type: ignore[misc]
    on_query(CYCLES, page)
    on_query(HALT, page)  # type: ignore[misc]
    on_request(REQUEST_CYCLE, request)
    on_request(HALT, request)  # type: ignore[misc]
