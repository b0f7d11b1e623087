"""Files of decisions as people have them: what is read, and what is refused with its line."""

import gzip
import random
from contextlib import suppress
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from libs.files.finding import BadFile
from libs.study.decisions import file as reader
from libs.study.decisions.file import DecisionReading, read_decisions
from libs.study.decisions.stated import FINDINGS_MAX, DecisionForm, StatedDecision, StatedFile

LOG = """[2026-01-10 | NVDA | Buy | +5.0% | +2.0% | 5d]

DECISION:
**Rating**: Buy
[not a tag]

REFLECTION:
Right, for once.

<!-- ENTRY_END -->

[2026-01-20 | nvda | Underweight | pending]

DECISION:
Rating: Underweight

<!-- ENTRY_END -->

"""


def read(tmp_path: Path, body: str | bytes, name: str = "d.csv", **reading: object) -> StatedFile:
    path = tmp_path / name
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    return read_decisions(path, DecisionReading(**reading))  # type: ignore[arg-type]


def lines(of: StatedFile) -> list[tuple[int | None, str]]:
    return [(it.line, it.what) for it in of.findings]


@pytest.mark.parametrize(
    "body",
    [
        "time,ticker,weight\n2024-01-02,brk/b,0.25\n",
        "\ufeffDate;Symbol;Weight\r\n02.01.2024;BRK-B;0,25\r\n",
        "sep=;\nticker;weight;trade_date\nBRK.B;25%;20240102\n",
        "time|ticker|target weight\n2024-01-02|BRK.B|.25\n".encode("utf-16"),
        gzip.compress(b"time\tticker\tweight\n2024-01-02\tBRK.B\t0.25\n"),
        "time,ticker,weight,name\n2024-01-02,BRK.B,0.25,Soci\xe9t\xe9\n".encode("cp1252"),
    ],
    ids=["plain", "semicolons", "percent", "utf-16", "gzip", "windows"],
)
def test_however_it_is_written_it_says_the_same(tmp_path: Path, body: str | bytes) -> None:
    found = read(tmp_path, body)

    assert [(it.at, it.ticker, it.low, it.high) for it in found.decisions] == [
        (date(2024, 1, 2), "BRK.B", 0.25, 0.25)
    ]
    assert not found.findings


def test_times_have_zones_or_one_is_said(tmp_path: Path) -> None:
    body = "time,ticker,weight\n2024-01-02T10:00:00,A,1\n2024-01-03T10:00:00+01:00,A,0\n"

    assert lines(read(tmp_path, body)) == [(2, "a time without a zone")]
    said = read(tmp_path, body, zone=ZoneInfo("America/New_York"))
    assert [it.at for it in said.decisions] == [
        datetime(2024, 1, 2, 15, tzinfo=UTC),
        datetime(2024, 1, 3, 9, tzinfo=UTC),
    ]


def test_midnights_without_a_zone_are_dates_and_that_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "time,ticker,weight\n2024-01-02 00:00:00,A,1\n")

    assert found.decisions[0].at == date(2024, 1, 2)
    assert any("read as dates" in note for note in found.notes)


def test_trades_are_bought_sold_or_left(tmp_path: Path) -> None:
    body = (
        "time,ticker,action,quantity,price\n2024-01-02,A,BUY,10,9\n2024-01-03,A,hold,,\n"
        "2024-01-04,A,Sell,2.5,9\n"
    )

    found = read(tmp_path, body)

    assert found.form is DecisionForm.TRADES
    assert [it.shares for it in found.decisions] == [10, 0, -2.5]
    assert any(note.startswith("not read: price") for note in found.notes)


def test_every_bad_row_is_named_with_its_line(tmp_path: Path) -> None:
    body = (
        "time,ticker,weight\n2024-01-02,A,-0.5\n2024-01-02,?A,0.5\n2024-13-02,A,0.5\n"
        ',A,0.5\n2024-01-03,A,nan\n2024-01-03,"A",1e999\n2024-01-04,A,1.5\n'
        f"2024-01-04,{'A' * 300},0.1\n2024-01-05,A,0.6\n2024-01-05,B,0.6\n2024-01-05,A,0.1\n"
    )

    found = read(tmp_path, body)

    assert lines(found) == [
        (2, "a short position"),
        (3, "no ticker"),
        (4, "no date of the calendar"),
        (5, "not a date"),
        (6, "no number"),
        (7, "no number"),
        (8, "more than all the money, and nothing is lent"),
        (9, "longer than 200 characters"),
        (11, "with this row the weights of 2024-01-05 are above 1: more than all the money"),
        (12, "A has two weights at 2024-01-05"),
    ]


