"""A screen as data: tables, facts and text, made of cells. Pure.

libs/report describes each screen once. The terminal (services/cli/render/described.py), the
console's pages (templates/view.html), Markdown and JSON (`data`) only render the description: none
of them computes a figure or chooses a word.

A cell knows its exact value, its unit and its text. Money and prices need a currency: a table says
it once (`Table.currency`), and a cell in another currency carries its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from pydantic import JsonValue

from contracts.types import Money
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import links
from libs.report.tones import MARKS, Tone
from libs.report.tones import tone as tone_of

Value = str | int | Decimal | date | tuple[Decimal, ...] | None
PERCENT, SHARES = "%", "shares"
HUNDREDTH = Decimal("0.01")


class Absence(StrEnum):
    """Why there is nothing to show. The three are never mixed."""

    NOTHING = "nothing"
    """The source answered, and has none."""
    NOT_ASKED = "not_asked"
    """Nobody has asked the source."""
    NO_ANSWER = "no_answer"
    """The source was asked and did not answer."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value: `text` is what a person reads, without the currency; `value` is exact, and what
    rows are sorted by.

    `unit` is a currency, `%`, `shares` or a counted noun; empty for words. `link` is the path of a
    page, `about` explains the cell where there is room (a tooltip). `is_strong` marks a sum.
    """

    text: str = ""
    value: Value = None
    unit: str = ""
    tone: Tone | None = None
    link: str = ""
    about: str = ""
    is_strong: bool = False

    @property
    def currency(self) -> str:
        """The unit where it is a currency, else empty."""
        return self.unit if len(self.unit) == 3 and self.unit.isupper() else ""

    @property
    def is_number(self) -> bool:
        """Whether the value is one: an amount, a share, a count."""
        return isinstance(self.value, int | Decimal)

    def shown(self, currency: str = "") -> str:
        """The text, with its currency unless the heading names that one already."""
        own = self.currency
        return self.text if own in ("", currency) or self.value is None else f"{self.text} {own}"

    def toned(self, tone: Tone | None) -> "Cell":
        """The same in another tone."""
        return replace(self, tone=tone)

    def linked(self, link: str) -> "Cell":
        """The same as a link."""
        return replace(self, link=link)

    @property
    def strong(self) -> "Cell":
        """The same, marked as a sum."""
        return replace(self, is_strong=True)


BLANK = Cell()
"""A cell that says nothing, where a `-` would be wrong: the row has no such thing."""


# --- cells: None is shown as `-`, never as a zero ----------------------------------------------


def say(text: str, tone: Tone | None = None, link: str = "", about: str = "") -> Cell:
    """Words."""
    return Cell(text, text or None, tone=tone, link=link, about=about)


def ticker(name: str, account: str = "", as_of: date | None = None) -> Cell:
    """A ticker; with an account it leads to the chart as that one has seen it."""
    return say(name, link=links.ticker(name, account, as_of) if account else "")


def decision(cycle_id: UUID | None, pipeline: str | None) -> Cell:
    """The beginning of a cycle's id, which leads to the decision; blank where there is none."""
    if cycle_id is None or pipeline is None:
        return BLANK
    return say(amounts.short(cycle_id), link=links.decision(cycle_id, pipeline))


def status(word: str) -> Cell:
    """`✓ completed`: a status with its mark."""
    return Cell(f"{MARKS[word]} {word}", word, tone=tone_of(word))


def unknown(about: str = "") -> Cell:
    """A value that is not known."""
    return Cell(amounts.UNKNOWN, about=about)


def money(amount: Decimal | None, currency: str) -> Cell:
    """`12,345.60`: an amount to the cent."""
    if amount is None:
        return unknown()
    return Cell(amounts.money(priced(amount, currency), currency), amount, currency)


def gain(amount: Decimal | None, currency: str, pct: Decimal | None = None) -> Cell:
    """`+1,204.50`, `-86.10 (-0.86%)`: a gain or a loss, with its percentage where there is one."""
    if amount is None:
        return unknown()
    share = "" if pct is None else f" ({amounts.gain_percent(pct)})"
    change = amounts.change(priced(amount, currency), currency)
    return Cell(change + share, amount, currency, good_or_bad(amount))


def price(of: Money | None) -> Cell:
    """`552.69`: a price on its tick."""
    if of is None:
        return unknown()
    return Cell(amounts.price(of, of.currency), of.amount, of.currency)


def percent(amount: Decimal | None) -> Cell:
    """`25%`: a share, a fall, a limit."""
    return unknown() if amount is None else Cell(amounts.percent(amount), amount, PERCENT)


def gain_percent(amount: Decimal | None) -> Cell:
    """`+4.93%`: a return."""
    if amount is None:
        return unknown()
    return Cell(amounts.gain_percent(amount), amount, PERCENT, good_or_bad(amount))


def ratio(amount: Decimal | None) -> Cell:
    """`0.54`."""
    if amount is None:
        return unknown()
    return Cell(f"{amounts.rounded(amount, HUNDREDTH):f}", amount)


def shares(number: Decimal | None) -> Cell:
    """`120`."""
    return unknown() if number is None else Cell(amounts.quantity(number), number, SHARES)


def count(number: int | None, noun: str = "") -> Cell:
    """`3`; `3 sessions` with a noun."""
    if number is None:
        return unknown()
    return Cell(amounts.count(number, noun) if noun else f"{number:,}", number, noun)


def day(of: date | None) -> Cell:
    """`Fri 2012-06-29`."""
    return unknown() if of is None else Cell(amounts.session(of), of)


def curve(values: Sequence[Decimal]) -> Cell:
    """A line over time, which each renderer draws its way."""
    return Cell(value=tuple(values)) if len(values) > 1 else unknown()


