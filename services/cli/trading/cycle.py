"""`deskbus cycle`: ask for cycles and look at them."""

from collections.abc import Sequence
from typing import Annotated

import typer

from contracts.cycle import STRATEGY, CycleStatus, RequestAnswer
from contracts.cycle_query import CycleSort, CyclesQuery, Recording
from contracts.subjects.cycles import CYCLES
from libs.report import cycles
from libs.report.view import NoRows
from libs.runtime.settings import Settings
from services.cli.render.described import show
from services.cli.shell import recordings
from services.cli.shell.list_options import (
    AccountFilter,
    BeforeOption,
    SinceOption,
    TextOption,
    UntilOption,
    query_of,
    tell_more,
)
from services.cli.shell.newest import (
    LAST,
    CycleArgument,
    CycleOrLast,
    cycle_named,
    first_cycle,
)
from services.cli.shell.options import ApprovalOption, JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.progress import CycleProgress
from services.cli.shell.recordings import Differs, Replayed
from services.cli.shell.request import (
    ENDS,
    CycleOptions,
    CycleTree,
    build,
    cancelled,
    request_and_follow,
    send,
    with_nodes,
)
from services.cli.shell.request_options import (
    AsOfOption,
    ConstraintOption,
    MaxCostOption,
    MaxMoneyOption,
    MaxTokensOption,
    ProviderOption,
    SourceOption,
    TimeoutOption,
    UniverseOption,
)
from services.cli.shell.running import asking, desk_client, load_settings, read, reading_client
from services.cli.shell.terminal import emit, err, out
from services.cli.trading import cycle_steps
from services.cli.trading.cycle_steps import CycleSteps, steps_of

app = group()


@app.callback()
def cycle() -> None:
    """Request, show, list, cancel and replay cycles."""


