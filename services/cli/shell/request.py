"""Ask for a cycle and see it through: build the request, send it, follow it to its end."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from uuid import UUID

from pydantic import ValidationError

from contracts.audit import Event, EventType
from contracts.constraints import ENFORCED
from contracts.cycle import (
    EXIT,
    TIMEOUT_S_DEFAULT,
    CancelCycle,
    CycleRequest,
    CycleStatus,
    RequestAnswer,
    Rotation,
)
from contracts.cycle_query import CycleQuery, CycleView
from contracts.message import MAIN_ACCOUNT, PAGE_MAX, Pipeline
from contracts.operation import OperationsQuery, OperationView
from contracts.strategy import StrategyWish
from contracts.subjects.cycles import CANCEL_CYCLE, CYCLE, REQUEST_CYCLE
from contracts.subjects.operations import OPERATIONS
from libs.bus.client import Client, DeskNotReachable
from libs.runtime import ids
from libs.runtime.errors import ClockBack
from libs.runtime.nearest import slip
from libs.runtime.wording import first_field
from services.cli.shell.invalid import day_of, invalid, typed
from services.cli.shell.problem import CliProblem, ExitCode

REQUESTER = "cli"
LOOK_EVERY_S = 2.0
"""How often the cycle itself is looked at: an event may be lost, the tables are not."""
UNANSWERED_MAX = 5
"""Looks without an answer before the desk counts as gone."""
GRACE_S = 30.0
"""Waited beyond the cycle's own time limit: the desk ends it, and remembers it, by itself."""
ASK_AGAIN_MAX = 3
"""Sendings of a request: the same key makes the second one harmless."""

ENDS = {
    CycleStatus.COMPLETED: ExitCode.OK,
    CycleStatus.RUNNING: ExitCode.OK,
    CycleStatus.FAILED: ExitCode.FAILED,
    CycleStatus.CANCELLED: ExitCode.FAILED,
    CycleStatus.REJECTED: ExitCode.REJECTED,
    CycleStatus.EXPIRED: ExitCode.REJECTED,
}
"""The exit code that a cycle's end means."""

NOT_THERE = {"not_found", "unknown_account"}
_PROVIDER = re.compile(r"^(?:(?P<name>[^=@]+)=)?(?P<provider>[^=@]+)(?:@(?P<account>[^=@]+))?$")


@dataclass(frozen=True)
class CycleOptions:
    """A person's input, not yet a request."""

    kind: str = "decision"
    as_of: str | None = None
    universe: Sequence[str] = ()
    sources: Sequence[str] = ()
    providers: Sequence[str] = ("rules",)
    account: str | None = None
    key: str | None = None
    timeout_s: float | None = None
    money: str | None = None
    tokens: int | None = None
    cost_usd: str | None = None
    approval_required: bool = False
    constraints: Sequence[str] = ()
    rotation: Sequence[str] = ()
    strategy: StrategyWish | None = None
    sell_now: Mapping[str, object] | None = None


def new_key() -> str:
    """An idempotency key that nobody has used."""
    return f"cli-{secrets.token_hex(8)}"


def build(wish: CycleOptions) -> CycleRequest:
    """The request. Raises `CliProblem` (usage) that names the option at fault."""
    budgets: dict[str, object] = {}
    if wish.money is not None:
        budgets["money"] = {"amount": _number("--max-money", wish.money)}
    if wish.tokens is not None:
        budgets["tokens"] = wish.tokens
    if wish.cost_usd is not None:
        budgets["cost_usd"] = _number("--max-cost", wish.cost_usd)
    fields: dict[str, object] = {} if wish.timeout_s is None else {"timeout_s": wish.timeout_s}
    if wish.approval_required:
        fields["approval_required"] = True
    if budgets:
        fields["budgets"] = budgets
    if wish.constraints:
        fields["constraints"] = _constraints(wish.constraints)
    if wish.sell_now is not None:
        fields["sell_now"] = wish.sell_now
    if wish.strategy is not None:
        fields["strategy"] = wish.strategy
    if wish.universe:
        fields["universe"] = tuple(_tickers(wish.universe))
    if wish.rotation and wish.kind != EXIT:
        fields["rotation"] = Rotation(account=MAIN_ACCOUNT, order=tuple(wish.rotation))
    if wish.sources:
        fields["sources"] = tuple(_sources(wish.sources))
    try:
        return CycleRequest.model_validate(
            {
                "idempotency_key": new_key() if wish.key is None else wish.key,
                "kind": wish.kind,
                "as_of": day_of("--as-of", wish.as_of),
                "pipelines": pipelines(wish.providers, wish.account),
                **fields,
            }
        )
    except ValidationError as error:
        raise invalid("request", error) from error


