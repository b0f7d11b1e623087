"""The evidence of a decision, of one ticker or one stage, from contracts and journal."""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contracts.cycle_query import CycleView, PipelineView, Recording
from contracts.operation import CallKind, JournalEntry, OperationView
from contracts.research import AssetView
from libs.facts import amounts
from libs.report import ticker_facts
from libs.report.reports import Reports
from libs.report.sections import SectionFact
from libs.report.tickers import rows
from libs.runtime.nearest import did_you_mean, nearest
from services.cli.render import sources
from services.cli.render import values as outline
from services.cli.render.cited import cited
from services.cli.render.operation_head import head_of
from services.cli.shell.problem import NoSuchThing
from services.cli.shell.terminal import (
    TONE_STYLES,
    facts,
    table,
)

FIELD_WIDTH = 22
TICKER_WIDTH = 15


# --- one ticker ---------------------------------------------------------------------------------


def of_ticker(view: CycleView, records: Sequence[Recording], ticker: str) -> Sequence[Recording]:
    """The operations that asked about the ticker, with those calls only.

    Raises `CliProblem` (not found) where no call and no stage names it.
    """
    about = [
        record.model_copy(update={"journal": calls})
        for record in records
        if (calls := tuple(entry for entry in record.journal if _asks_about(entry, ticker)))
    ]
    if not about and ticker not in _known(view):
        known = _known(view)
        near = nearest(ticker, known)
        listed = f"its tickers: {' '.join(known)}" if known else ""
        shown = f"deskbus cycle show {amounts.short(view.cycle_id)}"
        raise NoSuchThing(f"{ticker} is not in this cycle{did_you_mean(near)}", listed or shown)
    return about


def _asks_about(entry: JournalEntry, ticker: str) -> bool:
    if entry.kind is CallKind.MODEL:
        return False
    request = entry.request
    asked = request.get("arguments", request) if isinstance(request, dict) else request
    if isinstance(asked, dict) and isinstance(asked.get("ticker"), str):
        return asked["ticker"] == ticker
    return outline.names(asked, ticker) or outline.names(entry.reply, ticker)


def _known(view: CycleView) -> Sequence[str]:
    reports = map(Reports.of, view.pipelines)
    return list(dict.fromkeys(name for report in reports for name in ticker_facts.known(report)))


def ticker_screen(
    view: CycleView, records: Sequence[Recording], ticker: str
) -> Iterable[RenderableType]:
    """All that is on record of one ticker, stage by stage, then the calls behind it."""
    under = f"{view.kind} of {amounts.session(view.as_of)} · cycle {amounts.short(view.cycle_id)}"
    yield Text.assemble("\n", (ticker, "bold"), ("  " + under, "dim"))
    for pipeline in view.pipelines:
        if len(view.pipelines) > 1:
            yield Text.assemble("\n", (pipeline.name, "bold"), f"  provider {pipeline.provider}")
        yield facts(list(_of_pipeline(pipeline, ticker)))
    yield Text("\n  Calls that asked about it", style="cyan")
    for record in records:
        for entry in record.journal:
            yield Padding(_call(entry, record, ticker), (0, 0, 0, 4))
    if not records:
        yield Text("    none", style="dim")
    yield Text()


def _of_pipeline(pipeline: PipelineView, ticker: str) -> Iterable[tuple[str, RenderableType]]:
    reports = Reports.of(pipeline)
    row = next((candidate for candidate in rows(reports) if candidate.ticker == ticker), None)
    yield from map(_shown, ticker_facts.named(reports, ticker))
    if row is not None:
        yield from map(_shown, ticker_facts.finding_facts(row))
        yield from map(_shown, ticker_facts.decided(row))
    elif reports.plan:
        yield "Plan", "not among the researched tickers"
    yield from map(_shown, ticker_facts.not_bought(pipeline.not_bought, ticker))
    if row is not None:
        yield from map(_shown, ticker_facts.executed(row))
        sourced = sources.of_ticker(row)
        if sourced is not None:
            yield "Sources", sourced
        yield from map(_shown, ticker_facts.result(pipeline.results, ticker))
        yield from map(_shown, ticker_facts.outcome(pipeline.outcomes, ticker))


def _shown(fact: SectionFact) -> tuple[str, RenderableType]:
    if fact.values:
        listed = [f"{name}  {value}" for name, value in fact.values.items()]
        return fact.label, Columns(listed, padding=(0, 3), equal=True)
    text = Text("\n").join(map(cited, fact.lines.items))
    if fact.tone:
        text.stylize(TONE_STYLES[fact.tone])
    return fact.label, text


# --- one stage ----------------------------------------------------------------------------------


