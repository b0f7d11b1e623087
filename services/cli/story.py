"""A cycle as a story on one screen: what was looked at, wanted, allowed, ordered, and why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contracts.account import Portfolio, Side
from contracts.cycle import CycleStatus
from contracts.execution import ExecutionResult, Fill, Order, OrderStatus
from contracts.memory import AgentMemory
from contracts.message import Contract
from contracts.query import CycleView, PipelineView
from contracts.research import AssetView, Plan, QuantReport, ResearchFinding, ResearchReport
from contracts.risk import Check, DecisionAction, DecisionValidation, PortfolioDecision, RuleOutcome
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.trader import DailyPicks, StockPick
from services.cli import amounts
from services.cli.terminal import STATUS_MARKS, STATUS_STYLES, one_line, table, write

SIGNAL_STYLES = {"bullish": "green", "bearish": "red", "neutral": "dim", "uncertain": "yellow"}
OUTCOME_STYLES = {RuleOutcome.CUT: "yellow", RuleOutcome.VETOED: "red", RuleOutcome.KEPT: "green"}
TICKERS_LISTED_MAX = 12
TEXT_CHARS = 190
LINE_CHARS = 96
REASON_CHARS = 600
NARROW = 100
"""Columns below which the scores are left out, so that the reasons have room."""
LABEL_WIDTH = 11

C = TypeVar("C", bound=Contract)


@dataclass(frozen=True)
class Made:
    """The contracts of one pipeline; None where it never came so far."""

    digest: SignalDigest | None
    sentiment: SentimentReport | None
    portfolio: Portfolio | None
    plan: Plan | None
    quant: QuantReport | None
    research: ResearchReport | None
    picks: DailyPicks | None
    validation: DecisionValidation | None
    execution: ExecutionResult | None
    memory: AgentMemory | None

    @classmethod
    def by(cls, pipeline: PipelineView) -> "Made":
        """What the pipeline has made, as far as it can be read here."""
        made = pipeline.contracts
        return cls(
            digest=_read(SignalDigest, made.get("signal_digest")),
            sentiment=_read(SentimentReport, made.get("sentiment_report")),
            portfolio=_read(Portfolio, made.get("portfolio")),
            plan=_read(Plan, made.get("plan")),
            quant=_read(QuantReport, made.get("quant_report")),
            research=_read(ResearchReport, made.get("research_report")),
            picks=_read(DailyPicks, made.get("daily_picks")),
            validation=_read(DecisionValidation, made.get("decision_validation")),
            execution=_read(ExecutionResult, made.get("execution_result")),
            memory=_read(AgentMemory, made.get("agent_memory")),
        )


def _read(kind: type[C], value: JsonValue) -> C | None:
    try:
        return None if value is None else kind.model_validate(value)
    except ValidationError:
        # Cut to fit into the answer, or a newer desk's: the rest of the story still stands.
        return None


def tell(view: CycleView, console: Console) -> None:
    """Print the story."""
    write(Group(*_parts(view, narrow=console.width < NARROW)), console)


def _parts(view: CycleView, *, narrow: bool) -> Iterable[RenderableType]:
    made = {pipeline.name: Made.by(pipeline) for pipeline in view.pipelines}
    yield Text()
    yield _title(view)
    digest = next((each.digest for each in made.values() if each.digest), None)
    if digest is not None:
        yield _facts([("Looked at", _looked_at(digest)), ("Prices", _prices(digest))])
    several = len(view.pipelines) > 1
    for pipeline in view.pipelines:
        if several:
            yield Text()
            yield _pipeline_title(pipeline)
        yield from _pipeline(pipeline, made[pipeline.name], several=several, narrow=narrow)
    yield _facts([("Cost", Text(_cost(view)))])
    if view.message:
        yield Text(view.message, style="dim")
    yield Text()


def _title(view: CycleView) -> RenderableType:
    status = view.status or CycleStatus.RUNNING
    took = amounts.between(view.accepted_at, view.ended_at)
    line = Text.assemble(
        (f"{STATUS_MARKS[status]} ", STATUS_STYLES[status]),
        (f"{view.kind.capitalize()} of {amounts.session(view.as_of)}", "bold"),
        "  ",
        (status.value, STATUS_STYLES[status]),
        (f" in {took}" if took else "", STATUS_STYLES[status]),
    )
    under = [f"cycle {view.cycle_id}"]
    if len(view.pipelines) == 1:
        under += _whose(view.pipelines[0])
    lines = [line, Text("  " + " · ".join(under), style="dim")]
    if view.reason and len(view.pipelines) == 1:
        reason = Text(amounts.cut(view.reason, REASON_CHARS), style=_reason_style(status))
        return Group(*lines, Padding(reason, (0, 0, 1, 2)))
    return Group(*lines, Text())


def _reason_style(status: CycleStatus) -> str:
    return "" if status in {CycleStatus.COMPLETED, CycleStatus.RUNNING} else STATUS_STYLES[status]


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
        (f"\n  {amounts.cut(pipeline.reason, 400)}" if pipeline.reason else "", ""),
    )


def _pipeline(
    pipeline: PipelineView, made: Made, *, several: bool, narrow: bool
) -> Iterable[RenderableType]:
    facts: list[tuple[str, RenderableType]] = []
    if made.sentiment is not None:
        facts.append(("Mood", Text(amounts.cut(made.sentiment.market_mood, TEXT_CHARS))))
    if made.plan is not None:
        facts.append(("Plan", Text(amounts.cut(made.plan.objective, TEXT_CHARS))))
    if made.quant is not None:
        facts.append(("Quant", _quant(made.quant)))
    if pipeline.status is CycleStatus.RUNNING:
        facts.append(("Now", Text(pipeline.state or "waiting", style="cyan")))
    yield _facts(facts)
    rows = _rows(made)
    if rows:
        yield Text()
        yield Padding(_tickers(rows, narrow=narrow), (0, 0, 0, 2))
        yield Text()
    remembered = not several and pipeline.status is CycleStatus.COMPLETED
    yield _facts(_ending(made, remembered=remembered))


def _facts(facts: Sequence[tuple[str, RenderableType]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=LABEL_WIDTH, style="cyan", no_wrap=True)
    grid.add_column()
    for label, value in facts:
        grid.add_row(f"  {label}", value)
    return grid


def _looked_at(digest: SignalDigest) -> Text:
    names = [candidate.ticker for candidate in digest.candidates]
    more = len(names) - TICKERS_LISTED_MAX
    text = Text.assemble(
        ("  ".join(names[:TICKERS_LISTED_MAX]) or "nothing", "bold"),
        (f"  and {more} more" if more > 0 else "", ""),
    )
    notes = [f"{len(names)} candidates"]
    silent = [source.name for source in digest.sources if not source.ok]
    notes += [f"no answer from {', '.join(silent)}"] if silent else []
    return text.append(f"   {' · '.join(notes)}", style="dim")


def _prices(digest: SignalDigest) -> Text:
    return one_line(digest.market_source, "dim")


def _quant(report: QuantReport) -> Text:
    return Text.assemble(
        _signal(report),
        "  ",
        (amounts.cut(report.reasoning, TEXT_CHARS), ""),
    )


def _signal(view: QuantReport | AssetView) -> Text:
    return Text(f"{view.signal.value} {view.confidence:.2f}", style=SIGNAL_STYLES[view.signal])


# --- one row a ticker ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What each stage said of one ticker."""

    ticker: str
    signal: AssetView | None
    finding: ResearchFinding | None
    pick: StockPick | None
    decision: PortfolioDecision | None
    checks: Sequence[Check]
    judged: bool


