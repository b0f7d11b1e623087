"""The sections on who has seen the prices to come, or remembers them. Pure."""

from collections.abc import Iterator, Sequence
from math import ceil

from contracts.study_score import (
    ArmScore,
    Estimate,
    Foresight,
    LeakVerdict,
    MaskGap,
    Measure,
    NotShown,
    Permuted,
    Probe,
    StudyScore,
)
from libs.quant.study.canary import LEAK_DEVIATIONS, LEAK_SHARE
from libs.report.studies import words
from libs.report.studies.parts import Cell, Column, Missing, Section, Table
from libs.report.tones import Tone

IDENTIFIED_PCT = 10
NO_PAIR = "no provider has an arm with names and one without"
NO_PROBE = "no probe is on record"
LEAKS = {
    LeakVerdict.LEAKS: Cell("looks ahead", Tone.BAD),
    LeakVerdict.CLEAR: Cell("nothing seen", Tone.GOOD),
    LeakVerdict.NOT_SHOWN: Cell(""),
}
"""Of an arm; where nothing is shown the report's last sentence says why."""
NOT_SEEN = Cell("not seen", Tone.QUIET)
"""Of a canary that does not light up."""

KNOWS = {
    LeakVerdict.LEAKS: Cell("leaks", Tone.BAD),
    LeakVerdict.CLEAR: Cell("no leak found", Tone.GOOD),
    LeakVerdict.NOT_RESOLVED: Cell("not resolved", Tone.QUIET),
    LeakVerdict.NOT_SHOWN: Cell("not shown", Tone.QUIET),
}
SEES = {
    True: Cell("blind", Tone.GOOD),
    False: Cell("not blind", Tone.BAD),
    None: Cell("not shown", Tone.QUIET),
}
NOT_ASKED = Cell("not asked", Tone.QUIET)


def canary_problem(score: StudyScore) -> str:
    """Why the canary is not seen, so that nobody is cleared; empty where it lights up."""
    of, dark = score.canary, "the look-ahead canary is not seen"
    if isinstance(of, NotShown):
        return f"{dark}: {of.why}"
    if of.verdict is LeakVerdict.LEAKS:
        return ""
    if of.deviations < LEAK_DEVIATIONS:
        reached = f"{dark}: {of.deviations:+.1f} deviations of {LEAK_DEVIATIONS:g}"
        if of.deviations <= 0:
            return reached
        needed = ceil(of.dates * (LEAK_DEVIATIONS / of.deviations) ** 2)
        return f"{reached}, so it needs about {needed:,} such dates"
    low = words.share(of.better_low)
    return f"{dark}: better at {low} of dates at the low end, needs {words.share(LEAK_SHARE)}"


def unseen(score: StudyScore) -> str:
    """Why the report does not say of any arm whether it looks ahead; empty where it does of one."""
    arms = [arm for arm in score.arms if not arm.control]
    whys = [arm.foresight.why for arm in arms if isinstance(arm.foresight, NotShown)]
    if (dark := canary_problem(score)) or len(whys) < len(arms):
        return dark
    return f"dates at which an arm preferred some assets: {' or '.join(dict.fromkeys(whys))}"


def missing(score: StudyScore) -> Iterator[Missing]:
    """The parts that the sections below do not show."""
    dark = unseen(score)
    if dark:
        yield Missing("who looks ahead", dark)
    if not score.masked:
        yield Missing("what names bring", NO_PAIR)
    if score.leakage and not _is_known(score):
        yield Missing("leakage of a provider", dark if score.masked else NO_PAIR)
    if not score.probes:
        yield Missing("identification of masked inputs", NO_PROBE)


def _is_known(score: StudyScore) -> bool:
    """Whether what names bring, a probe or a verdict is shown of any provider: look-ahead alone has
    a section of its own."""
    return any(
        it.probed or {it.names, it.verdict} != {LeakVerdict.NOT_SHOWN} for it in score.leakage
    )


def leakage(score: StudyScore) -> Section | None:
    """The verdict on each provider; None where no look shows anything."""
    if not _is_known(score):
        return None
    heads = ("provider", "arms", "look-ahead", "names", "masked inputs", "verdict")
    rows = [
        [
            Cell(it.provider),
            Cell(", ".join(it.arms), arm=it.arms[0]),
            KNOWS[it.foresight],
            KNOWS[it.names],
            SEES[it.blind] if it.probed else NOT_ASKED,
            KNOWS[it.verdict],
        ]
        for it in score.leakage
    ]
    return Section(
        "Leakage",
        "Whether a provider knows the prices to come, by the two looks below: its choices beside"
        " chance, and its named arm less its masked one. One that shows a leak is enough; it is"
        " cleared by both alone, and not where it recognises masked inputs.",
        [Table([Column(head) for head in heads], rows)],
    )


