"""A study's report, composed of its score. Pure; what it does not show it says."""

from collections.abc import Callable, Iterable, Sequence

from contracts.performance import CANDIDATES, CASH
from contracts.study import Study, StudyKind
from contracts.study_score import (
    ArmScore,
    AuditKind,
    CalibrationScore,
    Estimate,
    Foresight,
    LeakVerdict,
    Measure,
    NotShown,
    Permuted,
    Shown,
    StudyScore,
)
from libs.facts import amounts
from libs.report.studies import words
from libs.report.studies.money import money
from libs.report.studies.parts import (
    Cell,
    Column,
    Curve,
    Curves,
    Reliability,
    Section,
    StudyReport,
    Table,
)
from libs.report.tones import Tone

Written = Callable[[float], str]
LEAKS = {
    LeakVerdict.LEAKS: Cell("looks ahead", Tone.BAD),
    LeakVerdict.CLEAR: Cell("nothing seen", Tone.GOOD),
    LeakVerdict.NOT_SHOWN: Cell("not shown: the canary is not seen either", Tone.QUIET),
}
MEASURES_ABOUT = {
    Measure.HITS: "Right choices, in percentage points",
    Measure.EXCESS: "Excess return of a decision",
    Measure.BRIER: "Brier loss of stated confidences; lower is better",
}


def compose(score: StudyScore) -> StudyReport:
    """The report of a study that was found."""
    study = score.study
    if study is None:
        raise ValueError("there is no study to report on")
    if study.kind is StudyKind.PATH:
        sections: Iterable[Section | None] = (money(score), _audit(score))
    else:
        sections = (
            _arms(score),
            _differences(score),
            _ranks(score),
            _foresight(score),
            _names(score),
            _cutoffs(score),
            _stability(score),
            _calibration(score),
            _audit(score),
        )
    return StudyReport(
        name=study.name,
        asked=_asked(score, study),
        answer=_answer(score),
        sections=[section for section in sections if section is not None],
    )


def _asked(score: StudyScore, study: Study) -> Sequence[str]:
    tickers = amounts.cut(", ".join(study.universe), 120)
    arms, samples = amounts.count(len(study.arms), "arm"), amounts.count(study.samples, "sample")
    on = f"{len(study.universe)} tickers ({tickers})"
    lines = [f"{study.kind.value}: {arms} on {on}, {samples} each"]
    if study.kind is StudyKind.PICKS:
        lines.append(
            f"{score.dates:,} dates, {score.first} to {score.last}; from the open after each to the"
            f" close {amounts.count(score.horizon, 'session')} later, {score.cost_bps:g} basis"
            f" points a side, compared with {benchmark(score)}"
            if score.dates
            else "no date could be scored"
        )
    elif score.dates:
        lines.append(f"{score.dates:,} sessions, {score.first} to {score.last}")
    if score.market_source:
        lines.append(f"prices: {score.market_source}")
    standing = f"{score.decided:,} decisions of {amounts.count(score.cells, 'cell')}"
    if score.failed:
        standing += f", {score.failed:,} failed"
    if score.status is not None and score.status != "completed":
        standing += f"; the study is {score.status.value}, so this is not all of it"
    return [*lines, standing]


def benchmark(score: StudyScore) -> str:
    """`equal parts of the universe`, `cash`, `AAPL`."""
    names = {CANDIDATES: "equal parts of the universe", CASH: "cash"}
    return names.get(score.benchmark, score.benchmark)


def _answer(score: StudyScore) -> Sequence[Cell]:
    """The study in short: what is resolved, and who looks ahead."""
    cells = [
        Cell(f"{arm.name} looks ahead", Tone.BAD, arm.name)
        for arm in score.arms
        if isinstance(arm.foresight, Foresight) and arm.foresight.verdict is LeakVerdict.LEAKS
    ]
    of_excess = [it for it in score.differences if it.measure is Measure.EXCESS]
    resolved = 0
    for each in of_excess:
        if isinstance(each.difference, Estimate) and each.difference.resolved:
            first_is_ahead = each.difference.estimate > 0
            ahead, behind = (
                (each.first, each.second) if first_is_ahead else (each.second, each.first)
            )
            by = words.gain(abs(each.difference.estimate))
            cells.append(Cell(f"{ahead} is ahead of {behind} by {by} a decision", Tone.GOOD, ahead))
            resolved += 1
    if of_excess:
        open_ones = len(of_excess) - resolved
        cells.append(
            Cell(f"{open_ones} of {amounts.count(len(of_excess), 'pair')} not resolved", Tone.QUIET)
        )
    if score.message:
        cells.append(Cell(score.message, Tone.WARN))
    return cells