def good_or_bad(amount: Decimal) -> Tone:
    """The tone of a gain or a loss, to the hundredth that is shown: `+0.00%` is neither."""
    shown = amounts.rounded(amount, HUNDREDTH)
    return Tone.GOOD if shown > 0 else Tone.BAD if shown < 0 else Tone.QUIET


# --- parts of a screen --------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A sentence of its own, such as a note below a table."""

    text: str
    tone: Tone | None = Tone.QUIET
    link: str = ""


@dataclass(frozen=True)
class NoRows:
    """The words in place of a table without rows: what is absent and why, and what to do."""

    text: str
    absence: Absence = Absence.NOTHING
    todo: str = ""


@dataclass(frozen=True)
class Column:
    """A column. Numbers stand at the `right`. Where the line is too narrow, columns leave in the
    order of `spare` (1 first, 0 never), one that `wraps` breaks its text, and one that `cuts` ends
    it with …."""

    title: str
    right: bool = False
    spare: int = 0
    wraps: bool = False
    cuts: bool = False


@dataclass(frozen=True)
class Row:
    """The cells of one row, a cell a column; `key` names what it is about, for the controls that a
    page puts beside it."""

    cells: tuple[Cell, ...]
    key: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under columns. `currency` is the one that the heading names. Columns without a cell that
    says anything are left out (`in_use`)."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    currency: str = ""
    keeps_rows: bool = False
    """Whether its rows make sense only below one another, as those of a tree."""
    empty: NoRows = NoRows("Nothing.")
    notes: tuple[Text, ...] = ()

    @property
    def in_use(self) -> "Table":
        """Without the columns in which no row says anything."""
        return self._with(
            n
            for n in range(len(self.columns))
            if any(row.cells[n].text or row.cells[n].value is not None for row in self.rows)
        )

    def without(self, *titles: str) -> "Table":
        """The same without these columns."""
        return self._with(n for n, it in enumerate(self.columns) if it.title not in titles)

    def _with(self, places: Iterable[int]) -> "Table":
        kept = tuple(places)
        return replace(
            self,
            columns=tuple(self.columns[n] for n in kept),
            rows=tuple(replace(r, cells=tuple(r.cells[n] for n in kept)) for r in self.rows),
        )

    @property
    def spare(self) -> Sequence[str]:
        """The titles of the columns that may be left out, the first to go first."""
        columns = sorted((it for it in self.columns if it.spare), key=lambda it: it.spare)
        return [column.title for column in columns]


@dataclass(frozen=True)
class Facts:
    """Labels with a value each."""

    rows: tuple[tuple[str, Cell], ...]
    title: str = ""
    currency: str = ""
    notes: tuple[Text, ...] = ()


Part = Table | Facts | Text


def row(*cells: Cell | str, key: str = "") -> Row:
    """One row; a text in it is a cell of words."""
    return Row(tuple(say(it) if isinstance(it, str) else it for it in cells), key)


def table(
    columns: Iterable[Column | str],
    rows: Iterable[Row | Sequence[Cell | str]],
    title: str = "",
    *,
    currency: str = "",
    keeps_rows: bool = False,
    empty: NoRows = NoRows("Nothing."),
    notes: Iterable[Text] = (),
) -> Table:
    """A table of these rows. A column may be its title alone; one with numbers in it stands at the
    right."""
    listed = tuple(it if isinstance(it, Row) else row(*it) for it in rows)
    heads = (Column(it) if isinstance(it, str) else it for it in columns)
    aligned = tuple(
        replace(head, right=head.right or any(it.cells[n].is_number for it in listed))
        for n, head in enumerate(heads)
    )
    return Table(aligned, listed, title, currency, keeps_rows, empty, tuple(notes))


def notes(*texts: str, tone: Tone = Tone.QUIET) -> tuple[Text, ...]:
    """The texts that say something, as notes."""
    return tuple(Text(text, tone) for text in texts if text)


def by_value(rows: Iterable[Row], column: int) -> tuple[Row, ...]:
    """The rows by the number in a column, the largest first; unknown ones last."""

    def key(it: Row) -> tuple[bool, Decimal]:
        value = it.cells[column].value
        number = Decimal(value) if isinstance(value, int | Decimal) else None
        return number is None, -(number or Decimal(0))

    return tuple(sorted(rows, key=key))


# --- JSON ---------------------------------------------------------------------------------------


def data(part: Part) -> dict[str, JsonValue]:
    """A part for programs: each cell as its exact value with its unit, absences by name."""
    match part:
        case Text():
            return {"text": part.text}
        case Facts():
            named: dict[str, JsonValue] = {label: _data(cell) for label, cell in part.rows}
            return {"title": part.title, "facts": named, "notes": _texts(part.notes)}
        case Table():
            titles = [column.title for column in part.columns]
            rows: list[JsonValue] = [
                {title: _data(cell) for title, cell in zip(titles, it.cells, strict=True)}
                for it in part.rows
            ]
            listed: dict[str, JsonValue] = {"title": part.title, "rows": rows}
            if not rows:
                listed["absent"] = part.empty.absence.value
                listed["message"] = part.empty.text
            return {**listed, "notes": _texts(part.notes)}


def _texts(of: Sequence[Text]) -> list[JsonValue]:
    return [note.text for note in of]


def _data(cell: Cell) -> JsonValue:
    value = cell.value
    plain: JsonValue
    if isinstance(value, tuple):
        plain = [str(number) for number in value]
    else:
        plain = value if value is None or isinstance(value, str | int) else str(value)
    return {"value": plain, "unit": cell.unit} if cell.unit else {"value": plain}
