"""Exit checks of each position. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from contracts.account import Portfolio
from contracts.exit_signal import ExitCheck, ExitDistances, ExitReport, ExitTrigger, PositionExits
from libs.facts import amounts
from libs.report import view
from libs.report.sections import ShownItems
from libs.report.tones import Tone
from libs.report.view import BLANK, Cell, Column, NoRows, Table

DETAIL_CHARS = 160
TONES = {"STRONG": Tone.BAD, "EXIT": Tone.BAD, "ERROR": Tone.BAD, "MONITOR": Tone.WARN}
"""By the assessment's first word."""


@dataclass(frozen=True)
class ExitRow:
    """One position: what its rules come to, what is to be sold, and the stop on the rest.

    `held` is None where the books are not known.
    """

    check: ExitCheck
    held: Decimal | None

    @property
    def assessment(self) -> str:
        """`STRONG EXIT (momentum, regime)`; `not checked` where that was impossible."""
        return self.check.assessment or "not checked"

    @property
    def tone(self) -> Tone:
        """Bad where it is to be sold."""
        if self.check.quantity is not None:
            return Tone.BAD
        return Tone.WARN if self.check.failure else Tone.QUIET

    @property
    def stop(self) -> str:
        """`95.00 USD`; empty where no stop follows."""
        price = self.check.stop_price
        return amounts.price(price) if price else ""

    @property
    def why(self) -> str:
        """The signals that fired or failed, and the note, which comes first where it says why
        nothing is sold; or why it could not be checked."""
        if self.check.failure is not None:
            return self.check.failure.message
        details = [
            signal.detail for signal in self.check.signals if signal.triggered or signal.failed
        ]
        note = [self.check.note] if self.check.note else []
        return "; ".join([*note, *details] if self.check.quantity is None else [*details, *note])


def rows(report: ExitReport, portfolio: Portfolio | None) -> Sequence[ExitRow]:
    """One row a position, those to be sold first."""
    held = (
        {position.ticker: position.quantity for position in portfolio.positions}
        if portfolio
        else {}
    )
    ordered = sorted(report.checks, key=lambda row: (row.quantity is None, row.ticker))
    return [ExitRow(check, held.get(check.ticker)) for check in ordered]


def table(checks: ShownItems[ExitRow], account: str = "", as_of: date | None = None) -> Table:
    """A row a position: what its rules come to, what is to be sold, and the stop on the rest."""
    return view.table(
        (
            "Position",
            "Assessment",
            "Sell",
            Column("Then a stop at", right=True),
            Column("Why", wraps=True),
        ),
        (
            (
                view.ticker(it.check.ticker, account, as_of),
                view.say(it.assessment, it.tone if it.check.quantity is not None else None),
                view.shares(it.check.quantity) if it.check.quantity is not None else BLANK,
                it.stop,
                view.say(amounts.cut(it.why, DETAIL_CHARS), Tone.QUIET),
            )
            for it in checks.shown
        ),
        notes=view.notes(checks.rest),
    )


def distances(of: ExitDistances, account: str = "") -> Table:
    """Every position with its triggers, the nearest first, a row a trigger."""
    held_back = (f"{held.ticker} is not sold: {held.note}" for held in of.positions if held.note)
    more = f"only the {len(of.positions):,} largest positions are shown" if of.more else ""
    source = f"prices: {of.market_source}" if of.market_source else ""
    return view.table(
        (
            "Position",
            "Shares",
            Column("Price", right=True),
            Column("Assessment", wraps=True),
            "Trigger",
            Column("Left", right=True),
            Column("At", right=True),
            Column("Note", wraps=True),
        ),
        (row for position in of.positions for row in _of_position(position, account)),
        empty=NoRows("No open positions."),
        notes=view.notes(*held_back, *of.warnings, source, more),
    )


def _of_position(of: PositionExits, account: str) -> Sequence[view.Row]:
    # The rules that made the assessment follow in brackets, and have rows of their own here.
    assessment = "not checked" if of.failure else of.assessment.partition(" (")[0]
    tone = Tone.BAD if of.failure else TONES.get(assessment.partition(" ")[0], Tone.GOOD)
    head = (
        view.ticker(of.ticker, account),
        view.shares(of.quantity),
        view.say(amounts.price(of.price)),
        view.say(assessment, tone),
    )
    why = of.failure.message if of.failure else "no rule is set"
    triggers = [_trigger(it) for it in of.triggers] or [(BLANK,) * 3 + (view.say(why, Tone.BAD),)]
    return [
        view.row(
            *(head if number == 0 else (BLANK,) * len(head)),
            *cells,
            key="" if number else of.ticker,
        )
        for number, cells in enumerate(triggers)
    ]


def _trigger(of: ExitTrigger) -> Sequence[Cell]:
    known = of.distance is not None
    notes = ("" if of.primary else "warning only", "" if known and not of.triggered else of.detail)
    return (
        view.say(of.rule.replace("_", " ")),
        view.say(_left(of), Tone.BAD if of.triggered or not known else None),
        view.say(amounts.price(of.at)) if of.at else BLANK,
        view.say(": ".join(filter(None, notes)), Tone.QUIET),
    )


def _left(of: ExitTrigger) -> str:
    """The way that is left, in its unit."""
    if of.distance is None:
        return "unknown"
    if of.triggered:
        return "fired"
    if of.unit == "sessions":
        return amounts.count(int(of.distance), "session")
    way = amounts.percent(of.distance * 100)
    if of.unit == "return":
        return f"{way.removesuffix('%')} points of return"
    return f"{way} {'up' if of.rule == 'take_profit' else 'down'}"


def nothing_sold(checked: int, wanted: int, left: int = 0) -> str:
    """Why nothing was ordered: so many positions were checked, of which some were to be sold, and
    the rules left some of these."""
    if left:
        return f"nothing sold: of {amounts.count(left, 'exit')} none was ordered"
    if wanted:
        return f"nothing sold: the rules vetoed {amounts.count(wanted, 'exit')}"
    # A request may name the positions that are checked: others may be held.
    seen = f"{amounts.count(checked, 'position')} checked" if checked else "no position to check"
    return f"nothing to sell: {seen}"
