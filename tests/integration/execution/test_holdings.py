"""What execution tells of an account to whoever checks its positions."""

import asyncio
from datetime import date

import pytest

from contracts.account import Side
from contracts.exit_signal import HoldingsQuery
from libs.market.errors import NotASession
from libs.market.source import CorporateAction
from libs.runtime.nearest import UnknownAccount
from services.execution.errors import AheadOfClock
from services.execution.handler import show_holdings
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, D, Desk


async def shown(desk: Desk, as_of: date | None = None):
    return await show_holdings(
        HoldingsQuery(account=desk.account, as_of=as_of), trading=desk.trading
    )


async def opened(desk: Desk, as_of: date | None = None) -> dict[str, date | None]:
    return {each.ticker: each.opened_on for each in (await shown(desk, as_of)).positions}


async def test_books_valued_at_made_up_prices_say_so(desk: Desk) -> None:
    assert (await desk.open()).synthetic, "as the label of the source says"


async def test_holdings_are_those_of_the_accounts_own_session(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    assert (await shown(desk, FRIDAY)).positions == ()
    assert [each.side for each in (await shown(desk, FRIDAY)).open_orders] == [Side.BUY]

    await desk.open(MONDAY)
    found = await shown(desk)
    assert found.as_of == MONDAY
    assert [(each.ticker, each.quantity) for each in found.positions] == [("AAPL", D(100))]
    assert found.open_orders == ()


async def test_what_was_bought_at_the_next_open_is_held_at_the_price_paid(desk: Desk) -> None:
    desk.prices.opens["AAPL", MONDAY] = D(12)
    await desk.open()
    await desk.buy("AAPL", 100)
    desk.prices.closes["AAPL", MONDAY] = D(99)

    found = await shown(desk)
    (held,) = found.positions
    assert (found.as_of, found.open_orders) == (FRIDAY, ())
    assert (held.quantity, held.opened_on) == (D(100), MONDAY)
    assert held.price.amount == D(12)
    assert held.average_cost.amount == held.price.amount


async def test_what_was_sold_at_the_next_open_is_held_no_more(desk: Desk) -> None:
    desk.prices.opens["AAPL", TUESDAY] = D(12)
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    await desk.sell("AAPL", 40, MONDAY)

    found = await shown(desk)
    assert [(each.quantity, each.opened_on) for each in found.positions] == [(D(60), MONDAY)]
    assert found.positions[0].price.amount == D(12)
    assert (found.open_orders, found.sold) == ((), ("AAPL",))

    # As of the session itself, the sale lies in the future.
    then = await shown(desk, MONDAY)
    assert [each.quantity for each in then.positions] == [D(100)]
    assert [(each.side, each.quantity) for each in then.open_orders] == [(Side.SELL, D(40))]
    assert then.sold == ()


async def test_what_was_sold_whole_at_the_next_open_is_no_position(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    await desk.sell("AAPL", 100, MONDAY)

    found = await shown(desk)
    assert (found.positions, found.sold) == ((), ("AAPL",))


async def test_a_buy_that_still_waits_for_its_open_is_not_held(desk: Desk) -> None:
    desk.prices.last = FRIDAY
    await desk.open()
    await desk.buy("AAPL", 100)

    found = await shown(desk)
    assert found.positions == ()
    assert [each.side for each in found.open_orders] == [Side.BUY]


async def test_an_earlier_session_is_shown_as_it_was_and_a_later_one_refused(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(TUESDAY)

    assert (await shown(desk, FRIDAY)).positions == ()
    with pytest.raises(AheadOfClock, match="is at 2012-07-03"):
        await shown(desk, THURSDAY)
    with pytest.raises(NotASession):
        await shown(desk, date(2012, 6, 30))


async def test_an_account_that_is_not_there_is_named(desk: Desk) -> None:
    with pytest.raises(UnknownAccount, match=desk.account):
        await shown(desk)


async def test_a_position_counts_from_the_fill_that_opened_it(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    assert await opened(desk) == {"AAPL": MONDAY}

    await desk.sell("AAPL", 50, MONDAY)
    await desk.open(TUESDAY)
    assert await opened(desk) == {"AAPL": MONDAY}


async def test_a_position_that_was_closed_and_opened_again_counts_anew(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    await desk.sell("AAPL", 100, MONDAY)
    assert await opened(desk, MONDAY) == {"AAPL": MONDAY}
    await desk.open(TUESDAY)
    await desk.without_cooling_off().buy("AAPL", 10, TUESDAY)
    await desk.open(THURSDAY)

    assert await opened(desk) == {"AAPL": THURSDAY}
    # What was held on Monday was closed since, and nobody keeps when it was opened.
    assert await opened(desk, MONDAY) == {"AAPL": None}


async def test_a_split_does_not_open_a_position_anew(desk: Desk) -> None:
    desk.prices.events.append(CorporateAction("AAPL", TUESDAY, D(2), D(0)))
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(THURSDAY)

    assert await opened(desk) == {"AAPL": MONDAY}
    assert (await shown(desk)).positions[0].quantity == 200


async def test_many_questions_at_once_do_not_wait_for_a_locked_account(desk: Desk) -> None:
    await desk.open()
    async with desk.trading.pool.acquire() as db, db.transaction():
        await db.execute("select from accounts where account = $1 for update", desk.account)
        async with asyncio.timeout(30):
            found = await asyncio.gather(*(shown(desk) for _ in range(5)))
    assert {each.account for each in found} == {desk.account}
