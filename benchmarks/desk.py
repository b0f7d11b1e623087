"""How the desk trades: `python -m benchmarks.desk [--since 2003-01-02] [--universe fifty]`.

`deskbus up` on a new data directory, then `deskbus schedule replay` of the schedule that
docs/schedule.md shows first, with the rules provider on one account. What it did is read from the
record afterwards, under the console's read-only role: picks and what became of them by rule, fills
and sales, turnover, exposure, the worst day, the return beside buy-and-hold and equal weight. What
each position lost is held against what its plan said that it risks (benchmarks/positions.py).

`bundled` are the real prices that come with the desk. `fifty` is made up: 50 tickers in ten sectors
over the same sessions, from a fixed seed; each has a drift, a market and a sector part and a spread
of its own, so that some trend, some fall, and those of a sector move together.
"""

import argparse
import asyncio
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import asyncpg
import numpy as np
import orjson
import polars as pl

from benchmarks import positions
from benchmarks.footprint import DATA_VARIABLE, RUNTIME_FILE, started
from benchmarks.report import table
from contracts.account import AccountLimits
from contracts.constraints import Constraints
from contracts.facts import Moves
from contracts.risk import ValidateDecision
from libs.market.calendar import exchange_calendar
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.postgres.pool import CONSOLE_ROLE, dsn_for
from libs.quant.risk.evaluation import room_for
from libs.quant.risk.evidence import evidence_of

SCHEDULE: Final = Path(__file__).parents[1] / "docs" / "schedule.md"
ACCOUNT: Final = "main"
SINCE: Final = date(2003, 1, 2)
UNTIL: Final = date(2013, 2, 28)
SEED: Final = 19
TICKERS: Final = 50
SECTORS: Final = 10
REPLAY_MAX_S: Final = 4 * 3600.0
SESSIONS_A_YEAR: Final = 252

LABEL: Final = """\
name = "made-up-{tickers}"
description = "{tickers} made-up tickers from a fixed seed"
synthetic = true
"""
PICKS: Final = "select result from operations where step = 'picks' and status = 'completed'"
VALIDATED: Final = """
select command, result from operations
where step in ('validate', 'exits_validate') and status = 'completed' order by as_of
"""
FILLS: Final = """
select f.session, o.ticker, o.side, o.type, o.exit, o.exit_rules, o.exit_month, o.stop_price,
       o.plan, o.quantity as ordered, f.quantity, f.price, f.fee
from fills f join orders o using (order_id) where o.account = $1
order by f.session, f.entry_id
"""
SPLITS: Final = """
select e.session, p.ticker, 'split' as side, sum(p.quantity) as quantity
from entries e join postings p using (entry_id)
where e.account = $1 and e.kind = 'split' and p.book = 'position'
group by e.session, p.ticker
"""
SNAPSHOTS: Final = """
select session, equity, exposure_gross from snapshots
where account = $1 and equity is not null order by session
"""


@dataclass(frozen=True)
class Record:
    """What the desk has on record after the replay."""

    picks: Sequence[dict[str, Any]]
    validations: Sequence[tuple[dict[str, Any], dict[str, Any]]]
    fills: Sequence[asyncpg.Record]
    splits: Sequence[asyncpg.Record]
    snapshots: Sequence[asyncpg.Record]


def main() -> None:
    """Replay, read and print; exits 1 where a cycle of the replay failed."""
    arguments = _parse()
    with _kept(arguments.keep) as folder:
        prices = made_up(folder / "fifty", TICKERS) if arguments.universe == "fifty" else None
        with _environment(prices):
            began = time.perf_counter()
            record = _replayed(folder / "data", arguments.since, arguments.until)
            took = time.perf_counter() - began
    found = {"replayed, s": round(took, 1), **summary(record)}
    found |= asyncio.run(benchmarks_of(ReplayStore(prices) if prices else None, record))
    if arguments.json:
        print(json.dumps(found, default=str))
    else:
        head = [f"{arguments.universe}, {arguments.since} to {arguments.until}", ""]
        print(table(head, [[name, str(value)] for name, value in found.items()]))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", type=date.fromisoformat, default=SINCE)
    parser.add_argument("--until", type=date.fromisoformat, default=UNTIL)
    parser.add_argument("--universe", choices=["bundled", "fifty"], default="bundled")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--keep", type=Path, help="keep the desk there; a later run goes on, and reads all of it"
    )
    return parser.parse_args()


@contextmanager
def _kept(kept: Path | None) -> Iterator[Path]:
    """A folder for the desk's data: the one that is kept, else one that goes with the block."""
    with tempfile.TemporaryDirectory(prefix="desk-") as name:
        folder = Path(name) if kept is None else kept.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        # Started by root, the servers drop its rights, and have to come in all the same.
        folder.chmod(0o711)
        yield folder


