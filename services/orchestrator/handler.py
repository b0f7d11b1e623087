"""Messages to the orchestrator, as inputs; its own after a commit, as messages."""

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from datetime import date
from uuid import UUID

from contracts.approval import AnswerProposal
from contracts.cycle import (
    PREVIEW,
    PROBE,
    STRATEGY,
    STUDY_ACCOUNTS,
    CancelCycle,
    CycleRequest,
    RequestAnswer,
)
from contracts.operation import (
    CancelOperation,
    Claim,
    ClaimAnswer,
    Record,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.proposal import Propose
from contracts.subjects.approvals import ANSWER_PROPOSAL
from contracts.subjects.cycles import CANCEL_CYCLE, REQUEST_CYCLE
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.proposals import PROPOSE
from contracts.subjects.subject import ORCHESTRATOR, REQUESTERS, STUDY, Answered
from contracts.types import Failure, shortened
from libs.bus.headers import traceparent
from libs.bus.local import LocalBus
from libs.bus.publisher import Publisher
from libs.bus.pull import LocalDelivery
from libs.bus.server import Refuse, Server, UnreadableMessage
from libs.market.sessions import LatestSession
from libs.runtime import ids
from libs.runtime.data_version import reading
from libs.runtime.errors import DeskError
from libs.runtime.model_settings import PROPOSAL
from services.orchestrator import proposals
from services.orchestrator.commit import Committer, InputRefused, NotCommitted, OutgoingCommand
from services.orchestrator.group import inputs
from services.orchestrator.group.answers import mistaken, rejection
from services.orchestrator.group.batch import WorkflowUnknown
from services.orchestrator.group.budgets import pays_no_call
from services.orchestrator.group.changes import Stop
from services.orchestrator.group.refusals import Refusals
from services.orchestrator.machine.rotation import in_turn
from services.orchestrator.preflight import PreflightOf
from services.orchestrator.proposals import ProposalDesk

# Gives the newest version of the market data, None where its source has none.
DataVersion = Callable[[], Awaitable[str | None]]


REASON_CHARS_MAX = 400
"""Of the reason that a service is told."""


class Handler:
    """Answers requests and services' questions by inputs to the committer: `Committer.ask` queues
    each, and `Committer.run` commits it.

    `patience_s` is how long services wait for an answer before they ask again.
    """

    def __init__(
        self,
        committer: Committer,
        publisher: Publisher,
        latest_session: LatestSession,
        data_version: DataVersion,
        outlook_of: PreflightOf,
        refusals: Refusals,
        patience_s: float,
        proposal_desk: ProposalDesk,
    ) -> None:
        self._committer = committer
        self._publisher = publisher
        self._latest_session = latest_session
        self._data_version = data_version
        self._outlook_of = outlook_of
        self._refusals = refusals
        self._patience_s = patience_s
        self._proposals = proposal_desk

    async def serve(self, server: Server) -> None:
        """Begin to answer everything that the orchestrator hears."""
        await server.serve(REQUEST_CYCLE, self.cycle, self._refuse_request)
        await server.serve(CANCEL_CYCLE, self._cancel, self._refuse_request)
        await server.serve(PROPOSE, self._propose, self._refuse_request)
        await server.serve(ANSWER_PROPOSAL, self._approval, self._refuse_request)
        unread = self._unread
        await server.serve(CLAIM, self._claim, unread("claim", _claim_refused))
        await server.serve(RECORD, self._record, unread("record", _record_refused))
        await server.serve(RESULT, self._result, unread("result", _result_refused))

    async def cycle(self, requester: str, request: CycleRequest) -> RequestAnswer | None:
        """Answer a request; None where another orchestrator is to be asked."""
        if request.by_hand and requester not in REQUESTERS:
            why = f"only people may sell by hand (`deskbus exit now`); {requester} is a program"
            field = "sell_now" if request.sell_now else "sell_all"
            return rejection("not_a_person", why, field)
        refused = _no_cell(request) if requester == STUDY else _kept_for_studies(request)
        refused = refused or _kept_for_proposers(request)
        if refused is not None:
            return refused
        return await self._begin(requester, request, _digest(request))

    async def _propose(self, requester: str, wish: Propose) -> RequestAnswer | None:
        """Answer a proposal: it is a request for a cycle, whose body is the proposal's own, so that
        a limit that is changed meanwhile does not make the same one another."""
        try:
            proposer = self._proposals.proposer(requester)
        except DeskError as error:
            return rejection(error.code, error.message)
        request = proposals.request_of(wish, proposer)
        digest = hashlib.sha256(wish.model_dump_json().encode()).digest()
        return await self._begin(
            requester, request, digest, session=wish.session, per_hour_max=proposer.per_hour_max
        )

    async def _begin(
        self,
        requester: str,
        request: CycleRequest,
        digest: bytes,
        *,
        session: date | None = None,
        per_hour_max: int | None = None,
    ) -> RequestAnswer | None:
        """Have a request's cycle begun; `session` is the one that its as_of must be."""
        try:
            version = await self._data_version()
            with reading(version):
                as_of = request.as_of or await self._latest_session()
                outlook = await self._outlook_of(requester, request, as_of)
        except DeskError as error:
            return rejection(error.code, error.message, "as_of")
        if request.study is not None and request.study.dry_run:
            poor = pays_no_call(request.budgets, outlook.needs)
            return outlook.rejection or poor or RequestAnswer(outcome="accepted")
        body = request.model_dump_json().encode()
        not_latest = None
        if session not in {None, as_of}:
            why = f"a proposal is for the newest session, {as_of}; leave session out"
            not_latest = mistaken("not_latest", why, "session", str(session), as_of.isoformat())
        asked = inputs.CycleRequested(
            cycle_id=ids.cycle_id(requester, request.idempotency_key),
            requester=requester,
            request=in_turn(request, as_of),
            as_of=as_of,
            body_sha256=digest,
            rejection=not_latest or outlook.rejection,
            needs=outlook.needs,
            data_version=version,
            per_hour_max=per_hour_max,
        )
        answer = await self._request(asked)
        if answer is None:
            return None
        rejected = answer.outcome == "rejected" and answer.code != "key_reused"
        if rejected and self._refusals.is_kept(requester):
            failure = Failure(code=answer.code or "", message=answer.message, field=answer.field)
            stands_for = _refused_id(requester, body, len(body))
            await self._keep(inputs.UnreadableRequest(stands_for, failure, requester))
        return answer

    async def _cancel(self, _requester: str, request: CancelCycle) -> RequestAnswer | None:
        return await self._request(inputs.CancelRequested(request.cycle_id, request.reason))

    async def _approval(self, approver: str, answer: AnswerProposal) -> RequestAnswer | None:
        return await self._request(inputs.ProposalAnswered(approver, answer))

    async def _request(
        self, asked: inputs.CycleRequested | inputs.CancelRequested | inputs.ProposalAnswered
    ) -> RequestAnswer | None:
        return await _answer(self._committer.ask(asked), _not_storable)

    async def _refuse_request(self, requester: str, refused: UnreadableMessage) -> RequestAnswer:
        """A request that cannot be read: told to its sender, to all who listen, and kept; of many
        a minute the further ones are told to their sender only."""
        error = refused.error
        failure = Failure(code=error.code, message=error.message, field=error.field)
        if self._refusals.is_kept(requester):
            await self._publisher.dead_letter("request", refused, failure, requester)
            stands_for = _refused_id(requester, refused.body, refused.size_bytes)
            await self._keep(inputs.UnreadableRequest(stands_for, failure, requester))
        return rejection(error.code, error.message, error.field)

    async def _keep(self, refused: inputs.UnreadableRequest) -> None:
        """Record a refusal where that can be done; its sender has the answer either way."""
        with contextlib.suppress(InputRefused, NotCommitted, WorkflowUnknown):
            await self._committer.ask(refused)

    async def _claim(self, service: str, claim: Claim) -> ClaimAnswer | None:
        answer = self._committer.ask(inputs.Claimed(service, claim))
        return await self._for_now(_answer(answer, lambda _: ClaimAnswer(outcome="done")))

    async def _record(self, service: str, record: Record) -> RecordAnswer | None:
        answer = self._committer.ask(inputs.CallsRecorded(service, record))
        return await self._for_now(_answer(answer, _record_refused))

    async def _result(self, service: str, result: Result) -> ResultAnswer | None:
        answer = self._committer.ask(inputs.Resulted(service, result))
        return await self._for_now(_answer(answer, lambda _: ResultAnswer(outcome="ok")))

    async def _for_now(self, answer: Awaitable[Answered | None]) -> Answered | None:
        """A service asks again after a while: what it no longer waits for is not to be granted to
        nobody once Postgres is back."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await answer
        except TimeoutError:
            return None

    def _unread(self, what: str, answer: Callable[[str], Answered]) -> Refuse[Answered]:
        """Keep a message of a service that cannot be read, and tell the service why."""

        async def refuse(service: str, refused: UnreadableMessage) -> Answered:
            error = refused.error
            failure = Failure(code=error.code, message=error.message, field=error.field)
            if self._refusals.is_kept(service):
                await self._publisher.dead_letter(what, refused, failure, service)
            return answer(shortened(error.message, REASON_CHARS_MAX))

        return refuse


class BusOutbox:
    """Sends what a commit leaves to be sent: to a service of this process, if it has a free worker;
    else, and whenever it is sent again, over NATS."""

    def __init__(self, publisher: Publisher, local: LocalBus | None = None) -> None:
        self._publisher = publisher
        self._local = local

    def free_workers(self, service: str, step: str) -> int:
        """How many of the step's commands a service of this process would begin at once."""
        return 0 if self._local is None else self._local.free_workers(service, step)

    async def send(self, command: OutgoingCommand) -> None:
        """Send a command for the first time."""
        if self._local is not None:
            place = traceparent(command.cycle_id, command.op_id)
            handed = LocalDelivery(command.body, place, command.granted)
            if self._local.hand_over(command.service, command.step, handed):
                return
        if command.granted is not None:
            return  # its service has just stopped; nobody else gets it before the lease is over
        await self._publisher.command(
            command.service, command.step, command.cycle_id, command.op_id, command.body, 1
        )

    async def stop(self, stop: Stop) -> None:
        """Tell a service that an operation no longer counts."""
        # What a person was asked has no service to be told.
        if stop.service not in {"", ORCHESTRATOR}:
            cancel = CancelOperation(
                op_id=stop.op_id,
                cycle_id=stop.cycle_id,
                reason=shortened(stop.reason, REASON_CHARS_MAX),
            )
            await self._publisher.cancel(stop.service, cancel)


def _kept_for_studies(request: CycleRequest) -> RequestAnswer | None:
    """Why only the study service may ask for this; None where anybody may."""
    if request.study is not None:
        return rejection("invalid", "only a study sets it: run `deskbus study run`", "study")
    if request.kind == PROBE:
        return rejection("invalid", "only a study probes: set `probe` in its file", "kind")
    for pipeline in request.pipelines:
        if pipeline.masked:
            why = f"pipeline {pipeline.name} is masked: only an arm of a study is"
            return rejection("invalid", why, "pipelines")
    taken = [account for account in request.accounts if account.startswith(STUDY_ACCOUNTS)]
    if taken:
        why = f"account {taken[0]}: names that begin with {STUDY_ACCOUNTS} are reserved for studies"
        return rejection("invalid", why, "pipelines")
    return None


def _kept_for_proposers(request: CycleRequest) -> RequestAnswer | None:
    """Why only a proposer may ask for this; None where anybody may."""
    if request.proposal is not None or request.kind == PREVIEW:
        field = "kind" if request.proposal is None else "proposal"
        return rejection("invalid", "only a proposer proposes: see docs/proposals.md", field)
    by = {
        (pipeline.provider, *pipeline.stages.values(), *pipeline.fallback.values())
        for pipeline in request.pipelines
    }
    if any(PROPOSAL in answering for answering in by):
        why = f"the provider {PROPOSAL} answers proposals only: see docs/proposals.md"
        return rejection("provider_unknown", why, "pipelines")
    return None


def _no_cell(request: CycleRequest) -> RequestAnswer | None:
    """Why the study service may not ask for this; None for a cell in accounts of studies."""
    others = [name for name in request.accounts if not name.startswith(STUDY_ACCOUNTS)]
    if request.study is None or request.kind == STRATEGY or others:
        why = f"{STUDY} may only request cells, in accounts that begin with {STUDY_ACCOUNTS}"
        return rejection("invalid", why, "pipelines" if others else "study")
    return None


def _digest(request: CycleRequest) -> bytes:
    """The hash that tells a repeated request from another one. Defaults are left out, so that a
    field which a later version adds does not make the same request look like another.
    """
    return hashlib.sha256(request.model_dump_json(exclude_defaults=True).encode()).digest()


def _refused_id(requester: str, body: bytes, size_bytes: int) -> UUID:
    """Stands for the cycle that there is none of; the same for the same body."""
    return ids.cycle_id(requester, f"refused/{size_bytes}/{hashlib.sha256(body).hexdigest()}")


async def _answer(
    answer: Awaitable[Answered], refusal: Callable[[str], Answered]
) -> Answered | None:
    """The committed answer. An input that cannot be stored has ended its operation: say so.

    None, which is no answer, where nothing could be committed, or on a cycle of a later version:
    who asks again may be heard by an orchestrator that knows it.
    """
    try:
        return await answer
    except InputRefused as error:
        return refusal(shortened(str(error), REASON_CHARS_MAX))
    except (NotCommitted, WorkflowUnknown):
        return None


def _not_storable(why: str) -> RequestAnswer:
    return rejection("not_storable", why)


def _claim_refused(_: str) -> ClaimAnswer:
    return ClaimAnswer(outcome="unknown")


def _record_refused(why: str) -> RecordAnswer:
    return RecordAnswer(outcome="refused", message=why)


def _result_refused(why: str) -> ResultAnswer:
    return ResultAnswer(outcome="refused", message=why)
