"""p95 of the console's pages and of the reading commands over a large database:
`python -m benchmarks.pages [--operations 100000 --times 40 --commands 20]`.

One desk on servers of its own with something of everything on record (`tests.browser.desk`); one
account decides on each of the bundled prices' last 250 sessions, so that its ledger has a year of
orders, fills and snapshots; then a decision, an exit cycle and a failed one are copied with their
events and journals until there are so many operations. Every page is asked for in turn, as a
browser does without its pictures: from the request to the answer's last byte. Every reading command
is a process of its own, from its start to its end, over the same desk; what that process computes
stands beside it, which a busy machine changes less. A page's or command's first time stands apart.
`--json` has every single time. `--times 0` leaves out the pages, `--operations 0` the copies.
"""

import argparse
import asyncio
import json
import math
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Final

import httpx2

from benchmarks.report import table
from benchmarks.year import LAST_SESSION, sessions_before
from tests.browser.big_tables import grow, paths
from tests.browser.desk import Shown, shown_desk
from tests.browser.looks import STATUSES
from tests.integration.desk.caller import Json, wish
from tests.integration.desk.command_line import CommandLine
from tests.open_folder import open_folder

ACCOUNT: Final = "year"
SESSIONS: Final = 250
OPERATIONS: Final = 100_000
PAGE_MS_MAX: Final = 200.0
COMMAND_MS_MAX: Final = 400.0
PAGE_S_MAX: Final = 60.0
QUANTILE: Final = 0.95


@dataclass
class Times:
    """The milliseconds of one page or command, in order."""

    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    """Of the processes that it started and saw end, user and system: of a page none."""

    @property
    def first(self) -> float:
        return self.ms[0]

    @property
    def later(self) -> Sequence[float]:
        """All but the first; that one, where there is no other."""
        return self.ms[1:] or self.ms

    @property
    def p95(self) -> float:
        """Below or at which 95% of the later ones lie."""
        return sorted(self.later)[math.ceil(QUANTILE * len(self.later)) - 1]


def main() -> None:
    """Fill, measure, print."""
    arguments = _parse()
    with shown_desk() as desk:
        _say(f"{arguments.sessions} decisions of account {ACCOUNT}")
        asyncio.run(_decide(desk, arguments.sessions))
        shown = replace(desk, account=ACCOUNT)
        rows = asyncio.run(grow(shown, arguments.operations)) if arguments.operations else {}
        _say(", ".join(f"{count:,} {name}" for name, count in rows.items()))
        pages = _pages(shown, arguments.times) if arguments.times else {}
        commands = _commands(shown, arguments.commands)
    if arguments.json:
        measured = {"rows": rows, "pages": pages, "commands": commands}
        print(json.dumps(measured, default=asdict))
        return
    print(", ".join(f"{count:,} {name}" for name, count in rows.items()))
    if pages:
        print(f"\n{_render('page', pages, PAGE_MS_MAX)}")
    print(f"\n{_render('command', commands, COMMAND_MS_MAX)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--sessions", type=int, default=SESSIONS, help="decided by the account")
    parser.add_argument("--times", type=int, default=40, help="that each page is asked for")
    parser.add_argument("--commands", type=int, default=20, help="times that each command runs")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


async def _decide(shown: Shown, sessions: int) -> None:
    """A decision cycle of the account on each of the last sessions."""
    pipelines = [{"name": "rules", "account": ACCOUNT}]
    async with shown.desk.calling("user") as caller:
        for session in sessions_before(LAST_SESSION, sessions):
            cycle: Json = await caller.run(wish(as_of=session.isoformat(), pipelines=pipelines))
            if cycle["status"] != "completed":
                sys.exit(f"the cycle of {session} ended {cycle['status']}")


def _pages(shown: Shown, times: int) -> Mapping[str, Times]:
    headers = {"Accept": "text/html"}
    with httpx2.Client(base_url=shown.url, headers=headers, timeout=PAGE_S_MAX) as http:

        def ask(name: str, path: str) -> None:
            answer = http.get(path)
            if answer.status_code != STATUSES.get(name, 200):
                sys.exit(f"{path} answered {answer.status_code}: {answer.text[:500]}")

        asked = {
            name: lambda name=name, path=path: ask(name, path)
            for name, path in paths(shown).items()
        }
        return _in_turn(asked, times)