def _rows(made: Made) -> Sequence[Row]:
    signals = {view.ticker: view for view in made.quant.assets} if made.quant else {}
    findings = {each.ticker: each for each in made.research.tickers} if made.research else {}
    wanted = (*made.picks.picks, *made.picks.sell_recommendations) if made.picks else ()
    picks = {pick.ticker: pick for pick in wanted}
    decisions = {each.asset: each for each in made.validation.decisions} if made.validation else {}
    checks = made.validation.checks if made.validation else ()
    assets = made.plan.assets if made.plan else ()
    # Those it decided on first, then the wanted ones, then the rest as planned.
    names = dict.fromkeys((*decisions, *picks, *assets, *signals, *findings))
    return [
        Row(
            ticker=name,
            signal=signals.get(name),
            finding=findings.get(name),
            pick=picks.get(name),
            decision=decisions.get(name),
            checks=[check for check in checks if check.ticker == name and not check.passed],
            judged=made.validation is not None,
        )
        for name in names
    ]


def _tickers(rows: Sequence[Row], *, narrow: bool) -> Table:
    scores = () if narrow else ("fund/tech/risk",)
    made = table("", "quant", *scores, ("wanted", "right"), ("allowed", "right"), "why")
    for row in rows:
        made.add_row(
            Text(row.ticker, style="bold" if row.pick else ""),
            _signal(row.signal) if row.signal else "",
            *([] if narrow else [_scores(row.finding)]),
            _wanted(row.pick),
            _allowed(row),
            _why(row),
        )
    return made


