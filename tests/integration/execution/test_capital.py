"""What an owner brings in and takes out, on a real Postgres: holdings, deposits, withdrawals."""

import asyncio
from datetime import date
from decimal import Decimal

import orjson
import pytest

from contracts.account import PortfolioQuery
from contracts.capital import CashMoved, HeldLine, HoldingsImport, ImportHoldings, MoveCash
from libs.market.errors import NotASession
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from libs.quant.returns import AccountWorth, growth
from libs.runtime.nearest import UnknownAccount
from services.execution.capital.handler import import_holdings, move_cash
from services.execution.errors import (
    AccountExists,
    NotAsShown,
    NotEnoughCash,
)
from services.execution.handler import show_portfolio
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, Desk

D = Decimal
MARCH = date(2012, 3, 5)


def line(
    ticker: str = "AAA", quantity: str = "100", cost: str = "8.25", **other: object
) -> HeldLine:
    stated = {"line": 2, "ticker": ticker, "quantity": quantity, "cost": cost, "opened_on": MARCH}
    return HeldLine.model_validate({**stated, **other})


def wish(desk: Desk, *lines: HeldLine, cash: str = "500") -> ImportHoldings:
    return ImportHoldings(account=desk.account, holdings=lines, cash=D(cash), as_of=FRIDAY)


async def ask(desk: Desk, request: ImportHoldings) -> HoldingsImport:
    async def latest() -> date:
        return FRIDAY

    return await import_holdings("cli", request, trading=desk.trading, latest=latest)


async def opened(desk: Desk, *lines: HeldLine, cash: str = "500") -> HoldingsImport:
    shown = await ask(desk, wish(desk, *lines, cash=cash))
    assert not shown.findings
    confirmed = wish(desk, *lines, cash=cash).model_copy(update={"confirmed": shown.hash})
    return await ask(desk, confirmed)


async def move(desk: Desk, kind: str, amount: str, confirmed: str | None = None) -> CashMoved:
    stated = {"account": desk.account, "kind": kind, "amount": amount, "confirmed": confirmed}
    return await move_cash("cli", MoveCash.model_validate(stated), trading=desk.trading)


async def moved(desk: Desk, kind: str, amount: str) -> CashMoved:
    return await move(desk, kind, amount, (await move(desk, kind, amount)).hash)


async def _books(postgres: Pool, account: str) -> dict[str, Decimal]:
    rows = await postgres.fetch(
        "select book, sum(amount) as amount from balances where account = $1 group by book", account
    )
    return {row["book"]: row["amount"] for row in rows}


async def test_holdings_are_shown_first_and_nothing_is_opened(desk: Desk, postgres: Pool):
    shown = await ask(desk, wish(desk, line(), line("BBB", "3", "20", line=3)))

    assert (shown.opened, shown.changed, shown.findings) == (False, False, ())
    # 100 and 3 shares at 10 each, and 500 in cash.
    assert (shown.equity.amount, shown.cash.amount) == (D("1530.00"), D("500.00"))
    assert [(p.ticker, p.cost_value, p.value) for p in shown.positions] == [
        ("AAA", D("825.00"), D("1000.00")),
        ("BBB", D("60.00"), D("30.00")),
    ]
    assert await _books(postgres, desk.account) == {}


async def test_confirmed_holdings_stand_in_the_books_against_their_owners_capital(
    desk: Desk, postgres: Pool
):
    done = await opened(desk, line(), line("BBB", "3", "20", line=3))

    assert (done.opened, done.changed) == (True, True)
    books = await _books(postgres, desk.account)
    assert books == {"cash": D(500), "position": D(885), "capital": D(-1385)}
    portfolio = await desk.open(MONDAY)
    assert [
        (p.ticker, p.quantity, p.average_cost.amount, p.opened_on) for p in portfolio.positions
    ] == [
        ("AAA", D(100), D("8.25"), MARCH),
        ("BBB", D(3), D(20), MARCH),
    ]
    snapshots = await postgres.fetch(
        "select session, equity, paid_in, unrealised from snapshots where account = $1"
        " order by session",
        desk.account,
    )
    assert [tuple(row) for row in snapshots] == [
        (FRIDAY, D(1530), D(1385), D(145)),
        (MONDAY, D(1530), D(1385), D(145)),
    ]