def _commands(shown: Shown, times: int) -> Mapping[str, Times]:
    with open_folder() as folder:
        deskbus = CommandLine(shown.desk.settings.data_dir, folder)

        def run(typed: str) -> None:
            left = deskbus(typed)
            if left.code:
                sys.exit(f"deskbus {typed} ended with {left.code}: {left.err}")

        asked = {typed: lambda typed=typed: run(typed) for typed in _reading(shown)}
        return _in_turn(asked, times)


def _reading(shown: Shown) -> Sequence[str]:
    """Every command that only reads and ends, over what this desk has; `tail` does not end."""
    cycle, account = shown.decided["cycle_id"], shown.account
    return (
        "accounts",
        "accounts --all",
        "approvals list",
        "budget",
        "budget --days 7",
        "config",
        "cycle list",
        "cycle list --limit 200",
        "cycle list --status failed",
        "cycle list --sort took",
        "cycle list --text AAPL",
        f"cycle list --account {account}",
        "cycle show",
        f"cycle show {cycle}",
        f"cycle show {cycle} --evidence AAPL",
        f"cycle show {cycle} --stage quant",
        "dlq list",
        f"dlq show {shown.letter}",
        f"exit-signals distances --account {account}",
        "halt --status",
        "leaderboard",
        "leaderboard --all",
        "logs postgres",
        "notify list",
        "notify history",
        "operations list",
        "operations list --limit 200",
        "operations list --status failed",
        "operations list --text AAPL",
        f"operations list --account {account}",
        f"operations show {shown.operation}",
        f"operations tree {cycle}",
        f"performance {account}",
        f"portfolio {account}",
        f"report --account {account}",
        "schedule list",
        "status",
        "strategies list",
        f"strategies show {shown.strategy}",
        f"strategies compare {shown.strategy} {shown.other}",
        f"trades {account}",
        "study list",
        f"study status {shown.study}",
    )


def _in_turn(asked: Mapping[str, Callable[[], None]], times: int) -> Mapping[str, Times]:
    """Each of them so often, one after the other, all of them before one comes again."""
    measured = {name: Times() for name in asked}
    for number in range(1, times + 1):
        for name, ask in asked.items():
            began, computed_s = time.perf_counter(), _ended_cpu_s()
            ask()
            measured[name].ms.append(1e3 * (time.perf_counter() - began))
            measured[name].cpu_ms.append(1e3 * (_ended_cpu_s() - computed_s))
        _say(f"{number} of {times}")
    return measured


def _ended_cpu_s() -> float:
    """The CPU time of this process's children that have ended; the desk's servers run on."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _render(what: str, measured: Mapping[str, Times], limit_ms: float) -> str:
    """A table, those above the limit first, then the slowest; and what all of them together say."""
    rows = sorted(measured.items(), key=lambda row: -row[1].p95)
    missed = [name for name, times in rows if times.p95 > limit_ms]
    body = [
        [
            f"`{name}`",
            *(f"{ms:,.0f}" for ms in (times.p95, median(times.later), times.first)),
            f"{median(times.cpu_ms):,.0f}",
            "missed" if times.p95 > limit_ms else "met",
        ]
        for name, times in rows
    ]
    count = len(rows[0][1].ms)
    together = Times([0.0, *_all(times.later for times in measured.values())])
    return (
        f"{table([f'{what}, {count} times', 'p95, ms', 'p50', 'first', 'CPU, p50', ''], body)}\n\n"
        f"goal: p95 at most {limit_ms:g} ms; missed by {len(missed)} of {len(rows)}; "
        f"of all together p95 {together.p95:,.0f} ms, p50 {median(together.later):,.0f} ms"
    )


def _all(parts: Iterable[Sequence[float]]) -> Iterable[float]:
    return (ms for part in parts for ms in part)


if __name__ == "__main__":
    main()
