"""A cycle as a story on one screen: looked at, found, picked, cut, bought, and what it cost."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from contracts.approval import Verdict
from contracts.cycle import CycleStatus
from contracts.operation import OperationStatus, OperationView
from contracts.query import CycleView, PipelineView
from contracts.risk import Check
from contracts.sentiment import SentimentReport, SignalDigest, SourceReport
from libs.facts import amounts
from libs.report.made import MADE_UP, Made, Row, reasons, rows
from libs.report.orders import in_short
from services.cli import costs, exits, fared, grounding, halt, judgement, orders, tickers
from services.cli.terminal import LABEL_WIDTH, STATUS_MARKS, STATUS_STYLES, facts, write

TICKERS_LISTED_MAX = 25
DROPPED_LISTED_MAX = 3
REASONS_LISTED_MAX = 5
REASON_LINE_CHARS = 90
RULES_LISTED_MAX = 12
TEXT_CHARS = 190
REASON_CHARS = 900
FEW = 4
AWAITING_APPROVAL = "awaiting_approval"
BY_A_PERSON = frozenset({CycleStatus.REJECTED, CycleStatus.EXPIRED})
"""Ends that nothing went wrong in, so that no place is named."""
NARROW = 100
"""Columns below which the cycle's id is shortened."""
EDGE = 4
"""Columns that a table's place takes: its two blanks and the last column's gap."""


def tell(view: CycleView, console: Console, nodes: Sequence[OperationView] = ()) -> None:
    """Print the story; `nodes` is the cycle's operation tree, for its time and its failures."""
    write(Group(*_parts(view, nodes, console.width)), console)


def _parts(view: CycleView, nodes: Sequence[OperationView], width: int) -> Iterable[RenderableType]:
    made = {pipeline.name: Made.by(pipeline) for pipeline in view.pipelines}
    several = len(view.pipelines) > 1
    yield Text()
    synthetic = any(each.synthetic for each in made.values())
    yield from _title(view, narrow=width < NARROW, synthetic=synthetic)
    if not several and view.pipelines:
        yield from _outcome(view.pipelines[0], made[view.pipelines[0].name], nodes, view.reason)
    yield Text()
    digest = next((each.digest for each in made.values() if each.digest), None)
    if digest is not None:
        yield facts(_looked_at(digest))
    for pipeline in view.pipelines:
        if several:
            yield Text()
            yield _pipeline_title(pipeline)
            yield from _outcome(pipeline, made[pipeline.name], nodes, pipeline.reason)
        yield from _pipeline(pipeline, made[pipeline.name], width)
    yield facts([*costs.told(view, nodes), *_evidence(view, made, nodes)])
    if view.message:
        yield Text(view.message, style="dim")
    yield Text()


def _title(view: CycleView, *, narrow: bool, synthetic: bool) -> Iterable[RenderableType]:
    status = view.status or CycleStatus.RUNNING
    took = amounts.between(view.accepted_at, view.ended_at)
    yield Text.assemble(
        (f"{STATUS_MARKS[status]} ", STATUS_STYLES[status]),
        (f"{view.kind.capitalize()} of {amounts.session(view.as_of)}", "bold"),
        "  ",
        (status.value, STATUS_STYLES[status]),
        (f" in {took}" if took else "", STATUS_STYLES[status]),
    )
    under = [f"cycle {amounts.short(view.cycle_id) if narrow else view.cycle_id}"]
    if len(view.pipelines) == 1:
        under += _whose(view.pipelines[0])
    yield Text("  " + " · ".join(under), style="dim")
    if synthetic:
        yield Text(f"  {MADE_UP}", style="yellow")


def _whose(pipeline: PipelineView) -> list[str]:
    return [f"account {pipeline.account}", f"provider {pipeline.provider}{_nature(pipeline)}"]


def _nature(pipeline: PipelineView) -> str:
    return " (stated rules, no model)" if pipeline.provider == "rules" else ""


def _pipeline_title(pipeline: PipelineView) -> Text:
    style = STATUS_STYLES[pipeline.status]
    return Text.assemble(
        (f"{STATUS_MARKS[pipeline.status]} ", style),
        (pipeline.name, "bold"),
        (f"  {pipeline.status.value}", style),
        ("  " + " · ".join(_whose(pipeline)), "dim"),
    )


# --- how it ended -------------------------------------------------------------------------------


def _outcome(
    pipeline: PipelineView, made: Made, nodes: Sequence[OperationView], reason: str
) -> Iterable[RenderableType]:
    """The end in one sentence: what was traded, why nothing was, or why it did not come so far."""
    if pipeline.status is CycleStatus.RUNNING:
        yield Text(f"  now {pipeline.state or 'waiting'}", style="cyan")
        if pipeline.state == AWAITING_APPROVAL:
            yield Text("  a person is asked: deskbus approvals list", style="bold yellow")
        return
    if pipeline.status is CycleStatus.COMPLETED:
        yield Padding(Text(_achieved(made, reason), style="bold"), (0, 0, 0, 2))
        return
    where = "" if pipeline.status in BY_A_PERSON else _where(pipeline, nodes, reason)
    text = reason.removeprefix(f"{where} failed: ")
    if where:
        yield Text(f"  {pipeline.status.value} in {where}", style=STATUS_STYLES[pipeline.status])
    told = amounts.cut(text, REASON_CHARS)
    yield Padding(Text(told, style=STATUS_STYLES[pipeline.status]), (0, 0, 0, 2))


