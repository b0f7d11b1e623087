"""The sections on who has seen the prices to come, or remembers them. Pure."""

from collections.abc import Iterator, Sequence
from math import ceil

from contracts.study_score import (
    ArmScore,
    Estimate,
    Foresight,
    LeakVerdict,
    MaskGap,
    NotShown,
    Permuted,
    Probe,
    Shown,
    StudyScore,
)
from libs.report.tones import Tone
from libs.report.view import Cell, table
from libs.study.report import words
from libs.study.report.parts import Missing, StudySection, numbers, text
from libs.study.statistics.canary import LEAK_DEVIATIONS, LEAK_SHARE

IDENTIFIED_PCT = 10
NO_PAIR = "no provider has an arm with names and one without"
NO_PROBE = "no probe is on record"
LEAKS = {
    LeakVerdict.LEAKS: Cell("looks ahead", tone=Tone.BAD),
    LeakVerdict.CLEAR: Cell("nothing seen", tone=Tone.GOOD),
    LeakVerdict.NOT_SHOWN: Cell(),
}
"""Of an arm; where nothing is shown the report's last sentence says why."""
KNOWS = {
    LeakVerdict.LEAKS: Cell("leaks", tone=Tone.BAD),
    LeakVerdict.CLEAR: Cell("no leak found", tone=Tone.GOOD),
    LeakVerdict.NOT_RESOLVED: words.quiet("not resolved"),
    LeakVerdict.NOT_SHOWN: words.quiet("not shown"),
}
SEES = {
    True: Cell("blind", tone=Tone.GOOD),
    False: Cell("not blind", tone=Tone.BAD),
    None: words.quiet("not shown"),
}


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


def leakage(score: StudyScore) -> StudySection | None:
    """The verdict on each provider; None where no look shows anything."""
    if not _is_known(score):
        return None
    heads = ("Provider", "Arms", "Look-ahead", "Names", "Masked inputs", "Verdict")
    rows = [
        (
            it.provider,
            ", ".join(it.arms),
            KNOWS[it.foresight],
            KNOWS[it.names],
            SEES[it.blind] if it.probed else words.quiet("not asked"),
            KNOWS[it.verdict],
        )
        for it in score.leakage
    ]
    return StudySection(
        "Leakage",
        "Whether a provider knows the prices to come, by the two looks below: its choices beside"
        " chance, and its named arm less its masked one. One that shows a leak is enough; it is"
        " cleared by both alone, and not where it recognises masked inputs.",
        [table(text(*heads), rows)],
    )


def foresight(score: StudyScore) -> StudySection:
    """Each arm beside chance and the canary."""
    columns = (
        *text("Arm"),
        *numbers("Before costs", "By chance, 95%", "p", "Dates", "Deviations"),
        *numbers("Better dates", "Captured"),
        *text("Verdict"),
    )
    dark = bool(unseen(score))
    rows = [
        (words.arm(arm.name), *_chance(arm), *_sight(arm.foresight, dark=dark))
        for arm in score.arms
        if not arm.control
    ]
    *figures, verdict = _sight(score.canary, dark=dark)
    seen = words.quiet("not seen") if canary_problem(score) else verdict
    return StudySection(
        "Look-ahead",
        "Before costs: the mean excess return of a decision. By chance: the 95th percentile of its"
        " own weights dealt at random to the assets of each date, which are luck. The canary buys"
        " the winners of the week to come and must light up red; an arm that chooses as it does has"
        " seen them too: many deviations above luck, and better than its usual choice mostly."
        " Captured: its part of what the canary gains.",
        [table(columns, [*rows, ("look-ahead canary", "", "", "", *figures, seen)])],
    )


def _chance(arm: ArmScore) -> Sequence[str | Cell]:
    of = arm.permuted
    if not isinstance(of, Permuted):
        return words.quiet(words.not_shown(of)), "", ""
    return (
        Cell(words.gain(of.actual), tone=Tone.GOOD if of.passed else None),
        words.gain(of.permuted),
        words.probability(of.p),
    )


def _sight(of: Foresight | NotShown, *, dark: bool) -> Sequence[str | Cell]:
    """Four figures and the verdict; where all is `dark` the report's last sentence says why."""
    if isinstance(of, NotShown):
        return "", "", "", "", "" if dark else words.quiet(words.not_shown(of))
    figures = (f"{of.dates:,}", f"{of.deviations:+.1f}")
    return *figures, words.share(of.better), words.share(of.captured), LEAKS[of.verdict]


