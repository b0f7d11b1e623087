"""The cells of a study: which sessions, in which order. Pure; the same file, the same cells."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from itertools import pairwise
from random import Random

from contracts.cycle import DECISION, EXIT, PROBE, Budgets, CycleRequest, StudyCell
from contracts.study import CELLS_MAX, Study, StudyKind, pipelines_of

BUDGET_STEP = Decimal("0.000001")
"""Of a request's budget in dollars; what models cost has two places more."""


class DesignError(ValueError):
    """A study that cannot be run as it stands: `field` of its file says where."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class DesignCell:
    """One cycle of a study: the number of its date from 0, its sample, its session and kind."""

    number: int
    sample: int
    as_of: date
    kind: str = DECISION


def dates_of(study: Study, sessions: Sequence[date]) -> Sequence[date]:
    """The sessions that a study is about, the earliest first; `sessions` are the exchange's.

    With `count` they are a stratified sample: the stretch from first to last is cut into as many
    equal parts, and each gives one session, drawn by the seed; where parts are longer than the
    longest horizon, from those whose horizon is over before the next part begins, so that each
    date says something new. Raises DesignError.
    """
    wish = study.dates
    if wish.sessions:
        known = set(sessions)
        for day in wish.sessions:
            if day not in known:
                raise DesignError("dates.sessions", f"{day} is no session")
        return wish.sessions
    within = [day for day in sessions if wish.first <= day <= wish.last]  # type: ignore[operator]
    if not within:
        raise DesignError("dates", f"no session lies from {wish.first} to {wish.last}")
    if wish.count is None:
        return within
    if wish.count > len(within):
        raise DesignError(
            "dates.count", f"{wish.count} of {len(within)} sessions cannot be drawn: lower it"
        )
    draw = Random(f"{study.seed}/dates")  # noqa: S311 - a sample, no secret
    bounds = [len(within) * part // wish.count for part in range(wish.count + 1)]
    reach = max(study.horizons)

    def drawn(low: int, high: int) -> date:
        apart = high - low - reach + 1
        return within[low + draw.randrange(apart if apart > 0 else high - low)]

    return [drawn(low, high) for low, high in pairwise(bounds)]


def cells_of(study: Study, dates: Sequence[date]) -> Sequence[DesignCell]:
    """All cells in the order in which they run. Raises DesignError where there are too many.

    A `path` checks its exits at every session and decides at every one of `dates.every`. Probes
    are at dates equally far apart.
    """
    if study.probe > len(dates):
        raise DesignError("probe", f"there are {len(dates)} dates: lower it")
    probed = {place * len(dates) // study.probe for place in range(study.probe)}
    cells: list[DesignCell] = []
    for number, day in enumerate(dates):
        for kind in _kinds(study, number):
            cells += [DesignCell(number, sample, day, kind) for sample in range(study.samples)]
        if number in probed:
            cells.append(DesignCell(number, 0, day, PROBE))
    if len(cells) > CELLS_MAX:
        raise DesignError("dates", f"{len(cells):,} cells, and the limit is {CELLS_MAX:,}")
    return cells


def _kinds(study: Study, number: int) -> Iterator[str]:
    if study.kind is StudyKind.PATH and number:  # before, nothing is held
        yield EXIT
    if study.kind is StudyKind.PICKS or number % study.dates.every == 0:
        yield DECISION


@dataclass(frozen=True, slots=True)
class CellCosts:
    """Tokens and dollars that a cell's models cost in earlier rounds."""

    tokens: int = 0
    cost_usd: Decimal = Decimal(0)


NOTHING_SPENT = CellCosts()


def key_of(study: str, cell: DesignCell, round_: int = 1) -> str:
    """The idempotency key of a cell in a round: whoever asks for it, it is one cycle."""
    again = "" if round_ == 1 else f"/{round_}"
    return f"{study}/{cell.kind}/{cell.number}/{cell.sample}{again}"


FILE_FIELDS = {"pipelines": "arms", "budgets": "budget", "as_of": "dates"}
"""By the field of a cell's request: what a study's file calls it."""


def request_of(
    study: Study,
    cell: DesignCell,
    *,
    offline: bool = False,
    round_: int = 1,
    spent: CellCosts = NOTHING_SPENT,
    dry_run: bool = False,
) -> CycleRequest:
    """The request of a cell: an ordinary cycle, whose pipelines are the arms. What it has `spent`
    in earlier rounds is taken from the most that it may cost. `dry_run`: it is only judged."""
    budget = study.budget
    left_usd = max(budget.cell_cost_usd - spent.cost_usd, Decimal(0))
    return CycleRequest(
        idempotency_key=key_of(study.name, cell, round_),
        kind=cell.kind,
        as_of=cell.as_of,
        universe=study.universe,
        pipelines=pipelines_of(study, cell.number, cell.sample, cell.kind, round_),
        budgets=Budgets(
            tokens=max(budget.cell_tokens - spent.tokens, 0),
            cost_usd=left_usd.quantize(BUDGET_STEP, ROUND_FLOOR),
        ),
        study=StudyCell(
            study=study.name,
            number=cell.number,
            sample=cell.sample,
            seed=seed_of(study, cell),
            offline=offline,
            dry_run=dry_run,
        ),
    )


def file_field(field: str) -> str:
    """The place in a study's file that a field of a cell's request was made of."""
    first, dot, rest = field.partition(".")
    return f"{FILE_FIELDS.get(first, first)}{dot}{rest}"


def seed_of(study: Study, cell: DesignCell) -> int:
    """The seed of a cell's commands: the same wherever the same session is sampled again, so that
    two studies put the same question to a model."""
    text = f"{study.seed}/{cell.as_of}/{cell.sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
