"""Files that become far larger than they are: refused before they are read."""

import gzip
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from libs.files import bounds
from libs.files.finding import BadFile
from libs.market.replay.files import read_bars

HEADER = "date,open,high,low,close,volume"
ROW = "2012-01-03,1,1,1,1,1"
GROWTH_BYTES_MAX = 100_000_000
"""Of a process that is handed one of these files; read without bounds each takes gigabytes."""


def repeated(columns: dict[str, object], rows: int) -> pl.DataFrame:
    return pl.select(pl.repeat(value, rows).alias(name) for name, value in columns.items())


def long_parquet(path: Path) -> None:
    """100 million cells of one value each: 300 kB."""
    number = dict.fromkeys(HEADER.split(",")[1:], 1.0)
    repeated(number, 20_000_000).write_parquet(path, compression="zstd")


def wide_parquet(path: Path) -> None:
    """Texts that are nearly alike and stand in it in full: 100 MB in some kilobytes."""
    texts = pl.int_range(1_000, eager=True).cast(pl.String) + "x" * 100_000
    pl.DataFrame({"date": texts}).write_parquet(path, compression="zstd")


def shared_text(path: Path) -> None:
    """One text for all rows, which the file holds once."""
    repeated({"date": "x" * 1_000}, 1_000_000).write_parquet(path, compression="zstd")


def many_columns(path: Path) -> None:
    one_row = {f"column_{number}": 1.0 for number in range(20_000)}
    repeated(one_row, 1).write_parquet(path)


def nested(path: Path) -> None:
    pl.DataFrame({"date": [[[1]]]}).write_parquet(path)


def wide_header(path: Path) -> None:
    path.write_text(f"{HEADER}{',c' * 500_000}\n{ROW}\n")


def many_rows(path: Path) -> None:
    path.write_text(f"{HEADER}\n" + ",,,,,\n" * 5_000_000)


def empty_lines(path: Path) -> None:
    path.write_text(f"{HEADER}\n" + "\n" * 30_000_000)


def long_line(path: Path) -> None:
    path.write_text(f"{HEADER}\n{ROW}\n{'1,' * 20_000_000}\n")


def no_line(path: Path) -> None:
    path.write_bytes(b"x" * 50_000_000)


def packed_csv(path: Path) -> None:
    path.write_bytes(gzip.compress(f"{HEADER}\n".encode() + ROW.encode() * 4_000_000, 1))


def zlib_csv(path: Path) -> None:
    path.write_bytes(zlib.compress(f"{HEADER}\n".encode() + ROW.encode() * 4_000_000, 1))


FILES: dict[Callable[[Path], None], tuple[str, str]] = {
    long_parquet: ("A.parquet", "more than 8,000,000 cells"),
    wide_parquet: ("A.parquet", "unpacks to more than 64 MB"),
    shared_text: ("A.parquet", "texts have more than 64 MB"),
    many_columns: ("A.parquet", "footer has more than 1,000,000 bytes"),
    nested: ("A.parquet", "column date holds List"),
    wide_header: ("A.csv", "line 1: the header has more than 65,536 bytes"),
    many_rows: ("A.csv", "more than 8,000,000 cells"),
    empty_lines: ("A.csv", "more than 8,000,000 cells"),
    long_line: ("A.csv", "line 3: the line has more than 1,000,000 bytes"),
    no_line: ("A.csv", "line 1: the header has more than"),
    packed_csv: ("A.csv", "larger than 64 MB"),
    zlib_csv: ("A.csv", "the file is compressed"),
}

READ = """
import resource, sys
from pathlib import Path
from libs.files.finding import BadFile
from libs.market.replay.files import read_bars
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
warm = Path(sys.argv[2])
read_bars(warm / "warm.csv"), read_bars(warm / "warm.parquet")
before = peak()
try:
    read_bars(Path(sys.argv[1]))
except BadFile as error:
    print(peak() - before, error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_a_file_that_becomes_large_is_refused_before_it_does(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    name, why = FILES[make]
    make(tmp_path / name)
    (tmp_path / "warm.csv").write_text(f"{HEADER}\n{ROW}\n")
    pl.read_csv(tmp_path / "warm.csv").write_parquet(tmp_path / "warm.parquet")
    told = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / name), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    growth, _, message = told.partition(" ")
    assert int(growth) < GROWTH_BYTES_MAX
    with pytest.raises(BadFile, match=why):
        raise bounds.bad(tmp_path / name, None, message, "")


def test_the_largest_file_that_is_read_has_its_place(tmp_path: Path) -> None:
    days = pl.date_range(pl.date(1900, 1, 1), pl.date(2026, 1, 1), "1d", eager=True)
    days = days.filter(days.dt.weekday() <= 5)
    prices = {name: [1.0] * len(days) for name in HEADER.split(",")[1:]}
    frame = pl.DataFrame({"date": days, **prices})
    frame.write_parquet(tmp_path / "A.parquet")
    frame.write_csv(tmp_path / "A.csv")
    assert read_bars(tmp_path / "A.parquet").equals(read_bars(tmp_path / "A.csv"))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "uncompressed"])
def test_the_footer_is_read_as_polars_writes_it(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "A.parquet"
    frame = pl.DataFrame({"a": range(1_000), "b": ["text"] * 1_000, "c": [True, None] * 500})
    frame.write_parquet(path, compression=compression, row_group_size=300)  # type: ignore[arg-type]
    groups = bounds._row_groups(path)
    assert [group[3] for group in groups] == [300, 300, 300, 100]
    assert [[chunk[3][5] for chunk in group[1]] for group in groups] == [
        [rows] * 3 for rows in (300, 300, 300, 100)
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"PAR1",
        b"PAR1" + (10).to_bytes(4, "little") + b"PAR1",
        b"\xff" * 100 + (50).to_bytes(4, "little") + b"PAR1",
        b"\x19\xfc" * 100 + (100).to_bytes(4, "little") + b"PAR1",
        b"\x1c" * 100 + b"\x00" * 4 + (104).to_bytes(4, "little") + b"PAR1",
        b"\x00" + (1).to_bytes(4, "little") + b"PAR1",
    ],
)
def test_a_footer_that_is_damaged_is_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "A.parquet"
    path.write_bytes(body)
    with pytest.raises(BadFile, match="not readable as parquet"):
        read_bars(path)
