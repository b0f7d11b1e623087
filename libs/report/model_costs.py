"""The costs of models by day, model and step. Pure."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from contracts.http import CostRow, CostsView
from contracts.types import Usage, total_cost
from libs.facts import amounts
from libs.report import costs, view
from libs.report.view import Column, Table

NO_REPLY = "no reply"
LOST_TOKENS = "No reply: tokens reserved for calls whose reply never came; they count as spent."


def by_key(rows: Sequence[CostRow], what: str, key: Callable[[CostRow], str]) -> Table:
    """The costs of all rows of a key together, what cost most first."""
    groups: dict[str, list[CostRow]] = defaultdict(list)
    for it in rows:
        groups[key(it)].append(it)
    spent = {name: _sum(of) for name, of in groups.items()}
    whole = total_cost(usage.cost_usd for usage in spent.values())
    order = sorted(
        spent, key=lambda name: (-(spent[name].cost_usd or 0), -spent[name].tokens, name)
    )
    return view.table(
        (what, *(Column(head, right=True) for head in ("Calls", "Tokens", "USD", "Share"))),
        (
            (
                name,
                view.count(sum(it.calls for it in groups[name])),
                amounts.thousands(spent[name].tokens),
                amounts.paid(spent[name].cost_usd),
                view.percent(100 * (spent[name].cost_usd or 0) / whole if whole else None),
            )
            for name in order
        ),
    )


def listed(of: CostsView) -> Table:
    """A row a day, a model and a step."""
    lost = any(it.usage.unsorted_tokens for it in of.rows)
    heads = ("Calls", *costs.PAID, *([costs.LOST] if lost else ()), "USD")
    left_out = "; older ones are left out" if of.cut else ""
    operations = f"{amounts.count(of.counted, 'operation')} with paid calls"
    return view.table(
        ("Day (UTC)", "Provider", "Model", "Step", *(Column(head, right=True) for head in heads)),
        (
            (
                view.day(it.day),
                it.provider,
                it.model or NO_REPLY,
                it.stage,
                view.count(it.calls),
                *costs.by_sort(it.usage, lost=lost),
                amounts.paid(it.usage.cost_usd),
            )
            for it in of.rows
        ),
        notes=view.notes(
            LOST_TOKENS if lost else "",
            f"From {operations} since {amounts.session(of.since)}{left_out}.",
        ),
    )


def _sum(rows: Sequence[CostRow]) -> Usage:
    return sum((it.usage for it in rows), start=Usage())
