"""A cycle as a story: looked at, found, picked, cut, bought, and what it cost. Pure.

It decides what people are told; the command line, the console's pages and MCP decide how it looks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import ExecutionResult
from contracts.memory import AgentMemory, DecisionOutcome
from contracts.not_bought import NotBought
from contracts.operation import OperationStatus, OperationView
from contracts.performance import OrderResult
from contracts.risk import Check
from contracts.sentiment import SignalDigest, SourceReport
from contracts.stages import Substitute, fell_back
from libs.facts import amounts
from libs.report import (
    account,
    approval,
    costs,
    ending,
    exits,
    figures,
    orders,
    outcomes,
    results,
    rules,
    tickers,
    why_not,
)
from libs.report.approval import ApprovalAnswer
from libs.report.cited import SIGNATURE, TextPiece, unsigned
from libs.report.costs import Costs
from libs.report.ending import ReportEnding
from libs.report.exits import ExitRow
from libs.report.orders import OrderRow
from libs.report.reports import Reports
from libs.report.rules import RuleFinding
from libs.report.sections import Line, SectionFact, ShownItems, words
from libs.report.tickers import TickerRow
from libs.report.tones import Tone
from libs.report.view import Table

MADE_UP = "synthetic prices: they say nothing about a real market"
NATURES = {
    "rules": " (stated rules, no model)",
    "coin": " (picks drawn by lot, no model)",
    "scripted": " (scripted for the demo: no model was asked, nothing was paid)",
}
"""The words that stand beside the name of a provider that is no model."""
REASONS_LISTED_MAX = 5
DROPPED_LISTED_MAX = 3
RULES_LISTED_MAX = 12
EXITS_LISTED_MAX = 25
LEGEND = "wanted: % of budget (sale: of position); scores: 0 to 10, high risk is bad"


@dataclass(frozen=True)
class StoryEvidence:
    """The evidence that can be looked at: the first ticker, the stage to begin with, and all
    stages.
    """

    ticker: str
    stage: str
    stages: Sequence[str]


@dataclass(frozen=True)
class PipelineStory:
    """One pipeline: how it ended, what its stages thought, what was allowed and ordered."""

    name: str
    account: str
    provider: str
    status: CycleStatus
    reports: Reports
    ending: ReportEnding
    thoughts: Sequence[SectionFact]
    exits: ShownItems[ExitRow]
    tickers: Sequence[TickerRow]
    not_bought: Sequence[NotBought]
    verdicts: Sequence[SectionFact]
    rules: ShownItems[RuleFinding]
    kept: Sequence[RuleFinding]
    answer: ApprovalAnswer | None
    orders: Sequence[OrderRow]
    unordered: Sequence[SectionFact]
    results: Sequence[OrderResult]
    outcomes: Sequence[DecisionOutcome]
    learned: Sequence[SectionFact]

    @property
    def rationale(self) -> Mapping[str, Line]:
        """Why the trader picked what it picked, by ticker."""
        return {row.ticker: row.pick_words for row in self.tickers if row.pick}

    @property
    def why_not(self) -> Table:
        """The candidates that were not bought, with their causes."""
        return why_not.table(self.not_bought)

    @property
    def result(self) -> Table:
        """The results of its orders."""
        return results.table(self.results, self.account)

    @property
    def execution(self) -> ExecutionResult | None:
        """The execution, with the cash before and after; None where nothing was ordered."""
        return self.reports.execution if self.orders else None


@dataclass(frozen=True)
class Story:
    """A cycle. `note` is what must be known before anything of it is believed."""

    cycle_id: UUID | None
    title: str
    status: CycleStatus
    took: str
    note: str
    looked_at: Sequence[SectionFact]
    pipelines: Sequence[PipelineStory]
    costs: Costs
    evidence: StoryEvidence
    message: str

    def of(self, pipeline: str) -> PipelineStory:
        """The story of one pipeline, which must be there."""
        return next(entry for entry in self.pipelines if entry.name == pipeline)


def tell(view: CycleView, nodes: Sequence[OperationView] = ()) -> Story:
    """The cycle's story; `nodes` are its operations, for its time and its failures."""
    # A cycle of several pipelines has a reason of its own, which is none of theirs.
    reason = view.reason if len(view.pipelines) == 1 else ""
    pipelines = [
        _pipeline(view, pipeline, nodes, pipeline.reason or reason) for pipeline in view.pipelines
    ]
    reports = [pipeline.reports for pipeline in pipelines]
    digest = next((report.digest for report in reports if report.digest), None)
    prices = next((report.exits.market_source for report in reports if report.exits), "")
    return Story(
        cycle_id=view.cycle_id,
        title=title(view.kind, view.as_of),
        status=view.status or CycleStatus.RUNNING,
        took=amounts.between(view.accepted_at, view.ended_at),
        note=MADE_UP if any(report.synthetic for report in reports) else "",
        looked_at=_looked_at(digest) if digest else [_prices(prices)] if prices else (),
        pipelines=pipelines,
        costs=costs.of(view, nodes),
        evidence=_evidence(pipelines, nodes),
        message=view.message,
    )