def _scores(finding: ResearchFinding | None) -> str:
    if finding is None:
        return ""
    scores = (finding.fundamental_score, finding.technical_score, finding.risk_score)
    return " / ".join(f"{score:.1f}" for score in scores)


def _wanted(pick: StockPick | None) -> Text:
    if pick is None:
        return Text("-", style="dim")
    style = "green" if pick.action is Side.BUY else "red"
    return Text(f"{pick.action.value} {amounts.percent(pick.allocation_pct)}", style=style)


def _allowed(row: Row) -> Text:
    decision = row.decision
    if decision is None or decision.action is DecisionAction.HOLD:
        vetoed = any(check.outcome is RuleOutcome.VETOED for check in row.checks)
        if row.pick is None or not row.judged:
            return Text()
        return Text("vetoed" if vetoed else "0%", style="red")
    style = "yellow" if row.checks else "green"
    share = amounts.percent(decision.allocation_pct)
    return Text(f"{share} = {amounts.quantity(decision.quantity)} sh", style=style)


def _why(row: Row) -> Text:
    if row.pick is None:
        return Text("not picked", style="dim")
    if not row.checks:
        return Text(amounts.cut(row.pick.reasoning, LINE_CHARS), style="dim")
    first, *others = sorted(row.checks, key=_weight)
    text = Text.assemble(
        (f"{first.outcome.value} by {first.rule}", OUTCOME_STYLES[first.outcome]),
        f": {first.value}, limit {first.limit}",
    )
    if others:
        text.append(f"; also by {', '.join(check.rule for check in others)}", style="dim")
    return text


def _weight(check: Check) -> tuple[bool, int]:
    """Vetoes first, then what is said shortest; a person finds the rest in the operation."""
    return check.outcome is not RuleOutcome.VETOED, len(check.value)


# --- how it ended -------------------------------------------------------------------------------


def _ending(made: Made, *, remembered: bool) -> Sequence[tuple[str, RenderableType]]:
    facts: list[tuple[str, RenderableType]] = []
    execution = made.execution
    if execution is not None:
        facts.append(("Orders", _orders(execution)))
        facts.append(("Cash", _cash(execution)))
    elif made.validation is not None:
        nothing = not made.validation.decisions
        facts.append(("Orders", Text("none" if nothing else "not placed yet", style="dim")))
    if execution is None and made.portfolio is not None:
        cash = made.portfolio.cash
        facts.append(("Cash", Text(amounts.money(cash.amount, cash.currency))))
    if made.memory is not None and remembered:
        facts.append(("Memory", Text(amounts.cut(made.memory.short_term_summary, TEXT_CHARS))))
    return facts


def _orders(result: ExecutionResult) -> Text:
    fills: dict[object, Fill] = {fill.order_id: fill for fill in result.fills}
    lines = [_order(order, fills.get(order.order_id)) for order in result.orders]
    return Text("\n").join(lines) if lines else Text("none", style="dim")


def _order(order: Order, fill: Fill | None) -> Text:
    side = "green" if order.side is Side.BUY else "red"
    line = Text.assemble(
        (f"{order.side.value} {amounts.quantity(order.quantity)} {order.asset}", f"bold {side}"),
        f"  {order.status.value}",
    )
    if fill is not None:
        value = fill.price.amount * fill.quantity
        line.append(
            f" at {amounts.money(fill.price.amount)} on {amounts.session(fill.session)}'s open"
            f" = {amounts.money(value)}, fee {amounts.money(fill.fee.amount)}"
        )
    if order.reason and order.status is not OrderStatus.FILLED:
        line.append(f": {amounts.cut(order.reason, 160)}", style="yellow")
    return line


def _cash(result: ExecutionResult) -> Text:
    before, after = result.cash_before, result.cash_after
    change: Decimal = after.amount - before.amount
    return Text.assemble(
        f"{amounts.money(before.amount)} → ",
        (amounts.money(after.amount, after.currency), "bold"),
        (f"  ({change:+,.2f})" if change else "", "dim"),
    )


def _cost(view: CycleView) -> str:
    free = not view.tokens and all(each.provider == "rules" for each in view.pipelines)
    return amounts.cost(view.tokens, view.cost_usd) + (" (no model was asked)" if free else "")


def next_steps(where: Mapping[str, str]) -> RenderableType:
    """What to look at next: commands for a desk that runs, and where things are."""
    return _facts([(label, Text(value, style="dim")) for label, value in where.items()])
