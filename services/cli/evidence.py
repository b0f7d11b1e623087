"""What a decision stands on: one ticker's or one stage's evidence, from contracts and journal."""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contracts.operation import CallKind, JournalEntry, OperationView
from contracts.query import CycleView, PipelineView, Recording
from contracts.research import AssetView
from contracts.risk import Check
from contracts.sentiment import Slot
from libs.facts import amounts
from libs.report.cited import Piece
from libs.report.made import Made, Row, reasons, rows
from services.cli import fared, judgement, orders, outline, tickers
from services.cli.problem import ExitCode, Problem
from services.cli.terminal import STATUS_MARKS, STATUS_STYLES, facts, table, write
from services.cli.tree import took

INDICATOR_COLUMNS = 3
LOOSE = "dim underline"
"""A number in a model's words that no fact has."""
INDICATOR_CELL = 26
SLOT_WORDS = {
    Slot.CONFIRMED: "named by two or more sources, so it comes first",
    Slot.KEPT: "one of those that are kept for its source",
    Slot.FREE: "one that is kept for nobody, or was left by others",
}
FIELD_WIDTH = 22
TICKER_WIDTH = 12


# --- one ticker ---------------------------------------------------------------------------------


def of_ticker(view: CycleView, records: Sequence[Recording], ticker: str) -> Sequence[Recording]:
    """The operations that asked about the ticker, with those calls only.

    Raises `Problem` (not found) where no call and no stage names it.
    """
    about = [
        record.model_copy(update={"journal": calls})
        for record in records
        if (calls := tuple(entry for entry in record.journal if _asks_about(entry, ticker)))
    ]
    if not about and ticker not in _known(view):
        known = " ".join(_known(view)) or "none: it ended before any was found"
        raise Problem(
            ExitCode.NOT_FOUND, f"this cycle says nothing of {ticker}", f"its tickers: {known}"
        )
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
    made = [Made.by(pipeline) for pipeline in view.pipelines]
    found = [each.ticker for one in made if one.digest for each in one.digest.candidates]
    dropped = [each.ticker for one in made if one.digest for each in one.digest.dropped]
    return list(dict.fromkeys((*found, *dropped, *(r.ticker for one in made for r in rows(one)))))


def tell_ticker(
    view: CycleView, records: Sequence[Recording], ticker: str, console: Console
) -> None:
    """Print all that is on record of one ticker, stage by stage, then the calls behind it."""
    write(Group(*_ticker_parts(view, records, ticker, console.width)), console)


def _ticker_parts(
    view: CycleView, records: Sequence[Recording], ticker: str, width: int
) -> Iterable[RenderableType]:
    under = f"decision of {amounts.session(view.as_of)} · cycle {amounts.short(view.cycle_id)}"
    yield Text.assemble("\n", (ticker, "bold"), ("  " + under, "dim"))
    for pipeline in view.pipelines:
        if len(view.pipelines) > 1:
            yield Text.assemble("\n", (pipeline.name, "bold"), f"  provider {pipeline.provider}")
        yield facts(_of_pipeline(pipeline, ticker, width))
    yield Text("\n  Calls that asked about it", style="cyan")
    for record in records:
        for entry in record.journal:
            yield Padding(_call(entry, record, ticker), (0, 0, 0, 4))
    if not records:
        yield Text("    none", style="dim")
    yield Text()


def _of_pipeline(
    pipeline: PipelineView, ticker: str, width: int
) -> Sequence[tuple[str, RenderableType]]:
    made = Made.by(pipeline)
    row = next((each for each in rows(made) if each.ticker == ticker), None)
    told = list(_looked_at(made, ticker))
    if row is not None:
        told += [*_found(row, width), *_decided(row)]
        after = fared.of_ticker(pipeline.outcomes, ticker)
        told += [("Fared", after)] if after is not None else []
    elif made.plan is not None:
        told.append(("Plan", Text("not among the tickers that were looked into")))
    return told