def foresight(score: StudyScore) -> Section:
    """Each arm beside chance and the canary."""
    columns = (
        *(Column("arm"), Column("before costs", right=True), Column("by chance, 95%", right=True)),
        *(Column("p", right=True), Column("dates", right=True), Column("deviations", right=True)),
        *(Column("better dates", right=True), Column("captured", right=True), Column("verdict")),
    )
    own = [arm for arm in score.arms if not arm.control]
    dark = bool(unseen(score))
    rows = [[*_chance(arm), *_sight(arm.foresight, arm.name, dark=dark)] for arm in own]
    canary = [Cell("look-ahead canary"), Cell(""), Cell(""), Cell("")]
    *figures, verdict = _sight(score.canary, "", dark=dark)
    rows.append([*canary, *figures, NOT_SEEN if canary_problem(score) else verdict])
    return Section(
        "Look-ahead",
        "Before costs: the mean excess return of a decision. By chance: the 95th percentile of its"
        " own weights dealt at random to the assets of each date, which are luck. The canary buys"
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


def _sight(of: Foresight | NotShown, arm: str, *, dark: bool) -> Sequence[Cell]:
    """Four figures and the verdict; where all is `dark` the report's last sentence says why."""
    if isinstance(of, NotShown):
        why = Cell("") if dark else Cell(words.not_shown(of), Tone.QUIET)
        return *(Cell("") for _ in range(4)), why
    return (
        Cell(f"{of.dates:,}", arm=arm),
        Cell(f"{of.deviations:+.1f}", arm=arm),
        Cell(words.share(of.better), arm=arm),
        Cell(words.share(of.captured), arm=arm),
        LEAKS[of.verdict],
    )


def names(score: StudyScore) -> Section | None:
    """Named arms less the same masked, and probes of what masked inputs give away; None where
    there are neither."""
    if not score.masked and not score.probes:
        return None
    columns = (
        *(Column("provider"), Column("named"), Column("masked")),
        *(Column("right choices", right=True), Column("95% interval", wide=True)),
        *(Column("excess", right=True), Column("95% interval"), Column("q", right=True)),
        *(Column("changed", right=True), Column("moved", right=True, wide=True)),
        Column("verdict"),
    )
    rows = [
        [
            Cell(gap.provider),
            *(Cell(arm, arm=arm) for arm in (gap.named, gap.masked)),
            words.estimate(gap.hits, words.points),
            Cell(words.interval(gap.hits, Measure.HITS)),
            words.estimate(gap.excess, words.gain),
            Cell(words.excess_interval(gap.excess)),
            Cell(words.resolution(gap.excess) if isinstance(gap.excess, Estimate) else ""),
            Cell(words.share(gap.changed)),
            Cell(words.share(gap.moved)),
            _names_verdict(gap),
        ]
        for gap in score.masked
    ]
    notes = []
    probes = [_probe(probe) for probe in score.probes]
    tables = [Table(columns, rows)] if rows else []
    if probes:
        heads = (
            *(Column("arm"), Column("dates", right=True), Column("identified", right=True)),
            *(Column("95% interval"),),
            *(Column("by guessing", right=True), Column("industry", right=True, wide=True)),
            *(Column("date within 90 days", right=True, wide=True), Column("verdict")),
        )
        tables.append(Table(heads, probes, "Identification of masked inputs"))
        notes.append(
            "an input is what a masked arm sees of a ticker at a date; blind: at the high end of"
            f" the interval at most {IDENTIFIED_PCT}% are identified beyond guessing; the interval"
            " allows for the answers of a date having much in common"
        )
    return Section(
        "Names",
        "A provider with names less the same without, in percentage points of right choices and in"
        " excess return of a decision; q and interval beside it are of the excess. Changed: choices"
        " that differ; moved: the mean distance of the weights. Below 0 names distract: it is no"
        " pure leakage. They tell it nothing where they bring 5 points of right choices at most, at"
        " the high end.",
        tables,
        notes=notes,
    )


def _probe(probe: Probe) -> Sequence[Cell]:
    industry = f"{probe.industries} of {probe.industries_asked}" if probe.industries_asked else ""
    low, high = probe.low, probe.high
    interval = "" if low is None or high is None else f"{words.share(low)} to {words.share(high)}"
    return (
        Cell(probe.arm, arm=probe.arm, is_probed=True),
        Cell(f"{probe.cells:,}", arm=probe.arm, is_probed=True),
        Cell(f"{probe.hits} of {probe.asked}", arm=probe.arm, is_probed=True),
        Cell(interval),
        Cell(words.share(probe.by_guessing)),
        Cell(industry, arm=probe.arm, is_probed=True),
        Cell(f"{probe.dates} of {probe.asked}", arm=probe.arm, is_probed=True),
        SEES[probe.blind]
        if interval
        else Cell(f"not shown: {probe.cells} dates, needs {probe.needed}", Tone.QUIET),
    )


def _names_verdict(gap: MaskGap) -> Cell:
    """The words for what names bring; where it is open, how many dates would show it."""
    if gap.verdict is LeakVerdict.LEAKS:
        return Cell("names help it", Tone.BAD)
    if gap.verdict is LeakVerdict.CLEAR:
        return Cell("names tell it nothing", Tone.GOOD)
    return words.verdict(gap.hits if isinstance(gap.hits, NotShown) else gap.excess)


def cutoffs(score: StudyScore) -> Section | None:
    """Models before their knowledge ended, less after it; None where no arm is a model's."""
    if not score.cutoffs:
        return None
    columns = (
        *(Column("arm"), Column("knowledge ends", right=True), Column("dates", right=True)),
        *(Column("difference", right=True),),
        *(Column("95% interval"), Column("p", right=True), Column("q", right=True)),
        Column("verdict"),
    )
    rows = []
    for one in score.cutoffs:
        gap = one.gap
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
                Cell(one.arm, arm=one.arm),
                Cell(f"{one.cutoff}" if one.cutoff else "unknown"),
                Cell(f"{gap.dates:,}" if isinstance(gap, Estimate) else ""),
                words.estimate(gap, words.gain, one.arm) if known else Cell(""),
                Cell(words.excess_interval(gap)),
                Cell(words.probability(gap.p) if isinstance(gap, Estimate) else ""),
                Cell(words.resolution(gap) if isinstance(gap, Estimate) else ""),
                ahead,
            ]
        )
    return Section(
        "Before and after the model's knowledge",
        "Excess returns that had ended by the cutoff, less those of dates over 90 days behind it.",
        [Table(columns, rows)],
    )