def documented_schedule() -> dict[str, Any]:
    """The `[schedule]` table of the first example of docs/schedule.md."""
    block = re.search(r"```toml\n(.*?)```", SCHEDULE.read_text(), re.DOTALL)
    if block is None:
        sys.exit(f"{SCHEDULE.name} shows no schedule")
    return dict(tomllib.loads(block.group(1))["schedule"])


@contextmanager
def _environment(prices: Path | None) -> Iterator[None]:
    schedule = {**documented_schedule(), "clock": "replay"}
    os.environ["DESKBUS_SCHEDULE"] = json.dumps(schedule)
    os.environ["DESKBUS_LOG_LEVEL"] = "error"
    if prices is not None:
        os.environ["DESKBUS_MARKET_REPLAY_DIR"] = str(prices)
    yield


def _replayed(data: Path, since: date, until: date) -> Record:
    deskbus = str(Path(sys.executable).parent / "deskbus")
    with started([deskbus, "up", "--no-http"], data):
        typed = [deskbus, "schedule", "replay", "--since", str(since), "--until", str(until)]
        environment = {**os.environ, DATA_VARIABLE: str(data)}
        replay = subprocess.run(
            [*typed, "--json"],
            env=environment,
            stdout=subprocess.DEVNULL,
            timeout=REPLAY_MAX_S,
            check=False,
        )
        if replay.returncode != 0:
            sys.exit(f"the replay ended with {replay.returncode}")
        return asyncio.run(_read(data))


async def _read(data: Path) -> Record:
    place = json.loads((data / RUNTIME_FILE).read_bytes())
    secrets = Path(place["secrets_dir"])
    db = await asyncpg.connect(dsn_for(place["postgres_dsn"], CONSOLE_ROLE, secrets))
    try:
        return Record(
            picks=[orjson.loads(row[0]) for row in await db.fetch(PICKS)],
            validations=[
                (orjson.loads(row["command"]), orjson.loads(row["result"]))
                for row in await db.fetch(VALIDATED)
            ],
            fills=await db.fetch(FILLS, ACCOUNT),
            splits=await db.fetch(SPLITS, ACCOUNT),
            snapshots=await db.fetch(SNAPSHOTS, ACCOUNT),
        )
    finally:
        await db.close()


def summary(record: Record) -> dict[str, Any]:
    """What became of picks, positions and money, by name."""
    equity = [float(row["equity"]) for row in record.snapshots]
    days = [after / before - 1 for before, after in pairwise(equity)]
    traded = sum(float(fill["quantity"] * fill["price"]) for fill in record.fills)
    exposure = [
        float(row["exposure_gross"] or 0) / float(row["equity"]) for row in record.snapshots
    ]
    return {
        "sessions": len(equity),
        **_of_picks(record),
        **positions.summary(
            record.fills, record.splits, [row["session"] for row in record.snapshots]
        ),
        "turnover a year": round(
            traded / statistics.fmean(equity) / (len(equity) / SESSIONS_A_YEAR), 2
        ),
        "fees": str(sum(fill["fee"] for fill in record.fills)),
        "mean exposure": _pct(statistics.fmean(exposure)),
        "highest exposure": _pct(max(exposure)),
        "sessions without a position": exposure.count(0.0),
        "return": _pct(equity[-1] / equity[0] - 1),
        "volatility a year": _pct(statistics.stdev(days) * math.sqrt(SESSIONS_A_YEAR)),
        "its limit": f"{AccountLimits().volatility_pct_max}%",
        "worst day": _pct(min(days)),
        "the limit of a day": f"-{AccountLimits().daily_loss_pct_max}%",
        "drawdown": _pct(drawdown(equity)),
    }


def _of_picks(record: Record) -> dict[str, Any]:
    """Buys that were asked for, and what the rules did to them."""
    asked = [pick for each in record.picks for pick in each["picks"]]
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for _, validation in record.validations:
        for check in validation["checks"]:
            if not check["passed"]:
                outcomes[check["outcome"]][check["rule"]] += 1
    return {
        "decisions": len(record.picks),
        "buys asked for": len(asked),
        "buys asked for a decision": round(len(asked) / max(len(record.picks), 1), 3),
        "buys of the most in one decision": max(len(each["picks"]) for each in record.picks),
        "buys or sales vetoed": sum(len(each["vetoed_tickers"]) for _, each in record.validations),
        "of these for what the trader was told": sum(
            len(vetoed_though_told(command, each)) for command, each in record.validations
        ),
        "vetoed by": dict(outcomes["vetoed"].most_common()),
        "cut by": dict(outcomes["cut"].most_common()),
    }


