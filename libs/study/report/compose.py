"""A study's report, composed of its score. Pure; what it does not show it says."""

from collections.abc import Iterable, Sequence

from contracts.performance import CANDIDATES, CASH
from contracts.study import Study, StudyKind
from contracts.study_score import (
    ArmScore,
    AuditKind,
    Estimate,
    Foresight,
    Leakage,
    LeakVerdict,
    Measure,
    NotShown,
    PairedDifference,
    StudyScore,
)
from libs.facts import amounts
from libs.report.tones import Tone
from libs.report.view import Cell, Column, table
from libs.study.report import lookahead, trust, words
from libs.study.report.audit import NOT_SHOWN
from libs.study.report.money import in_short, money
from libs.study.report.parts import (
    Curve,
    Missing,
    ReportCurves,
    StudyReport,
    StudySection,
    numbers,
    text,
)

OPEN_SHOWN_MAX = 3
MEASURES_ABOUT = {
    Measure.HITS: "Right choices, in percentage points, over all assets on dates that both decided",
    Measure.EXCESS: "Excess return of a decision, on dates that both decided",
    Measure.BRIER: "Brier loss of stated confidences, over picks that both made; lower is better",
}


def compose(score: StudyScore) -> StudyReport:
    """The report of a study that was found."""
    study = score.study
    if study is None:
        raise ValueError("there is no study to report on")
    if study.kind is StudyKind.PATH:
        sections: Iterable[StudySection | None] = (money(score), _audit(score))
        missing = [*_audited(score)]
    else:
        sections = (
            _arms(score),
            _differences(score),
            _ranks(score),
            lookahead.leakage(score),
            lookahead.foresight(score),
            lookahead.names(score),
            lookahead.cutoffs(score),
            trust.agents(score),
            trust.stability(score),
            trust.calibration(score),
            _audit(score),
        )
        missing = [
            *_unmeasured(score),
            *_unpaired(score),
            *lookahead.missing(score),
            *trust.missing(score),
            *_audited(score),
        ]
    return StudyReport(
        name=study.name,
        asked=_asked(score, study),
        answer=_answer(score),
        sections=[section for section in (*sections, _not_shown(missing)) if section is not None],
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
    if score.fallbacks:
        standing += f", {score.fallbacks:,} left out, as a stage was answered by its fallback"
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
        Cell(f"{arm.name} looks ahead", tone=Tone.BAD)
        for arm in score.arms
        if isinstance(arm.foresight, Foresight) and arm.foresight.verdict is LeakVerdict.LEAKS
    ]
    cells += [_known(it) for it in score.leakage if it.verdict in IN_SHORT]
    cells += in_short(score)
    of_excess = [it for it in score.differences if it.measure is Measure.EXCESS]
    for one in of_excess:
        if isinstance(one.difference, Estimate) and one.difference.resolved:
            first_is_ahead = one.difference.estimate > 0
            ahead, behind = (one.first, one.second) if first_is_ahead else (one.second, one.first)
            by = words.gain(abs(one.difference.estimate))
            cells.append(Cell(f"{ahead} is ahead of {behind} by {by} a decision", tone=Tone.GOOD))
    open_ones = [it for it in of_excess if not _is_resolved(it)]
    cells += map(_undecided, open_ones[:OPEN_SHOWN_MAX])
    if more := len(open_ones) - OPEN_SHOWN_MAX:
        more_pairs = amounts.count(more, "more pair")
        cells += [words.quiet(f"{more_pairs}: no difference seen")] if more > 0 else []
    if score.message:
        cells.append(Cell(score.message, tone=Tone.WARN))
    return cells


def _is_resolved(one: PairedDifference) -> bool:
    return isinstance(one.difference, Estimate) and one.difference.resolved