def title(kind: str, as_of: date | None) -> str:
    """`Decision of Fri 2012-06-29`."""
    return f"{kind.capitalize()} of {amounts.session(as_of)}"


def nature(provider: str) -> str:
    """The words that stand beside a provider's name."""
    return NATURES.get(provider, "")


# --- what was looked at -------------------------------------------------------------------------


def _looked_at(digest: SignalDigest) -> Sequence[SectionFact]:
    names = " ".join(digest.tickers) or "none"
    count = amounts.count(len(digest.candidates), "candidate")
    surfaced = [
        _line(f"{candidate.ticker}: {tickers.reasons(candidate)}")
        for candidate in digest.candidates
    ]
    dropped = [_line(f"{pick.ticker}: {pick.reason}") for pick in digest.dropped]
    facts = [SectionFact("Looked at", words(f"{count}: {names}"))]
    if any(candidate.reasons for candidate in digest.candidates):
        listed = ShownItems(surfaced, REASONS_LISTED_MAX, "digest")
        facts.append(SectionFact("Surfaced by", listed, op_id=digest.op_id))
    facts += [
        SectionFact("Sources", words(_sources(digest.sources))),
        _prices(digest.market_source),
    ]
    if dropped:
        listed = ShownItems(dropped, DROPPED_LISTED_MAX, "digest")
        facts.append(SectionFact("Dropped", listed, op_id=digest.op_id))
    return facts


def _prices(source: str) -> SectionFact:
    # What follows the first clause is in the step's own view.
    return SectionFact("Prices", words(source.split(";", maxsplit=1)[0]))


def _line(text: str) -> Line:
    return [TextPiece(text)]


def _sources(sources: Sequence[SourceReport]) -> str:
    answered = ", ".join(source.name for source in sources if source.ok) or "none answered"
    failed = [source for source in sources if not source.ok]
    without = ", ".join(source.name for source in failed if source.lacks)
    silent = ", ".join(_silence(source) for source in failed if not source.lacks)
    lacks = f"not in this market source: {without}" if without else ""
    return "; ".join(filter(None, (answered, lacks, silent and f"no answer from {silent}")))


def _silence(source: SourceReport) -> str:
    """The source and why it was silent; what to do about it is in the digest's own view."""
    if source.error is None:
        return source.name
    return f"{source.name} ({source.error.message.split(';')[0]})"


# --- one pipeline -------------------------------------------------------------------------------


def _pipeline(
    view: CycleView, pipeline: PipelineView, nodes: Sequence[OperationView], reason: str
) -> PipelineStory:
    reports = Reports.of(pipeline)
    rows = tickers.rows(reports) if reports.exits is None else ()
    checks: Sequence[Check] = reports.validation.checks if reports.validation else ()
    execution, is_over = reports.execution, pipeline.status is not CycleStatus.RUNNING
    checked = exits.rows(reports.exits, reports.portfolio) if reports.exits else ()
    return PipelineStory(
        name=pipeline.name,
        account=pipeline.account,
        provider=pipeline.provider,
        status=pipeline.status,
        reports=reports,
        ending=ending.of(pipeline, reports, nodes, reason),
        thoughts=[*answered_by(pipeline.substitutes), *_thoughts(reports)],
        exits=ShownItems(checked, EXITS_LISTED_MAX, "check_exits"),
        tickers=rows,
        not_bought=pipeline.not_bought,
        verdicts=_verdicts(reports, is_known=results.is_known(pipeline.results)),
        rules=ShownItems(rules.against(checks), RULES_LISTED_MAX, "validate"),
        kept=rules.kept(checks),
        answer=approval.answer(reports.approval, reports.validated) if reports.approval else None,
        orders=orders.rows(execution) if execution else (),
        unordered=_unordered(reports, is_over=is_over),
        results=pipeline.results if results.is_known(pipeline.results) else (),
        outcomes=pipeline.outcomes,
        learned=_learned(view, pipeline, reports.memory),
    )


def _learned(
    view: CycleView, pipeline: PipelineView, memory: AgentMemory | None
) -> Sequence[SectionFact]:
    """Sentences on outcomes: on this decision's that cannot be read, on earlier ones'.

    A cycle that wrote no memory has the one that it was given, which an earlier cycle wrote.
    """
    facts = []
    if unreadable := outcomes.unreadable(pipeline.unreadable_outcomes):
        facts.append(SectionFact("Outcomes", words(unreadable)))
    own = memory if memory and memory.cycle_id == view.cycle_id else None
    if own is None and (note := ending.after_the_end(pipeline.reason or view.reason)):
        facts.append(SectionFact("Memory", words(note), Tone.WARN))
    if (learned := outcomes.learned(own)).items:
        facts.append(SectionFact("Learned", learned))
    return facts


def answered_by(substitutes: Sequence[Substitute]) -> Sequence[SectionFact]:
    """The stages that another than the pipeline's own model answered, and why; no fact where there
    are none."""
    lines = [_line(one.in_words) for one in substitutes]
    tone = Tone.WARN if fell_back(substitutes) else None
    return [SectionFact("Answered by", ShownItems(lines), tone)] if lines else []


