"""The three budgets for models: of an operation, of its cycle, of the UTC day. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from contracts.cycle import Budgets, RequestAnswer
from contracts.operation import RecordAnswer, Reserve
from libs.runtime.settings import Settings
from services.orchestrator.group.rows import CallBudget, OperationRow

CODE = "budget_exhausted"
SMALLEST_USD = Decimal("0.00000001")
REMEDIES = {
    "operation_tokens_max": "raise DESKBUS_BUDGET_OPERATION_TOKENS_MAX",
    "operation_cost_usd_max": "raise DESKBUS_BUDGET_OPERATION_COST_USD_MAX",
    "budgets.tokens": "give the request more budgets.tokens (--max-tokens)",
    "budgets.cost_usd": "give the request more budgets.cost_usd (--max-cost)",
    "day_tokens_max": "wait for the next UTC day, or raise DESKBUS_BUDGET_DAY_TOKENS_MAX",
    "day_cost_usd_max": "wait for the next UTC day, or raise DESKBUS_BUDGET_DAY_COST_USD_MAX",
}
"""What to do, by the limit that was reached."""
REMEDIES_OF_A_CELL = {
    "budgets.tokens": "raise cell_tokens in the study's file and run it again",
    "budgets.cost_usd": "raise cell_cost_usd in the study's file and run it again",
}
"""The same where nobody but a study could have asked for more."""


def refused_call(
    reserve: Reserve,
    row: OperationRow,
    cycle: CallBudget,
    day: CallBudget | None,
    settings: Settings,
    *,
    of_study: bool = False,
) -> RecordAnswer | None:
    """The answer to a call that one of the budgets does not afford; None where all do.

    What is held back for other calls counts as spent: they may cost it.
    """
    remedies = {**REMEDIES, **(REMEDIES_OF_A_CELL if of_study else {})}
    for name, purse, limits in _purses(row, cycle, day, settings):
        short = _short(purse, reserve, with_held=True)
        if short is not None:
            message = (
                f"the {name}'s budget is used up: {_used(purse)}, and the next call may need "
                f"{needed(reserve)}; "
                f"{remedies[limits[short]]}"
            )
            return RecordAnswer(outcome=CODE, message=message, field=limits[short])
    return None


def pays_no_call(budgets: Budgets, needs: Reserve | None) -> RequestAnswer | None:
    """The answer to a study's cell whose budgets do not pay one call of its dearest model."""
    if needs is None or (needs.tokens <= budgets.tokens and counted_usd(needs) <= budgets.cost_usd):
        return None
    message = (
        f"a cell may cost {budgets.tokens:,} tokens and {budgets.cost_usd:.2f} USD, and one call "
        f"of its dearest model may need {needed(needs)}: raise cell_tokens and cell_cost_usd"
    )
    return RequestAnswer(outcome="rejected", code="invalid", field="budgets", message=message)


def refused_cycle(
    needs: Reserve | None, today: CallBudget | None, now: datetime
) -> RequestAnswer | None:
    """The answer to a request whose models the day can no longer pay; None where it can.

    `needs` is the least that a call of the request's dearest model may cost, None where nothing in
    it is counted. What is held back for calls in flight is not held against it: most of that comes
    back.
    """
    if needs is None or today is None or _short(today, needs, with_held=False) is None:
        return None
    retry_at = next_day(now)
    text = (
        f"today's budget for models is used up: {_used(today)}; try again from "
        f"{retry_at:%Y-%m-%d %H:%M} UTC on, raise DESKBUS_BUDGET_DAY_TOKENS_MAX or "
        "DESKBUS_BUDGET_DAY_COST_USD_MAX, or use the rules provider, which costs nothing"
    )
    return RequestAnswer(outcome="rejected", code=CODE, message=text, retry_at=retry_at)


def counted_usd(reserve: Reserve) -> Decimal:
    """The dollars that a budget must have for it. An unknown cost is not nothing: no such call
    begins once the dollars are used up."""
    return SMALLEST_USD if reserve.cost_usd is None else reserve.cost_usd


def needed(reserve: Reserve) -> str:
    """`12,000 tokens and 0.0300 USD`."""
    usd = "an unknown cost" if reserve.cost_usd is None else f"{reserve.cost_usd:.4f} USD"
    return f"{reserve.tokens:,} tokens and {usd}"


def next_day(now: datetime) -> datetime:
    """When the next UTC day begins."""
    tomorrow = now.astimezone(UTC).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), UTC)


def _purses(
    row: OperationRow, cycle: CallBudget, day: CallBudget | None, settings: Settings
) -> Iterator[tuple[str, CallBudget, tuple[str, str]]]:
    """Name, purse, and what its limits of tokens and of cost are called; the narrowest first."""
    # One reservation at a time: what the operation held before has been settled.
    own = CallBudget(settings.budget.operation_tokens_max, settings.budget.operation_cost_usd_max)
    own.spend(row.tokens, row.cost_usd)
    yield "operation", own, ("operation_tokens_max", "operation_cost_usd_max")
    yield "cycle", cycle, ("budgets.tokens", "budgets.cost_usd")
    if day is not None:
        yield "day", day, ("day_tokens_max", "day_cost_usd_max")


def _short(purse: CallBudget, reserve: Reserve, *, with_held: bool) -> int | None:
    """The sort that the purse lacks: 0 for tokens, 1 for dollars, None where it affords it."""
    held_tokens, held_usd = (
        (purse.tokens_reserved, purse.cost_usd_reserved) if with_held else (0, Decimal(0))
    )
    if purse.tokens_spent + held_tokens + reserve.tokens > purse.tokens_max:
        return 0
    if purse.cost_usd_spent + held_usd + counted_usd(reserve) > purse.cost_usd_max:
        return 1
    return None


def _used(purse: CallBudget) -> str:
    held = ""
    if purse.tokens_reserved or purse.cost_usd_reserved:
        held = (
            f" ({purse.tokens_reserved:,} tokens and {purse.cost_usd_reserved:.4f} USD more are "
            "reserved for calls in flight)"
        )
    return (
        f"{purse.tokens_spent:,} of {purse.tokens_max:,} tokens and {purse.cost_usd_spent:.4f} of "
        f"{purse.cost_usd_max:.2f} USD are spent{held}"
    )
