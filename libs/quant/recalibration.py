"""Confidences recalibrated by outcomes: how often came true what was stated as surely. Pure.

Outcomes are fitted by the rising step function that is nearest to them (isotonic regression: pool
adjacent violators), as the reliability curves of studies are; no bins are chosen.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby

from contracts.memory import STATED_MAX, StatedOutcome
from contracts.risk import RECALIBRATION_POINTS, Recalibration
from contracts.trader import Recalibrated

TRUSTED_FROM = STATED_MAX
"""With fewer outcomes a recalibrated probability is drawn towards the base rate, in proportion."""
GRID = tuple(round(step / (RECALIBRATION_POINTS - 1), 2) for step in range(RECALIBRATION_POINTS))
"""The stated confidences of a table."""
_PLACES = 4


def recalibration(
    outcomes: Iterable[StatedOutcome], provider: str, before: date, least: int
) -> Recalibration | None:
    """The table by what was known of a provider's confidences before a session.

    None with fewer than `least` outcomes, or where `least` is 0. Up to TRUSTED_FROM outcomes it is
    drawn towards the base rate, by the part that is missing. Those of decisions with a fallback are
    left out, and counted.
    """
    every = [row for row in outcomes if row.provider == provider and row.known_on < before]
    known = [row for row in every if not row.fell_back]
    if least == 0 or len(known) < max(least, 1):
        return None
    stated, happened = isotonic([(row.stated, row.beat) for row in known])
    base = sum(row.beat for row in known) / len(known)
    trust = min(len(known) / TRUSTED_FROM, 1.0)
    drawn = [trust * between(at, stated, happened) + (1 - trust) * base for at in GRID]
    return Recalibration(
        provider=provider,
        outcomes=len(known),
        left_out=len(every) - len(known),
        known_until=max(row.known_on for row in known),
        happened=tuple(round(min(max(value, 0.0), 1.0), _PLACES) for value in drawn),
    )


def recalibrated(table: Recalibration, stated: float) -> Recalibrated:
    """How often came true what was stated as surely; it may be higher than what was stated."""
    return Recalibrated(
        confidence=round(between(stated, GRID, table.happened), _PLACES),
        outcomes=table.outcomes,
        left_out=table.left_out,
        known_until=table.known_until,
    )


def unproven(
    outcomes: Iterable[StatedOutcome], provider: str, as_of: date, needed: int
) -> Recalibrated:
    """The lowest confidence, of whom too few outcomes are known before `as_of`."""
    known = [row for row in outcomes if row.provider == provider and row.known_on < as_of]
    return Recalibrated(confidence=0.0, outcomes=len(known), known_until=as_of, needed=needed)


def in_words(stated: float, again: Recalibrated) -> str:
    """`stated 0.62, recalibrated 0.55 from 84 outcomes known until 2012-06-29`, and how many were
    left out; of a proposer, how many of its outcomes are known of those that it needs."""
    if again.needed:
        return (
            f"stated {stated:.2f}, counts as {again.confidence:.2f} until {again.needed} outcomes "
            f"of this proposer are known ({again.outcomes} are)"
        )
    more = f"; {again.left_out} left out, as a stage fell back" if again.left_out else ""
    return (
        f"stated {stated:.2f}, recalibrated {again.confidence:.2f} from {again.outcomes} outcomes "
        f"known until {again.known_until}{more}"
    )


def isotonic(rows: Iterable[tuple[float, bool]]) -> tuple[Sequence[float], Sequence[float]]:
    """The points between which the fitted probability runs straight: what was stated, rising, and
    how often it came true, never falling. `rows` are what was stated, and whether it came true.
    """
    blocks: list[tuple[float, float, int, int]] = []  # first and last stated, how many came true
    for stated, alike in groupby(sorted(rows), key=lambda row: row[0]):
        came = [beat for _, beat in alike]
        block = (stated, stated, sum(came), len(came))
        while blocks and blocks[-1][2] * block[3] >= block[2] * blocks[-1][3]:
            first, _, true, many = blocks.pop()
            block = (first, block[1], true + block[2], many + block[3])
        blocks.append(block)
    points = {at: true / many for first, last, true, many in blocks for at in (first, last)}
    return list(points), list(points.values())


def between(at: float, places: Sequence[float], values: Sequence[float]) -> float:
    """The value on the straight line between the two places beside `at`; beyond the ends the last
    one there. `places` rise."""
    right = bisect_left(places, at)
    if right == 0:
        return values[0]
    if right == len(places):
        return values[-1]
    part = (at - places[right - 1]) / (places[right] - places[right - 1])
    return values[right - 1] + part * (values[right] - values[right - 1])