def _thoughts(reports: Reports) -> Sequence[SectionFact]:
    """Each stage's view of the whole, with where its figures are from."""
    facts: list[SectionFact] = []
    line: Line
    if reports.exits is not None and reports.exits.warnings:
        lines = ShownItems([_line(text) for text in reports.exits.warnings])
        facts.append(SectionFact("Warnings", lines, Tone.WARN))
    if mood := reports.sentiment:
        scored, total = len(mood.tickers), len(mood.tickers) + len(mood.unscored)
        of = f"; headlines were scored for {scored} of {total} tickers" if total else ""
        line = [*unsigned(mood, "market_mood", mood.market_mood), TextPiece(of)]
        facts.append(SectionFact("Sentiment", ShownItems([line])))
    if plan := reports.plan:
        objective, question = (
            text.removeprefix(SIGNATURE) for text in (plan.objective, plan.quant_question)
        )
        facts.append(SectionFact("Plan", words(objective), op_id=plan.op_id))
        facts.append(SectionFact("Question", words(question), detail=True))
    if quant := reports.quant:
        view = TextPiece(f"{quant.signal.value} {quant.confidence:.2f}: ")
        line = [view, *unsigned(quant, "reasoning", quant.reasoning)]
        facts.append(SectionFact("Quant", ShownItems([line])))
    if (research := reports.research) and research.research_notes:
        line = unsigned(research, "research_notes", research.research_notes)
        facts.append(SectionFact("Research", ShownItems([line]), detail=True))
    if picks := reports.picks:
        line = unsigned(picks, "market_summary", picks.market_summary)
        facts.append(SectionFact("Trader", ShownItems([line]), detail=True))
    if sourced := figures.in_short(reports):
        tone = Tone.WARN if figures.loose(reports) else None
        facts.append(SectionFact("Numbers", words(sourced), tone))
    return facts


def _verdicts(reports: Reports, *, is_known: bool) -> Sequence[SectionFact]:
    """The reviewer's words, what each buy puts at risk, the confidence that sized it, what came
    of what is sold, and a halt that stood. Where the orders' results are known those say what came
    of it, and here stands only why it was bought."""
    facts: list[SectionFact] = []
    if lines := _reviewed(reports):
        facts.append(SectionFact("Reviewer", ShownItems(lines)))
    if lines := [_line(text) for text in orders.at_risk(reports.validation)]:
        facts.append(SectionFact("At risk", ShownItems(lines)))
    if lines := [_line(text) for text in orders.recalibrated(reports.validation)]:
        facts.append(SectionFact("Confidence", ShownItems(lines)))
    if lines := [_line(text) for text in orders.outcomes_in(reports, is_known=is_known)]:
        label = "Entry" if is_known else "Result"
        facts.append(SectionFact(label, ShownItems(lines, EXITS_LISTED_MAX, "check_exits")))
    if reports.portfolio is not None and reports.portfolio.halt is not None:
        facts.append(SectionFact("Halt", words(account.halted(reports.portfolio.halt)), Tone.WARN))
    return facts


def _reviewed(reports: Reports) -> Sequence[Line]:
    """The reviewer's own words, and each pick that it made smaller or refused, with its reasons."""
    review = reports.review
    if review is None:
        return ()
    texts = {f"adjustments.{place}": text for place, text in enumerate(review.adjustments)}
    own = {"risk_notes": review.risk_notes, **texts}
    return [unsigned(review, field, text) for field, text in own.items() if text]


def _unordered(reports: Reports, *, is_over: bool) -> Sequence[SectionFact]:
    """The facts in place of orders."""
    if reports.execution is not None and reports.execution.orders:
        return ()
    facts: list[SectionFact] = []
    if lost := reports.lost("execution_result"):
        return [SectionFact("Orders", words(lost), Tone.WARN)]
    if reports.validation is not None:
        waits = reports.validation.decisions and not is_over
        facts.append(
            SectionFact("Orders", words("not placed yet" if waits else "none"), Tone.QUIET)
        )
    if reports.portfolio is not None:
        cash = reports.portfolio.cash
        facts.append(SectionFact("Cash", words(f"{amounts.money(cash)}, unchanged")))
    return facts


# --- where the evidence is ----------------------------------------------------------------------


def _evidence(pipelines: Sequence[PipelineStory], nodes: Sequence[OperationView]) -> StoryEvidence:
    work = [node for node in nodes if node.type == "operation"]
    stages = list(dict.fromkeys(node.name for node in work))
    seen = [row.ticker for pipeline in pipelines for row in tickers.rows(pipeline.reports)]
    failed = [node.name for node in work if node.status is OperationStatus.FAILED]
    # Where a pipeline stopped comes before what failed after it, such as its memory.
    stopped = [pipeline.ending.step for pipeline in pipelines if pipeline.ending.step in stages]
    newest = "quant" if "quant" in stages else next(reversed(stages), "")
    return StoryEvidence(
        ticker=next(iter(seen), ""),
        stage=next(iter(stopped), next(reversed(failed), newest)),
        stages=stages,
    )