def of_stage(
    nodes: Sequence[OperationView], records: Sequence[Recording], stage: str
) -> Sequence[Recording]:
    """The operations of a step or a state. Raises `CliProblem` (not found) that names the
    stages."""
    work = [node for node in nodes if node.type == "operation"]
    wanted = {node.op_id for node in work if stage in {node.name, node.state}}
    if not wanted:
        steps = list(dict.fromkeys(node.name for node in work))
        near = nearest(stage, steps)
        raise NoSuchThing(
            f"this cycle has no stage {stage!r}{did_you_mean(near)}",
            f"its stages: {' '.join(steps) or 'none yet'}",
        )
    return [record for record in records if record.op_id in wanted]


def stage_screen(
    nodes: Sequence[OperationView], records: Sequence[Recording], width: int
) -> Iterable[RenderableType]:
    """What each operation of a stage answered, and its calls with what they returned."""
    by_id = {node.op_id: node for node in nodes}
    for record in records:
        if record.op_id in by_id:
            yield from _operation(by_id[record.op_id], record, width)
    yield Text()


def _operation(node: OperationView, record: Recording, width: int) -> Iterable[RenderableType]:
    yield Text()
    yield from head_of(node)
    if record.result is not None:
        yield Text("\n  Answer", style="cyan")
        yield Padding(_answer(record, width), (0, 0, 0, 4))
    if record.journal:
        yield Text(f"\n  Calls ({len(record.journal)})", style="cyan")
        for entry in record.journal:
            yield Padding(_call(entry, record), (0, 0, 0, 4))
    if any(entry.kind is CallKind.MODEL for entry in record.journal):
        full = f"deskbus operations show {amounts.short(node.op_id)} --full"
        yield Text(f"  its full prompts and facts: {full}", style="dim")


def _answer(record: Recording, width: int) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, max_width=FIELD_WIDTH)
    grid.add_column()
    for name, value in outline.lines(record.result):
        grid.add_row(name, value)
    views = _views(record.result)
    if not any(view.technical_indicators for view in views):
        return grid
    return Group(grid, Text(), *_indicator_tables(views, width))


def _views(value: JsonValue) -> Sequence[AssetView]:
    assets = value.get("assets") if isinstance(value, dict) else None
    if not isinstance(assets, list) or not all(isinstance(asset, dict) for asset in assets):
        return ()
    return [AssetView.model_validate(asset) for asset in assets]


def _indicator_tables(views: Sequence[AssetView], width: int) -> Iterable[Table]:
    """Indicators down, tickers across; as many tickers beside one another as there is room."""
    names = dict.fromkeys(name for view in views for name in view.technical_indicators)
    across = max(1, (width - FIELD_WIDTH) // TICKER_WIDTH)
    for start in range(0, len(views), across):
        part = views[start : start + across]
        values = [ticker_facts.indicators(view) for view in part]
        grid = table("indicator", *((view.ticker, "right") for view in part))
        for name in names:
            grid.add_row(name, *(by_name.get(name, amounts.UNKNOWN) for by_name in values))
        yield grid


# --- calls --------------------------------------------------------------------------------------


def _call(entry: JournalEntry, record: Recording, ticker: str | None = None) -> RenderableType:
    usage = entry.usage
    spent = f"  {amounts.sorts_and_cost(usage)}" if usage.tokens else ""
    where = f"{record.step} {entry.index}" if ticker else f"{entry.index}"
    head = Text.assemble(
        (f"{where}  ", "dim"),
        (f"{entry.name}", "bold"),
        (f"  {entry.kind.value}", "dim"),
        f"  {_asked(entry)}",
        (f"  {amounts.duration(entry.duration_ms / 1000)}{spent}", "dim"),
    )
    reply = outline.about(entry.reply, ticker) if ticker else entry.reply
    return Group(head, Padding(Text(_got(entry, reply)), (0, 0, 0, 4)))


def _asked(entry: JournalEntry) -> str:
    if not isinstance(entry.request, dict):
        return outline.flat(entry.request)
    if entry.kind is CallKind.MODEL:
        return f"agent {entry.request.get('agent', '')}"
    return outline.flat(entry.request.get("arguments", entry.request))


def _got(entry: JournalEntry, reply: JsonValue) -> str:
    if entry.kind is not CallKind.MODEL or not isinstance(reply, dict):
        return outline.flat(reply)
    calls = reply.get("tool_calls")
    listed = calls if isinstance(calls, list) else []
    asked = [outline.flat(call.get("name")) for call in listed if isinstance(call, dict)]
    counted = {name: asked.count(name) for name in asked}
    tools = ", ".join(f"{name} ×{count}" for name, count in counted.items())  # noqa: RUF001
    text = outline.flat(reply.get("text") or "")
    if text.startswith("{"):
        text = "the answer above"
    parts = filter(None, (text, f"asks for {tools}" if tools else ""))
    return "; ".join(parts) or f"ends ({reply.get('stop_reason', '')})"
