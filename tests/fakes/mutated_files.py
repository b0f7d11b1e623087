"""Files of prices in many forms, each damaged a little; and a reader that knows the form.

The reader shares no code with the desk's: it splits cells by the csv module and reads each in the
form that the file was written in. `judge` compares what the desk reads with it, cell by cell.
"""

import csv
import io
import random
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from libs.files.finding import BadFile
from libs.market.calendar import ExchangeCalendar
from libs.market.imports.series import ImportForm, series_in
from libs.market.replay.files import read_prices
from services.cli.shell.problem import CliProblem
from services.cli.trading.holdings_file import Reading, read_holdings

COLUMNS = ("date", "open", "high", "low", "close", "volume")
Row = tuple[date, float, float, float, float, float]


@dataclass(frozen=True)
class Form:
    """How a file is written."""

    separator: str = ","
    decimal: str = "."
    date: str = "%Y-%m-%d"
    line_end: str = "\n"
    mark: bytes = b""
    padding: str = ""
    is_newest_first: bool = False
    is_upper: bool = False
    end: str = ""


@dataclass(frozen=True)
class Case:
    """A file: its bytes, the form that they were written in, the rows before it was damaged."""

    body: bytes
    form: Form
    rows: tuple[Row, ...]


def case_of(seed: int, calendar: ExchangeCalendar) -> Case:
    """The file of a seed; every fourth one is not damaged."""
    rng = random.Random(seed)
    separator = rng.choice(",,;\t|")
    form = Form(
        separator=separator,
        decimal="," if separator != "," and rng.random() < 0.5 else ".",
        date=rng.choice(["%Y-%m-%d", "%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%Y/%m/%d"]),
        line_end=rng.choice(["\n", "\n", "\r\n", "\r"]),
        mark=rng.choice([b"", b"", b"\xef\xbb\xbf"]),
        padding=rng.choice(["", "", " "]),
        is_newest_first=rng.random() < 0.3,
        is_upper=rng.random() < 0.5,
        end=rng.choice(["", "", separator]),
    )
    rows = tuple(_rows(rng, calendar))
    body = form.mark + _written(rows, form).encode()
    return Case(body if seed % 4 == 0 else _damaged(rng, body), form, rows)


def _rows(rng: random.Random, calendar: ExchangeCalendar) -> list[Row]:
    start = date(2015, 1, 1) + timedelta(days=rng.randrange(3_000))
    days = calendar.sessions(start, start + timedelta(days=40))[: rng.randint(2, 20)]
    price, rows = rng.uniform(5, 500), []
    for day in days:
        price *= rng.uniform(0.97, 1.03)
        low, high = round(price * 0.98, 2), round(price * 1.02, 2)
        rows.append(
            (day, round(price, 2), high, low, round(price, 2), float(rng.randint(0, 10**6)))
        )
    return rows


def _written(rows: tuple[Row, ...], form: Form) -> str:
    heads = [name.upper() if form.is_upper else name for name in COLUMNS]
    between = form.separator + form.padding
    lines = [between.join(heads) + form.end]
    for day, *prices, volume in reversed(rows) if form.is_newest_first else rows:
        cells = [f"{price:.2f}".replace(".", form.decimal) for price in prices]
        lines.append(between.join([day.strftime(form.date), *cells, f"{volume:.0f}"]) + form.end)
    return form.line_end.join([*lines, ""])


def _damaged(rng: random.Random, body: bytes) -> bytes:
    damaged = bytearray(body)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(len(damaged))
        match rng.randrange(6):
            case 0:
                damaged[at] = rng.choice(b"0123456789.,;- \"'\n\t$%()eE_/\x00\xff\xc3N")
            case 1:
                del damaged[at]
            case 2:
                damaged.insert(at, rng.choice(b'0123456789.,;- "\n$%()'))
            case 3:
                del damaged[at : at + rng.randrange(30)]
            case 4:
                lines = bytes(damaged).split(b"\n")
                rng.shuffle(lines)
                damaged = bytearray(b"\n".join(lines))
            case _:
                damaged[at:at] = damaged[at : at + rng.randrange(60)]
        if not damaged:
            return b""
    return bytes(damaged)


