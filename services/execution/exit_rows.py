"""The ledger's rows about exits, as what execution thinks in, and back. Pure."""

from decimal import Decimal
from typing import Any

from contracts.account import ActedExit, ExitAct
from libs.postgres.pool import Record
from services.execution.exits import SplitOf


def shares(stored: Decimal) -> Decimal:
    """A whole number without the places that the column adds: 276, not 276.000000."""
    return stored.to_integral_value() if stored == stored.to_integral_value() else stored


def acts(row: Record) -> ExitAct | None:
    """The exit that an order acts on; None of most."""
    if row["exit_rules"] is None:
        return None
    return ExitAct(
        rules=tuple(row["exit_rules"]),
        month=row["exit_month"],
        held=shares(row["exit_held"]),
        asked=shares(row["exit_asked"]),
    )


def acted_exit(row: Record) -> ActedExit:
    """An exit as it was ordered, and what was sold of it."""
    return ActedExit(
        ticker=row["ticker"],
        as_of=row["as_of"],
        rules=tuple(row["exit_rules"]),
        month=row["exit_month"],
        held=shares(row["exit_held"]),
        asked=shares(row["exit_asked"]),
        sold=shares(row["sold"] or Decimal(0)),
        sold_on=row["sold_on"],
    )


def split_of(row: Record) -> SplitOf:
    """A split as what it made of the shares held."""
    before = row["before"]
    return SplitOf(row["ticker"], row["session"], before, before + row["more"])


def acts_values(acts: ExitAct | None) -> tuple[Any, ...]:
    """The arguments of `insert_order` for it."""
    if acts is None:
        return (None, None, None, None)
    return (list(acts.rules), acts.month, acts.held, acts.asked)
