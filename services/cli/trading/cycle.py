"""`deskbus cycle`: ask for cycles and look at them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.cycle import DECISION, STRATEGY, CycleStatus, RequestAnswer
from contracts.cycle_query import CyclesQuery, CycleView, Recording
from contracts.subjects.cycles import CYCLES
from libs.bus.client import Client
from libs.report import cycles
from libs.report.view import NoRows
from services.cli.render.described import show
from services.cli.shell import recordings
from services.cli.shell.list_options import filters, tell_older
from services.cli.shell.newest import LAST, CycleArgument, CycleOrLast, cycle_named, first_cycle
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode, NoSuchThing, WrongUsage
from services.cli.shell.request import build, cancelled, send, to_its_end
from services.cli.shell.request_options import DecisionOptions, KeyOption, WaitOption, takes
from services.cli.shell.running import asking, load_settings, read, with_desk, with_record
from services.cli.shell.terminal import aside, emit, out
from services.cli.trading import cycle_steps
from services.cli.trading.cycle_steps import (
    CycleSteps,
    end,
    steps_of,
    tell_begun,
    tell_story,
)

if TYPE_CHECKING:
    from services.replay import ReplayReport

app = group()


@app.command()
@takes(DecisionOptions)
def request(
    wish: DecisionOptions,
    kind: Annotated[
        str,
        typer.Option(help="decision, or exit (checks open positions and sells by the exit rules)."),
    ] = DECISION,
    account: Annotated[
        str | None,
        typer.Option(
            help="The account that the first pipeline trades; by default main, by rotation."
        ),
    ] = None,
    key: KeyOption = None,
    wait: WaitOption = False,
    json: JsonOption = False,
) -> None:
    """Request a cycle from the running desk. Without --wait, prints its id.

    Without --as-of it is of the newest session; an account never goes back to an earlier one.
    """
    rotation = load_settings().cycles.rotation
    asked = build(wish, kind=kind, account=account, key=key, rotation=rotation)
    if wait:
        end(with_desk(lambda client: to_its_end(client, asked)), json=json)
    tell_begun(with_desk(lambda client: send(client, asked)), "deskbus cycle show {}", json=json)


@app.command("show")
def show_cycle(
    cycle_id: CycleOrLast = LAST,
    evidence_of: Annotated[
        str | None,
        typer.Option("--evidence", help="Show everything on record about this ticker, with calls."),
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(help="Show one stage's answer and calls: quant, analyst, validate, ..."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show a cycle: candidates, picks, risk rules and orders, with the reasons.

    With --evidence or --stage, also the evidence: tool calls and results, indicators, headlines,
    reasoning. If no desk runs, it reads the record without starting one.
    """
    if evidence_of is not None and stage is not None:
        raise WrongUsage("--evidence and --stage cannot be combined", "use one of them")
    is_story = evidence_of is None and stage is None

    async def work(client: Client) -> tuple[CycleSteps, Sequence[Recording]]:
        view = await cycle_named(client, cycle_id)
        steps = await steps_of(client, view)
        if view.cycle_id is None or is_story:
            return steps, ()
        return steps, await recordings.fetch(client, view.cycle_id)

    steps, records = with_record(work)
    outcome = steps.tree
    if is_story:
        if outcome.view.kind == STRATEGY and not json:
            cycle_steps.tell(steps)
        else:
            tell_story(outcome, json=json)
        return
    from services.cli.render import evidence  # noqa: PLC0415 - a story alone needs none

    if evidence_of is not None:
        ticker = evidence_of.upper()
        about = evidence.of_ticker(outcome.view, records, ticker)
        show(about, evidence.ticker_screen(outcome.view, about, ticker), json=json)
    elif stage is not None:
        about = evidence.of_stage(outcome.nodes, records, stage)
        show(about, evidence.stage_screen(outcome.nodes, about, out().width), json=json)


@app.command("list")
@filters(CyclesQuery)
def list_cycles(query: CyclesQuery, json: JsonOption = False) -> None:
    """List cycles with their outcomes, newest first.

    Filters by account, provider or text search the newest 2,000 cycles.
    """
    page = read(CYCLES, query)
    chosen = query.model_dump(exclude_defaults=True, exclude={"before", "limit"})
    such = f"No cycle is {query.status}." if [*chosen] == ["status"] else ""
    empty = NoRows(such or "No such cycle.")
    if not chosen:
        empty = NoRows("No cycles yet:", todo=first_cycle())
    show(page.cycles, [cycles.listed(page.cycles, empty)], json=json)
    if page.cut:
        aside(f"searched: the newest {page.searched:,} of these cycles")
    tell_older("deskbus cycle list", query, page.before)


@app.command()
def cancel(
    cycle_id: CycleArgument,
    reason: Annotated[
        str, typer.Option(help="Reason, kept with the cycle.")
    ] = "cancelled by request",
    json: JsonOption = False,
) -> None:
    """Cancel a cycle. Refused once it is executing: orders cannot be recalled."""

    async def work(client: Client) -> RequestAnswer:
        full_id = (await cycle_named(client, cycle_id)).cycle_id
        if full_id is None:
            raise NoSuchThing(f"unknown cycle {cycle_id}")
        return await cancelled(client, full_id, reason)

    answer = with_desk(work)
    show([answer], [f"{answer.cycle_id} {answer.status}"], json=json)


@app.command()
def replay(
    cycle_id: CycleOrLast = LAST,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse if a plug-in has changed since (exit 4).")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Run a past cycle again from its record and compare; exit 1 if the decision differs.

    Every decision step runs again on its recorded calls. It calls no model, data source or plug-in,
    and writes nothing.
    """
    view, records = with_record(lambda client: _recorded(client, cycle_id))
    replayed = asking(_replay(view, records, strict=strict))
    if json:
        emit([replayed])
    else:
        recordings.tell(replayed)
    raise typer.Exit(ExitCode.OK if replayed.same else ExitCode.FAILED)


async def _recorded(client: Client, cycle_id: str) -> tuple[CycleView, Sequence[Recording]]:
    view = await cycle_named(client, cycle_id)
    if view.cycle_id is None or view.status is CycleStatus.RUNNING:
        raise CliProblem(f"cycle {view.cycle_id} is still running", "wait for it")
    return view, await recordings.fetch(client, view.cycle_id)


async def _replay(view: CycleView, records: Sequence[Recording], *, strict: bool) -> "ReplayReport":
    from services.replay import changed_plugins  # noqa: PLC0415 - loads every service
    from services.replay import replay as run_again  # noqa: PLC0415

    changed = changed_plugins(records) if strict else ()
    if changed:
        hint = "leave out --strict to replay with the recorded answers"
        raise CliProblem("; ".join(changed), hint, ExitCode.REJECTED)
    try:
        return await run_again(view, records, load_settings())
    except LookupError as error:
        raise CliProblem(f"cannot replay the cycle: {error}") from error