def _achieved(made: Made, reason: str) -> str:
    if made.execution is not None and made.execution.orders:
        return in_short(made.execution)
    if made.exits is not None:
        return exits.in_short(made.exits)
    if made.picks is not None and not made.wanted:
        return "nothing ordered: the trader picked nothing"
    if made.validation is not None and not made.validation.decisions:
        count = amounts.count(len(made.wanted), "pick")
        return f"nothing ordered: the rules left nothing of {count}"
    return amounts.cut(reason, REASON_CHARS) or "completed"


def _where(pipeline: PipelineView, nodes: Sequence[OperationView], reason: str) -> str:
    """The step at which it stopped, as `state/step`; the state alone where no step is known.

    What failed after that, such as a memory that could not be paid either, is not where it stopped.
    """
    ends = {OperationStatus.FAILED, OperationStatus.CANCELLED}
    stopped = [
        f"{node.state}/{node.name}"
        for node in nodes
        if node.type == "operation"
        and node.status in ends
        and node.pipeline in {pipeline.name, "shared"}
    ]
    named = [each for each in stopped if reason.startswith(f"{each} failed: ")]
    return next(iter((*named, *reversed(stopped))), pipeline.state)


# --- what was looked at -------------------------------------------------------------------------


def _looked_at(digest: SignalDigest) -> Sequence[tuple[str, RenderableType]]:
    names = [candidate.ticker for candidate in digest.candidates]
    more = len(names) - TICKERS_LISTED_MAX
    named = Text.assemble(
        f"{amounts.count(len(names), 'candidate')}: ",
        (" ".join(names[:TICKERS_LISTED_MAX]) or "none", "bold"),
        (f" and {more} more" if more > 0 else "", ""),
    )
    told: list[tuple[str, RenderableType]] = [("Looked at", named)]
    if any(candidate.reasons for candidate in digest.candidates):
        told.append(("Named for", _named_for(digest)))
    told.append(("Sources", _sources(digest.sources)))
    # What follows the first clause is in the digest's own view.
    told.append(("Prices", Text(amounts.cut(digest.market_source.split(";")[0], TEXT_CHARS))))
    if digest.dropped:
        told.append(("Dropped", _dropped(digest)))
    return told


def _named_for(digest: SignalDigest) -> Text:
    """Why each of the first candidates is one, a line each."""
    shown = [item for item in digest.candidates if item.reasons][:REASONS_LISTED_MAX]
    lines = [f"{item.ticker}: {amounts.cut(reasons(item), REASON_LINE_CHARS)}" for item in shown]
    more = len(digest.candidates) - len(shown)
    return Text("\n".join((*lines, *([f"and {more} more: --stage digest"] if more > 0 else []))))


def _sources(sources: Sequence[SourceReport]) -> Text:
    heard = [source.name for source in sources if source.ok]
    text = Text(", ".join(heard) or "none answered")
    silent = [_silence(source) for source in sources if not source.ok]
    return text.append(f"; no answer from {', '.join(silent)}", "yellow") if silent else text


def _silence(source: SourceReport) -> str:
    """The source and why it was silent; what to do about it is in the digest's own view."""
    if source.error is None:
        return source.name
    return f"{source.name} ({amounts.cut(source.error.message.split(';')[0], TEXT_CHARS)})"


def _dropped(digest: SignalDigest) -> Text:
    told = [
        f"{each.ticker}: {amounts.cut(each.reason, 120)}"
        for each in digest.dropped[:DROPPED_LISTED_MAX]
    ]
    more = len(digest.dropped) - len(told)
    return Text("\n".join((*told, *([f"and {more} more: --stage digest"] if more > 0 else []))))


# --- one pipeline -------------------------------------------------------------------------------