def _arms(score: StudyScore) -> Section:
    columns = (
        *(Column("arm"), Column("provider", wide=True), Column("decisions", right=True)),
        *(Column("failed", right=True, wide=True), Column("picks", right=True, wide=True)),
        *(Column("invested", right=True), Column("right choices", right=True)),
        *(Column("excess", right=True), Column("95% interval"), Column("")),
        *(Column("tokens", right=True, wide=True), Column("cost", right=True, wide=True)),
    )
    drawn = words.spans(arm.excess for arm in score.arms)
    rows = []
    for arm, span in zip(score.arms, drawn, strict=True):
        masked = ", masked" if arm.masked else ""
        counted = [] if arm.control else [arm.decisions, arm.failed, arm.picks]
        rows.append(
            [
                Cell(arm.name, arm=_link(arm)),
                Cell("control" if arm.control else f"{arm.provider}{masked}"),
                *(Cell(f"{number:,}", arm=_link(arm)) for number in counted),
                *(Cell("") for _ in range(3 - len(counted))),
                Cell(words.share(arm.invested)),
                _estimate(arm.hits, words.share, _link(arm)),
                _estimate(arm.excess, words.gain, _link(arm), tone=True),
                Cell(_interval(arm.excess)),
                Cell("", span=span),
                Cell("" if arm.control else amounts.thousands(arm.tokens)),
                Cell("" if arm.control else f"${arm.cost_usd:.2f}"),
            ]
        )
    lines = [
        Curve(arm.name, [value * 100 for value in arm.curve]) for arm in score.arms if arm.curve
    ]
    notes = []
    if score.left_out:
        named = "; ".join(
            f"{it.ticker or 'all of it'} on {it.on}: {it.why}" for it in score.left_out[:5]
        )
        more = len(score.left_out) - 5 + score.left_out_more
        notes.append(f"left out: {named}" + (f"; and {more:,} more" if more > 0 else ""))
    return Section(
        "Arms",
        "Right choices: bought and better than the benchmark, or not bought and not better. Excess:"
        " what a decision's weights brought above the benchmark after costs; what it left"
        " uninvested counts as the benchmark.",
        [Table(columns, rows)],
        Curves("Sum of excess returns after costs, in percent", score.points, lines)
        if len(score.points) > 1
        else None,
        notes=notes,
    )


def _link(arm: ArmScore) -> str:
    return "" if arm.control else arm.name


def _estimate(of: Shown, write: Written, arm: str, *, tone: bool = False) -> Cell:
    if isinstance(of, NotShown):
        return Cell(words.not_shown(of), Tone.QUIET)
    coloured = None
    if tone and of.resolved:
        coloured = Tone.GOOD if of.estimate > 0 else Tone.BAD
    return Cell(write(of.estimate), coloured, arm)


def _interval(of: Shown) -> str:
    return words.interval(of, Measure.EXCESS)


def _differences(score: StudyScore) -> Section | None:
    tables, notes = [], []
    for measure in Measure:
        of = [it for it in score.differences if it.measure is measure]
        if not of:
            continue
        columns = (
            *(Column("arms"), Column("difference", right=True), Column("95% interval")),
            *(Column(""), Column("p", right=True, wide=True), Column("q = N/N*", right=True)),
            Column("verdict"),
        )
        rows = []
        for each, span in zip(of, words.spans(it.difference for it in of), strict=True):
            shown, better = each.difference, measure is Measure.BRIER
            figures = _paired(shown, measure)
            rows.append(
                [
                    Cell(f"{each.first} less {each.second}", arm=each.first),
                    Cell(figures[0], arm=each.first),
                    Cell(words.interval(shown, measure)),
                    Cell("", span=span),
                    *(Cell(figure) for figure in figures[1:]),
                    words.verdict(shown, lower_is_better=better),
                ]
            )
        tables.append(Table(columns, rows, MEASURES_ABOUT[measure]))
    if not tables:
        return None
    if score.overlap > 1:
        notes.append(
            f"one horizon reaches into {score.overlap} dates; the intervals allow for that"
        )
    return Section(
        "Paired differences",
        "Every two arms on the dates that both decided, on the same frozen inputs. q below 1: the"
        " dates are too few for a difference of this size, whichever side it lies on.",
        tables,
        notes=notes,
    )


def _paired(of: Shown, measure: Measure) -> tuple[str, str, str]:
    """The difference, its p and its q; empty where nothing is shown."""
    if isinstance(of, NotShown):
        return "", "", ""
    return (
        words.WRITTEN[measure](of.estimate),
        words.probability(of.p),
        words.resolution(of),
    )


