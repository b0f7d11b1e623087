"""May this cycle begin, and what does a call of its models cost at least? Asked before a cycle.

A request for what there is not is refused here, whichever way it came in: later it would be a cycle
that could never have run. What nobody who knows says in time refuses nothing: the work itself will
find it out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import structlog

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.operation import Reserve
from contracts.provider import ProvidersQuery
from contracts.reach import OutOfReach, ReachQuery
from contracts.schedule import SCHEDULE
from contracts.subjects.preflight import PROVIDERS, REACH
from contracts.subjects.subject import ORCHESTRATOR, Answered, Asked, Subject
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.connection import Client
from libs.bus.operation import UNANSWERED
from libs.market.errors import MarketError, NotASession, OutsideData
from libs.market.sessions import Sessions
from libs.postgres.pool import DatabaseUnavailable
from libs.runtime.errors import ClockBack
from libs.runtime.model_settings import EndpointSettings
from libs.runtime.nearest import UnknownAccount, did_you_mean, nearest
from services.orchestrator.accounts import Accounts
from services.orchestrator.group.answers import mistaken, mistyped_constraint
from services.orchestrator.group.budgets import SMALLEST_USD
from services.orchestrator.machine.rotation import in_turn
from services.orchestrator.machine.stages import staged

OFFLINE = "rules"
"""The provider that every desk has: nobody need be asked for it."""
ANSWER_TIMEOUT_S = 2.0
"""How long whoever knows may take to say it; a person waits for it."""
SOMETHING = Reserve(tokens=1, cost_usd=SMALLEST_USD)
"""What a call of a model costs where nobody knows: more than a spent budget has."""


log = structlog.get_logger()


@dataclass(frozen=True)
class Preflight:
    """Why a cycle could not begin, if so, and the least that a call of its models may cost.

    `rejection` None: nothing speaks against it, or nobody knows. `needs` None: none is counted.
    """

    rejection: RequestAnswer | None = None
    needs: Reserve | None = None


# What becomes of the request of somebody for a session.
PreflightOf = Callable[[str, CycleRequest, date], Awaitable[Preflight]]


class AdmissionCheck:
    """Judges requests: their day by the source's sessions and the accounts' clocks, the rest by who
    has markets and keys. `trading` are the kinds of cycles that bring an account to their session,
    `providers` the endpoints as they are set.
    """

    def __init__(
        self,
        client: Client,
        sessions: Sessions,
        accounts: Accounts,
        trading: Collection[str],
        providers: Mapping[str, EndpointSettings],
    ) -> None:
        self._client = client
        self._sessions = sessions
        self._accounts = accounts
        self._trading = trading
        self._providers = providers

    async def __call__(self, requester: str, request: CycleRequest, as_of: date) -> Preflight:
        """The first thing that speaks against a new cycle, and what a call of it needs."""
        rejection = (
            mistyped_constraint(request)
            or await self._of_the_day(as_of)
            or await self._of_the_programs(request, as_of)
            or await self._of_the_accounts(request, as_of)
            or await self._of_the_names(requester, request, as_of)
        )
        return Preflight(rejection) if rejection else await self._of_the_pipelines(request)

    async def _of_the_day(self, as_of: date) -> RequestAnswer | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                await self._sessions.require(as_of)
        except (NotASession, OutsideData) as error:
            day = error.nearest.isoformat()
            return mistaken(error.code, error.message, "as_of", as_of.isoformat(), day)
        except (MarketError, TimeoutError) as error:
            log.warning("orchestrator.sessions_unknown", error=f"{type(error).__name__}: {error}")
        return None

    async def _of_the_programs(self, request: CycleRequest, as_of: date) -> RequestAnswer | None:
        """Why a program of this machine may not be asked about a day that is past, or in a study:
        it may look up what came after. Where the newest session is not known, none is asked."""
        pipelines = staged(request, self._providers).pipelines
        programs = dict.fromkeys(name for one in pipelines for name in one.programs)
        open_ = [name for name in programs if not self._providers[name].sandbox.only_vendor]
        if not open_:
            return None
        said = f"{open_[0]} is a program that may have its own tools"
        todo = f"set only_vendor in [providers.{open_[0]}.sandbox] where its sandbox reaches its"
        if request.study is not None:
            why = f"{said}, so studies do not use it: {todo} vendor only"
            return mistaken("outside_tools", why, "pipelines", open_[0], None, OFFLINE)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                latest = await self._sessions.latest()
        except (MarketError, TimeoutError) as error:
            why = f"{said}, and the newest session is not known: {type(error).__name__}; try again"
            return mistaken("outside_tools", why, "pipelines", open_[0], None, OFFLINE)
        if as_of == latest:
            return None
        why = f"{said} and may know data after {as_of}: request {latest}, or {todo} vendor only"
        return mistaken("outside_tools", why, "as_of", as_of.isoformat(), latest.isoformat())

    async def _of_the_accounts(self, request: CycleRequest, as_of: date) -> RequestAnswer | None:
        if request.kind not in self._trading:
            return None
        names = [pipeline.account for pipeline in in_turn(request, as_of).pipelines]
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                clocks = await self._accounts.clocks(names)
                bound = await self._accounts.bound(names)
                if bound and (refused := await self._of_a_broker(bound[0], as_of)):
                    return refused
                if request.by_hand and names[0] not in clocks:
                    return _nobodys(names[0], await self._accounts.names())
        except (DatabaseUnavailable, MarketError, TimeoutError) as error:
            log.warning("orchestrator.schedulers_unknown", error=f"{type(error).__name__}: {error}")
            return None
        return _ahead(names, clocks, as_of)

    async def _of_a_broker(self, account: str, as_of: date) -> RequestAnswer | None:
        """Why an account that is bound to a broker may not decide at as_of: it is not the newest
        session. Execution refuses it again."""
        latest = await self._sessions.latest()
        if as_of == latest:
            return None
        why = (
            f"account {account} is bound to a broker and decides for the newest session only, "
            f"{latest}: use another account for {as_of}"
        )
        return mistaken("not_latest", why, "as_of", as_of.isoformat(), latest.isoformat())

    async def _of_the_names(
        self, requester: str, request: CycleRequest, as_of: date
    ) -> RequestAnswer | None:
        tickers = tickers_of(request)
        if not tickers and not request.sources:
            return None
        query = ReachQuery(as_of=as_of, universe=tickers, sources=request.sources)
        view = await self._ask(REACH, query)
        if view is None:
            return None
        if view.sources:
            return _out_of_reach("sources", view.sources[0])
        unknown = [ticker for ticker in view.tickers if not ticker.is_known]
        field = "universe" if request.sell_now is None else "sell_now.ticker"
        field = "sell_all" if request.sell_all else field
        by_plan = requester == SCHEDULE or (request.study and not request.study.dry_run)
        by_plan = by_plan or bool(request.sell_all)
        if unknown and (not by_plan or len(view.tickers) == len(tickers)):
            return _out_of_reach(field, unknown[0])
        if tickers and len(view.tickers) == len(tickers):
            return _out_of_reach(field, view.tickers[0])
        # A job or a study whose universe has lost a share goes on with the others: its digest says
        # so. A sale of all positions goes on likewise.
        return None

    async def _of_the_pipelines(self, request: CycleRequest) -> Preflight:
        pipelines = tuple(
            pipeline
            for pipeline in staged(request, self._providers).pipelines
            if pipeline.provider != OFFLINE
            or (pipeline.models or pipeline.stages or pipeline.fallback)
        )
        if not pipelines:
            return Preflight()
        view = await self._ask(PROVIDERS, ProvidersQuery(pipelines=pipelines))
        if view is None:
            return Preflight(needs=SOMETHING)
        if not view.problems:
            return Preflight(needs=view.needs)
        problem = view.problems[0]
        text = f"pipeline {problem.pipeline}: {problem.message}"
        provider = next(
            pipeline.provider for pipeline in pipelines if pipeline.name == problem.pipeline
        )
        usable = [provider.name for provider in view.providers if provider.usable]
        near = nearest(provider, usable) if problem.code == "provider_unknown" else None
        asked = f"{text}{did_you_mean(near)}"
        answer = mistaken(problem.code, asked, "pipelines", provider, near, OFFLINE)
        return Preflight(answer, view.needs)

    async def _ask(self, row: Subject[Asked, Answered], query: Asked) -> Answered | None:
        """The answer; None where nobody who could gave one in time."""
        try:
            answer = await self._client.request(
                row.by(ORCHESTRATOR), encode(query), timeout=ANSWER_TIMEOUT_S
            )
            return decode(row.reply, answer.data)
        except (*UNANSWERED, MessageInvalid) as error:
            log.warning("orchestrator.unanswered", asked=row.what, error=type(error).__name__)
            return None


def tickers_of(request: CycleRequest) -> tuple[str, ...]:
    """The tickers that a request names: those to sell now, its universe, or that of the strategy
    it brings."""
    if request.by_hand:
        return tuple(sale.ticker for sale in request.by_hand)
    if request.universe is not None:
        return request.universe
    spec = request.strategy.spec if request.strategy else None
    return spec.universe if spec else ()


def _nobodys(account: str, known: Sequence[str]) -> RequestAnswer:
    """Nothing is held, so nothing can be sold, in an account that nobody has opened."""
    error = UnknownAccount(account, known)
    return mistaken(error.code, error.message, "account", account, nearest(account, known))


def _ahead(names: Sequence[str], clocks: Mapping[str, date], as_of: date) -> RequestAnswer | None:
    """Why no pipeline could begin: the account of each has seen a later session, and its clock
    never goes back. Where one could, the cycle begins, and the others fail by themselves."""
    if not all(name in clocks and clocks[name] > as_of for name in names):
        return None
    error = ClockBack(names[0], clocks[names[0]], as_of)
    day, clock = as_of.isoformat(), error.clock.isoformat()
    return mistaken(error.code, error.message, "as_of", day, clock)


def _out_of_reach(field: str, error: OutOfReach) -> RequestAnswer:
    return mistaken(error.code, error.message, field, error.name, error.nearest)
