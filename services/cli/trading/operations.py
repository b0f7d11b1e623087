"""`deskbus operations`: what was done, down to single calls."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import orjson
import typer
from pydantic import Field, JsonValue, ValidationError
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from contracts.cycle_query import CycleQuery
from contracts.message import PAGE_MAX
from contracts.operation import (
    CallKind,
    ChangedLine,
    JournalEntry,
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    OperationStatus,
    OperationView,
    Sent,
    SentQuery,
)
from contracts.subjects.cycles import CYCLE
from contracts.subjects.operations import OPERATION, OPERATIONS, SENT
from libs.bus.client import Client
from libs.facts import amounts
from libs.report.calls import sentence
from libs.report.calls.sent import described as difference_table
from libs.report.operations import CALLS, WITHIN_A_CYCLE, listed, took
from libs.report.operations import tree as draw
from libs.report.tones import MARKS
from libs.report.view import NoRows
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.cli.render.described import described, show
from services.cli.shell.list_options import (
    AccountFilter,
    BeforeOption,
    SinceOption,
    TextOption,
    UntilOption,
    query_of,
    tell_more,
)
from services.cli.shell.newest import LAST, CycleOrLast, cycle_named, first_cycle
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import (
    STATUS_STYLES,
    emit,
    err,
    out,
    write,
)
from services.cli.trading import cycle_steps
from services.cli.trading.cycle_steps import CycleSteps, steps_of

LISTED = "deskbus operations list"
SHORT_LINES = 14
"""Of input and output, unless all is asked for."""


OperationArgument = Annotated[
    str,
    typer.Argument(
        help="An operation's or a cycle's id, or its first characters; `last` is the newest cycle."
    ),
]


class Whole(OperationDetail):
    """An operation as JSON, with what its models were sent by the index of the call."""

    sent: dict[int, Sent] = Field(default_factory=dict)


app = group()


@app.callback()
def operations() -> None:
    """Show a cycle's steps, down to single calls."""


@app.command("list")
def list_operations(
    cycle: Annotated[
        str | None, typer.Option(help="Only this cycle's, calls included: an id, or `last`.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="Only this type: cycle, pipeline, operation, model, tool, or a step's name.",
        ),
    ] = None,
    status: Annotated[
        OperationStatus | None, typer.Option(help="Only operations with this status.")
    ] = None,
    account: AccountFilter = None,
    since: SinceOption = None,
    until: UntilOption = None,
    text: TextOption = None,
    before: BeforeOption = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 50,
    json: JsonOption = False,
) -> None:
    """List operations, the newest first; those of one cycle in order."""
    settings = load_settings()
    like = {"account": account, "since": since, "until": until, "text": text}
    filters = {"type": kind, "status": status, **like}
    if cycle and (any(like.values()) or before):
        raise CliProblem(ExitCode.USAGE, "--cycle takes no other filter than --type and --status")
    query = query_of(OperationsQuery, **filters, before=before, limit=limit)

    async def work() -> OperationsPage:
        async with reading_client(settings) as client:
            full_id = str((await cycle_named(client, settings, cycle)).cycle_id) if cycle else None
            return await client.ask(OPERATIONS, query.model_copy(update={"cycle_id": full_id}))

    page = asking(work())
    if cycle is None and kind in WITHIN_A_CYCLE:
        how = f"deskbus operations list --cycle CYCLE --type {kind}"
        empty = NoRows(f"No {kind} is listed here; a cycle lists its own:", todo=how)
    elif any(filters.values()):
        empty = NoRows("No such operation; completed ones are searched in the newest 2,000 cycles.")
    else:
        empty = NoRows("No operations yet:", todo=first_cycle(settings))
    show(page.operations, [listed(page.operations, empty)], json=json)
    tell_more("deskbus operations list", {**filters, "limit": limit}, page.before)


