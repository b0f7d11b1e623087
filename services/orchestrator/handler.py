"""What the orchestrator hears, as inputs; what it says after a commit, as messages."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from datetime import date
from typing import TypeVar
from uuid import UUID

from contracts.approval import AnswerProposal
from contracts.cycle import CancelCycle, CycleRequest, RequestAnswer
from contracts.message import Message
from contracts.operation import (
    CancelOperation,
    Claim,
    ClaimAnswer,
    Record,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.subjects import (
    ANSWER_PROPOSAL,
    CANCEL_CYCLE,
    CLAIM,
    ORCHESTRATOR,
    RECORD,
    REQUEST_CYCLE,
    RESULT,
)
from contracts.types import Failure
from libs.bus.publisher import Publisher
from libs.bus.server import Refuse, Server, Unreadable
from libs.runtime import ids
from libs.runtime.errors import DeskError
from services.orchestrator.answers import rejection
from services.orchestrator.changes import NewOperation, Stop
from services.orchestrator.commit import Committer, InputRefused, NotCommitted
from services.orchestrator.group import WorkflowUnknown
from services.orchestrator.inputs import (
    CancelAskedFor,
    Claimed,
    CycleAsked,
    Given,
    ProposalAnswered,
    Recorded,
    RequestRefused,
    Resulted,
)
from services.orchestrator.outlook import OutlookOf
from services.orchestrator.refusals import Refusals
from services.orchestrator.rotation import in_turn

# Names the newest session that the market source knows; asked where a request names none.
LatestSession = Callable[[], Awaitable[date]]


M = TypeVar("M", bound=Message)

REASON_CHARS_MAX = 400
"""Of the reason that a service is told."""


class Handler:
    """Answers requests and services' questions by inputs to the committer.

    `patience_s` is how long services wait for an answer before they ask again.
    """

    def __init__(
        self,
        committer: Committer,
        publisher: Publisher,
        latest_session: LatestSession,
        outlook_of: OutlookOf,
        refusals: Refusals,
        patience_s: float,
    ) -> None:
        self._committer = committer
        self._publisher = publisher
        self._latest_session = latest_session
        self._outlook_of = outlook_of
        self._refusals = refusals
        self._patience_s = patience_s

    async def serve(self, server: Server) -> None:
        """Begin to answer everything that the orchestrator hears."""
        await server.serve(REQUEST_CYCLE, self.cycle, self._refuse_request)
        await server.serve(CANCEL_CYCLE, self._cancel, self._refuse_request)
        await server.serve(ANSWER_PROPOSAL, self._approval, self._refuse_request)
        await server.serve(CLAIM, self._claim, self._refused("claim", ClaimAnswer))
        await server.serve(RECORD, self._record, self._refused("record", RecordAnswer))
        await server.serve(RESULT, self._result, self._refused("result", ResultAnswer))

    async def cycle(self, requester: str, message: Message) -> Message | None:
        """What becomes of a request; None where another orchestrator is to be asked."""
        request = _as(CycleRequest, message)
        try:
            as_of = request.as_of or await self._latest_session()
        except DeskError as error:
            return rejection(error.code, error.message, "as_of")
        outlook = await self._outlook_of(requester, request, as_of)
        body = request.model_dump_json().encode()
        given = CycleAsked(
            cycle_id=ids.cycle_id(requester, request.idempotency_key),
            requester=requester,
            request=in_turn(request, as_of),
            as_of=as_of,
            body_sha256=_digest(request),
            hindrance=outlook.hindrance,
            needs=outlook.needs,
        )
        answer = await self._ask(given)
        if not isinstance(answer, RequestAnswer):
            return None
        rejected = answer.outcome == "rejected" and answer.code != "key_reused"
        if rejected and self._refusals.is_kept(requester):
            failure = Failure(code=answer.code or "", message=answer.message, field=answer.field)
            stands_for = _refused_id(requester, body, len(body))
            await self._ask(RequestRefused(stands_for, failure, requester))
        return answer

    async def _cancel(self, _requester: str, message: Message) -> Message | None:
        cancel = _as(CancelCycle, message)
        return await self._ask(CancelAskedFor(cancel.cycle_id, cancel.reason))

    async def _approval(self, approver: str, message: Message) -> Message | None:
        return await self._ask(ProposalAnswered(approver, _as(AnswerProposal, message)))

    async def _refuse_request(self, requester: str, refused: Unreadable) -> RequestAnswer:
        """A request that cannot be read: told to its sender, to all who listen, and kept; of many
        a minute the further ones are told to their sender only."""
        error = refused.error
        failure = Failure(code=error.code, message=error.message, field=error.field)
        if self._refusals.is_kept(requester):
            await self._publisher.dead_letter("request", refused, failure, requester)
            stands_for = _refused_id(requester, refused.body, refused.size_bytes)
            await self._ask(RequestRefused(stands_for, failure, requester))
        return rejection(error.code, error.message, error.field)

    async def _claim(self, service: str, message: Message) -> Message | None:
        return await self._ask_for_now(Claimed(service, _as(Claim, message)))

    async def _record(self, service: str, message: Message) -> Message | None:
        return await self._ask_for_now(Recorded(service, _as(Record, message)))

    async def _result(self, service: str, message: Message) -> Message | None:
        return await self._ask_for_now(Resulted(service, _as(Result, message)))

    async def _ask(self, given: Given) -> Message | None:
        """The committed answer. An input that cannot be stored has ended its operation: say so.

        None, which is no answer, where nothing could be committed, or on a cycle of a later
        version: who asks again may be heard by an orchestrator that knows it.
        """
        try:
            return await self._committer.ask(given)
        except InputRefused as error:
            return _refusal(given, str(error))
        except (NotCommitted, WorkflowUnknown):
            return None

    async def _ask_for_now(self, given: Given) -> Message | None:
        """As `_ask`, for a service, which asks again after a while: what it no longer waits for is
        not to be granted to nobody once Postgres is back."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._ask(given)
        except TimeoutError:
            return None

    def _refused(
        self, what: str, answer: type[ClaimAnswer] | type[RecordAnswer] | type[ResultAnswer]
    ) -> Refuse:
        """Keep what a service said and nobody can read; to it, the operation is unknown."""

        async def refuse(service: str, refused: Unreadable) -> Message | None:
            error = refused.error
            failure = Failure(code=error.code, message=error.message, field=error.field)
            if self._refusals.is_kept(service):
                await self._publisher.dead_letter(what, refused, failure, service)
            return answer(outcome="unknown")

        return refuse