async def test_an_import_is_told_as_an_event_with_who_did_it(desk: Desk, postgres: Pool):
    done = await opened(desk, line())

    rows = await postgres.fetch(
        "select owner, data::text as data from state_events where type = 'holdings_imported'"
        " and data ->> 'account' = $1",
        desk.account,
    )
    (event,) = rows
    told = orjson.loads(event["data"])
    assert (event["owner"], told["by"], told["hash"]) == ("execution", "cli", done.hash)
    assert [each["ticker"] for each in told["positions"]] == ["AAA"]


async def test_the_same_holdings_twice_are_told_and_change_nothing(desk: Desk, postgres: Pool):
    first = await opened(desk, line())
    again = await opened(desk, line())

    assert (again.opened, again.changed, again.hash) == (True, False, first.hash)
    assert (await _books(postgres, desk.account))["position"] == D(825)


async def test_other_holdings_never_get_into_an_account_that_stands(desk: Desk):
    await opened(desk, line())

    with pytest.raises(AccountExists, match="choose another name"):
        await ask(desk, wish(desk, line(quantity="101")))


async def test_an_account_that_a_cycle_has_opened_takes_no_holdings(desk: Desk):
    await desk.open(FRIDAY)

    with pytest.raises(AccountExists):
        await ask(desk, wish(desk, line()))


async def test_the_same_holdings_may_open_another_account(desk: Desk):
    await opened(desk, line())

    assert (await opened(desk.another(), line())).changed


async def test_two_who_confirm_at_once_open_it_once(desk: Desk, postgres: Pool):
    shown = await ask(desk, wish(desk, line()))
    request = wish(desk, line()).model_copy(update={"confirmed": shown.hash})

    said = await asyncio.gather(*(ask(desk, request) for _ in range(4)), return_exceptions=True)

    assert sum(isinstance(each, HoldingsImport) and each.changed for each in said) == 1
    assert (await _books(postgres, desk.account))["position"] == D(825)


async def test_what_was_not_shown_is_not_opened(desk: Desk, postgres: Pool):
    shown = await ask(desk, wish(desk, line()))
    other = wish(desk, line(), cash="5000").model_copy(update={"confirmed": shown.hash})

    with pytest.raises(NotAsShown):
        await ask(desk, other)
    assert await _books(postgres, desk.account) == {}


@pytest.mark.parametrize(
    ("stated", "field", "told"),
    [
        ({"opened_on": "2012-03-04"}, "opened_on", "is a weekend, no session"),
        ({"opened_on": "2012-07-02"}, "opened_on", "is after 2012-06-29"),
        ({"opened_on": "1950-01-03"}, "opened_on", "before or after the calendar"),
        ({"currency": "EUR"}, "currency", "state the cost in USD"),
        ({"ticker": "GONE"}, "ticker", "GONE has no close"),
    ],
)
async def test_what_is_wrong_with_a_line_is_a_finding_and_nothing_can_be_confirmed(
    desk: Desk, postgres: Pool, stated: dict[str, object], field: str, told: str
):
    desk.prices.gone.add("GONE")
    bad = line(**{"line": 3, "ticker": "BBB", **stated})
    shown = await ask(desk, wish(desk, line(), bad))

    (finding,) = shown.findings
    assert (finding.line, finding.field) == (3, field)
    assert told in finding.message
    request = wish(desk, line(), bad).model_copy(update={"confirmed": shown.hash})
    assert (await ask(desk, request)).opened is False
    assert await _books(postgres, desk.account) == {}


async def test_a_ticker_on_two_lines_is_asked_about(desk: Desk):
    shown = await ask(desk, wish(desk, line(), line(line=3, cost="9")))

    assert [each.line for each in shown.findings] == [2, 3]
    assert all("stands on 2 lines" in each.message for each in shown.findings)