@app.command("show")
def show_operation(
    op_id: OperationArgument,
    full: Annotated[
        bool, typer.Option("--full", help="All of its input and output, and of every call.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show one operation: what it gave, its calls, and how its command begins. Of a cycle: its
    steps."""
    settings = load_settings()

    async def work() -> tuple[OperationDetail, dict[int, Sent]] | CycleSteps:
        async with reading_client(settings) as client:
            detail = await _detail(client, settings, op_id)
            if isinstance(detail, CycleSteps):
                return detail
            whole = full or json
            return detail, await _sent(client, detail) if whole else {}

    answer = asking(work())
    if isinstance(answer, CycleSteps):
        _tell_cycle(answer, json=json)
        return
    detail, sent = answer
    if detail.operation is None:
        raise CliProblem(ExitCode.NOT_FOUND, detail.message, LISTED)
    if json:
        emit([Whole(**dict(detail), sent=sent)])
    else:
        _show(detail, detail.operation, sent, full=full)


@app.command()
def status(
    op_id: OperationArgument,
    json: JsonOption = False,
) -> None:
    """Show how an operation stands and what it gave; of a cycle its steps, and of a strategy cycle
    its gates, verdict and file."""
    settings = load_settings()

    async def work() -> OperationDetail | CycleSteps:
        async with reading_client(settings) as client:
            return await _detail(client, settings, op_id)

    answer = asking(work())
    if isinstance(answer, CycleSteps):
        _tell_cycle(answer, json=json)
    elif answer.operation is None:
        raise CliProblem(ExitCode.NOT_FOUND, answer.message, LISTED)
    elif json:
        emit([answer.operation])
    else:
        _tell_head(answer.operation)
        _section("Result", answer.result, SHORT_LINES)
        _tell_full(answer.operation)


async def _detail(client: Client, settings: Settings, op_id: str) -> OperationDetail | CycleSteps:
    """The operation, or the cycle, with this id. Raises `CliProblem` where there is none."""
    if op_id.lower() == LAST:
        return await steps_of(client, await cycle_named(client, settings, op_id))
    try:
        query = OperationQuery(op_id=op_id)
    except ValidationError:
        raise CliProblem(ExitCode.USAGE, ids.no_id("operation", op_id), LISTED) from None
    detail = await client.ask(OPERATION, query)
    if detail.found:
        return detail
    view = await client.ask(CYCLE, CycleQuery(cycle_id=op_id))
    if not view.found:
        raise CliProblem(ExitCode.NOT_FOUND, detail.message, LISTED)
    return await steps_of(client, view)


def _tell_cycle(steps: CycleSteps, *, json: bool) -> None:
    if json:
        emit(steps.tree.nodes)
    else:
        cycle_steps.tell(steps)


async def _sent(client: Client, detail: OperationDetail) -> dict[int, Sent]:
    """The texts that the models of an operation were sent, by the index of the call."""
    if detail.operation is None:
        return {}
    op_id = str(detail.operation.op_id)
    models = [entry.index for entry in detail.journal if entry.kind is CallKind.MODEL]
    return {index: await _whole(client, op_id, index) for index in models}


async def _whole(client: Client, op_id: str, index: int) -> Sent:
    pages = [await client.ask(SENT, SentQuery(op_id=op_id, index=index))]
    while pages[-1].more:
        first = sum(len(page.texts) + len(_changed_lines(page)) for page in pages)
        pages.append(await client.ask(SENT, SentQuery(op_id=op_id, index=index, first=first)))
    difference = pages[0].difference and pages[0].difference.model_copy(
        update={"lines": tuple(line for page in pages for line in _changed_lines(page))}
    )
    texts = tuple(text for page in pages for text in page.texts)
    return pages[0].model_copy(update={"texts": texts, "more": False, "difference": difference})


def _changed_lines(page: Sent) -> Sequence[ChangedLine]:
    return page.difference.lines if page.difference is not None else ()


def _show(
    detail: OperationDetail, node: OperationView, sent: Mapping[int, Sent], *, full: bool
) -> None:
    _tell_head(node)
    lines_max = None if full else SHORT_LINES
    _section("Result", detail.result, lines_max)
    if detail.journal:
        write(Text(f"\nCalls ({len(detail.journal)})", style="cyan"), out())
        for entry in detail.journal:
            bodies = full and entry.index not in sent
            write(Padding(_call(entry, full=bodies), (0, 0, 0, 2)), out())
            if entry.index in sent:
                write(Padding(_texts(sent[entry.index]), (0, 0, 0, 4)), out())
    _section("Command", detail.command, lines_max)
    if not full:
        _tell_full(node)


def _tell_full(node: OperationView) -> None:
    more = f"all of it: deskbus operations show {amounts.short(node.op_id)} --full"
    err().print(f"\n{more}", style="dim")


def _tell_head(node: OperationView) -> None:
    title = Text.assemble(
        (f"{node.state}/{node.name}", "bold"),
        f"  {node.service}  ",
        (f"{MARKS[node.status]} {node.status.value}", STATUS_STYLES[node.status]),
        f"  {took(node)}  {amounts.cost(node.tokens, node.cost_usd)}",
    )
    write(title, out())
    under = (
        f"operation {node.op_id} · cycle {node.cycle_id} · pipeline {node.pipeline} · "
        f"attempt {node.attempt} · epoch {node.epoch}"
    )
    write(Text(under, style="dim"), out())
    if node.tokens:
        write(Text(f"tokens: {amounts.sorts(node.usage)}", style="dim"), out())
    if node.error_message:
        write(Text(amounts.plain(node.error_message), style="red"), out())


def _section(title: str, value: JsonValue, lines_max: int | None) -> None:
    if value is not None:
        write(Text(f"\n{title}", style="cyan"), out())
        write(Padding(Text(_pretty(value, lines_max)), (0, 0, 0, 2)), out())


def _call(entry: JournalEntry, *, full: bool) -> Text:
    usage = entry.usage
    spent = f"  {amounts.sorts_and_cost(usage)}" if usage.tokens else ""
    request_and_reply = (
        f"\n    asked  {_line(entry.request)}\n    got    {_line(entry.reply)}" if full else ""
    )
    return Text.assemble(
        (f"{entry.index:>3} {entry.kind.value} {sentence.of_entry(entry)}", "bold"),
        (f"  {amounts.duration(entry.duration_ms / 1000)}{spent}", "dim"),
        request_and_reply,
    )


def _texts(sent: Sent) -> RenderableType:
    """The texts of a call, each under whose turn it is, and what differs from the one before."""
    parts: list[RenderableType] = []
    for one in sent.texts:
        head = f"{one.role} {one.about}".rstrip()
        parts.append(Text(amounts.plain(head), "cyan"))
        if one.text:
            parts.append(Padding(Text(amounts.plain(one.text)), (0, 0, 0, 2)))
        if one.note:
            parts.append(Padding(Text(amounts.plain(one.note), "dim"), (0, 0, 0, 2)))
    return Group(*parts, described(difference_table(sent.difference), out()))


def _line(value: JsonValue) -> str:
    return amounts.plain(orjson.dumps(value).decode())


def _pretty(value: JsonValue, lines_max: int | None) -> str:
    """As people read it; the first lines where there are more than `lines_max`, if that is set."""
    lines = amounts.plain(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()).splitlines()
    more = 0 if lines_max is None else len(lines) - lines_max
    left_out = [f"… {more:,} more lines"] if more > 0 else []
    return "\n".join([*lines[:lines_max], *left_out])


@app.command()
def tree(
    cycle_id: CycleOrLast = LAST,
    calls: Annotated[
        bool, typer.Option("--calls/--no-calls", help="Include single model, tool and read calls.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Draw a cycle's operations as a tree, with time, tokens and cost."""
    settings = load_settings()
    nodes = asking(_tree(settings, cycle_id))
    wanted = [n for n in nodes if calls or n.type not in CALLS]
    show(wanted, [draw(wanted)], json=json)
    if sys.stdout.isatty() and not json:
        err().print("deskbus operations show ID shows one with all its calls", style="dim")


async def _tree(settings: Settings, cycle_id: str) -> tuple[OperationView, ...]:
    async with reading_client(settings) as client:
        full_id = (await cycle_named(client, settings, cycle_id)).cycle_id
        query = OperationsQuery(cycle_id=full_id, limit=PAGE_MAX)
        page = await client.ask(OPERATIONS, query)
        return page.operations