def _undecided(one: PairedDifference) -> Cell:
    """`Rules vs coin: no difference seen; 190 dates would be needed`."""
    pair, of = f"{one.first[:1].upper()}{one.first[1:]} vs {one.second}", one.difference
    if isinstance(of, NotShown):
        return words.quiet(f"{pair}: {of.why}")
    if of.needed is None:
        return words.quiet(f"{pair}: no difference on {amounts.count(of.dates, 'date')}")
    return words.quiet(f"{pair}: no difference seen; {of.needed:,} dates would be needed")


IN_SHORT = {LeakVerdict.LEAKS, LeakVerdict.CLEAR}


def _known(it: Leakage) -> Cell:
    """A verdict on a provider: found guilty, or cleared."""
    if it.verdict is LeakVerdict.CLEAR:
        return Cell(f"{it.provider}: no leak found", tone=Tone.GOOD)
    by_name = it.names is LeakVerdict.LEAKS
    how = "with names it decides better than without" if by_name else "it looks ahead"
    return Cell(f"{it.provider} leaks: {how}", tone=Tone.BAD)


def _arms(score: StudyScore) -> StudySection:
    columns = (
        *text("Arm"),
        *text("Provider", spare=1),
        *numbers("Decisions"),
        *numbers("Failed", "Picks", spare=1),
        *numbers("Invested", "Right choices"),
        *text("95% interval", spare=1),
        *numbers("Excess"),
        *text("95% interval"),
        *numbers("Tokens", "Cost", spare=1),
    )
    # Columns that would say 0 of every arm leave room for the others.
    is_paid = any(arm.tokens or arm.cost_usd for arm in score.arms)
    notes = []
    if score.left_out:
        named = "; ".join(
            f"{it.ticker or 'all of it'} on {it.on}: {it.why}" for it in score.left_out[:5]
        )
        more = len(score.left_out) - 5 + score.left_out_more
        notes.append(f"left out: {named}" + (f"; and {more:,} more" if more > 0 else ""))
    lines = [
        Curve(arm.name, [value * 100 for value in arm.curve]) for arm in score.arms if arm.curve
    ]
    return StudySection(
        "Arms",
        "Right choices: bought and better than the benchmark, or not bought and not better. Excess:"
        " what a decision's weights brought above the benchmark after costs; what it left"
        " uninvested counts as the benchmark.",
        [table(columns, [_arm_row(arm, is_paid=is_paid) for arm in score.arms])],
        ReportCurves("Sum of excess returns after costs, in percent", score.points, lines)
        if len(score.points) > 1
        else None,
        notes=notes,
    )


def _arm_row(arm: ArmScore, *, is_paid: bool) -> Sequence[str | Cell]:
    figures = (
        words.share(arm.invested),
        *words.measured(arm.hits, words.share),
        *words.measured(arm.excess, words.gain, tone=True),
    )
    if arm.control:
        return (arm.name, "control", "", "", "", *figures, "", "")
    own = [arm.provider, *(["masked"] if arm.masked else [])]
    counted = (arm.decisions, arm.failed, arm.picks)
    spent = (amounts.thousands(arm.tokens), amounts.paid(arm.cost_usd, 2, sign="$"))
    return (
        words.arm(arm.name),
        ", ".join([*own, *(one.in_short for one in arm.substitutes)]),
        *(f"{number:,}" for number in counted),
        *figures,
        *(spent if is_paid else ("", "")),
    )


PAIRED: Sequence[Column] = (
    *text("First", "Second"),
    *numbers("n", spare=2),
    *numbers("Differ", spare=1),
    *numbers("Difference"),
    *text("95% interval", spare=3),
    *numbers("p", "q = N/N*", spare=1),
    *text("Verdict"),
)


