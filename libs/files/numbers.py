"""Numbers as people and programs write them. How a number is written is read; what it is, is not
guessed: where `1,234` could be two numbers, or a unit is missing, the cell is refused.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

import polars as pl

from libs.files.finding import BadFile
from libs.files.table import FileTable

PLAIN: Final = r"^[+-]?([0-9]+\.?|[0-9]*\.?[0-9]+([eE][+-]?[0-9]{1,3})?)$"
"""A number as programs write it; ASCII digits only."""
NOTHING: Final = frozenset({"", "-", "--", "n/a", "na", "nan", "null", "none", "#n/a", "\u2014"})
"""Words that say that there is no number, in lower case."""
SIGNS: Final = "$\u20ac\u00a3\u00a5"
"""Signs of currencies that may stand before or after an amount."""
CURRENCIES: Final = {
    "$": frozenset(["USD", "CAD", "AUD", "NZD", "HKD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP"]),
    "\u20ac": frozenset({"EUR"}),
    "\u00a3": frozenset({"GBP"}),
    "\u00a5": frozenset({"JPY", "CNY"}),
}
"""The currencies that each sign may mean."""
BLANKS: Final = re.compile("[ \u00a0\u202f\u2009]")
TIMES: Final = {"k": 3, "m": 6, "mio": 6, "b": 9, "bn": 9, "mrd": 9, "t": 12}
"""Words for powers of ten, and their zeros."""
PENCE: Final = frozenset({"p", "gbx"})
_PARTS: Final = re.compile(
    r"(?P<open>\()?(?P<sign>[+\u2212-]?)(?P<digits>[0-9](?:[0-9., ']*[0-9.,])?|[.,][0-9]+)"
    r"(?P<exponent>[eE][+-]?[0-9]{1,3})? ?(?P<times>[A-Za-z]{1,3})? ?(?P<percent>%)?(?P<close>\))?"
)
_GROUPS: Final = {
    mark: re.compile(rf"[1-9][0-9]{{0,2}}({re.escape(mark)}[0-9]{{3}})+") for mark in ",.' "
}
_NUMBER: Final = (
    rf"^\(?[+\u2212-]?[{SIGNS}]? ?-?([0-9]{{1,3}}([., '][0-9]{{3}})*|[0-9]+)?([.,][0-9]+)?"
    rf" ?[{SIGNS}]?%?\)?$"
)
"""A number with either mark; not a date with points."""


class NoNumber(Exception):
    """The text is no number; the message says why."""


def number_of(text: str, *, comma: bool = False, percent: bool = False) -> Decimal | None:
    """The number that a text says; None where it says that there is none.

    `comma` is True where a comma is the decimal mark. `percent` is True where percents are asked
    for: `12.5%` and `12.5` are the same there, and a percent sign is refused elsewhere. Brackets
    mean less than zero. Raises NoNumber.
    """
    if text.strip().casefold() in NOTHING:
        return None
    core = BLANKS.sub(" ", text).strip(SIGNS + " ")
    core = re.sub(rf"^([(+\u2212-]*) ?[{SIGNS}] ?", r"\1", core)
    match = _PARTS.fullmatch(core)
    if match is None or (match["open"] is None) != (match["close"] is None):
        raise NoNumber("not a number")
    if match["open"] and match["sign"]:
        raise NoNumber("not a number")
    if match["percent"] and not percent:
        raise NoNumber("a percentage, where a number is asked for")
    times = (match["times"] or "").casefold()
    if times in PENCE:
        raise NoNumber("an amount in pence: write the number alone, and GBX as its currency")
    if times and times not in TIMES:
        raise NoNumber("not a number")
    if match["exponent"] and not match["digits"][-1].isdigit():
        raise NoNumber("not a number")
    digits = _digits(match["digits"], (",", ".") if comma else (".", ","))
    try:
        number = Decimal(digits + (match["exponent"] or "")).scaleb(TIMES.get(times, 0))
    except InvalidOperation:
        raise NoNumber("not a number") from None
    return -number if match["open"] or match["sign"] in {"-", "\u2212"} else number


def _refused(table: FileTable, name: str, text: str, why: str) -> BadFile:
    row = int((table.frame[name] == text).fill_null(value=False).arg_max() or 0)
    return table.fault(row, why, "correct it or leave the row out", name)


def is_amount(text: str) -> bool:
    """Whether the sign of a currency stands in the text."""
    return bool(sign_of(text))


def sign_of(text: str) -> str:
    """The sign of a currency that stands in the text; "" where there is none."""
    return next((sign for sign in SIGNS if sign in text), "")


def sign_in(cells: pl.Series) -> str:
    """The sign of a currency in a column that `numbers` has read, where all numbers have the same;
    "" where there is none."""
    if cells.dtype != pl.String:
        return ""
    return sign_of(next((text for text in cells if text and re.search("[0-9]", text)), ""))


def _digits(text: str, marks: tuple[str, str]) -> str:
    """The digits with a point, from those with `marks`: the decimal mark and that of thousands."""
    decimal, thousands = marks
    whole, mark, part = text.rpartition(decimal) if decimal in text else (text, "", "")
    groups = {sign for sign in (thousands, "'", " ", decimal) if sign in whole}
    if len(groups) > 1 or (not part.isdigit() and part):
        raise NoNumber("not a number")
    for sign in groups:
        if _GROUPS[sign].fullmatch(whole) is None or (sign == decimal and mark):
            raise NoNumber("not a number")
        whole = whole.replace(sign, "")
    return f"{whole or 0}{'.' if mark else ''}{part}"


def has_decimal_comma(texts: Iterable[str], beside: Iterable[str] = ()) -> bool:
    """Whether a comma is the decimal mark of most of these numbers. Raises NoNumber where as many
    have a point, or nothing shows it.

    `beside` are the other cells of the same file: the numbers among them decide where `texts` alone
    could be either.
    """
    comma, point, unsure = _marks(texts)
    if comma and comma == point:
        raise NoNumber("its numbers have points and commas as decimal marks")
    if unsure and not comma and not point:
        others = pl.Series([*beside], dtype=pl.String)
        comma, point, _ = _marks(others.filter(others.str.contains(_NUMBER)))
        if comma == point:
            raise NoNumber("a comma before three digits could part thousands or be a decimal mark")
    return comma > point


def most_have_comma(cells: pl.Series) -> bool:
    """Whether more of these numbers have a comma alone than a point: of numbers so small that
    nothing parts their thousands."""
    has_point = cells.str.contains(".", literal=True)
    has_comma = cells.str.contains(",", literal=True) & ~has_point
    return int(has_comma.sum()) > int(has_point.sum())


def _marks(texts: Iterable[str]) -> tuple[int, int, int]:
    """How many numbers must have a decimal comma, how many a decimal point, and in how many a comma
    could be either."""
    cells = texts if isinstance(texts, pl.Series) else pl.Series([*texts], dtype=pl.String)
    cores = cells.str.replace_all(r"[^0-9.,]", "").alias("core")
    core = pl.col("core")
    commas, points = (core.str.count_matches(mark, literal=True) for mark in ",.")
    both = (commas > 0) & (points > 0)
    is_last_comma = core.str.contains(r",[0-9]*$")
    one_comma, one_point = ((commas == 1) & (points == 0), (points == 1) & (commas == 0))
    # `0,123`, `,123` and `4574,400` part no thousands.
    could_group = core.str.contains(r"^[1-9][0-9]{0,2}[.,][0-9]{3}$")
    parts_none = one_comma & ~could_group
    comma, point, unsure = (
        cores.to_frame()
        .select(
            (both & is_last_comma | (commas == 0) & (points > 1) | parts_none).sum().alias("comma"),
            (both & ~is_last_comma | (points == 0) & (commas > 1) | one_point & ~could_group)
            .sum()
            .alias("point"),
            (one_comma & ~parts_none).sum().alias("unsure"),
        )
        .row(0)
    )
    return comma, point, unsure


def numbers(
    table: FileTable, columns: Iterable[str], *, percents: frozenset[str] = frozenset()
) -> dict[str, pl.Series]:
    """The columns as Float64, null where a cell says that there is nothing. Raises BadFile for the
    first cell that is no number. Infinite values and NaN of a Parquet file stay as they are."""
    frame, columns = table.frame, list(columns)
    texts = {name: frame[name] for name in columns if frame.schema[name] == pl.String}
    odd = {name: _odd(cells) for name, cells in texts.items()}
    comma = bool(table.decimal_comma)
    if table.decimal_comma is None and any(len(cells) for cells in odd.values()):
        comma = _decimal_comma(table, list(texts))
    return {
        name: _column(table, name, odd.get(name), comma=comma, percent=name in percents)
        for name in columns
    }


def _odd(cells: pl.Series) -> pl.Series:
    """The texts that programs would not write."""
    return cells.filter(~cells.str.contains(PLAIN)).unique(maintain_order=True)


def _decimal_comma(table: FileTable, columns: Sequence[str]) -> bool:
    frame = table.frame if table.whole is None else table.whole
    every = pl.concat([frame[name].drop_nulls() for name in columns])
    try:
        return has_decimal_comma(every, _beside(table, columns))
    except NoNumber as error:
        remedy = "write all numbers like 1234.5, without marks for thousands"
        raise table.fault(None, str(error), remedy) from None


def _beside(table: FileTable, columns: Sequence[str]) -> Iterator[str]:
    """The numbers in the file's other columns; read only where they are needed."""
    for name, kind in table.frame.schema.items():
        if kind == pl.String and name not in columns:
            cells = table.frame[name]
            yield from cells.filter(cells.str.contains(_NUMBER).fill_null(value=False)).unique()


