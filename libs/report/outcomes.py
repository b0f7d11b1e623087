"""How past decisions fared, and what a cycle learned of them. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from contracts.account import Side
from contracts.memory import AgentMemory, Basis, DecisionOutcome, PickFate, PickOutcome
from libs.facts import amounts
from libs.report import view
from libs.report.cited import TextPiece
from libs.report.sections import Line, ShownItems
from libs.report.view import BLANK, Column, Table

LEARNED_LISTED_MAX = 4
BASIS_WORDS = {
    Basis.FILL: "the fill",
    Basis.NEXT_OPEN: "the next open",
    Basis.CLOSE: "the close",
}
FATE_WORDS = {
    PickFate.WORKING: "ordered",
    PickFate.VETOED: "vetoed",
    PickFate.NOT_ORDERED: "not ordered",
}


@dataclass(frozen=True)
class OutcomeRow:
    """One pick, or all candidates: its fate, and its return in % by number of sessions."""

    name: str
    fate: str
    counted_from: str
    returns: dict[int, Decimal | None] = field(default_factory=dict)


def rows(outcomes: Sequence[DecisionOutcome]) -> Sequence[OutcomeRow]:
    """One row a pick, and one for all candidates."""
    if not outcomes:
        return []
    picks: dict[tuple[str, Side], OutcomeRow] = {}
    counted = amounts.count(outcomes[0].benchmark.counted, "candidate")
    equal = OutcomeRow("", f"{counted} in equal parts", "the close")
    for outcome in outcomes:
        for pick in outcome.picks:
            fresh = OutcomeRow(pick.ticker, _fate(pick), BASIS_WORDS[pick.basis])
            row = picks.setdefault((pick.ticker, pick.action), fresh)
            row.returns[outcome.sessions] = pick.return_pct
        equal.returns[outcome.sessions] = outcome.benchmark.return_pct
    return [*picks.values(), equal]


def table(outcomes: Sequence[DecisionOutcome]) -> Table:
    """A row a pick and one for all candidates, a column an outcome; below it what is missing."""
    times = [(it.sessions, f"After {it.sessions}, {it.session}") for it in outcomes]
    return view.table(
        (
            "Ticker",
            Column("Outcome", wraps=True),
            Column("Counted from", spare=1),
            *(title for _, title in times),
        ),
        (
            (
                it.name,
                it.fate,
                it.counted_from,
                *(
                    view.gain_percent(it.returns[sessions]) if sessions in it.returns else BLANK
                    for sessions, _ in times
                ),
            )
            for it in rows(outcomes)
        ),
        notes=view.notes(*missing(outcomes)),
    )


def _fate(pick: PickOutcome) -> str:
    if pick.fate is PickFate.FILLED:
        return "bought" if pick.action is Side.BUY else "sold"
    words = FATE_WORDS[pick.fate]
    return words if pick.action is Side.BUY else f"sale {words}"


def missing(outcomes: Sequence[DecisionOutcome]) -> Iterable[str]:
    """Why a return is not known, one sentence each."""
    for outcome in outcomes:
        for pick in outcome.picks:
            if pick.absence is not None:
                yield f"after {outcome.sessions}: {amounts.plain(pick.absence.message)}"
        if outcome.benchmark.absent:
            names = " ".join(outcome.benchmark.absent)
            yield f"after {outcome.sessions}: no prices of {names} among the candidates"


def unreadable(count: int) -> str:
    """How many outcomes are on record that a later release wrote; empty where none is."""
    if not count:
        return ""
    cannot = "cannot be read by this version of Deskbus: a later one wrote"
    return f"{amounts.count(count, 'outcome')} {cannot} {'it' if count == 1 else 'them'}"


def of_ticker(outcomes: Sequence[DecisionOutcome], ticker: str) -> Sequence[str]:
    """The outcome of one ticker's pick, a sentence for each number of sessions."""
    return [
        f"after {outcome.sessions} sessions, {outcome.session}: {_return(pick)}{_beside(outcome)}"
        for outcome in outcomes
        for pick in outcome.picks
        if pick.ticker == ticker
    ]


def _return(pick: PickOutcome) -> str:
    if pick.return_pct is None:
        why = f" ({amounts.plain(pick.absence.message)})" if pick.absence else ""
        return f"{amounts.UNKNOWN}{why}"
    change = amounts.gain_percent(pick.return_pct)
    if pick.entry_price is None or pick.exit_price is None:
        return change
    prices = f"{amounts.price(pick.entry_price)} to {amounts.price(pick.exit_price)}"
    return f"{change} from {BASIS_WORDS[pick.basis]}, {prices}, adjusted to that session"


def _beside(outcome: DecisionOutcome) -> str:
    change = outcome.benchmark.return_pct
    if change is None:
        return ""
    return f"; all candidates in equal parts {amounts.gain_percent(change)}"


def learned(memory: AgentMemory | None) -> ShownItems[Line]:
    """The outcomes of earlier decisions that a cycle came to know, a sentence each."""
    if memory is None:
        return ShownItems()
    known = memory.track_record[: len(memory.outcomes)]
    return ShownItems([[TextPiece(text)] for text in known], LEARNED_LISTED_MAX, "memorize")
