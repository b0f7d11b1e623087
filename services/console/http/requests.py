"""Requests over HTTP, passed on over NATS in the console's own name."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request
from pydantic import JsonValue, ValidationError

from contracts.approval import AnswerProposal, QuantityEdit, Verdict
from contracts.cycle import CancelCycle, CycleRequest, RequestAnswer
from contracts.exit_signal import CheckExitSignals, ExitDistances
from contracts.http import ProposalAnswer
from contracts.notice import ChannelTested, TestChannel
from contracts.subjects.approvals import ANSWER_PROPOSAL
from contracts.subjects.cycles import CANCEL_CYCLE, REQUEST_CYCLE
from contracts.subjects.exits import EXIT_SIGNALS
from contracts.subjects.notices import TEST_CHANNEL
from contracts.subjects.subject import Answered, Asked, Subject
from libs.bus.client import Client, DeskNotReachable, QuestionRefused
from libs.bus.desk_link import ProposerLinks
from libs.market.replay.layout import LABEL_FILE, RECORDS
from libs.market.sources import bad_files_of
from libs.report import market_files
from libs.report.view import Table
from libs.web.sessions import LoginSessions
from services.console.http.problems import Accepted, accepted, invalid, sent
from services.console.listings.cycles import CycleList
from services.console.live.rates import Rates
from services.console.live.tail import Tail
from services.console.store import Store
from services.console.views.desk import DeskViews

CHECK_TIMEOUT_S = 18.0
"""A live source may be asked for prices; the request's own limit is a little longer."""
PAGE_S = 2.0
"""A page waits so long for another service, and shows what it knows itself where none answers."""
ANSWER_S = 5.0
"""What an answer may take beside what is waited for."""
TEST_ANSWER_S = 60.0
"""How long a test message may take beside the try: Apprise loads first."""
ASK_AGAIN_MAX = 2
"""Sendings of one request: its key makes the second one harmless."""


class Requests:
    """Asks the orchestrator, and gives its yes. Its no is an `HttpProblem`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def cycle(
        self, key: str | None, request_of: Callable[[str], CycleRequest]
    ) -> RequestAnswer:
        """Request the cycle that `request_of` makes under the key, or under a new one."""
        try:
            request = request_of(key or f"http-{secrets.token_hex(8)}")
        except ValidationError as error:
            raise invalid(error.errors()) from error
        return accepted(await self.ask_cycle(request))

    async def ask_cycle(self, request: CycleRequest) -> RequestAnswer:
        """Request a cycle; the desk's yes or no. Raises DeskNotReachable."""
        for left in reversed(range(ASK_AGAIN_MAX)):
            try:
                return await self._client.ask(REQUEST_CYCLE, request)
            except DeskNotReachable:
                if not left:
                    raise
        raise AssertionError("the last round returns or raises")

    async def cancel(self, cycle_id: UUID, reason: str) -> RequestAnswer:
        """Cancel a cycle."""
        wish = CancelCycle(cycle_id=cycle_id, reason=reason)
        answer = await self._client.ask(CANCEL_CYCLE, wish)
        return accepted(answer)

    async def check(self, query: CheckExitSignals) -> dict[str, JsonValue]:
        """The exit signals of a position. Raises QuestionRefused where it could not be checked."""
        answer = await self._client.ask(EXIT_SIGNALS, query, timeout_s=CHECK_TIMEOUT_S)
        if answer.answer.get("status") != "success":
            raise QuestionRefused(str(answer.answer["error_code"]), str(answer.answer["error"]))
        return answer.answer

    async def test(self, channel: str, try_s: float) -> ChannelTested:
        """Send a test message, whose try may take `try_s`; its no is an `HttpProblem`."""
        wish = TestChannel(channel=channel)
        answer = await self._client.ask(TEST_CHANNEL, wish, timeout_s=try_s + TEST_ANSWER_S)
        return sent(answer)

    async def ask(
        self, row: Subject[Asked, Answered], query: Asked, timeout_s: float = CHECK_TIMEOUT_S
    ) -> Answered:
        """The answer of another service to a question. Raises QuestionRefused."""
        return await self._client.ask(row, query, timeout_s=timeout_s)

    async def request(
        self, row: Subject[Asked, Accepted], wish: Asked, timeout_s: float = ANSWER_S
    ) -> Accepted:
        """Have something done to a job, a dead letter, a study or a cycle."""
        return accepted(await self._client.ask(row, wish, timeout_s=timeout_s))

    async def answer(
        self,
        cycle_id: UUID,
        verdict: Verdict,
        approval: ProposalAnswer,
        edits: tuple[QuantityEdit, ...] = (),
    ) -> RequestAnswer:
        """Answer the proposal that a cycle waits with."""
        answer = AnswerProposal(
            cycle_id=cycle_id,
            pipeline=approval.pipeline,
            proposal_hash=approval.proposal_hash,
            verdict=verdict,
            edits=edits,
            reason=approval.reason,
        )
        reply = await self._client.ask(ANSWER_PROPOSAL, answer)
        return accepted(reply)


@dataclass(frozen=True)
class DeskAccess(DeskViews):
    """The API's and the pages' access: also a voice to ask with, and the events as they happen.
    `proposers` pass on what proposers say, each under its own name. `halts` reads the same tables
    over a connection of its own. `sessions` are those of browsers, where a token is needed.
    `exits_kept` are answers of the exit rules by account, with the time of each."""

    cycles: CycleList
    halts: Store
    requests: Requests
    proposers: ProposerLinks
    tail: Tail
    sessions: LoginSessions
    rates: Rates = field(default_factory=Rates)
    exits_kept: dict[str, tuple[datetime, ExitDistances]] = field(default_factory=dict)

    async def bad_files(self, ticker: str | None = None) -> Table:
        """The market files that cannot be used: all, or those that a ticker needs."""
        bad = await bad_files_of(self.settings)
        needed = None if ticker is None else {ticker, *RECORDS, LABEL_FILE}
        unused, earlier, rows = (
            [one for key, one in sorted(of.items()) if needed is None or key in needed]
            for of in (bad.unused, bad.earlier, bad.rows)
        )
        return market_files.bad_files(unused, earlier, rows)


async def desk_of(request: Request) -> DeskAccess:
    """For `Depends`: the desk that the application answers for."""
    desk: DeskAccess = request.app.state.desk
    return desk


Desk = Annotated[DeskAccess, Depends(desk_of)]
"""What a path reads and asks."""
