"""What people ask for over HTTP, passed on over NATS in the console's own name."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue, ValidationError

from contracts.approval import AnswerProposal, QuantityEdit, Verdict
from contracts.cycle import CancelCycle, CycleRequest, RequestAnswer
from contracts.dead_letter import DiscardLetter, LetterAnswer, RetryLetter
from contracts.exit_signal import CheckExitSignals, ExitDistances, ExitDistancesQuery, ExitSignals
from contracts.halt import HaltAnswer, HaltTrading, ResumeTrading
from contracts.http import ProposalAnswer
from contracts.schedule import JobAnswer, PauseJob, ResumeJob, RunJob
from contracts.subjects import (
    ANSWER_PROPOSAL,
    CANCEL_CYCLE,
    DISCARD_LETTER,
    EXIT_DISTANCES,
    EXIT_SIGNALS,
    HALT,
    PAUSE_JOB,
    REQUEST_CYCLE,
    RESUME,
    RESUME_JOB,
    RETRY_LETTER,
    RUN_JOB,
)
from libs.bus.client import Client, DeskNotReachable, QuestionRefused
from libs.bus.dead_letters import DeadLetters
from libs.bus.health import BusHealth
from libs.market.calendar import ExchangeCalendar
from libs.runtime.settings import Settings
from libs.web.sessions import Sessions
from services.console.accounts import Closes, Prices
from services.console.leaderboard import History
from services.console.problems import accepted, invalid
from services.console.report import Known
from services.console.store import Store
from services.console.tail import Tail

CHECK_TIMEOUT_S = 18.0
"""A live source may be asked for prices; the request's own limit is a little longer."""
ASK_AGAIN_MAX = 2
"""Sendings of one request: its key makes the second one harmless."""


class PassingOn:
    """Asks the orchestrator, and gives its yes. Its no is a `Refused`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def cycle(self, key: str | None, made: Callable[[str], CycleRequest]) -> RequestAnswer:
        """Request the cycle that `made` makes under the key, or under a new one."""
        try:
            request = made(key or f"http-{secrets.token_hex(8)}")
        except ValidationError as error:
            raise invalid(error.errors()) from error
        for left in reversed(range(ASK_AGAIN_MAX)):
            try:
                asked: RequestAnswer = await self._client.ask(REQUEST_CYCLE, request)
                return accepted(asked)
            except DeskNotReachable:
                if not left:
                    raise
        raise AssertionError("the last round returns or raises")

    async def cancel(self, cycle_id: UUID, reason: str) -> RequestAnswer:
        """Cancel a cycle."""
        wish = CancelCycle(cycle_id=cycle_id, reason=reason)
        answer: RequestAnswer = await self._client.ask(CANCEL_CYCLE, wish)
        return accepted(answer)

    async def check(self, query: CheckExitSignals) -> dict[str, JsonValue]:
        """The exit signals of a position. Raises QuestionRefused where it could not be checked."""
        said: ExitSignals = await self._client.ask(EXIT_SIGNALS, query, timeout_s=CHECK_TIMEOUT_S)
        if said.answer.get("status") != "success":
            raise QuestionRefused(str(said.answer["error_code"]), str(said.answer["error"]))
        return said.answer

    async def distances(self, query: ExitDistancesQuery) -> ExitDistances:
        """How far an account's positions are from being sold. Raises QuestionRefused."""
        found: ExitDistances = await self._client.ask(
            EXIT_DISTANCES, query, timeout_s=CHECK_TIMEOUT_S
        )
        return found

    async def letter(self, wish: RetryLetter | DiscardLetter) -> LetterAnswer:
        """Have a dead letter's command sent again, or the letter deleted."""
        row = RETRY_LETTER if isinstance(wish, RetryLetter) else DISCARD_LETTER
        answer: LetterAnswer = await self._client.ask(row, wish)
        return accepted(answer)

    async def job(self, wish: PauseJob | ResumeJob | RunJob) -> JobAnswer:
        """Pause, resume or run a job."""
        row = {PauseJob: PAUSE_JOB, ResumeJob: RESUME_JOB, RunJob: RUN_JOB}[type(wish)]
        answer: JobAnswer = await self._client.ask(row, wish)
        return accepted(answer)

    async def halt(self, wish: HaltTrading | ResumeTrading) -> HaltAnswer:
        """Stop buys, or let them go on. Raises QuestionRefused for an unknown account."""
        row = HALT if isinstance(wish, HaltTrading) else RESUME
        answer: HaltAnswer = await self._client.ask(row, wish)
        return answer

    async def answer(
        self,
        cycle_id: UUID,
        verdict: Verdict,
        said: ProposalAnswer,
        edits: tuple[QuantityEdit, ...] = (),
    ) -> RequestAnswer:
        """Answer the proposal that a cycle waits with."""
        answer = AnswerProposal(
            cycle_id=cycle_id,
            pipeline=said.pipeline,
            proposal_hash=said.proposal_hash,
            verdict=verdict,
            edits=edits,
            reason=said.reason,
        )
        told: RequestAnswer = await self._client.ask(ANSWER_PROPOSAL, answer)
        return accepted(told)


@dataclass(frozen=True)
class Desk:
    """What the API and the pages have of the desk: its tables to read, its events, and a voice to
    ask with.

    `sessions` are those of browsers; None where no token is set.
    """

    store: Store
    letters: DeadLetters
    closes: Closes
    history: History
    health: BusHealth
    calendar: ExchangeCalendar
    prices: Prices
    passing_on: PassingOn
    settings: Settings
    now: Callable[[], datetime]
    tail: Tail
    sessions: Sessions | None = None

    @property
    def known(self) -> Known:
        """Where a session's report has its facts from."""
        return Known(self.store, self.letters, self.closes, self.calendar, self.now)
