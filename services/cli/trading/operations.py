"""`deskbus operations`: what was done, down to single calls."""

import sys
from collections.abc import Iterable, Sequence
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
from libs.report.operations import CALLS, WITHIN_A_CYCLE, listed
from libs.report.operations import tree as draw
from libs.report.view import NoRows
from libs.runtime import ids
from services.cli.render.described import described, show
from services.cli.render.operation_head import head_of
from services.cli.shell.list_options import filters, tell_older
from services.cli.shell.newest import LAST, CycleOrLast, cycle_named, first_cycle
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import NoSuchThing, WrongUsage
from services.cli.shell.running import with_record
from services.cli.shell.terminal import aside, emit, out
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

    @property
    def node(self) -> OperationView:
        """The operation, which is there."""
        if self.operation is None:
            raise AssertionError("an operation that was found is there")
        return self.operation


app = group()


@app.command("list")
@filters(OperationsQuery, "cycle_id")
def list_operations(
    query: OperationsQuery,
    cycle: Annotated[
        str | None, typer.Option(help="Only this cycle's, calls included: an id, or `last`.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List operations, newest first; those of one cycle in order."""
    chosen = query.model_dump(exclude_defaults=True, exclude={"limit"})
    if cycle and {*chosen} - {"type", "status"}:
        raise WrongUsage("--cycle can only be combined with --type and --status")

    async def work(client: Client) -> OperationsPage:
        full_id = str((await cycle_named(client, cycle)).cycle_id) if cycle else None
        return await client.ask(OPERATIONS, query.model_copy(update={"cycle_id": full_id}))

    page = with_record(work)
    if cycle is None and query.type in WITHIN_A_CYCLE:
        how = f"deskbus operations list --cycle CYCLE --type {query.type}"
        empty = NoRows(f"No {query.type} is in this list; see the cycle's own list:", todo=how)
    elif chosen:
        empty = NoRows("No such operation; completed ones are searched in the newest 2,000 cycles.")
    else:
        empty = NoRows("No operations yet:", todo=first_cycle())
    show(page.operations, [listed(page.operations, empty)], json=json)
    tell_older(LISTED, query, page.before)


@app.command("show")
def show_operation(
    op_id: OperationArgument,
    full: Annotated[
        bool, typer.Option("--full", help="Show all input and output, with every call.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show one operation: its result, its calls and the start of its command. For a cycle: its
    steps."""
    whole = _looked_up(op_id, with_texts=full or json, json=json)
    if whole is not None:
        show([whole], _screen(whole, full=full), json=json)
        if not full and not json:
            _tell_full(whole.node)


@app.command()
def status(
    op_id: OperationArgument,
    json: JsonOption = False,
) -> None:
    """Show how an operation stands and what it gave; of a cycle its steps, and of a strategy cycle
    its gates, verdict and file."""
    whole = _looked_up(op_id, with_texts=False, json=json)
    if whole is not None:
        result = _section("Result", whole.result, SHORT_LINES)
        show([whole.node], [*head_of(whole.node), *result], json=json)
        if not json:
            _tell_full(whole.node)


def _looked_up(op_id: str, *, with_texts: bool, json: bool) -> Whole | None:
    """The operation; None for a cycle, whose steps are printed. Raises `CliProblem` where there is
    neither."""

    async def work(client: Client) -> Whole | CycleSteps:
        if op_id.lower() == LAST:
            return await steps_of(client, await cycle_named(client, op_id))
        try:
            query = OperationQuery(op_id=op_id)
        except ValidationError:
            raise WrongUsage(ids.no_id("operation", op_id), LISTED) from None
        detail = await client.ask(OPERATION, query)
        if detail.found and detail.operation is not None:
            return Whole(**dict(detail), sent=await _sent(client, detail) if with_texts else {})
        view = await client.ask(CYCLE, CycleQuery(cycle_id=op_id))
        if not view.found:
            raise NoSuchThing(detail.message, LISTED)
        return await steps_of(client, view)

    answer = with_record(work)
    if isinstance(answer, Whole):
        return answer
    if json:
        emit(answer.tree.nodes)
    else:
        cycle_steps.tell(answer)
    return None


async def _sent(client: Client, detail: OperationDetail) -> dict[int, Sent]:
    """The texts that the models of an operation were sent, by the index of the call."""
    models = [entry.index for entry in detail.journal if entry.kind is CallKind.MODEL]
    op_id = "" if detail.operation is None else str(detail.operation.op_id)
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


def _screen(whole: Whole, *, full: bool) -> Iterable[RenderableType]:
    lines_max = None if full else SHORT_LINES
    yield from head_of(whole.node)
    yield from _section("Result", whole.result, lines_max)
    if whole.journal:
        yield Text(f"\nCalls ({len(whole.journal)})", "cyan")
    for entry in whole.journal:
        sent = whole.sent.get(entry.index) if full else None
        yield Padding(_call(entry, full=full and sent is None), (0, 0, 0, 2))
        if sent is not None:
            yield Padding(_texts(sent), (0, 0, 0, 4))
    yield from _section("Command", whole.command, lines_max)


def _tell_full(node: OperationView) -> None:
    aside(f"\nall of it: deskbus operations show {amounts.short(node.op_id)} --full")


def _section(title: str, value: JsonValue, lines_max: int | None) -> Iterable[RenderableType]:
    if value is not None:
        yield Text(f"\n{title}", "cyan")
        yield Padding(Text(_pretty(value, lines_max)), (0, 0, 0, 2))


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
    nodes = with_record(lambda client: _tree(client, cycle_id))
    wanted = [n for n in nodes if calls or n.type not in CALLS]
    show(wanted, [draw(wanted)], json=json)
    if sys.stdout.isatty() and not json:
        aside("deskbus operations show ID shows one with all its calls")


async def _tree(client: Client, cycle_id: str) -> Sequence[OperationView]:
    full_id = (await cycle_named(client, cycle_id)).cycle_id
    page = await client.ask(OPERATIONS, OperationsQuery(cycle_id=full_id, limit=PAGE_MAX))
    return page.operations
