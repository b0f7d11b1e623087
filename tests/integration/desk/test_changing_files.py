"""A running desk sees changed files of market data, each cycle one version of them."""

import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from libs.market.calendar import exchange_calendar
from libs.market.replay.versions import SETTLED_S
from tests.integration.desk.command_line import CommandLine, ended, up

HEADER = "date,open,high,low,close,volume\n"
SESSIONS = exchange_calendar().sessions(date(2011, 1, 3), date(2012, 6, 29))
LAST = SESSIONS[-1]
BEFORE = SESSIONS[-2]
HALTED_S = SETTLED_S + 1.5
"""After so long a change counts, wherever it is looked for."""


def row(day: date, close: float) -> str:
    return f"{day},{close},{close + 1},{close - 1},{close},100000\n"


@pytest.fixture(scope="module")
def deskbus(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("changing")
    (folder / "data").mkdir()
    for ticker in ("AAA", "BBB"):
        rows = (row(day, 100 + n * 0.1) for n, day in enumerate(SESSIONS[:-1]))
        (folder / "data" / f"{ticker}.csv").write_text(HEADER + "".join(rows))
    settings = (("DESKBUS_MARKET_REPLAY_DIR", str(folder / "data")),)
    line = CommandLine(make_open_dir() / "desk", folder, settings)
    with up(line) as (process, _):
        yield line
        ended(process, 2)


def test_a_new_row_is_seen_and_a_cut_off_file_is_not(deskbus: CommandLine) -> None:
    data = Path(dict(deskbus.settings)["DESKBUS_MARKET_REPLAY_DIR"])
    early = deskbus(f"cycle request --as-of {LAST} --wait")
    assert early.code != 0
    assert deskbus(f"cycle request --as-of {BEFORE} --wait").code == 0
    for path in data.glob("*.csv"):
        with path.open("a") as file:
            file.write(row(LAST, 150))
    time.sleep(HALTED_S)
    assert deskbus("cycle request --wait").code == 0
    assert str(LAST) in deskbus("cycle show").out
    whole = (data / "AAA.csv").read_text()
    (data / "AAA.csv").write_text(whole[: len(whole) // 2 - 7])
    time.sleep(HALTED_S)
    shown = deskbus("market show AAA --json")
    assert shown.code == 0, shown.err
    assert str(LAST) in shown.out
    assert deskbus("cycle request --wait").code == 0
    status = " ".join(deskbus("status").out.split())
    assert "used in their earlier version: AAA.csv" in status
    corrected = whole.replace(row(LAST, 150), row(LAST, 151))
    (data / "AAA.csv").write_text(corrected)
    time.sleep(HALTED_S)
    assert deskbus("cycle request --wait").code == 0
    status = " ".join(deskbus("status").out.split())
    assert "earlier version" not in status
    assert f"AAA.csv, 1 bars from {LAST} on: close 150.0 is now 151.0; seen by cycles" in status
    saw = {row["cycle_id"]: row["accepted_at"] for row in deskbus("cycle list --json").rows}
    newest, *earlier = sorted(saw, key=lambda id_: saw[id_], reverse=True)
    of_last = [id_ for id_ in earlier if f"{id_[:8]} ({LAST})" in status]
    assert len(of_last) == 2
    assert newest[:8] not in status
    checks = {each["name"]: each["said"] for each in deskbus("doctor --json").rows}
    assert "close 150.0 is now 151.0" in checks["past prices"]