def _column(
    table: FileTable, name: str, odd: pl.Series | None, *, comma: bool, percent: bool
) -> pl.Series:
    cells = table.frame[name]
    if odd is None:
        if not (cells.dtype.is_numeric() or cells.dtype == pl.Null):
            raise table.fault(0, "not a number", "write numbers", name)
        return cells.cast(pl.Float64, strict=False)
    if not len(odd) and not comma:
        return cells.cast(pl.Float64, strict=False)
    texts = cells.drop_nulls().unique(maintain_order=True)
    values = _common(texts, comma=comma)
    amounts = texts.str.extract(f"([{SIGNS}])").fill_null("")
    refused: tuple[int, str] | None = None
    others: dict[int, float | None] = {}
    for at in values.is_null().arg_true():
        try:
            number = number_of(texts[at], comma=comma, percent=percent)
        except NoNumber as error:
            refused = (at, str(error))
            break
        others[at] = None if number is None else float(number)
    if others:
        values = values.scatter([*others], [*others.values()])
    # The sign of most cells with a number is that of all before the one that is refused.
    signs = Counter(amounts.filter(values.is_not_null()))
    sign = max(signs, key=signs.__getitem__, default="")
    odd_ones = (values.is_not_null() & (amounts != sign)).arg_true()
    if len(odd_ones) and (refused is None or odd_ones[0] < refused[0]):
        is_other = sign and amounts[odd_ones[0]]
        why = "stands in some rows only" if not is_other else "is another than in most rows"
        refused = (odd_ones[0], f"a currency's sign {why}")
    if refused is not None:
        raise _refused(table, name, texts[refused[0]], refused[1])
    return cells.replace_strict(texts, values, default=None, return_dtype=pl.Float64)


def _common(texts: pl.Series, *, comma: bool) -> pl.Series:
    """The numbers of the texts in the forms that whole columns have, by the rules of `number_of`
    but all at once: digits, marks of thousands, a sign of a currency and one word for a power of
    ten. Null for all others, which `number_of` reads or refuses."""
    point, group = (",", ".") if comma else (".", ",")
    form = (
        rf"^(?<sign>[+-]?)[{SIGNS}]?(?<whole>[0-9]+|[1-9][0-9]{{0,2}}(?:[{group}][0-9]{{3}})+)"
        rf"(?:[{point}](?<part>[0-9]+))?(?<times>[KMBkmb]?)$"
    )
    parts = texts.str.extract_groups(form).struct
    zeros = (
        parts.field("times")
        .str.to_lowercase()
        .replace_strict(
            {"": "", **{word: f"e{zeros}" for word, zeros in TIMES.items()}}, default=None
        )
    )
    digits = parts.field("whole").str.replace_all(group, "", literal=True)
    plain = parts.field("sign") + digits + "." + parts.field("part").fill_null("0") + zeros
    return plain.cast(pl.Float64, strict=False)