def _constraints(typed: Sequence[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for text in typed:
        name, is_pair, value = text.partition("=")
        key = name.strip().lower().replace("-", "_")
        if not is_pair or not key or not value.strip():
            raise CliProblem(
                ExitCode.USAGE,
                f"--constraint {text!r} is not valid",
                "write KEY=VALUE, for example --constraint max_positions=3",
            )
        versions[key] = value.strip()
    # The desk refuses it too; here it is told before `deskbus run` has started one.
    if mistyped := slip(versions, ENFORCED):
        name, near = mistyped
        raise CliProblem(
            ExitCode.USAGE,
            f"--constraint {name} would only be a note to the agents; did you mean {near}?",
            f"enforced constraints: {', '.join(ENFORCED)}",
        )
    return versions


def pipelines(providers: Sequence[str], account: str | None = None) -> Sequence[Pipeline]:
    """One pipeline a provider, with the account that was named: `account` is the first one's.

    Which one trades what where none was named is the request's to say.
    """
    chosen = []
    for number, text in enumerate(providers):
        match = _PROVIDER.match(text)
        if match is None:
            raise CliProblem(
                ExitCode.USAGE,
                f"--provider {text!r} is not valid",
                "write NAME, or PIPELINE=PROVIDER@ACCOUNT, for example --provider rules",
            )
        provider = match["provider"]
        name = match["name"] or provider
        named = match["account"] or (account if number == 0 else None)
        fields = {} if named is None else {"account": named}
        try:
            chosen.append(Pipeline(name=name, provider=provider, **fields))
        except ValidationError as error:
            is_account = match["account"] is None and first_field(error) == "account"
            raise invalid("--account" if is_account else "--provider", error) from error
    return chosen


def _listed(options: Sequence[str]) -> Sequence[str]:
    """`a,b` or several options: each name once."""
    names = (name.strip() for text in options for name in text.split(","))
    return list(dict.fromkeys(filter(None, names)))


def _sources(options: Sequence[str]) -> Sequence[str]:
    """An empty list would mean all sources: said by mistake, it must not pass."""
    names = _listed(options)
    if not names:
        raise CliProblem(
            ExitCode.USAGE,
            "--source is empty",
            "leave it out to use all sources, or write --source screener,news",
        )
    return names


def _tickers(options: Sequence[str]) -> Sequence[str]:
    """An empty universe is a mistake, not everything."""
    names = [name.upper() for name in _listed(options)]
    if not names:
        raise CliProblem(
            ExitCode.USAGE,
            "--universe is empty",
            "leave it out to let the sources propose, or write --universe AAPL,MSFT",
        )
    return list(dict.fromkeys(names))


def _number(option: str, text: str) -> Decimal:
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        raise CliProblem(
            ExitCode.USAGE, f"{option} must be an amount, e.g. 5000 (got {text!r})"
        ) from None
    if not number.is_finite():
        raise CliProblem(
            ExitCode.USAGE, f"{option} must be a finite amount, e.g. 5000 (got {text!r})"
        )
    return number


async def send(client: Client, request: CycleRequest) -> RequestAnswer:
    """Send until it is answered. Raises `CliProblem` where the desk says no."""
    for left in reversed(range(ASK_AGAIN_MAX)):
        try:
            answer = await client.ask(REQUEST_CYCLE, request)
        except DeskNotReachable:
            if not left:
                raise
        else:
            return accepted(answer)
    raise AssertionError("the last round returns or raises")


def accepted(answer: RequestAnswer) -> RequestAnswer:
    """The answer, where it is a yes."""
    if answer.outcome == "accepted":
        return answer
    code = ExitCode.NOT_FOUND if answer.code in NOT_THERE else ExitCode.REJECTED
    where = f" ({answer.field})" if answer.field and answer.field not in answer.message else ""
    hint = "`deskbus budget` shows what is left" if answer.code == "budget_exhausted" else ""
    if answer.suggestion is not None and answer.suggestion not in answer.message:
        hint = f"try {answer.suggestion}"
    if answer.code == ClockBack.code:
        hint = f"decide as of {answer.suggestion}, or for another account: --account test"
    raise CliProblem(code, f"{answer.message}{where} [{answer.code}]", hint)


async def cancelled(client: Client, cycle_id: UUID, reason: str) -> RequestAnswer:
    """Cancel a cycle; the desk's yes. Raises `CliProblem` where it says no."""
    answer = await client.ask(CANCEL_CYCLE, CancelCycle(cycle_id=cycle_id, reason=reason))
    return accepted(answer)


async def show(client: Client, cycle_id: str) -> CycleView:
    """The cycle with its contracts. Raises `CliProblem` (not found, or usage where it is no id)."""
    view = await client.ask(CYCLE, typed("cycle", CycleQuery, cycle_id=cycle_id))
    if not view.found:
        raise CliProblem(ExitCode.NOT_FOUND, view.message, "`deskbus cycle list` shows the newest")
    return view


@dataclass(frozen=True)
class CycleTree:
    """A cycle with its operation tree: all that its story is made of."""

    view: CycleView
    nodes: Sequence[OperationView] = ()


async def with_nodes(client: Client, view: CycleView) -> CycleTree:
    """The cycle with its operations and calls."""
    page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=view.cycle_id, limit=PAGE_MAX))
    return CycleTree(view, page.operations)


