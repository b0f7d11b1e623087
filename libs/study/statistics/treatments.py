"""The effects of an arm's treatment and its samples: names taken away, an agent taken away, dates
after the model's knowledge, the same question asked again. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import numpy as np

from contracts.study import StudyArm
from contracts.study_score import (
    AgentGap,
    ArmScore,
    CutoffGap,
    Foresight,
    Leakage,
    LeakVerdict,
    MaskGap,
    NotShown,
    Probe,
    Stability,
)
from libs.quant.agreement import agreement
from libs.quant.arrays import Mask
from libs.study.statistics.choices import Choices
from libs.study.statistics.leakage import (
    before_less_after,
    by_names,
    identification,
    of_provider,
    sides_of_cutoff,
)
from libs.study.statistics.means import mean_over_dates
from libs.study.statistics.outcomes import StudyOutcomes
from libs.study.statistics.paired import PairedOutcome, difference
from libs.study.statistics.record import Decided, Probed
from libs.study.statistics.shown import shown

BUY, NONE = "buy", "none"


def mask_gaps(
    arms: Sequence[StudyArm], chosen: Mapping[str, Choices], of: StudyOutcomes
) -> tuple[MaskGap, ...]:
    """Each named arm beside the masked one that is asked of the same provider and models."""
    gaps = []
    for named in arms:
        for masked in arms:
            if named.masked or not masked.masked or _asks(named) != _asks(masked):
                continue
            pair = chosen[named.name], chosen[masked.name]
            gap = _gap(*pair, of)
            gaps.append(
                MaskGap(
                    provider=named.provider,
                    named=named.name,
                    masked=masked.name,
                    moved=_moved(*pair),
                    verdict=by_names(gap["hits"], gap["excess"]),
                    **gap,
                )
            )
    return tuple(gaps)


def agent_gaps(
    arms: Sequence[StudyArm], chosen: Mapping[str, Choices], of: StudyOutcomes
) -> tuple[AgentGap, ...]:
    """Each arm beside those that are the same without the models of some stages."""
    return tuple(
        AgentGap(
            arm=arm.name,
            less=less.name,
            stages=less.without,
            **_gap(chosen[arm.name], chosen[less.name], of),
        )
        for arm in arms
        for less in arms
        if not arm.without and less.without and _whole(arm) == _whole(less)
    )


def _whole(arm: StudyArm) -> str:
    """An arm but for its name and the stages that it is without."""
    return arm.model_dump_json(exclude={"name", "without"})


def _gap(first: Choices, second: Choices, of: StudyOutcomes) -> dict[str, Any]:
    """The fields of a gap that say how far one arm's choices are better than another's, and
    others."""
    both = _both(first, second)
    hits = [
        PairedOutcome(of.dates[row], float(first.hit[row, asset]), float(second.hit[row, asset]))
        for row, asset in np.argwhere(both)
    ]
    excess = (first.excess - second.excess)[both.any(axis=1)]
    changed = ((first.weight > 0) != (second.weight > 0))[both]
    return {
        "hits": shown(lambda: difference(hits, of.overlap)),
        "excess": shown(lambda: mean_over_dates(excess, of.overlap)),
        "changed": float(changed.mean()) if changed.size else 0.0,
    }


def _moved(first: Choices, second: Choices) -> float:
    """The mean distance of the weights, over dates that both decided."""
    both = _both(first, second)
    apart = np.where(both, np.abs(first.weight - second.weight), 0.0).sum(axis=1)
    return float(apart[both.any(axis=1)].mean()) if both.any() else 0.0


def _both(first: Choices, second: Choices) -> Mask:
    return np.isfinite(first.weight) & np.isfinite(second.weight)


def leakage(
    arms: Sequence[StudyArm],
    scored: Sequence[ArmScore],
    gaps: Sequence[MaskGap],
    probed: Sequence[Probe],
) -> tuple[Leakage, ...]:
    """The verdict on each provider, with the models that it is asked with, by all of its arms."""
    seen = {one.name: _foresight(one) for one in scored}
    of_pair = {gap.named: gap.verdict for gap in gaps}
    by_arm = {probe.arm: probe for probe in probed}
    rows = []
    for first in arms:
        same = [it.name for it in arms if _asks(it) == _asks(first)]
        if first.name != same[0]:
            continue  # an arm before it stands for both
        names = next((of_pair[it] for it in same if it in of_pair), LeakVerdict.NOT_SHOWN)
        foresight = [seen[it] for it in same]
        probe = next((by_arm[it] for it in same if it in by_arm), None)
        rows.append(
            Leakage(
                provider=first.provider,
                arms=tuple(same),
                foresight=_worst(foresight),
                names=names,
                probed=probe is not None,
                blind=probe.blind if probe else None,
                verdict=of_provider(foresight, names, bool(probe.blind) if probe else None),
            )
        )
    return tuple(rows)


def probes(arms: Sequence[StudyArm], probed: Sequence[Probed]) -> tuple[Probe, ...]:
    """How many masked inputs each arm's model has identified."""
    rows = []
    for arm in arms:
        dates = [one.guesses for one in probed if one.arm == arm.name and one.guesses]
        if dates:
            rows.append(identification(arm, dates))
    return tuple(rows)


