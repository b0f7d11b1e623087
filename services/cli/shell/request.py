"""Ask for a cycle and see it through: build the request, send it, follow it to its end."""

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import ValidationError

from contracts.audit import Event, EventType
from contracts.constraints import ENFORCED
from contracts.cycle import (
    DECISION,
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
from contracts.subjects.cycles import CANCEL_CYCLE, CYCLE, REQUEST_CYCLE
from contracts.subjects.operations import OPERATIONS
from libs.bus.client import Client, DeskNotReachable
from libs.runtime import ids
from libs.runtime.errors import ClockBack
from libs.runtime.nearest import slip
from libs.runtime.wording import first_field
from services.cli.shell.invalid import amount_of, day_of, invalid, typed
from services.cli.shell.problem import CliProblem, ExitCode, NoSuchThing, WrongUsage, refusal
from services.cli.shell.progress import CycleProgress
from services.cli.shell.request_options import DecisionOptions
from services.cli.shell.terminal import err

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

_PROVIDER = re.compile(r"^(?:(?P<name>[^=@]+)=)?(?P<provider>[^=@]+)(?:@(?P<account>[^=@]+))?$")


def build(
    wish: DecisionOptions,
    *,
    kind: str = DECISION,
    account: str | None = None,
    key: str | None = None,
    rotation: Sequence[str] = (),
    **others: object,
) -> CycleRequest:
    """The request that was typed, with `others` of its fields. Raises `CliProblem` (usage) that
    names the option at fault."""
    money, cost = wish.max_money, wish.max_cost
    budgets = {
        "money": None if money is None else {"amount": amount_of("--max-money", money)},
        "tokens": wish.max_tokens,
        "cost_usd": None if cost is None else amount_of("--max-cost", cost),
    }
    turns = Rotation(account=MAIN_ACCOUNT, order=tuple(rotation)) if rotation else None
    tickers = [name.upper() for name in wish.universe or ()]
    fields = {
        "idempotency_key": f"cli-{secrets.token_hex(8)}" if key is None else key,
        "kind": kind,
        "as_of": day_of("--as-of", wish.as_of),
        "pipelines": pipelines(wish.provider or ("rules",), account),
        "timeout_s": wish.timeout_s,
        "approval_required": wish.approval,
        "budgets": {name: limit for name, limit in budgets.items() if limit is not None},
        "constraints": _constraints(wish.constraint or ()),
        "universe": listed("--universe", tickers, "use the sources' candidates") or None,
        "sources": listed("--source", wish.source or (), "use all sources"),
        "rotation": None if kind == EXIT else turns,
        **others,
    }
    try:
        return CycleRequest.model_validate(fields)
    except ValidationError as error:
        raise invalid("request", error) from error


def _constraints(typed: Sequence[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for text in typed:
        name, is_pair, value = text.partition("=")
        key = name.strip().lower().replace("-", "_")
        if not is_pair or not key or not value.strip():
            raise WrongUsage(
                f"--constraint {text!r} is not valid",
                "write KEY=VALUE, for example --constraint max_positions=3",
            )
        versions[key] = value.strip()
    # The desk refuses it too; here it is told before `deskbus run` has started one.
    if mistyped := slip(versions, ENFORCED):
        name, near = mistyped
        raise WrongUsage(
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
            raise WrongUsage(
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


def listed(option: str, typed: Sequence[str], without: str) -> tuple[str, ...]:
    """`a,b` or several options: each name once. One that names nothing is a mistake: an empty list
    would mean all."""
    names = (name.strip() for text in typed for name in text.split(","))
    once = tuple(dict.fromkeys(filter(None, names)))
    if typed and not once:
        raise WrongUsage(f"{option} is empty", f"leave it out to {without}, or write {option} A,B")
    return once


async def send(client: Client, request: CycleRequest) -> RequestAnswer:
    """Send until it is answered. Raises `CliProblem` where the desk says no."""
    for _ in range(ASK_AGAIN_MAX - 1):
        with contextlib.suppress(DeskNotReachable):
            return accepted(await client.ask(REQUEST_CYCLE, request))
    return accepted(await client.ask(REQUEST_CYCLE, request))


def accepted(answer: RequestAnswer) -> RequestAnswer:
    """The answer, where it is a yes."""
    if answer.outcome == "accepted":
        return answer
    where = f" ({answer.field})" if answer.field and answer.field not in answer.message else ""
    hint = "`deskbus budget` shows what is left" if answer.code == "budget_exhausted" else ""
    if answer.suggestion is not None and answer.suggestion not in answer.message:
        hint = f"try {answer.suggestion}"
    if answer.code == ClockBack.code:
        hint = f"decide as of {answer.suggestion}, or for another account: --account test"
    raise refusal(answer.code, f"{answer.message}{where} [{answer.code}]", hint)


async def cancelled(client: Client, cycle_id: UUID, reason: str) -> RequestAnswer:
    """Cancel a cycle; the desk's yes. Raises `CliProblem` where it says no."""
    answer = await client.ask(CANCEL_CYCLE, CancelCycle(cycle_id=cycle_id, reason=reason))
    return accepted(answer)


async def show(client: Client, cycle_id: str) -> CycleView:
    """The cycle with its contracts. Raises `CliProblem` (not found, or usage where it is no id)."""
    view = await client.ask(CYCLE, typed("cycle", CycleQuery, cycle_id=cycle_id))
    if not view.found:
        raise NoSuchThing(view.message, "`deskbus cycle list` shows the newest")
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


async def to_its_end(client: Client, request: CycleRequest) -> CycleTree:
    """Send the request, show how far it is, and give the cycle at its end."""
    with CycleProgress(err()) as progress:
        view = await request_and_follow(client, request, progress.heard)
    return await with_nodes(client, view)


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
            f"cycle {cycle_id} is still running after {timeout_s + GRACE_S:g} s",
            f"the cycle continues: deskbus cycle show {cycle_id}",
            ExitCode.TIMED_OUT,
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
                        f"the desk stopped answering; cycle {cycle_id} has not ended",
                        f"it continues when the desk is up: deskbus cycle show {cycle_id}",
                        ExitCode.NOT_REACHABLE,
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