class BusOutbox:
    """Sends what a commit leaves to be sent."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def send(self, start: NewOperation, command: bytes) -> None:
        """Publish a new operation's command."""
        step = start.start.step
        await self._publisher.command(
            step.serves.owner, step.name, start.cycle.cycle_id, start.start.op_id, command, 1
        )

    async def stop(self, stop: Stop) -> None:
        """Tell a service that an operation no longer counts."""
        # What a person was asked has no service to be told.
        if stop.service not in {"", ORCHESTRATOR}:
            cancel = CancelOperation(
                op_id=stop.op_id, cycle_id=stop.cycle_id, reason=stop.reason[:REASON_CHARS_MAX]
            )
            await self._publisher.cancel(stop.service, cancel)


def _digest(request: CycleRequest) -> bytes:
    """What tells a repeated request from another one. Defaults are left out, so that a field which
    a later version adds does not make the same request look like another."""
    return hashlib.sha256(request.model_dump_json(exclude_defaults=True).encode()).digest()


def _refused_id(requester: str, body: bytes, size_bytes: int) -> UUID:
    """Stands for the cycle that there is none of; the same for the same body."""
    return ids.cycle_id(requester, f"refused/{size_bytes}/{hashlib.sha256(body).hexdigest()}")


def _refusal(given: Given, why: str) -> Message | None:
    match given:
        case Claimed():
            return ClaimAnswer(outcome="done")
        case Recorded():
            return RecordAnswer(outcome="cancelled", message=why[:400])
        case Resulted():
            return ResultAnswer(outcome="ok")
        case _:
            return rejection("not_storable", why[:400])


def _as(kind: type[M], message: object) -> M:
    if not isinstance(message, kind):
        raise TypeError(f"{kind.__name__} expected, {type(message).__name__} came")
    return message