def _asks(arm: StudyArm) -> tuple[str, Mapping[str, str], Sequence[str]]:
    """Whom an arm asks, whatever it shows them."""
    return arm.provider, arm.models, arm.without


def _foresight(arm: ArmScore) -> LeakVerdict:
    of = arm.foresight
    return of.verdict if isinstance(of, Foresight) else LeakVerdict.NOT_SHOWN


def _worst(verdicts: Sequence[LeakVerdict]) -> LeakVerdict:
    """A leak where one of them is, cleared where all are."""
    if LeakVerdict.LEAKS in verdicts:
        return LeakVerdict.LEAKS
    return LeakVerdict.CLEAR if {*verdicts} == {LeakVerdict.CLEAR} else LeakVerdict.NOT_SHOWN


def cutoff_gaps(
    cutoffs: Mapping[str, date | None], chosen: Mapping[str, Choices], of: StudyOutcomes
) -> tuple[CutoffGap, ...]:
    """Each model's arm before its knowledge ended, less after it."""
    gaps = []
    for arm, cutoff in cutoffs.items():
        if cutoff is None:
            why = "its provider's knowledge_cutoff is not set"
            gaps.append(CutoffGap(arm=arm, gap=NotShown(why=why)))
            continue
        it = chosen[arm]
        dated = [
            (on, end, float(value))
            for on, end, value in zip(of.dates, of.ends, it.excess, strict=True)
            if np.isfinite(value)
        ]
        sides = sides_of_cutoff(dated, cutoff)
        compare = partial(before_less_after, *sides, of.overlap)
        gaps.append(CutoffGap(arm=arm, cutoff=cutoff, gap=shown(compare)))
    return tuple(gaps)


def stability(arms: Mapping[str, Sequence[Decided]]) -> tuple[Stability, ...]:
    """The agreement of each arm's samples, over the assets that any sample of a date bought."""
    rows = []
    for arm, decided in arms.items():
        dates: dict[date, list[Decided]] = {}
        for one in decided:
            if one.ended:
                dates.setdefault(one.on, []).append(one)
        asked = [samples for samples in dates.values() if len(samples) > 1]
        agreed = [
            agreement([BUY if weight > 0 else NONE for weight in weights], weights)
            for samples in asked
            for weights in _weights(samples)
        ]
        if agreed:
            rows.append(
                Stability(
                    arm=arm,
                    samples=max(map(len, asked)),
                    agreement=sum(one.share for one in agreed) / len(agreed),
                    spread=sum(one.spread for one in agreed) / len(agreed),
                    stable=sum(one.stable for one in agreed) / len(agreed),
                    choices=len(agreed),
                )
            )
    return tuple(rows)


def _weights(samples: Sequence[Decided]) -> list[list[float]]:
    """The samples' weights of each asset that one of them bought."""
    bought = sorted({asset for sample in samples for asset in sample.weights})
    return [[sample.weights.get(asset, 0.0) for sample in samples] for asset in bought]
