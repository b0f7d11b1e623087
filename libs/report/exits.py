"""Exit checks of each position. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from contracts.account import Portfolio
from contracts.exit_signal import ExitCheck, ExitReport
from libs.facts import amounts
from libs.report.tones import Tone


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
