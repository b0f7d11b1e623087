"""Changes of an account that are to be written, and the account after it. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from contracts.account import HeldPlan
from contracts.types import shortened
from libs.broker.broker import Filled
from services.execution.account import Account, BookedOrder
from services.execution.books import LedgerEntry
from services.execution.snapshots import Snapshot

REASON_CHARS_MAX: Final = 4_000


@dataclass(frozen=True)
class Changes:
    """The rows to be written, and the account after it.

    `ended` are orders that no longer work, `altered` those that work on with another quantity or
    stop price; either may be among the `placed`, as they were then. `fills` are a broker's, each
    with its order and the key of its entry; the simulated one's stand at their orders.
    """

    account: Account
    placed: tuple[BookedOrder, ...] = ()
    altered: tuple[BookedOrder, ...] = ()
    ended: tuple[BookedOrder, ...] = ()
    entries: tuple[LedgerEntry, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    fills: tuple[tuple[BookedOrder, Filled, str], ...] = ()

    def post(self, entry: LedgerEntry) -> "Changes":
        """With one more entry."""
        account = replace(self.account, books=self.account.books.posted(entry))
        return replace(self, account=account, entries=(*self.entries, entry))

    def entered(self, order: BookedOrder) -> "Changes":
        """With the plan of a buy that was filled as that of what is held."""
        if order.fill is None or order.plan is None:
            return self
        plan = HeldPlan(
            **dict(order.plan),
            thesis=order.thesis,
            since=order.fill.session,
            cycle_id=order.cycle_id,
        )
        plans = {**self.account.plans, order.ticker: plan}
        return replace(self, account=replace(self.account, plans=plans))

    def place(self, order: BookedOrder) -> "Changes":
        """With one more order; the account waits for it where it works."""
        changes = replace(self, placed=(*self.placed, order))
        return changes.waiting(order) if order.is_working else changes

    def waiting(self, order: BookedOrder) -> "Changes":
        """With an order among those that wait."""
        account = replace(self.account, orders=(*self.account.orders, order))
        return replace(self, account=account)

    def without(self, order: BookedOrder) -> "Changes":
        """Without an order among those that wait."""
        rest = tuple(o for o in self.account.orders if o.order_id != order.order_id)
        return replace(self, account=replace(self.account, orders=rest))

    def end(self, order: BookedOrder) -> "Changes":
        """With an order that no longer works."""
        changes = self.without(order)
        return replace(changes, ended=(*changes.ended, order))

    def alter(self, order: BookedOrder) -> "Changes":
        """With an order that works on, otherwise than before."""
        changes = self.without(order).waiting(order)
        others = tuple(o for o in changes.altered if o.order_id != order.order_id)
        return replace(changes, altered=(*others, order))


def also(reason: str, more: str) -> str:
    """Both reasons as one, within what an order keeps."""
    return shortened("; ".join(part for part in (reason, more) if part), REASON_CHARS_MAX)