def _ranks(score: StudyScore) -> Section | None:
    if not score.ranks:
        return None
    arms = list(dict.fromkeys(rank.arm for rank in score.ranks))
    measures = [measure for measure in Measure if any(r.measure is measure for r in score.ranks)]
    place = {(rank.arm, rank.measure): rank for rank in score.ranks}
    rows = [
        [
            Cell(arm),
            *(
                Cell(f"{it.best}" if it.best == it.worst else f"{it.best} to {it.worst}")
                if (it := place.get((arm, measure)))
                else Cell("")
                for measure in measures
            ),
        ]
        for arm in arms
    ]
    return Section(
        "Ranks",
        "The ranks that an arm may have; those that cannot be told apart share them. All intervals"
        " hold together (Holm).",
        [
            Table(
                [Column("arm"), *(Column(words.MEASURES[it], right=True) for it in measures)], rows
            )
        ],
    )


def _foresight(score: StudyScore) -> Section:
    columns = (
        *(Column("arm"), Column("before costs", right=True), Column("by chance, 95%", right=True)),
        *(Column("p", right=True), Column("deviations", right=True)),
        *(Column("better dates", right=True), Column("captured", right=True), Column("verdict")),
    )
    own = [arm for arm in score.arms if not arm.control]
    rows = [[*_chance(arm), *_sight(arm.foresight, arm.name)] for arm in own]
    canary = [Cell("look-ahead canary"), Cell(""), Cell(""), Cell("")]
    rows.append([*canary, *_sight(score.canary, "")])
    return Section(
        "Look-ahead",
        "An arm's own weights dealt at random to the assets of each date are luck. The canary buys"
        " the winners of the week to come and must light up red; an arm that chooses as it does has"
        " seen them too: many deviations above luck, and better than its usual choice mostly."
        " Captured: its part of what the canary gains.",
        [Table(columns, rows)],
    )


def _chance(arm: ArmScore) -> Sequence[Cell]:
    of = arm.permuted
    if not isinstance(of, Permuted):
        return (
            Cell(arm.name, arm=arm.name),
            Cell(words.not_shown(of), Tone.QUIET),
            Cell(""),
            Cell(""),
        )
    return (
        Cell(arm.name, arm=arm.name),
        Cell(words.gain(of.actual), Tone.GOOD if of.passed else None, arm.name),
        Cell(words.gain(of.permuted)),
        Cell(words.probability(of.p)),
    )


def _sight(of: Foresight | NotShown, arm: str) -> Sequence[Cell]:
    if isinstance(of, NotShown):
        return Cell(""), Cell(""), Cell(""), Cell(words.not_shown(of), Tone.QUIET)
    return (
        Cell(f"{of.deviations:+.1f}", arm=arm),
        Cell(words.share(of.better), arm=arm),
        Cell(words.share(of.captured), arm=arm),
        LEAKS[of.verdict],
    )


def _names(score: StudyScore) -> Section:
    columns = (
        *(Column("provider"), Column("arms"), Column("right choices", right=True)),
        *(Column("excess", right=True), Column("95% interval"), Column("q", right=True)),
        *(Column("changed", right=True), Column("moved", right=True, wide=True)),
        Column("verdict"),
    )
    rows = [
        [
            Cell(gap.provider),
            Cell(f"{gap.named} less {gap.masked}", arm=gap.named),
            _estimate(gap.hits, words.points, gap.named),
            _estimate(gap.excess, words.gain, gap.named),
            Cell(_interval(gap.excess)),
            Cell(words.resolution(gap.excess) if isinstance(gap.excess, Estimate) else ""),
            Cell(words.share(gap.changed)),
            Cell(words.share(gap.moved)),
            words.verdict(gap.excess),
        ]
        for gap in score.masked
    ]
    notes = []
    if not rows:
        notes.append("named less masked: not shown, no provider has both arms")
    probes = [
        [
            Cell(probe.provider),
            Cell(f"{probe.hits} of {probe.asked}"),
            Cell(f"{words.share(probe.low)} to {words.share(probe.high)}"),
            Cell(words.share(probe.by_guessing)),
            Cell("blind", Tone.GOOD) if probe.blind else Cell("not blind", Tone.BAD),
        ]
        for probe in score.probes
    ]
    if not probes:
        notes.append("identification of masked inputs: not shown, no probe is on record")
    tables = [Table(columns, rows)] if rows else []
    if probes:
        heads = ("provider", "identified", "95% interval", "by guessing", "verdict")
        tables.append(Table([Column(head) for head in heads], probes))
    return Section(
        "Names",
        "A provider with names less the same without. Changed: choices that differ; moved: the mean"
        " distance of the weights. Below 0 names distract: it is no pure leakage.",
        tables,
        notes=notes,
    )


