# ruff: noqa: T201  (it is a command, and prints)
"""Measure the checker on faults put into read parts: `python -m tests.data.grounding.mutated [n]`.

The labelled parts are few, and each can be measured with unseen only once. So faults of the sorts
that the guide names are put into their sound claims, one at a time, and the sound claims are said
in other words: misses and false alarms by the thousand, the same ones each time. The texts have
been read, so the rates flatter; they show which rule lets what pass. Every n-th fault is tried.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from tests.data.grounding.faults import Fault, faults
from tests.data.grounding.labelled import PARAPHRASED, PARTS, Claim, Statement, statements
from tests.data.grounding.measure import checked
from tests.data.grounding.reworded import repaired, reworded

EVERY = 5
LIKE = {
    "wrong ratio": "wrong_value", "wrong day": "wrong_value", "false bound": "wrong_value",
    "other event": "other_field",
}  # fmt: skip
"""What the labels call the sorts of fault that only some claims allow."""
CELL_MIN = 5
"""Faults of one kind and sort, so that their share that passes says something."""


def every_fault(parts: tuple[str, ...] = (*PARTS, PARAPHRASED)) -> Iterator[Fault]:
    """A fault of each sort in each sound claim of some parts, one at a time."""
    for part in parts:
        for statement in map(repaired, statements(part)):
            for claim in statement.claims:
                if claim.label == "grounded":
                    yield from faults(statement, claim)


def passes(each: Fault) -> bool:
    """Whether the checker lets a fault through."""
    return not _marked(each.statement, (each.claim,))


def alarms(statement: Statement) -> frozenset[str]:
    """The ids of the sound claims that the checker marks."""
    return _marked(statement, [each for each in statement.claims if each.label != "ungrounded"])


def _marked(statement: Statement, claims: Sequence[Claim]) -> frozenset[str]:
    marks = [mark for mark in checked(statement) if not mark.grounded]
    return frozenset(
        claim.id
        for claim in claims
        if any(mark.start < claim.end and claim.start < mark.end for mark in marks)
    )


def mix() -> Counter[tuple[str, str]]:
    """How often labellers had which fault in which kind of claim."""
    return Counter(
        (claim.kind, claim.fault)
        for part in PARTS[-2:]
        for statement in statements(part)
        for claim in statement.claims
        if claim.label == "ungrounded"
    )


def measure_faults(every: int) -> None:
    """Print how many faults pass, by their sort, and weighted as labellers mixed them."""
    tried: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    cells: Counter[tuple[str, str]] = Counter()
    let: Counter[tuple[str, str]] = Counter()
    for each in islice(every_fault(), 0, None, every):
        found = passes(each)
        cell = (each.claim.kind, LIKE.get(each.fault, each.fault))
        for sort in (each.fault, "all faults"):
            tried[sort] += 1
            passed[sort] += found
        cells[cell] += 1
        let[cell] += found
    for sort, n in sorted(tried.items()):
        print(f"{sort:14} {passed[sort]:5} of {n:5} pass ({passed[sort] / n:.1%})")
    known = {cell: n for cell, n in mix().items() if cells[cell] >= CELL_MIN}
    weighted = sum(n * let[cell] / cells[cell] for cell, n in known.items())
    print(f"as labellers mixed them: {weighted / sum(known.values()):.1%}")


def measure_rewording() -> None:
    """Print how many sound claims are marked once put right or said in other words."""
    sound: Counter[str] = Counter()
    marked: Counter[str] = Counter()
    for statement in statements(PARAPHRASED):
        sound["paraphrased"] += len(statement.claims)
        marked["paraphrased"] += len(alarms(statement))
    for part in PARTS:
        for statement in statements(part):
            right = repaired(statement)
            for sort, each in [("put right", right), *reworded(right)]:
                sound[sort] += sum(claim.label != "ungrounded" for claim in each.claims)
                marked[sort] += len(alarms(each))
    for sort, n in sound.items():
        print(f"{sort:14} {marked[sort]:5} of {n:5} marked ({marked[sort] / n:.1%})")


if __name__ == "__main__":
    measure_faults(int(sys.argv[1]) if len(sys.argv) > 1 else EVERY)
    measure_rewording()
