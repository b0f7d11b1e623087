"""A cycle's story (libs/report/story.py) on one screen."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contracts.approval import Verdict
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from contracts.operation import OperationView
from libs.facts import amounts
from libs.report import costs, exits, orders, outcomes, rules, story, tickers
from libs.report.sections import SectionFact, text_of
from libs.report.tones import MARKS
from libs.runtime.setting_names import as_set
from services.cli.render.cited import cut
from services.cli.render.described import described
from services.cli.shell.terminal import (
    LABEL_WIDTH,
    STATUS_STYLES,
    TONE_STYLES,
    facts,
    write,
)

TEXT_CHARS = 190
LINE_CHARS = 120
"""Of a fact with several lines."""
FEW = 4
NARROW = 100
"""Columns below which the cycle's id is shortened."""
EDGE = 4
"""Columns that a table's place takes: its two blanks and the last column's gap."""


def tell(view: CycleView, console: Console, nodes: Sequence[OperationView] = ()) -> None:
    """Print the story; `nodes` is the cycle's operation tree, for its time and its failures."""
    write(Group(*_parts(story.tell(view, nodes), console)), console)


def _parts(cycle: story.Story, console: Console) -> Iterable[RenderableType]:
    """What came of it first, then what decided it, then what it stands on."""
    several = len(cycle.pipelines) > 1
    yield Text()
    yield from _title(cycle, narrow=console.width < NARROW)
    if not several:
        for pipeline in cycle.pipelines:
            yield from _ending(pipeline)
    for pipeline in cycle.pipelines:
        if several:
            yield Text()
            yield from _pipeline_title(pipeline)
            yield from _ending(pipeline)
        for block in _pipeline(pipeline, console):
            yield Text()
            yield block
    yield Text()
    yield shown(cycle.looked_at)
    yield _costs(cycle.costs, console)
    yield facts(_evidence(cycle))
    if cycle.message:
        yield Text(cycle.message, style="dim")
    yield Text()


def _title(cycle: story.Story, *, narrow: bool) -> Iterable[RenderableType]:
    style = STATUS_STYLES[cycle.status]
    yield Text.assemble(
        (f"{MARKS[cycle.status]} ", style),
        (cycle.title, "bold"),
        (f"  {cycle.status.value}", style),
        (f" in {cycle.took}" if cycle.took else "", style),
    )
    under = [f"cycle {amounts.short(cycle.cycle_id) if narrow else cycle.cycle_id}"]
    if len(cycle.pipelines) == 1:
        under += _whose(cycle.pipelines[0])
    yield _inset(Text(" · ".join(under), style="dim"))
    if cycle.note:
        yield Text(f"  {cycle.note}", style="yellow")


def _whose(pipeline: story.PipelineStory) -> list[str]:
    provider = f"{pipeline.provider}{story.nature(pipeline.provider)}"
    return [f"account {pipeline.account}", f"provider {provider}"]


def _pipeline_title(pipeline: story.PipelineStory) -> Iterable[RenderableType]:
    style = STATUS_STYLES[pipeline.status]
    yield Text.assemble(
        (f"{MARKS[pipeline.status]} ", style),
        (pipeline.name, "bold"),
        (f"  {pipeline.status.value}", style),
    )
    yield _inset(Text(" · ".join(_whose(pipeline)), style="dim"))


def _ending(pipeline: story.PipelineStory) -> Iterable[RenderableType]:
    ending = pipeline.ending
    completed = pipeline.status is CycleStatus.COMPLETED
    style = "bold" if completed else STATUS_STYLES[pipeline.status]
    if ending.place:
        yield Text(f"  {ending.place}", style=style)
    yield _inset(Text(as_set(ending.words), style=style))
    if ending.asks:
        yield Text("  a person is asked: deskbus approvals list", style="bold yellow")


def _pipeline(pipeline: story.PipelineStory, console: Console) -> Iterable[RenderableType]:
    """Orders, rules, the tickers, why not, reasons, outcomes, and what the agents made of it."""
    answer = pipeline.answer
    # A rejection is how it ended, and stands in the head.
    if answer is not None and answer.approval.verdict is not Verdict.REJECT:
        yield facts([("Approval", Text(answer.sentence, style=TONE_STYLES[answer.tone]))])
    if pipeline.execution is not None:
        yield _inset(described(orders.table(pipeline.orders, pipeline.execution), console))
    if pipeline.results:
        yield _inset(described(pipeline.result, console))
    if pipeline.unordered:
        yield shown(pipeline.unordered)
    if pipeline.rules.items:
        yield _inset(described(rules.table(pipeline.rules), console))
    if pipeline.reports.exits is not None and pipeline.exits.items:
        yield _inset(described(exits.table(pipeline.exits), console))
    if pipeline.tickers:
        table = described(tickers.table(pipeline.tickers), console)
        yield _inset(Group(table, Text(story.LEGEND, style="dim")))
    if pipeline.not_bought:
        yield _inset(described(pipeline.why_not, console))
    if pipeline.rationale or pipeline.verdicts:
        reasons = _rationale(pipeline, console.width - LABEL_WIDTH - EDGE)
        stated = [facts([("Rationale", reasons)])] if pipeline.rationale else []
        yield Group(*stated, shown(pipeline.verdicts))
    if pipeline.outcomes:
        yield _inset(described(outcomes.table(pipeline.outcomes), console))
    if pipeline.learned or pipeline.thoughts:
        yield Group(shown(pipeline.learned), shown(pipeline.thoughts))


def shown(entries: Sequence[SectionFact]) -> Table:
    """The facts of a summary, each line cut to what can be taken in at a glance."""
    return facts([(fact.label, _cut(fact)) for fact in entries if not fact.detail])


def _cut(fact: SectionFact) -> Text:
    chars = TEXT_CHARS if len(fact.lines.items) == 1 else LINE_CHARS
    lines = [cut(line, chars) for line in fact.lines.shown]
    text = Text("\n").join([*lines, *([Text(fact.lines.rest)] if fact.lines.rest else ())])
    if fact.tone:
        text.stylize_before(TONE_STYLES[fact.tone])
    return text


def _costs(of: costs.Costs, console: Console) -> RenderableType:
    """The facts, or where models were paid a row a stage."""
    if not of.facts:
        return facts([("Cost", described(costs.table(of), console))])
    return facts([(fact.label, Text(text_of(fact.lines.items[0]))) for fact in of.facts])


def _inset(what: RenderableType) -> RenderableType:
    return Padding(what, (0, 0, 0, 2))


def _rationale(pipeline: story.PipelineStory, width: int) -> Text:
    """One line a pick, two where they are few."""
    room = max(width, 40) * (2 if len(pipeline.rationale) <= FEW else 1)
    return Text("\n").join(
        Text.assemble(f"{ticker}: ", cut(line, room)) for ticker, line in pipeline.rationale.items()
    )


def _evidence(cycle: story.Story) -> Sequence[tuple[str, RenderableType]]:
    """The commands that show what it stands on."""
    show, evidence = f"deskbus cycle show {amounts.short(cycle.cycle_id)}", cycle.evidence
    lines = [f"{show} --evidence {evidence.ticker}"] if evidence.ticker else []
    lines += [f"{show} --stage {evidence.stage}"] if evidence.stage else []
    if len(evidence.stages) > 1:
        lines.append("stages: " + " ".join(evidence.stages))
    return [("Evidence", Text("\n".join(lines), style="dim"))] if lines else []