def _looked_at(made: Made, ticker: str) -> Iterable[tuple[str, RenderableType]]:
    digest = made.digest
    if digest is None:
        return
    for each in digest.dropped:
        if each.ticker == ticker:
            yield "Dropped", Text(amounts.plain(each.reason))
    candidate = next((each for each in digest.candidates if each.ticker == ticker), None)
    if candidate is None:
        return
    named = ", ".join(
        f"{name} (score {candidate.scores[name]:.2f})" if name in candidate.scores else name
        for name in candidate.sources
    )
    who = ", ".join(filter(None, (candidate.name, candidate.sector)))
    yield "Company", Text(amounts.plain(who))
    mentions = amounts.count(candidate.mentions, "mention")
    yield "Named by", Text(f"{named}; {mentions}")
    if candidate.reasons:
        yield "Named for", Text(amounts.plain(reasons(candidate)))
    if candidate.slot is not None:
        yield "Slot", Text(SLOT_WORDS[candidate.slot])
    heads = [
        f"{each.published_at:%Y-%m-%d %H:%M} UTC  {each.source}: {amounts.plain(each.title)}"
        for each in candidate.headlines
    ]
    yield "Headlines", Text("\n".join(heads) or "none", style="" if heads else "dim")


def _found(row: Row, width: int) -> Iterable[tuple[str, RenderableType]]:
    if row.mood is not None:
        head = f"{row.mood.score:+.2f} of -1 to 1, confidence {row.mood.confidence:.2f}: "
        yield "Mood", Text.assemble(head, _cited(row.mood_words))
    elif row.unscored is not None:
        yield "Mood", Text(f"not scored: {amounts.plain(row.unscored)}", style="dim")
    if row.signal is not None:
        words = _cited(row.signal_words)
        yield "Quant", Text.assemble(tickers.signal(row.signal), ": ", words)
        yield "Indicators", _indicators(row.signal, width)
    if row.finding is not None:
        finding = row.finding
        scores = (
            f"fundamental {tickers.scored(row.fundamental)}, "
            f"technical {tickers.scored(row.technical)}"
            f", risk {finding.risk_score:.1f} (0 to 10, a high risk is bad) at "
            f"{amounts.money(finding.current_price, finding.currency)}"
        )
        measured = f"measured risk {finding.measured_risk:g}: {finding.measured_risk_reason}"
        said = Text("\n".join((scores, measured)))
        for pieces in row.finding_words:
            said.append("\n").append_text(_cited(pieces))
        if finding.catalyst:
            said.append(f"\n{amounts.plain(finding.catalyst)}")
        yield "Research", said


def _cited(pieces: Sequence[Piece]) -> Text:
    """A text, with the numbers dimmed that are from nowhere."""
    return Text.assemble(
        *((amounts.plain(each.text), LOOSE if each.loose else "") for each in pieces)
    )