@app.command()
def request(
    kind: Annotated[
        str,
        typer.Option(help="decision, or exit (checks open positions and sells by the exit rules)."),
    ] = "decision",
    as_of: AsOfOption = None,
    universe: UniverseOption = None,
    source: SourceOption = None,
    provider: ProviderOption = None,
    account: Annotated[
        str | None,
        typer.Option(
            help="The account that the first pipeline trades; by default main, by rotation."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="Idempotency key: repeating the same request with it starts nothing new."
        ),
    ] = None,
    timeout_s: TimeoutOption = None,
    constraint: ConstraintOption = None,
    max_money: MaxMoneyOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    approval: ApprovalOption = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the cycle to end, then show it.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Request a cycle from the running desk. Without --wait, prints its id."""
    settings = load_settings()
    wish = CycleOptions(
        rotation=settings.cycles.rotation,
        kind=kind,
        as_of=as_of,
        universe=universe if universe is not None else (),
        sources=source or (),
        providers=provider or ("rules",),
        account=account,
        key=key,
        timeout_s=timeout_s,
        constraints=constraint or (),
        money=max_money,
        tokens=max_tokens,
        cost_usd=max_cost,
        approval_required=approval,
    )
    if wait:
        outcome = asking(_request_and_wait(settings, wish))
        _tell(outcome, json=json)
        raise typer.Exit(ENDS[outcome.view.status or CycleStatus.RUNNING])
    answer = asking(_request(settings, wish))
    if json:
        emit([answer])
    else:
        out().print(str(answer.cycle_id))
        err().print(f"{answer.status}: deskbus cycle show {answer.cycle_id}", style="dim")


async def _request(settings: Settings, wish: CycleOptions) -> RequestAnswer:
    cycle_request = build(wish)
    async with desk_client(settings) as client:
        return await send(client, cycle_request)


async def _request_and_wait(settings: Settings, wish: CycleOptions) -> CycleTree:
    cycle_request = build(wish)
    async with desk_client(settings) as client:
        with CycleProgress(err()) as progress:
            view = await request_and_follow(client, cycle_request, progress.heard)
        return await with_nodes(client, view)


def _tell(outcome: CycleTree, *, json: bool) -> None:
    if json:
        emit([outcome.view])
    else:
        from services.cli.render import story  # noqa: PLC0415 - lists of cycles need none

        story.tell(outcome.view, out(), outcome.nodes)


@app.command("show")
def show_cycle(
    cycle_id: CycleOrLast = LAST,
    evidence_of: Annotated[
        str | None,
        typer.Option("--evidence", help="Everything on record about this ticker, calls included."),
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(help="One stage's answer and calls: quant, analyst, validate, ..."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Tell a cycle's story: what was looked at, wanted, allowed and ordered, and why.

    With --evidence or --stage, what it stands on: tool calls with their answers, indicators,
    headlines, reasoning. Where no desk runs, the record is read without starting one.
    """
    settings = load_settings()
    if evidence_of is not None and stage is not None:
        raise CliProblem(
            ExitCode.USAGE, "--evidence and --stage cannot be combined", "use one of them"
        )

    async def work() -> tuple[CycleSteps, Sequence[Recording]]:
        async with reading_client(settings) as client:
            view = await cycle_named(client, settings, cycle_id)
            steps = await steps_of(client, view)
            if view.cycle_id is None or (evidence_of is None and stage is None):
                return steps, ()
            return steps, await recordings.fetch(client, view.cycle_id)

    steps, records = asking(work())
    outcome = steps.tree
    if evidence_of is None and stage is None:
        if outcome.view.kind == STRATEGY and not json:
            cycle_steps.tell(steps)
        else:
            _tell(outcome, json=json)
        return
    from services.cli.render import evidence  # noqa: PLC0415 - a story alone needs none

    if evidence_of is not None:
        ticker = evidence_of.upper()
        about = evidence.of_ticker(outcome.view, records, ticker)
        show(about, evidence.ticker_screen(outcome.view, about, ticker, out().width), json=json)
    elif stage is not None:
        about = evidence.of_stage(outcome.nodes, records, stage)
        show(about, evidence.stage_screen(outcome.nodes, about, out().width), json=json)


@app.command("list")
def list_cycles(
    status: Annotated[
        CycleStatus | None, typer.Option(help="Only cycles with this status.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only cycles of this kind.")] = None,
    account: AccountFilter = None,
    provider: Annotated[
        str | None, typer.Option(help="Only cycles with a pipeline of this provider.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    text: TextOption = None,
    sort: Annotated[
        CycleSort, typer.Option(help="Sort by this; any but started sorts the newest 2,000.")
    ] = CycleSort.STARTED,
    ascending: Annotated[bool, typer.Option("--ascending", help="Smallest first.")] = False,
    before: BeforeOption = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 20,
    json: JsonOption = False,
) -> None:
    """List cycles with what came of each, the newest first.

    What has no index, an account, a provider or a text, is searched for in the newest 2,000.
    """
    filters = {
        "status": status,
        "kind": kind,
        "account": account,
        "provider": provider,
        "since": since,
        "until": until,
        "text": text,
        "sort": None if sort is CycleSort.STARTED else sort,
        "ascending": ascending,
    }
    query = query_of(CyclesQuery, **{**filters, "sort": sort, "before": before, "limit": limit})

    page = read(CYCLES, query)
    such = f"No cycle is {status}." if list(filter(filters.get, filters)) == ["status"] else ""
    empty = NoRows(such or "No cycle is like that.")
    if not any(filters.values()):
        empty = NoRows("No cycles yet:", todo=first_cycle(load_settings()))
    show(page.cycles, [cycles.listed(page.cycles, empty)], json=json)
    if page.cut:
        err().print(f"searched: the newest {page.searched:,} cycles of these", style="dim")
    tell_more("deskbus cycle list", {**filters, "limit": limit}, page.before)


@app.command()
def cancel(
    cycle_id: CycleArgument,
    reason: Annotated[str, typer.Option(help="Kept with the cycle.")] = "cancelled by request",
    json: JsonOption = False,
) -> None:
    """Cancel a cycle. Refused once it is executing: orders cannot be recalled."""
    settings = load_settings()

    async def work() -> RequestAnswer:
        async with desk_client(settings) as client:
            full_id = (await cycle_named(client, settings, cycle_id)).cycle_id
            if full_id is None:
                raise CliProblem(ExitCode.NOT_FOUND, f"no cycle has the id {cycle_id}")
            return await cancelled(client, full_id, reason)

    answer = asking(work())
    if json:
        emit([answer])
    else:
        out().print(f"{answer.cycle_id} {answer.status}")


@app.command()
def replay(cycle_id: CycleOrLast = LAST, json: JsonOption = False) -> None:
    """Run a past cycle again from its record and compare: exit 1 where the decision differs.

    Every thinking step runs again on its recorded calls. No model and no data is asked, and
    nothing is written.
    """
    settings = load_settings()
    replayed = asking(_replay(settings, cycle_id))
    if json:
        emit([replayed])
    else:
        recordings.tell(replayed)
    raise typer.Exit(ExitCode.OK if replayed.same else ExitCode.FAILED)


async def _replay(settings: Settings, cycle_id: str) -> Replayed:
    from services.replay import replay as run_again  # noqa: PLC0415 - loads every service

    async with reading_client(settings) as client:
        view = await cycle_named(client, settings, cycle_id)
        if view.cycle_id is None or view.status is CycleStatus.RUNNING:
            raise CliProblem(
                ExitCode.FAILED, f"cycle {view.cycle_id} is still running", "wait for it"
            )
        records = await recordings.fetch(client, view.cycle_id)
    try:
        report = await run_again(view, records, settings)
    except LookupError as error:
        raise CliProblem(ExitCode.FAILED, f"cannot replay the cycle: {error}") from error
    return Replayed(
        cycle_id=report.cycle_id,
        status=report.status,
        same=report.same,
        operations=report.operations,
        calls=report.calls,
        from_record=report.from_record,
        differences=tuple(
            Differs(op_id=difference.op_id, step=difference.step, what=difference.what)
            for difference in report.differences
        ),
    )