def names(score: StudyScore) -> StudySection | None:
    """Named arms less the same masked, and probes of what masked inputs give away; None where
    there are neither."""
    if not score.masked and not score.probes:
        return None
    columns = (
        *text("Provider", "Named", "Masked"),
        *numbers("Right choices"),
        *text("95% interval", spare=1),
        *numbers("Excess"),
        *text("95% interval"),
        *numbers("q", "Changed"),
        *numbers("Moved", spare=1),
        *text("Verdict"),
    )
    rows = [
        (
            gap.provider,
            words.arm(gap.named),
            words.arm(gap.masked),
            *words.measured(gap.hits, words.points),
            *words.measured(gap.excess, words.gain),
            words.tested(gap.excess)[1],
            words.share(gap.changed),
            words.share(gap.moved),
            _names_verdict(gap),
        )
        for gap in score.masked
    ]
    tables, notes = [table(columns, rows)] if rows else [], []
    if score.probes:
        heads = (
            *text("Arm"),
            *numbers("Dates", "Identified"),
            *text("95% interval"),
            *numbers("By guessing"),
            *numbers("Industry", "Date within 90 days", spare=1),
            *text("Verdict"),
        )
        title = "Identification of masked inputs"
        tables.append(table(heads, map(_probe, score.probes), title))
        notes.append(
            "an input is what a masked arm sees of a ticker at a date; blind: at the high end of"
            f" the interval at most {IDENTIFIED_PCT}% are identified beyond guessing; the interval"
            " allows for the answers of a date having much in common"
        )
    return StudySection(
        "Names",
        "A provider with names less the same without, in percentage points of right choices and in"
        " excess return of a decision; q and interval beside it are of the excess. Changed: choices"
        " that differ; moved: the mean distance of the weights. Below 0 names distract: it is no"
        " pure leakage. They tell it nothing where they bring 5 points of right choices at most, at"
        " the high end.",
        tables,
        notes=notes,
    )


def _probe(probe: Probe) -> Sequence[str | Cell]:
    low, high = probe.low, probe.high
    interval = "" if low is None or high is None else f"{words.share(low)} to {words.share(high)}"
    few = words.quiet(f"not shown: {probe.cells} dates, needs {probe.needed}")
    return (
        words.arm(probe.arm, "probe"),
        f"{probe.cells:,}",
        f"{probe.hits} of {probe.asked}",
        interval,
        words.share(probe.by_guessing),
        f"{probe.industries} of {probe.industries_asked}" if probe.industries_asked else "",
        f"{probe.dates} of {probe.asked}",
        SEES[probe.blind] if interval else few,
    )


def _names_verdict(gap: MaskGap) -> Cell:
    """The words for what names bring; where it is open, how many dates would show it."""
    if gap.verdict is LeakVerdict.LEAKS:
        return Cell("names help it", tone=Tone.BAD)
    if gap.verdict is LeakVerdict.CLEAR:
        return Cell("names tell it nothing", tone=Tone.GOOD)
    return words.verdict(gap.hits if isinstance(gap.hits, NotShown) else gap.excess)


def cutoffs(score: StudyScore) -> StudySection | None:
    """Models before their knowledge ended, less after it; None where no arm is a model's."""
    if not score.cutoffs:
        return None
    columns = (
        *text("Arm"),
        *numbers("Knowledge ends", "Dates", "Difference"),
        *text("95% interval"),
        *numbers("p", "q"),
        *text("Verdict"),
    )
    rows = [
        (
            words.arm(one.arm),
            f"{one.cutoff}" if one.cutoff else "unknown",
            f"{one.gap.dates:,}" if isinstance(one.gap, Estimate) else "",
            *words.measured(one.gap, words.gain),
            *words.tested(one.gap),
            _cutoff_verdict(one.gap),
        )
        for one in score.cutoffs
    ]
    return StudySection(
        "Before and after the model's knowledge",
        "Excess returns that had ended by the cutoff, less those of dates over 90 days behind it.",
        [table(columns, rows)],
    )


def _cutoff_verdict(gap: Shown) -> Cell:
    if isinstance(gap, NotShown) or not gap.resolved:
        return words.verdict(gap)
    if gap.estimate > 0:
        return Cell("better before", tone=Tone.BAD)
    return Cell("better after", tone=Tone.GOOD)