def _indicators(view: AssetView, width: int) -> RenderableType:
    if not view.technical_indicators:
        return Text("none", style="dim")
    columns = max(1, min(INDICATOR_COLUMNS, (width - FIELD_WIDTH) // INDICATOR_CELL))
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(columns):
        grid.add_column(no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
    items = list(view.technical_indicators.items())
    for start in range(0, len(items), columns):
        part = items[start : start + columns]
        grid.add_row(*(cell for name, value in part for cell in (name, f"{value:,.2f}")))
    return grid


def _decided(row: Row) -> Iterable[tuple[str, RenderableType]]:
    if row.pick is None:
        yield "Picked", Text("no", style="dim")
    else:
        share = amounts.percent(row.pick.allocation_pct)
        head = f"{row.pick.action.value} {share}, confidence {row.pick.confidence:.2f}"
        yield "Picked", Text.assemble(f"{head}: ", _cited(row.pick_words))
    if row.review_words:
        yield "Reviewer", Text("\n").join(map(_cited, row.review_words))
    if row.checks:
        yield "Rules", tickers.explained([*row.against, *_kept(row)])
    if row.validated is not None and row.approval is not None:
        yield "Approval", Text(judgement.of_one(row.approval, row.validated, row.decision))
    if row.decision is not None:
        made = row.decision
        yield (
            "Decision",
            Text(
                f"{made.action.value} {amounts.quantity(made.quantity)} shares at "
                f"{amounts.money(made.price.amount, made.price.currency)}, "
                f"{amounts.percent(made.allocation_pct)}"
            ),
        )
    if row.order is not None:
        yield "Order", _order(row)


def _kept(row: Row) -> Sequence[Check]:
    return [check for check in row.checks if check.passed]


def _order(row: Row) -> Text:
    order, fill = row.order, row.fill
    if order is None:
        return Text()
    text = Text(f"{order.side.value} {amounts.quantity(order.quantity)}: {order.status.value}")
    text.stylize(orders.side_style(order.side))
    if fill is not None:
        text.append(
            f" at {amounts.money(fill.price.amount, fill.price.currency)} on "
            f"{amounts.session(fill.session)}'s open, fee "
            f"{amounts.money(fill.fee.amount, fill.fee.currency)}"
        )
        text.append(f" ({amounts.foreign(fill.foreign)})" if fill.foreign else "")
    return text.append(f": {amounts.plain(order.reason)}" if order.reason else "")


# --- one stage ----------------------------------------------------------------------------------


def of_stage(
    nodes: Sequence[OperationView], records: Sequence[Recording], stage: str
) -> Sequence[Recording]:
    """The operations of a step or a state. Raises `Problem` (not found) that names the stages."""
    work = [node for node in nodes if node.type == "operation"]
    wanted = {node.op_id for node in work if stage in {node.name, node.state}}
    if not wanted:
        steps = " ".join(dict.fromkeys(node.name for node in work)) or "none yet"
        raise Problem(
            ExitCode.NOT_FOUND, f"this cycle has had no stage {stage!r}", f"its stages: {steps}"
        )
    return [record for record in records if record.op_id in wanted]


def tell_stage(
    nodes: Sequence[OperationView], records: Sequence[Recording], console: Console
) -> None:
    """Print what each operation of a stage answered, and its calls with what they returned."""
    by_id = {node.op_id: node for node in nodes}
    parts = [
        part
        for record in records
        if record.op_id in by_id
        for part in _operation(by_id[record.op_id], record, console.width)
    ]
    write(Group(*parts, Text()), console)


def _operation(node: OperationView, record: Recording, width: int) -> Iterable[RenderableType]:
    style = STATUS_STYLES[node.status]
    yield Text.assemble(
        "\n",
        (f"{STATUS_MARKS[node.status]} ", style),
        (f"{node.state}/{node.name}", "bold"),
        (f"  {node.status.value}", style),
        f" in {took(node)}" if took(node) else "",
    )
    cost = amounts.cost(node.tokens, node.cost_usd)
    under = f"{cost} · service {node.service} · pipeline {node.pipeline} · attempt {node.attempt}"
    yield Text(f"  {under}", style="dim")
    if record.failure is not None:
        told = f"{amounts.plain(record.failure.message)} ({record.failure.code})"
        yield Padding(Text(told, style="red"), (0, 0, 0, 2))
    if record.result is not None:
        yield Text("\n  Answer", style="cyan")
        yield Padding(_answer(record, width), (0, 0, 0, 4))
    if record.journal:
        yield Text(f"\n  Calls ({len(record.journal)})", style="cyan")
        for entry in record.journal:
            yield Padding(_call(entry, record), (0, 0, 0, 4))


def _answer(record: Recording, width: int) -> RenderableType:
    shown = _without_indicators(record.result)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, max_width=FIELD_WIDTH)
    grid.add_column()
    for name, value in outline.lines(shown):
        grid.add_row(name, value)
    views = _views(record.result)
    if not any(view.technical_indicators for view in views):
        return grid
    return Group(grid, Text(), *_indicator_tables(views, width))


def _without_indicators(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {
            key: _without_indicators(each)
            for key, each in value.items()
            if key != "technical_indicators"
        }
    return [_without_indicators(each) for each in value] if isinstance(value, list) else value


def _views(value: JsonValue) -> Sequence[AssetView]:
    assets = value.get("assets") if isinstance(value, dict) else None
    if not isinstance(assets, list) or not all(isinstance(each, dict) for each in assets):
        return ()
    return [AssetView.model_validate(each) for each in assets]


def _indicator_tables(views: Sequence[AssetView], width: int) -> Iterable[Table]:
    """Indicators down, tickers across; as many tickers beside one another as there is room."""
    names = dict.fromkeys(name for view in views for name in view.technical_indicators)
    across = max(1, (width - FIELD_WIDTH) // TICKER_WIDTH)
    for start in range(0, len(views), across):
        part = views[start : start + across]
        made = table("indicator", *((view.ticker, "right") for view in part))
        for name in names:
            values = [view.technical_indicators.get(name) for view in part]
            made.add_row(name, *("-" if each is None else f"{each:,.2f}" for each in values))
        yield made


# --- calls --------------------------------------------------------------------------------------


def _call(entry: JournalEntry, record: Recording, ticker: str | None = None) -> RenderableType:
    usage = entry.usage
    spent = f"  {amounts.sorts(usage)} · ${usage.cost_usd:,.4f}" if usage.tokens else ""
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
    told = filter(None, (text, f"asks for {tools}" if tools else ""))
    return "; ".join(told) or f"ends ({reply.get('stop_reason', '')})"
