"""How many series of metrics cycles leave: `python -m benchmarks.series [--cycles 1000]`.

`deskbus up` on a new data directory, the bundled prices, the rules provider. Each cycle has an
account and a day of its own, so whatever should not be a label has a new value each time. The
desk's /metrics is read after 10, 100 and all cycles; `make soak` runs it.

Exits 1 where the last nine tenths of the cycles made a series that their metric's row in the table
does not bound, or where an id, an account beyond those shown, or a ticker stands in a label.
"""

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.footprint import started
from benchmarks.report import table
from benchmarks.year import LAST_SESSION, running, sessions_before
from libs.runtime.loop import run
from libs.runtime.ports import choose_port
from libs.telemetry.metrics import ACCOUNTS_SHOWN_MAX, all_metrics

CYCLES = 1_000
LOOKS = (10, 100)
"""Cycles after which the series are counted, besides the last."""
OURS = "deskbus_"
UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}", re.IGNORECASE)
TICKERS = frozenset({"AAPL", "FB", "GOOG", "IBM", "MSFT"})
"""All that the bundled prices know."""

Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Look:
    """The desk's series after some cycles, and the bytes of its exposition."""

    cycles: int
    series: frozenset[Series]
    size: int


def main() -> None:
    """Print a row a look; exits 1 where a bound is broken."""
    beside = Path(sys.executable).parent / "deskbus"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deskbus", type=shlex.split, default=[str(beside)], metavar="COMMAND")
    parser.add_argument("--cycles", type=int, default=CYCLES)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    looks = _looks(given.deskbus, given.cycles)
    wrong = broken(looks[-1])
    new = sorted({name for name, _ in looks[-1].series - looks[-2].series})
    if given.json:
        sizes = {look.cycles: [len(look.series), look.size] for look in looks}
        print(json.dumps({"series_and_bytes": sizes, "grown": new, "broken": wrong}))
    else:
        rows = [[f"{look.cycles:,}", f"{len(look.series):,}", f"{look.size:,}"] for look in looks]
        print(table(["cycles", "series", "bytes of /metrics"], rows))
        print(f"\nat most {sum(metric.bound for metric in all_metrics()):,} by the table")
        print(f"new after {looks[-2].cycles:,} cycles: {', '.join(new) or 'none'}")
    if wrong:
        sys.exit("\n".join(wrong))


def broken(look: Look) -> Sequence[str]:
    """What is wrong with the series: too many of a metric, or a label that has no bound."""
    by_metric = {metric.name: metric.bound for metric in all_metrics()}
    counted = {
        name: sum(1 for sample, _ in look.series if _metric_of(sample, by_metric) == name)
        for name in by_metric
    }
    accounts = {value for _, labels in look.series for key, value in labels if key == "account"} - {
        "other"
    }
    return [
        *(
            f"{name} has {found} series, at most {by_metric[name]} are allowed"
            for name, found in counted.items()
            if found > by_metric[name]
        ),
        *(
            f"{name} has the label {key}={value}"
            for name, labels in look.series
            for key, value in labels
            if UUID.search(value) or value in TICKERS
        ),
        *([f"{len(accounts)} accounts are shown"] if len(accounts) > ACCOUNTS_SHOWN_MAX else []),
    ]


def _metric_of(sample: str, known: Mapping[str, int]) -> str | None:
    ends = ("", "_bucket", "_sum", "_count")
    return next(
        (sample.removesuffix(end) for end in ends if sample.removesuffix(end) in known), None
    )


def _looks(deskbus: Sequence[str], cycles: int) -> Sequence[Look]:
    port = choose_port(None, set())
    with tempfile.TemporaryDirectory(prefix="series-") as folder:
        # Started by root, the servers drop its rights, and have to come in all the same.
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        settings = {"DESKBUS_METRICS_PORT": str(port)}
        with started([*deskbus, "up", "--port", "0"], data, settings) as (process, _):
            return run(_watched(process.pid, data, port, cycles))


async def _watched(pid: int, data: Path, port: int, cycles: int) -> Sequence[Look]:
    sessions: Sequence[date] = sessions_before(LAST_SESSION, cycles)
    found = []
    async with running(pid, data) as desk:
        for number, session in enumerate(sessions, start=1):
            await desk.cycle(session, f"account-{number}")
            if number in {*LOOKS, cycles}:
                found.append(_look(number, port))
            if number % 100 == 0:
                print(f"{number:,} cycles", file=sys.stderr, flush=True)
    return found


def _look(cycles: int, port: int) -> Look:
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=10).raise_for_status().text
    series = frozenset(
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.name.startswith(OURS)
    )
    return Look(cycles, series, len(text))


if __name__ == "__main__":
    main()