async def test_a_day_before_the_data_is_a_finding(desk: Desk):
    desk.prices.closes = {("AAA", FRIDAY): D(10)}
    desk.prices.default = None
    shown = await ask(desk, wish(desk, line()))

    assert [(each.field, each.line) for each in shown.findings] == [("opened_on", 2)]
    assert "no price of the day it was opened" in shown.findings[0].message


async def test_an_account_opens_at_a_session_only(desk: Desk):
    request = wish(desk, line()).model_copy(update={"as_of": date(2012, 6, 30)})

    with pytest.raises(NotASession):
        await ask(desk, request)


async def test_a_share_abroad_is_brought_in_at_the_rate_of_the_day_it_was_opened(
    desk: Desk, postgres: Pool
):
    desk.prices.euros.add("ABC")
    desk.prices.eurusd = {date(2012, 3, 2): D("1.25"), date(2012, 6, 28): D("1.30")}
    done = await opened(desk, line("ABC", "100", "8"))

    (position,) = done.positions
    # 800 EUR at 1.25 were 1,000 USD; 1,000 EUR at 1.30 are 1,300 now.
    assert (position.cost_value, position.value) == (D("1000.00"), D("1300.00"))
    books = await _books(postgres, desk.account)
    assert (books["position"], books["capital"], books["exchange"]) == (D(1000), D(-1500), D(0))


async def test_a_share_abroad_without_a_rate_is_a_finding(desk: Desk):
    desk.prices.euros.add("ABC")
    desk.prices.eurusd = {date(2012, 6, 28): D("1.30")}
    shown = await ask(desk, wish(desk, line("ABC", "100", "8")))

    assert [each.field for each in shown.findings] == ["currency"]
    assert "on 2012-03-05; add it to the market source" in shown.findings[0].message


async def test_what_was_brought_in_is_sold_as_what_was_bought(desk: Desk, postgres: Pool):
    await opened(desk, line())
    await desk.open(FRIDAY)
    result = await desk.sell("AAA", 100)

    (fill,) = result.fills
    assert fill.quantity == 100
    books = await _books(postgres, desk.account)
    assert books["position"] == 0
    assert -books["realised"] == D(175)  # 1,000 for what cost 825


async def test_fractions_are_brought_in_sold_and_split_and_none_is_lost(desk: Desk, postgres: Pool):
    await opened(desk, line(quantity="10.5"), line("BBB", "0.333333", "20", line=3))
    await desk.open(FRIDAY)
    (fill,) = (await desk.sell("AAA", D("3.5"))).fills
    assert (fill.quantity, fill.value) == (D("3.5"), D("35.00"))
    desk.prices.events = [CorporateAction("AAA", TUESDAY, D(repr(1 / 7)), D(0))]
    desk.prices.closes |= {("AAA", day): D(70) for day in (TUESDAY, THURSDAY)}
    desk.prices.opens |= {("AAA", day): D(70) for day in (TUESDAY, THURSDAY)}
    await desk.open(MONDAY)
    held = {p.ticker: p for p in (await desk.open(TUESDAY)).positions}
    assert {name: str(p.quantity) for name, p in held.items()} == {"AAA": "1", "BBB": "0.333333"}
    assert held["BBB"].value == D("3.33333")

    await desk.sell("BBB", D("0.333333"), TUESDAY)
    (rest,) = (await desk.open(THURSDAY)).positions
    assert (rest.ticker, rest.quantity, rest.value) == ("AAA", 1, 70)
    books = await _books(postgres, desk.account)
    # Of 86.63 for AAA a third was sold, and all of 6.67 for BBB.
    assert books["position"] == D("57.75")
    assert books["cash"] == D(500) + D("35.00") - D("0.04") + D("3.33") - D("0.01")


async def test_a_deposit_is_shown_first_and_counts_from_the_next_session_on(
    desk: Desk, postgres: Pool
):
    await desk.open(FRIDAY)
    shown = await move(desk, "deposit", "2500.50")
    assert (shown.posted, shown.session, shown.free_after.amount) == (False, MONDAY, D("12500.50"))
    assert (await _books(postgres, desk.account))["cash"] == D(10_000)

    done = await moved(desk, "deposit", "2500.50")

    assert (done.posted, done.changed) == (True, True)
    assert (await desk.open(FRIDAY)).cash.amount == D(10_000)
    assert (await desk.open(MONDAY)).cash.amount == D("12500.50")
    row = await postgres.fetchrow(
        "select data ->> 'by' as by, data -> 'amount' ->> 'amount' as amount from state_events"
        " where type = 'cash_deposited' and data ->> 'account' = $1",
        desk.account,
    )
    assert row is not None
    assert tuple(row) == ("cli", "2500.50")


