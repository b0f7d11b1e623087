"""Bounds of a table that a person brought, looked up before Polars reads it.

A text says by its lines how large it becomes. A Parquet file says it in its footer, which is in
Thrift's compact protocol (apache/parquet-format, parquet.thrift); Polars tells the schema from
there, not the sizes.
"""

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from libs.files.finding import bad

FILE_BYTES_MAX = 64 * 1024 * 1024
"""Of a file, and of what a compressed one unpacks to."""
CELLS_MAX = 8_000_000
"""Rows times columns: each cell takes some 16 bytes in memory, and is copied once or twice."""
HEADER_BYTES_MAX = 65_536
"""Of a text's first line; one of 500 tickers side by side has about 20,000."""
COLUMNS_MAX = 4_096
"""Of a text: each takes some memory of its own. 500 tickers have 2,500 or 3,000."""
LINE_BYTES_MAX = 1_000_000
FOOTER_BYTES_MAX = 1_000_000
"""Of a Parquet file's own description."""
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"PK\x03\x04")
"""Beginnings of gzip, Zstandard, zlib and zip, which Polars unpacks unasked and without a bound."""
SPLIT = "split it into years"


def bound_text(path: Path, text: bytes, separator: bytes, above: int = 0) -> None:
    """Raise BadFile for a text whose table would become too large; its header stands below `above`
    lines."""
    lines = io.BytesIO(text)
    for _ in range(above):
        lines.readline()
    header = lines.readline(HEADER_BYTES_MAX + 1)
    row = above + 1
    if len(header) > HEADER_BYTES_MAX:
        what = f"the header has more than {HEADER_BYTES_MAX:,} bytes, the limit"
        raise bad(path, row, what, "save it as Parquet, or with fewer tickers or columns")
    columns = header.count(separator) + 1
    if columns > COLUMNS_MAX:
        what = f"{columns:,} columns, and {COLUMNS_MAX:,} is the limit"
        raise bad(path, row, what, "save it with fewer tickers or columns")
    while line := lines.readline(LINE_BYTES_MAX + 1):
        row += 1
        if len(line) > LINE_BYTES_MAX:
            what = f"the line has more than {LINE_BYTES_MAX:,} bytes, the limit"
            raise bad(path, row, what, "correct the row or leave it out")
    _bound_cells(path, row, columns)


def _bound_cells(path: Path, rows: int, columns: int) -> None:
    if rows * columns > CELLS_MAX:
        what = f"more than {CELLS_MAX:,} cells, the limit, in {columns:,} columns"
        raise bad(path, None, what, SPLIT)


def bound_parquet(path: Path) -> None:
    """Raise BadFile for a Parquet file that would become too large; nothing of it is read."""
    try:
        groups = _row_groups(path)
        chunks = [chunk[3] for group in groups for chunk in group[1]]
        _require_sizes(chunks)
        cells = sum(int(chunk[5]) for chunk in chunks)
        unpacked = sum(int(chunk[6]) for chunk in chunks)
    except (LookupError, TypeError, ValueError) as error:
        why = str(error) if type(error) is ValueError else "its footer is damaged"
        raise bad(path, None, f"not readable as parquet ({why})", "write it again") from error
    _bound_cells(path, cells, 1)
    if unpacked > FILE_BYTES_MAX:
        what = f"it unpacks to more than {FILE_BYTES_MAX // 1024**2} MB, the limit"
        raise bad(path, None, what, SPLIT)
    try:
        _require_pages(path, chunks)
    except (LookupError, TypeError, ValueError) as error:
        what = "not readable as parquet (a page is damaged)"
        raise bad(path, None, what, "write it again") from error


def _require_sizes(chunks: Iterable[Mapping[int, Any]]) -> None:
    """Raise ValueError for a count or size below zero, which could hide a large one in a sum."""
    if any(int(chunk[number]) < 0 for chunk in chunks for number in (5, 6, 7)):
        raise ValueError("its footer is damaged")


def _require_pages(path: Path, chunks: Iterable[Mapping[int, Any]]) -> None:
    """Raise ValueError, LookupError or TypeError where the header of a page says more than its
    column holds: a reader would take memory for it, and end the process where there is none."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for chunk in chunks:
            # 9 and 11 are where the data and the dictionary begin, 7 their bytes as stored.
            at = min(int(start) for start in (chunk.get(9), chunk.get(11)) if start)
            stored = int(chunk[7])
            if not 4 <= at <= at + stored <= size:
                raise ValueError("a column lies outside the file")
            file.seek(at)
            data, at = file.read(stored), 0
            while at < len(data):
                head, at = _struct(data, at, LEVELS_MAX)
                # 2 and 3 are a page's bytes, unpacked and stored; 5, 7 and 8 its kinds' headers.
                values = [int(head[kind][1]) for kind in (5, 7, 8) if kind in head]
                if not 0 <= int(head[2]) <= FILE_BYTES_MAX or int(head[3]) < 0:
                    raise ValueError("a page has no such size")
                if any(not 0 <= count <= int(chunk[5]) for count in values):
                    raise ValueError("a page has no such count of values")
                at += int(head[3])


def _row_groups(path: Path) -> list[Mapping[int, Any]]:
    """The row groups of a footer: fields by their numbers in parquet.thrift."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        length, mark = int.from_bytes(file.read(4), "little"), file.read(4)
        if mark != b"PAR1" or not 0 < length <= size - 8:
            raise ValueError("it does not end as one")
        if length > FOOTER_BYTES_MAX:
            raise ValueError(f"its footer has more than {FOOTER_BYTES_MAX:,} bytes, the limit")
        file.seek(size - 8 - length)
        footer, _ = _struct(file.read(length), 0, LEVELS_MAX)
    groups: list[Mapping[int, Any]] = footer[4]
    return groups


LEVELS_MAX = 16
"""Structs and lists of a footer within one another; it has six."""


def _struct(data: bytes, at: int, levels: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct by their numbers, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at)
        kind = head & 15
        if kind in (1, 2):  # true and false: the kind is the value
            fields[number] = kind == 1
        else:
            fields[number], at = _value(data, at, kind, levels)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, levels: int) -> tuple[Any, int]:
    if levels == 0:
        raise ValueError("its footer is nested too deep")
    match kind:
        case 1 | 2 | 3:  # a byte, or a truth value within a list
            return data[at], at + 1
        case 4 | 5 | 6:  # whole numbers of 16, 32 and 64 bits
            return _integer(data, at)
        case 7:  # a float: none is needed
            if at + 8 > len(data):
                raise ValueError("its footer is damaged")
            return None, at + 8
        case 8:  # bytes or text
            length, at = _unsigned(data, at)
            return data[at : at + length], at + length
        case 9 | 10:  # a list or set
            return _list(data, at, levels - 1)
        case 12:  # a struct
            return _struct(data, at, levels - 1)
        case _:
            raise ValueError("its footer has a part of an unknown kind")


def _list(data: bytes, at: int, levels: int) -> tuple[list[Any], int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _unsigned(data, at)
    if size > len(data):
        raise ValueError("its footer is damaged")
    items = []
    for _ in range(size):
        item, at = _value(data, at, kind, levels)
        items.append(item)
    return items, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("its footer has a number that is too large")
