"""From the runs of a benchmark to Markdown tables: medians with the lowest and highest beside them.

Pure: runs in, text out. A run is the result line of a contender with the runner's measurements.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

Run = dict[str, Any]

SUBJECT: Final = "deskbus"
CLAIMED: Final = "deskbus-claimed"
FLOORS: Final = "floors"
COMMITS_A_CYCLE: Final = 8
PUBLISHES_A_CYCLE: Final = 7


@dataclass(frozen=True)
class Target:
    """One number that the desk has to reach, and how it is taken from a round that has `needs`."""

    text: str
    limit: float
    at_least: bool
    of: Callable[[dict[str, Run]], float]
    needs: tuple[str, ...] = (SUBJECT,)

    def met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


def _ratio(measure: str, peer: str) -> Callable[[dict[str, Run]], float]:
    return lambda round_: round_[SUBJECT][measure] / round_[peer][measure]


def _against(measure: str, peer: str, limit: float, *, at_least: bool) -> Target:
    words = {"per_s": "cycles/s", "p50_alone_ms": "p50 alone"}[measure]
    text = f"{words}, times {peer}"
    return Target(text, limit, at_least, _ratio(measure, peer), (SUBJECT, peer))


TARGETS: Final = (
    Target("cycles/s", 300, at_least=True, of=lambda round_: round_[SUBJECT]["per_s"]),
    Target("CPU-ms a cycle", 5, at_least=False, of=lambda round_: round_[SUBJECT]["cpu_ms"]),
    Target(
        "cycles/s, claimed",
        150,
        at_least=True,
        of=lambda round_: round_[CLAIMED]["per_s"],
        needs=(CLAIMED,),
    ),
    _against("p50_alone_ms", "langgraph", 1.2, at_least=False),
    # Each peer in the fastest way found: nothing is asked for, and the table shows it.
    _against("per_s", "langgraph-savers-2", 1, at_least=True),
    _against("per_s", "dbos-sync-2", 1, at_least=True),
)

COLUMNS: Final = {
    "cycles/s": "per_s",
    "CPU-ms a cycle": "cpu_ms",
    "of that, own processes": "cpu_own_ms",
    "Postgres": "cpu_postgres_ms",
    "NATS": "cpu_nats_ms",
    "one alone, p50 ms": "p50_alone_ms",
    "in flight, p50 ms": "p50_loaded_ms",
    "transactions a cycle": "transactions",
}
FLOOR_ROWS: Final = {
    "JetStream publish + ack": "jetstream",
    "core request + reply": "request",
    "asyncpg insert + commit": "commit",
}


def render(rounds: Sequence[dict[str, Run]], machine: str) -> str:
    """All tables of a workflow benchmark; a table whose contenders did not run is left out."""
    parts = (_workflows, _floors, _shares, _ratios, _targets)
    return "\n\n".join([machine, *filter(None, (part(rounds) for part in parts))])


def missed(rounds: Sequence[dict[str, Run]]) -> list[str]:
    """The targets whose median over the rounds is not met; those not measured do not count."""
    return [
        target.text
        for target in TARGETS
        if (values := _measured(target, rounds)) and not target.met(statistics.median(values))
    ]


def spread(values: Iterable[float]) -> str:
    """`median (lowest-highest)` with three significant figures."""
    found = sorted(values)
    middle = _short(statistics.median(found))
    return middle if len(found) == 1 else f"{middle} ({_short(found[0])}-{_short(found[-1])})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; everything but the first column is aligned to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _runs(rounds: Sequence[dict[str, Run]], name: str) -> list[Run]:
    return [round_[name] for round_ in rounds if name in round_]


def _names(rounds: Sequence[dict[str, Run]]) -> list[str]:
    return [name for name in rounds[0] if name != FLOORS]


def _workflows(rounds: Sequence[dict[str, Run]]) -> str:
    names = _names(rounds)
    if not names:
        return ""
    first = _runs(rounds, names[0])[0]
    rows = [
        [name, *(spread(run[key] for run in _runs(rounds, name)) for key in COLUMNS.values())]
        for name in names
    ]
    title = (
        f"Seven steps, {first['in_flight']} cycles in flight, {first['cycles']} cycles a round, "
        f"{len(rounds)} rounds: median (lowest-highest)"
    )
    return f"{title}\n\n{table(['contender', *COLUMNS], rows)}"


def _floors(rounds: Sequence[dict[str, Run]]) -> str:
    runs = _runs(rounds, FLOORS)
    if not runs:
        return ""
    keys = ("alone_per_s", "alone_p50_ms", "loaded_per_s")
    rows = [
        [label, *(spread(run[f"{name}_{key}"] for run in runs) for key in keys)]
        for label, name in FLOOR_ROWS.items()
    ]
    head = ["floor", "alone, per s", "alone, p50 ms", f"{runs[0]['in_flight']} in flight, per s"]
    return table(head, rows)


def _shares(rounds: Sequence[dict[str, Run]]) -> str:
    both = [round_ for round_ in rounds if FLOORS in round_ and len(round_) > 1]
    if not both:
        return ""

    def share(name: str, floor: str, a_cycle: int) -> str:
        return spread(
            100 * round_[name]["per_s"] * a_cycle / round_[FLOORS][f"{floor}_loaded_per_s"]
            for round_ in both
        )

    rows = [
        [
            name,
            share(name, "commit", COMMITS_A_CYCLE),
            share(name, "jetstream", PUBLISHES_A_CYCLE),
        ]
        for name in _names(rounds)
    ]
    head = [
        "share of the floor, %",
        f"{COMMITS_A_CYCLE} single commits a cycle",
        f"{PUBLISHES_A_CYCLE} JetStream publishes a cycle",
    ]
    return table(head, rows)


def _ratios(rounds: Sequence[dict[str, Run]]) -> str:
    peers = [name for name in _names(rounds) if name != SUBJECT]
    if SUBJECT not in rounds[0] or not peers:
        return ""
    measures = {"cycles/s": "per_s", "CPU a cycle": "cpu_ms", "p50 alone": "p50_alone_ms"}
    rows = [
        [
            f"round {number}, {SUBJECT} / {peer}",
            *(_short(_ratio(key, peer)(round_)) for key in measures.values()),
        ]
        for number, round_ in enumerate(rounds, start=1)
        for peer in peers
    ]
    return table(["ratio", *measures], rows)


def _targets(rounds: Sequence[dict[str, Run]]) -> str:
    """The targets, the missed ones first."""
    rows = []
    for target in TARGETS:
        if values := _measured(target, rounds):
            sign = "at least" if target.at_least else "at most"
            verdict = "met" if target.met(statistics.median(values)) else "missed"
            rows.append([target.text, f"{sign} {target.limit:g}", spread(values), verdict])
    rows.sort(key=lambda row: row[-1] == "met")
    return table(["target", "limit", "measured", ""], rows) if rows else ""


def _measured(target: Target, rounds: Sequence[dict[str, Run]]) -> list[float]:
    return [target.of(round_) for round_ in rounds if {*target.needs} <= round_.keys()]