async def request_and_follow(
    client: Client, request: CycleRequest, heard: Callable[[Event], None]
) -> CycleView:
    """Send the request and wait for the cycle's end; `heard` is told every event meanwhile.

    While a proposal waits for a person, the time that it may wait is waited too. Raises
    `CliProblem`: rejected, or timed out (the cycle then goes on by itself).
    """
    cycle_id = ids.cycle_id(REQUESTER, request.idempotency_key)
    async with client.events(cycle_id) as events:
        await send(client, request)
        return await follow(client, cycle_id, events, heard)


async def follow(
    client: Client,
    cycle_id: UUID,
    events: AsyncIterator[Event],
    heard: Callable[[Event], None],
) -> CycleView:
    """Wait for the end of a cycle, for as long as it may take, as `request_and_follow` does."""
    timeout_s = (await show(client, str(cycle_id))).timeout_s or TIMEOUT_S_DEFAULT
    try:
        async with asyncio.timeout(timeout_s + GRACE_S) as limit:
            return await _ended(client, cycle_id, events, _patient(limit, heard))
    except TimeoutError:
        raise CliProblem(
            ExitCode.TIMED_OUT,
            f"cycle {cycle_id} is still running after {timeout_s + GRACE_S:g} s",
            f"the cycle continues: deskbus cycle show {cycle_id}",
        ) from None


def _patient(limit: asyncio.Timeout, heard: Callable[[Event], None]) -> Callable[[Event], None]:
    """Hear events; where one asks a person, wait that much longer."""

    def hear(event: Event) -> None:
        until = limit.when()
        if event.type is EventType.APPROVAL_REQUESTED and until is not None:
            limit.reschedule(until + float(str(event.data.get("time_limit_s", 0))))
        heard(event)

    return hear


async def _ended(
    client: Client, cycle_id: UUID, events: AsyncIterator[Event], heard: Callable[[Event], None]
) -> CycleView:
    over = asyncio.Event()
    listening = asyncio.create_task(_listen(events, heard, over))
    unanswered = 0
    try:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), LOOK_EVERY_S)
            try:
                view = await show(client, str(cycle_id))
            except DeskNotReachable:
                unanswered += 1
                if unanswered >= UNANSWERED_MAX:
                    raise CliProblem(
                        ExitCode.NOT_REACHABLE,
                        f"the desk stopped answering; cycle {cycle_id} has not ended",
                        f"it continues when the desk is up: deskbus cycle show {cycle_id}",
                    ) from None
                continue
            unanswered = 0
            if view.status is not CycleStatus.RUNNING:
                return view
    finally:
        listening.cancel()


async def _listen(
    events: AsyncIterator[Event], heard: Callable[[Event], None], over: asyncio.Event
) -> None:
    async for event in events:
        heard(event)
        if event.type is EventType.CYCLE_ENDED:
            over.set()