def test_of_very_many_bad_rows_the_first_are_named_and_all_are_counted(tmp_path: Path) -> None:
    rows = 30_000

    found = read(tmp_path, "time,ticker,weight\n" + "2024-01-02,A,-1\n" * rows)

    assert len(found.findings) == FINDINGS_MAX
    assert found.bad_rows == rows


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "no rows"),
        ("time,ticker,weight\n", "no decision"),
        ("time,weight\n2024-01-02,1\n", "no column ticker"),
        ("time,ticker,weight,action\n2024-01-02,A,1,buy\n", "weights and also actions"),
        ("time,date,ticker,weight\n1,2,A,1\n", "both time and date may be the time"),
        ('{"a": 1}', "JSON"),
        (b"\x00\x01\x02", "bytes of zero"),
        ("time,ticker,weight\n2024-01-02,A,1,2\n", "4 cells under a header of 3"),
        (b'{"1": {"company_of_interest": "A"}}', "full_states_log"),
    ],
)
def test_what_is_no_file_of_decisions_is_refused(
    tmp_path: Path, body: str | bytes, why: str
) -> None:
    with pytest.raises(BadFile, match=why):
        read(tmp_path, body)


@pytest.mark.parametrize("name", ["ROWS_MAX", "TICKERS_MAX", "TIMES_MAX"])
def test_a_file_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(reader, name, 2)
    rows = "".join(f"2024-01-0{n},A{n},0.1\n" for n in range(2, 7))

    with pytest.raises(BadFile, match="limit"):
        read(tmp_path, "time,ticker,weight\n" + rows)


def test_the_log_of_tradingagents_says_dates_tickers_and_ratings(tmp_path: Path) -> None:
    found = read(tmp_path, LOG, "trading_memory.md")

    assert found.decisions == [
        StatedDecision(1, date(2026, 1, 10), "NVDA", 1.0, inf),
        StatedDecision(12, date(2026, 1, 20), "NVDA", -inf, 0.5),
    ]
    assert (found.form, found.written_by) == (DecisionForm.RATINGS, "TradingAgents 0.2.4 to 0.4.0")


def test_the_tag_of_0_4_0_says_when_its_outcome_was_known(tmp_path: Path) -> None:
    found = read(tmp_path, LOG.replace("| 5d]", "| 5d | resolved:2026-01-16]"), "m.md")

    assert (found.written_by, found.findings) == ("TradingAgents 0.4.0", [])


def test_of_an_entry_that_is_there_twice_the_first_counts(tmp_path: Path) -> None:
    again = LOG.replace("2026-01-20 | nvda | Underweight", "2026-01-10 | NVDA | Sell")

    found = read(tmp_path, again, "m.md")

    assert [it.high for it in found.decisions] == [inf]
    assert any(note.startswith("line 12: the same ticker") for note in found.notes)


def test_without_a_rating_that_could_be_read_nothing_is_traded_and_that_is_said(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, LOG.replace("| Buy |", "| REVIEW |"), "m.md")

    assert (found.decisions[0].low, found.decisions[0].high) == (-inf, inf)
    assert any(note.startswith("line 1: REVIEW") for note in found.notes)


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("| 5d]", "| 5d | benchmark:SPY]", 1, "do not write"),
        ("| Underweight |", "| Strong Sell |", 12, "none of Buy"),
        ("2026-01-20", "2026-01-32", 12, "not a date"),
        ("[2026-01-20 | nvda | Underweight | pending]", "Some words", 12, "does not begin"),
        ("| nvda |", "| ?n |", 12, "no ticker"),
    ],
)
def test_what_these_versions_do_not_write_is_refused_by_name(
    tmp_path: Path, old: str, new: str, line: int, why: str
) -> None:
    found = read(tmp_path, LOG.replace(old, new), "m.md")

    assert [it.line for it in found.findings] == [line]
    assert why in found.findings[0].what


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = "time,ticker,action,quantity\n" + "2024-01-02T10:00:00Z,AAPL,buy,1.5\n" * 6
    marks = [
        b"\x00",
        b'"',
        b"\n",
        b"\r",
        b",",
        b"|",
        b"[",
        b"]",
        b"-",
        b"9",
        b"\xff",
        b"\xe2",
        b"%",
    ]
    for _ in range(150):
        body = bytearray(rng.choice([table, table.replace(",", ";"), LOG]).encode())
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(body))
            body[at : at + rng.choice([0, 1, 1, 9])] = rng.choice(marks) * rng.choice([1, 1, 40])
        with suppress(BadFile):
            found = read(tmp_path, bytes(body), zone=UTC)
            assert found.bad_rows or found.decisions