def _pipeline(pipeline: PipelineView, made: Made, width: int) -> Iterable[RenderableType]:
    yield facts(_thought(made))
    if made.exits is not None:
        yield from (_inset(exits.checked(made.exits)), Text())
    found = rows(made) if made.exits is None else ()
    if found:
        yield Text()
        yield _inset(tickers.found(found, width - EDGE))
        yield _inset(Text(tickers.LEGEND, style="dim"))
        yield Text()
    picked = [row for row in found if row.pick]
    if picked:
        yield facts([("Picked", _reasons(picked, width - LABEL_WIDTH - EDGE))])
    if made.review is not None and made.review.risk_notes:
        yield facts([("Reviewer", Text(amounts.cut(made.review.risk_notes, TEXT_CHARS)))])
    if made.portfolio is not None and made.portfolio.halt is not None:
        yield facts([("Halt", Text(halt.told(made.portfolio.halt), style="bold yellow"))])
    against = [check for row in found for check in row.against]
    if made.exits is not None and made.validation is not None:
        against = [check for check in made.validation.checks if not check.passed]
    if against:
        yield from (Text(), *map(_inset, _ruled(against)), Text())
    if made.approval is not None and made.approval.verdict is not Verdict.REJECT:
        told = judgement.of_all(made.approval, made.validated)
        yield facts([("Approval", Text(told, style=judgement.STYLES[made.approval.verdict]))])
    if made.execution is not None and made.execution.orders:
        yield from ((Text(),) if made.approval or (picked and not against) else ())
        yield from (_inset(orders.placed(made.execution)), Text())
        notes = orders.notes(made.execution)
        yield from (_inset(notes), Text()) if notes.plain else ()
    else:
        yield facts(_nothing_ordered(pipeline, made))
    yield from _afterwards(pipeline, made)


def _afterwards(pipeline: PipelineView, made: Made) -> Iterable[RenderableType]:
    """How the decision fared as far as later cycles know, and what this one learned of earlier."""
    if pipeline.outcomes:
        yield from (_inset(fared.drawn(pipeline.outcomes)), Text())
    learned = fared.learned(made.memory) if pipeline.status is not CycleStatus.RUNNING else None
    if learned is not None:
        yield facts([("Learned", learned)])


def _inset(what: RenderableType) -> RenderableType:
    return Padding(what, (0, 0, 0, 2))


def _thought(made: Made) -> Sequence[tuple[str, RenderableType]]:
    told: list[tuple[str, RenderableType]] = []
    if made.sentiment is not None:
        told.append(("Mood", _mood(made.sentiment)))
    if made.plan is not None:
        told.append(("Plan", Text(_said(made.plan.objective))))
    if made.quant is not None:
        told.append(
            ("Quant", tickers.signal(made.quant).append(f": {_said(made.quant.reasoning)}", "none"))
        )
    told += grounding.told(made)
    return told


def _said(text: str, chars_max: int = TEXT_CHARS) -> str:
    """What a provider said. The rules sign their sentences; the head names the provider already."""
    return amounts.cut(text.removeprefix("rules: "), chars_max)


def _mood(report: SentimentReport) -> Text:
    mood = amounts.cut(report.market_mood, TEXT_CHARS)
    heard = len(report.tickers)
    total = heard + len(report.unscored)
    if not total:
        return Text(mood)
    return Text(f"{mood}; headlines were scored for {heard} of {total} tickers")


def _reasons(picked: Sequence[Row], width: int) -> Text:
    """One line a pick, two where they are few."""
    room = max(width, 40) * (2 if len(picked) <= FEW else 1)
    lines = [f"{row.ticker}: {_said(row.pick.reasoning, room)}" for row in picked if row.pick]
    return Text("\n".join(lines))


def _ruled(against: Sequence[Check]) -> Iterable[RenderableType]:
    yield tickers.ruled(against[:RULES_LISTED_MAX])
    more = len(against) - RULES_LISTED_MAX
    if more > 0:
        yield Text(f"and {more} more: --stage validate", style="dim")


def _nothing_ordered(pipeline: PipelineView, made: Made) -> Sequence[tuple[str, RenderableType]]:
    validation = made.validation
    told: list[tuple[str, RenderableType]] = []
    if validation is not None:
        waits = validation.decisions and pipeline.status is CycleStatus.RUNNING
        told.append(("Orders", Text("not placed yet" if waits else "none", style="dim")))
    if made.portfolio is not None:
        cash = made.portfolio.cash
        told.append(("Cash", Text(f"{amounts.money(cash.amount, cash.currency)}, unchanged")))
    return told


# --- where the evidence is ----------------------------------------------------------------------


def _evidence(
    view: CycleView, made: Mapping[str, Made], nodes: Sequence[OperationView]
) -> Sequence[tuple[str, RenderableType]]:
    show = f"deskbus cycle show {amounts.short(view.cycle_id)}"
    seen = [row.ticker for each in made.values() for row in rows(each)]
    steps = dict.fromkeys(node.name for node in nodes if node.type == "operation")
    lines = [f"{show} --evidence {seen[0]}"] if seen else []
    lines += [f"{show} --stage {_telling(nodes, steps)}"] if steps else []
    if len(steps) > 1:
        lines.append("stages: " + " ".join(steps))
    return [("Evidence", Text("\n".join(lines), style="dim"))] if lines else []


def _telling(nodes: Sequence[OperationView], steps: Mapping[str, None]) -> str:
    """The stage to look at first: the one that failed, the quant's, else the newest."""
    failed = [n.name for n in nodes if n.type == "operation" and n.status is OperationStatus.FAILED]
    if failed:
        return failed[-1]
    return "quant" if "quant" in steps else list(steps)[-1]