def judge(case: Case, path: Path, calendar: ExchangeCalendar) -> str:
    """ "" where the desk refused the file, or read what stands in it; else what it did."""
    path.write_bytes(case.body)
    try:
        frame = read_prices(path, calendar).frame
    except BadFile:
        return "" if _known(case) != case.rows else "a whole file was refused"
    except Exception as error:  # noqa: BLE001 - the finding is any other exception
        return f"{type(error).__name__}: {error}"
    read = tuple(row[:6] for row in frame.select(COLUMNS).rows())
    if read in (case.rows, _known(case)):
        return ""
    return f"read {len(read)} rows that do not stand in the file: {read[:3]}"


EXPORTS = sorted((Path(__file__).parents[1] / "data" / "own_files" / "holdings").iterdir())


def crash_of_imports(seed: int, case: Case, path: Path, calendar: ExchangeCalendar) -> str:
    """ "" where the imports of prices and of a broker's export read a damaged file, or refuse it in
    words; else the exception."""
    export = path.with_name("holdings.csv")
    export.write_bytes(_damaged(random.Random(seed), EXPORTS[seed % len(EXPORTS)].read_bytes()))
    path.write_bytes(case.body)
    try:
        with suppress(BadFile):
            for series in series_in(path, ImportForm()):
                series.prices(calendar)
        with suppress(CliProblem):
            read_holdings(export, Reading(opened_on=date(2024, 3, 15)))
    except Exception as error:  # noqa: BLE001 - the finding is any other exception
        return f"{type(error).__name__}: {error}"
    return ""


def _known(case: Case) -> tuple[Row, ...] | None:
    """The rows in the file by the form that it was written in, ascending; None where a cell, or a
    row, is not of that form."""
    try:
        text = case.body.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=case.form.separator))
    while lines and not any(cell.strip() for cell in lines[-1]):
        lines.pop()
    heads = [cell.strip().lower() for cell in lines[0]] if lines else []
    if sorted(filter(None, heads)) != sorted(COLUMNS):
        return None
    while heads and not heads[-1]:
        heads.pop()
    rows = []
    for cells in lines[1:]:
        if any(cell.strip() for cell in cells[len(heads) :]):
            return None
        by_head = dict(zip(heads, (cell.strip() for cell in cells), strict=False))
        row = _row(by_head, case.form)
        if row is None:
            return None
        rows.append(row)
    return tuple(sorted(rows)) if rows in (sorted(rows), sorted(rows, reverse=True)) else None


def _row(cells: dict[str, str], form: Form) -> Row | None:
    day = _day(cells.get("date", ""), form)
    numbers = [_number(cells.get(name, ""), form) for name in COLUMNS[1:]]
    if day is None or None in numbers:
        return None
    return (day, *numbers)  # type: ignore[return-value]


def _day(text: str, form: Form) -> date | None:
    mark = form.date[2]
    parts = text.split(mark) if mark != "%" else [text[:4], text[4:6], text[6:]]
    lengths = [len(part) for part in parts]
    if not all(part.isascii() and part.isdigit() for part in parts):
        return None
    year = 2 if mark == "." else 0
    if len(parts) != 3 or lengths[year] != 4 or max(lengths[1], lengths[2 - year]) > 2:
        return None
    if mark == "%" and lengths != [4, 2, 2]:
        return None
    try:
        return date(*(int(part) for part in (parts if year == 0 else reversed(parts))))
    except ValueError:
        return None


def _number(text: str, form: Form) -> float | None:
    group = "." if form.decimal == "," else ","
    whole, mark, rest = text.partition(form.decimal)
    for sign in (group, "'", " "):
        if re.fullmatch(rf"[+-]?[0-9]{{1,3}}({re.escape(sign)}[0-9]{{3}})+", whole):
            whole = whole.replace(sign, "")
    if form.decimal == "," and "." in whole + rest:
        return None
    text = whole + mark.replace(",", ".") + rest
    if re.fullmatch(r"[+-]?([0-9]+\.?|[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?)", text) is None:
        return None
    return float(text)
