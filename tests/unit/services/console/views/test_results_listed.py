"""The results of a page of decisions are read in a few questions, however many accounts it has."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from services.console.views import standings
from services.console.views.results import results

ACCOUNTS = [f"account-{number}" for number in range(30)]


class Counting:
    """A store that counts what it is asked. Each account has one order and no close yet."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def orders_of(self, decided: Collection[tuple[str, UUID]]) -> Sequence[Any]:
        self.asked.append("orders")
        return [_order(account, cycle_id) for account, cycle_id in sorted(decided)]

    async def snapshots(self, accounts: Sequence[str]) -> Sequence[Any]:
        assert len(accounts) <= standings.ACCOUNTS_AT_ONCE
        self.asked.append("snapshots")
        return ()


def _order(account: str, cycle_id: UUID) -> dict[str, Any]:
    nothing = dict.fromkeys(("stop_price", "reason", "filled_on"))
    return {
        **nothing,
        "order_id": cycle_id,
        "account": account,
        "cycle_id": cycle_id,
        "pipeline": "rules",
        "ticker": "AAPL",
        "side": "buy",
        "type": "market",
        "status": "working",
        "at_broker": False,
        "currency": "USD",
        "stop_currency": "USD",
    }


async def test_a_page_of_many_accounts_asks_as_seldom_as_memory_allows() -> None:
    store = Counting()
    decided = [(name, UUID(int=place), "rules") for place, name in enumerate(ACCOUNTS)]

    of = await results(decided, store=store)  # type: ignore[arg-type]

    assert len(of) == len(ACCOUNTS)
    assert store.asked == ["orders", "snapshots", "snapshots"]


async def test_a_page_without_decisions_asks_nothing() -> None:
    store = Counting()
    assert await results((), store=store) == {}  # type: ignore[arg-type]
    assert store.asked == []