def _cutoffs(score: StudyScore) -> Section | None:
    if not score.cutoffs:
        return None
    columns = (
        *(
            Column("arm"),
            Column("knowledge ends", right=True),
            Column("difference", right=True),
        ),
        *(Column("95% interval"), Column("p", right=True), Column("q", right=True)),
        Column("verdict"),
    )
    rows = []
    for each in score.cutoffs:
        gap = each.gap
        known = isinstance(gap, Estimate)
        ahead = words.verdict(gap)
        if isinstance(gap, Estimate) and gap.resolved:
            ahead = (
                Cell("better before", Tone.BAD)
                if gap.estimate > 0
                else Cell("better after", Tone.GOOD)
            )
        rows.append(
            [
                Cell(each.arm, arm=each.arm),
                Cell(f"{each.cutoff}" if each.cutoff else "unknown"),
                _estimate(gap, words.gain, each.arm) if known else Cell(""),
                Cell(_interval(gap)),
                Cell(words.probability(gap.p) if isinstance(gap, Estimate) else ""),
                Cell(words.resolution(gap) if isinstance(gap, Estimate) else ""),
                ahead,
            ]
        )
    return Section(
        "Before and after the model's knowledge",
        "Excess returns of dates up to the cutoff, less those of dates 90 days and more behind it.",
        [Table(columns, rows)],
    )


def _stability(score: StudyScore) -> Section:
    columns = (
        *(Column("arm"), Column("samples", right=True), Column("choices", right=True)),
        *(Column("agreement", right=True), Column("spread of weights", right=True)),
        Column("stable", right=True),
    )
    rows = [
        [
            Cell(it.arm, arm=it.arm),
            Cell(f"{it.samples}"),
            Cell(f"{it.choices:,}", arm=it.arm),
            Cell(words.share(it.agreement)),
            Cell(words.share(it.spread)),
            Cell(words.share(it.stable)),
        ]
        for it in score.stability
    ]
    notes = () if rows else ("not shown: it needs more than one sample of a date",)
    return Section(
        "Stability",
        "Whether samples of the same evidence agree, over assets that any of them bought. Stable:"
        " four of five agree, and weights differ by less than half.",
        [Table(columns, rows)] if rows else (),
        notes=notes,
    )


def _calibration(score: StudyScore) -> Section:
    columns = (
        *(Column("arm"), Column("outcomes", right=True), Column("Brier score", right=True)),
        *(
            Column("miscalibration", right=True, wide=True),
            Column("discrimination", right=True, wide=True),
        ),
        *(Column("uncertainty", right=True, wide=True), Column("skill", right=True)),
        *(Column("overconfidence", right=True), Column("95% interval")),
    )
    rows, notes, curves = [], [], []
    for it in score.calibration:
        if not isinstance(it, CalibrationScore):
            notes.append(f"{it.arm}: not shown, {it.why}")
            continue
        over = it.overconfidence
        rows.append(
            [
                Cell(it.arm, arm=it.arm),
                Cell(f"{it.outcomes:,}", arm=it.arm),
                Cell(f"{it.score:.4f}"),
                Cell(f"{it.miscalibration:.4f}"),
                Cell(f"{it.discrimination:.4f}"),
                Cell(f"{it.uncertainty:.4f}"),
                Cell("" if it.skill is None else f"{it.skill:+.3f}"),
                _estimate(over, words.points, it.arm),
                Cell(words.interval(over, Measure.HITS)),
            ]
        )
        curves.append(
            Reliability(it.arm, [(p.stated, p.happened, p.low, p.high) for p in it.curve])
        )
    return Section(
        "Calibration",
        "The trader's confidence in a pick as the probability that it beats the benchmark over the"
        " horizon. Score = miscalibration - discrimination + uncertainty; on the diagonal as much"
        " came true as was stated. Overconfidence: what was stated above that, in points.",
        [Table(columns, rows)] if rows else (),
        reliability=[curve for curve in curves if curve.points],
        notes=notes,
    )


def _audit(score: StudyScore) -> Section | None:
    if not score.audit:
        return None
    tables = []
    for kind, title in ((AuditKind.TEST, "test"), (AuditKind.COLUMN, "column")):
        rows = [
            [
                Cell(row.name),
                Cell(row.answer, None if row.shown else Tone.WARN),
                Cell(row.command),
            ]
            for row in score.audit
            if row.kind is kind
        ]
        tables.append(Table((Column(title), Column("this study"), Column("from", wide=True)), rows))
    return Section(
        "Audit",
        "The six tests and seven columns by which desks of models are judged, as this study answers"
        " them.",
        tables,
    )
