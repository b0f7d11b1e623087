"""How past decisions fared: as a table under their own story, in words where a cycle learns it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from contracts.account import Side
from contracts.memory import AgentMemory, Basis, DecisionOutcome, PickFate, PickOutcome
from libs.facts import amounts
from services.cli.terminal import table

LEARNED_LISTED_MAX = 4
BASIS_WORDS = {
    Basis.FILL: "the fill",
    Basis.NEXT_OPEN: "the next open",
    Basis.CLOSE: "the close",
}


@dataclass
class _Line:
    """One row of the table: who, what it was, and its return after each number of sessions."""

    name: str
    was: str
    counted: str
    changes: dict[int, Text] = field(default_factory=dict)


def drawn(outcomes: Sequence[DecisionOutcome]) -> RenderableType:
    """One line a pick and one for all candidates, one column an outcome; then what is missing."""
    columns = ((f"after {each.sessions}\n{each.session}", "right") for each in outcomes)
    made: Table = table("ticker", "was", "counted from", *columns)
    for line in _lines(outcomes):
        cells = (line.changes.get(each.sessions, Text()) for each in outcomes)
        made.add_row(Text(line.name, "bold"), line.was, line.counted, *cells)
    missing = list(_missing(outcomes))
    return Group(made, Text("\n".join(missing), style="dim")) if missing else made


def _lines(outcomes: Sequence[DecisionOutcome]) -> Iterable[_Line]:
    picks: dict[tuple[str, Side], _Line] = {}
    equal = _Line("", "", "the close")
    for told in outcomes:
        for pick in told.picks:
            fresh = _Line(pick.ticker, _was(pick), BASIS_WORDS[pick.basis])
            line = picks.setdefault((pick.ticker, pick.action), fresh)
            line.changes[told.sessions] = change(pick.return_pct)
        benchmark = told.benchmark
        equal.was = equal.was or f"{amounts.count(benchmark.counted, 'candidate')} in equal parts"
        equal.changes[told.sessions] = change(benchmark.return_pct)
    yield from picks.values()
    yield equal


def _was(pick: PickOutcome) -> str:
    if pick.fate is PickFate.FILLED:
        return "bought" if pick.action is Side.BUY else "sold"
    words = {
        PickFate.WORKING: "ordered",
        PickFate.VETOED: "vetoed",
        PickFate.NOT_ORDERED: "not ordered",
    }
    return words[pick.fate] if pick.action is Side.BUY else f"sale {words[pick.fate]}"


def change(return_pct: Decimal | None) -> Text:
    """`+4.93%`; a dash where it is not known."""
    if return_pct is None:
        return Text(amounts.UNKNOWN, style="yellow")
    return Text(amounts.gain_percent(return_pct), style="green" if return_pct >= 0 else "red")


def _missing(outcomes: Sequence[DecisionOutcome]) -> Iterable[str]:
    for told in outcomes:
        for pick in told.picks:
            if pick.absence is not None:
                yield f"after {told.sessions}: {amounts.plain(pick.absence.message)}"
        if told.benchmark.absent:
            names = " ".join(told.benchmark.absent)
            yield f"after {told.sessions}: no prices of {names} among the candidates"


def of_ticker(outcomes: Sequence[DecisionOutcome], ticker: str) -> Text | None:
    """What became of one ticker's pick; None where it was no pick, or nothing is known yet."""
    lines = [
        Text.assemble(f"after {told.sessions} sessions, {told.session}: ", *_told(pick))
        for told in outcomes
        for pick in told.picks
        if pick.ticker == ticker
    ]
    return Text("\n").join(lines) if lines else None


def _told(pick: PickOutcome) -> Iterable[Text | str]:
    yield change(pick.return_pct)
    if pick.absence is not None:
        yield f" ({amounts.plain(pick.absence.message)})"
    elif pick.entry_price is not None and pick.exit_price is not None:
        prices = f"{amounts.money(pick.entry_price)} to {amounts.money(pick.exit_price)}"
        yield f" from {BASIS_WORDS[pick.basis]}, {prices} in that session's terms"


def learned(memory: AgentMemory | None) -> Text | None:
    """What a cycle has learned of earlier decisions; None where nothing became known with it."""
    if memory is None or not memory.outcomes:
        return None
    told = memory.track_record[: len(memory.outcomes)]
    lines = [amounts.plain(each) for each in told[:LEARNED_LISTED_MAX]]
    more = len(memory.outcomes) - len(lines)
    return Text("\n".join([*lines, *([f"and {more} more: --stage memorize"] if more > 0 else [])]))
