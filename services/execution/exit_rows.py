"""The ledger's rows about exits, as what execution thinks in, and back. Pure."""

from decimal import Decimal
from typing import Any

from contracts.account import ActedExit, ExitAct
from libs.postgres.pool import Record
from services.execution.exits import SplitOf


def acts(row: Record) -> ExitAct | None:
    """The exit that an order acts on; None of most."""
    if row["exit_rules"] is None:
        return None
    return ExitAct(
        rules=tuple(row["exit_rules"]),
        month=row["exit_month"],
        held=row["exit_held"],
        asked=row["exit_asked"],
    )


def acted_exit(row: Record) -> ActedExit:
    """An exit as it was ordered, and what was sold of it."""
    return ActedExit(
        ticker=row["ticker"],
        as_of=row["as_of"],
        rules=tuple(row["exit_rules"]),
        month=row["exit_month"],
        held=row["exit_held"],
        asked=row["exit_asked"],
        sold=row["sold"] or Decimal(0),
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