async def test_one_confirmation_moves_cash_once_and_another_moves_it_again(
    desk: Desk, postgres: Pool
):
    await desk.open(FRIDAY)
    first = await moved(desk, "deposit", "100")
    again = await move(desk, "deposit", "100", first.hash)
    assert (again.posted, again.changed) == (True, False)
    second = await moved(desk, "deposit", "100")

    assert second.hash != first.hash
    assert (await _books(postgres, desk.account))["cash"] == D(10_200)


async def test_no_more_is_taken_out_than_is_free(desk: Desk, postgres: Pool):
    desk.prices.last = FRIDAY  # the order waits for an open, and holds its cash back
    await desk.open(FRIDAY)
    await desk.buy("AAA", 500)
    free = (await move(desk, "deposit", "1")).free_before.amount
    assert free < D(6_000)  # 400 shares at 10, all that the limits let pass

    with pytest.raises(NotEnoughCash, match="without cash reserved for open orders"):
        await move(desk, "withdrawal", str(free + D("0.01")))
    done = await moved(desk, "withdrawal", str(free))

    assert done.free_after.amount == 0
    assert (await _books(postgres, desk.account))["cash"] == D(10_000) - free


async def test_who_takes_out_at_once_never_takes_more_than_there_is(desk: Desk, postgres: Pool):
    await desk.open(FRIDAY)
    digest = (await move(desk, "withdrawal", "6000")).hash

    said = await asyncio.gather(
        *(move(desk, "withdrawal", "6000", digest) for _ in range(4)), return_exceptions=True
    )

    assert sum(isinstance(each, CashMoved) and each.changed for each in said) == 1
    assert (await _books(postgres, desk.account))["cash"] == D(4_000)


async def test_cash_of_no_account_is_not_moved(desk: Desk):
    with pytest.raises(UnknownAccount):
        await move(desk, "deposit", "1")


async def test_a_withdrawal_is_no_loss_of_the_day_and_no_return(desk: Desk, postgres: Pool):
    """Of 10,000 the limits let 400 shares at 10 be bought; 4,000 are taken out, and the shares gain
    10% on Tuesday."""
    await desk.open(FRIDAY)
    await desk.buy("AAA", 500)
    await moved(desk, "withdrawal", "4000")
    monday = await desk.open(MONDAY)
    assert monday.before is not None
    assert monday.before.paid_in is not None
    assert monday.before.paid_in.amount == D(-4_000)
    desk.prices.closes["AAA", TUESDAY] = D(11)
    desk.prices.closes["AAA", THURSDAY] = D(11)
    tuesday = await desk.open(TUESDAY)
    assert tuesday.before is not None
    assert tuesday.before.paid_in is None

    rows = await postgres.fetch(
        "select session, equity, paid_in from snapshots where account = $1", desk.account
    )
    grown = growth({row["session"]: AccountWorth(row["equity"], row["paid_in"]) for row in rows})
    # 4 of fees on 6,000, then 400 on 5,996: the 4,000 that left earned and lost nothing.
    assert grown[MONDAY] == D(5_996) / D(6_000)
    assert round(grown[TUESDAY], 10) == round(D(6_396) / D(6_000), 10)


async def test_the_account_is_shown_with_what_was_paid_in_before_its_next_session(desk: Desk):
    await opened(desk, line())
    await moved(desk, "deposit", "100")
    portfolio = await desk.open(FRIDAY)
    query = PortfolioQuery(
        cycle_id=portfolio.cycle_id, pipeline="rules", account=desk.account, as_of=FRIDAY
    )

    assert (await show_portfolio(query, trading=desk.trading)).cash.amount == D(500)