def _differences(score: StudyScore) -> StudySection | None:
    tables = []
    for measure in Measure:
        of = [it for it in score.differences if it.measure is measure]
        if not any(isinstance(it.difference, Estimate) for it in of):
            continue  # the last section says why
        rows = [
            (
                one.first,
                one.second,
                f"{one.compared:,}",
                f"{one.differing:,}",
                *words.measured(one.difference, words.WRITTEN[measure]),
                *words.tested(one.difference),
                words.verdict(one.difference, lower_is_better=measure is Measure.BRIER),
            )
            for one in of
        ]
        tables.append(table(PAIRED, rows, MEASURES_ABOUT[measure]))
    if not tables:
        return None
    overlaps = f"one horizon reaches into {score.overlap} dates; the intervals allow for that"
    return StudySection(
        "Paired differences",
        "The first arm less the second, on the same frozen inputs, over the n that both have."
        " Differ: how many of these differ between the two; the others count as no difference."
        " q below 1: too few dates to tell.",
        tables,
        notes=[overlaps] if score.overlap > 1 else [],
    )


def _ranks(score: StudyScore) -> StudySection | None:
    if not score.ranks:
        return None
    measures = [measure for measure in Measure if any(r.measure is measure for r in score.ranks)]
    place = {(rank.arm, rank.measure): rank for rank in score.ranks}
    open_ones = {it.measure for it in score.differences} - {*measures}

    def shown(arm: str, measure: Measure) -> str:
        it = place.get((arm, measure))
        if it is None:
            return ""
        return f"{it.best}" if it.best == it.worst else f"{it.best} to {it.worst}"

    arms = dict.fromkeys(rank.arm for rank in score.ranks)
    heads = (words.MEASURES[it].capitalize() for it in measures)
    return StudySection(
        "Ranks",
        "The ranks that an arm may have; those that cannot be told apart share them. All intervals"
        " hold together (Holm).",
        [
            table(
                (*text("Arm"), *numbers(*heads)),
                [(arm, *(shown(arm, measure) for measure in measures)) for arm in arms],
            )
        ],
        notes=[
            f"{words.MEASURES[it]}: not ranked, as not every two arms could be compared"
            for it in Measure
            if it in open_ones
        ],
    )


def _audit(score: StudyScore) -> StudySection | None:
    if not score.audit:
        return None
    return StudySection(
        "Audit",
        "The six tests and seven columns by which desks of models are judged, as this study answers"
        " them.",
        [
            table(
                (*text(title, "This study"), *text("From", spare=1)),
                [
                    (row.name, row.answer, row.command)
                    for row in score.audit
                    if row.kind is kind and row.shown
                ],
            )
            for kind, title in ((AuditKind.TEST, "Test"), (AuditKind.COLUMN, "Column"))
        ],
    )


def _not_shown(missing: Iterable[Missing]) -> StudySection | None:
    """One sentence on all that the study does not show: the parts by their reason."""
    parts: dict[str, list[str]] = {}
    for it in missing:
        parts.setdefault(it.why, []).append(it.part)
    if not parts:
        return None
    listed = "; ".join(f"{', '.join(of)} ({why})" for why, of in parts.items())
    return StudySection("Not shown", f"{listed[:1].upper()}{listed[1:]}.")


def _unmeasured(score: StudyScore) -> Iterable[Missing]:
    """Arms of which neither measure is shown: the reason is that of both."""
    whys: dict[str, list[str]] = {}
    for arm in score.arms:
        for part, of in (("right choices", arm.hits), ("excess", arm.excess)):
            if isinstance(of, NotShown):
                whys.setdefault(of.why, []).append(f"{part} of {arm.name}")
    every = 2 * len(score.arms)
    for why, parts in whys.items():
        listed = ["right choices and excess"] if len(parts) == every else parts
        yield from (Missing(part, why) for part in listed)


def _unpaired(score: StudyScore) -> Iterable[Missing]:
    for measure in Measure:
        of = [it.difference for it in score.differences if it.measure is measure]
        whys = [it.why for it in of if isinstance(it, NotShown)]
        if of and len(whys) == len(of):
            part = f"paired differences in {words.MEASURES[measure]}"
            yield Missing(part, " or ".join(dict.fromkeys(whys)))


def _audited(score: StudyScore) -> Iterable[Missing]:
    for row in score.audit:
        if not row.shown:
            yield Missing(row.name, row.answer.removeprefix(f"{NOT_SHOWN}: "))