def vetoed_though_told(command: dict[str, Any], validation: dict[str, Any]) -> list[str]:
    """The vetoed tickers of which the facts of the trader had said that no rule lets them pass."""
    vetoed = validation["vetoed_tickers"]
    if not vetoed or "daily_picks" not in command:
        return []
    asked = ValidateDecision.model_validate(command)
    buys = {pick.ticker for pick in asked.daily_picks.picks} & {*vetoed}
    known = evidence_of(asked.research_report, asked.quant_report, asked.portfolio)
    rooms = room_for(
        buys,
        {item.ticker: item for item in known},
        asked.portfolio,
        asked.request.budgets.money,
        moves=Moves.model_validate(validation["moves"]),
        constraints=Constraints.model_validate(validation["constraints"]),
    )
    return [ticker for ticker, room in rooms.items() if not room.allocation_pct]


def drawdown(equity: Sequence[float]) -> float:
    """The deepest fall below the highest value before it, as a negative share."""
    top, deepest = equity[0], 0.0
    for value in equity:
        top = max(top, value)
        deepest = min(deepest, value / top - 1)
    return deepest


async def benchmarks_of(store: ReplayStore | None, record: Record) -> dict[str, Any]:
    """The same days held: equal parts bought once, and equal parts each month."""
    sessions = [row["session"] for row in record.snapshots]
    market = ReplayMarket(store or ReplayStore(None), jump_pct=1_000.0)
    closes = {}
    for listing in await market.universe(sessions[-1]):
        bars = await market.bars(listing.ticker, sessions[-1], 10_000)
        known = dict(zip(bars["date"], bars["close"], strict=True))
        if sessions[0] in known:
            closes[listing.ticker] = [known.get(day) for day in sessions]
    grown = {t: [c / row[0] if c else None for c in row] for t, row in closes.items()}
    held = [statistics.fmean(filter(None, column)) for column in zip(*grown.values(), strict=True)]
    return {
        f"buy-and-hold of {len(closes)}": _pct(held[-1] - 1),
        "- its drawdown": _pct(drawdown(held)),
        "equal weight, monthly": _pct(_monthly(sessions, list(grown.values())) - 1),
    }


def _monthly(sessions: Sequence[date], rows: Sequence[Sequence[float | None]]) -> float:
    worth, began = 1.0, 0
    for day in range(1, len(sessions)):
        is_last = day == len(sessions) - 1
        if is_last or sessions[day].month != sessions[day - 1].month:
            until = day if is_last else day - 1
            gains = [row[until] / row[began] for row in rows if row[until] and row[began]]  # type: ignore[operator]
            worth, began = worth * statistics.fmean(gains), until
    return worth


def made_up(folder: Path, tickers: int) -> Path:
    """Write a made-up universe as a replay directory, where it is not there yet."""
    if folder.exists():
        return folder
    folder.mkdir()
    calendar = exchange_calendar()
    sessions = [SINCE.replace(year=SINCE.year - 2)]
    sessions = [calendar.next_session(sessions[0])]
    while sessions[-1] < date(2013, 3, 1):
        sessions.append(calendar.next_session(sessions[-1]))
    rng = np.random.default_rng(SEED)
    count = len(sessions)
    market = rng.normal(0.0003, 0.009, count)
    sector = rng.normal(0.0, 0.006, (SECTORS, count))
    rows = []
    for number in range(tickers):
        ticker = f"S{number:02d}"
        drift, spread = rng.normal(0.0001, 0.0004), rng.uniform(0.006, 0.016)
        own = rng.normal(drift, spread, count)
        close = 50 * np.exp(np.cumsum(market + sector[number % SECTORS] + own))
        opened = close * np.exp(rng.normal(0, 0.004, count))
        reach = np.abs(rng.normal(0, 0.006, count))
        frame = pl.DataFrame(
            {
                "date": sessions,
                "open": opened.round(2),
                "high": (np.maximum(opened, close) * (1 + reach)).round(2) + 0.01,
                "low": np.maximum((np.minimum(opened, close) * (1 - reach)).round(2) - 0.01, 0.01),
                "close": close.round(2),
                "volume": rng.integers(500_000, 5_000_000, count),
            }
        )
        frame.write_csv(folder / f"{ticker}.csv")
        rows.append({"ticker": ticker, "sector": f"Sector {number % SECTORS}"})
    pl.DataFrame(rows).write_csv(folder / "sectors.csv")
    (folder / "source.toml").write_text(LABEL.format(tickers=tickers))
    return folder


def _pct(share: float) -> str:
    return f"{100 * share:+.2f}%"


if __name__ == "__main__":
    main()
