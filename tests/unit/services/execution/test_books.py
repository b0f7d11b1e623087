"""Double entry: whatever happens, every entry sums to zero and the past can be read again."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.account import Side
from contracts.types import ExchangeRate, Money
from libs.broker.broker import Filled
from libs.quant.exchange import PriceMark, purse
from libs.quant.sizing import SHARE_STEP, fill_value, kept_shares, trade_value
from services.execution import books as ledger
from services.execution.books import Book, Books, LedgerEntry
from services.execution.snapshots import snapshots

D = Decimal
START = date(2012, 7, 2)


def balance(entry: LedgerEntry) -> Decimal:
    return sum((line.amount for line in entry.lines), D(0))


def amount_of(entry: LedgerEntry, book: Book) -> Decimal:
    """What the entry posts to a book, in the account's currency."""
    return sum((line.amount for line in entry.lines if line.book is book), D(0))


def opened(cash: int = 10_000) -> Books:
    return Books("USD").posted(ledger.opening(D(cash), START))


def fill(
    books: Books,
    side: Side,
    quantity: Decimal | int,
    price: str,
    day: int = 0,
    n: int = 1,
    rate: ExchangeRate | None = None,
) -> LedgerEntry:
    session = START + timedelta(days=day)
    fee = (
        D("0.50")
        if side is Side.BUY
        else min(D("0.50"), fill_value(D(price), D(quantity), buying=False))
    )
    done = Filled(D(price), D(quantity), fee, session, rate=rate)
    return ledger.filled(UUID(int=n), "AAA", side, done, books)


def euro(rate: str) -> ExchangeRate:
    return ExchangeRate(currency="EUR", into="USD", rate=D(rate), on=START)


def test_a_bought_share_stands_at_what_it_cost():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 10, "20.00"))
    assert books.cash == D("9799.50")
    assert books.holdings["AAA"].average_cost == 20


def test_a_sale_takes_its_part_of_the_cost_and_the_last_share_the_rest():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 3, "33.33"))
    books = books.posted(fill(books, Side.SELL, 1, "40.00", n=2))
    books = books.posted(fill(books, Side.SELL, 2, "40.00", n=3))
    assert books.holdings["AAA"] == ledger.Holding(D(0), D(0))


def test_books_as_of_a_day_leave_out_what_came_after():
    books = opened()
    before = books.posted(fill(books, Side.BUY, 10, "20.00"))
    after = before.posted(fill(before, Side.SELL, 4, "25.00", day=1, n=2))
    then = after.as_of(START)
    assert then.cash == before.cash
    assert then.holdings["AAA"] == before.holdings["AAA"]


def test_a_fraction_that_a_split_leaves_is_held():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 101, "20.00"))
    entry = ledger.split("AAA", START + timedelta(days=1), D("1.5"), D("14.00"), books)
    assert balance(entry) == 0
    after = books.posted(entry)
    assert after.holdings["AAA"] == ledger.Holding(D("151.5"), D(2020))
    assert after.cash == books.cash


def test_what_a_split_leaves_below_six_places_is_paid_out_at_the_open():
    """A share so dear that less than a millionth of it is worth cents."""
    books = opened(2_000_000)
    books = books.posted(fill(books, Side.BUY, 10, "100000.00"))
    day, ratio = START + timedelta(days=1), D(repr(1 / 7))
    entry = ledger.split("AAA", day, ratio, D("700000.00"), books)
    after = books.posted(entry)
    assert balance(entry) == 0
    assert after.holdings["AAA"] == ledger.Holding(D("1.428571"), D("999999.70"))
    assert after.cash == books.cash + D("0.30")
    assert entry.memo.endswith(
        "became 1.428571, the rest of 0.000000428571 paid at 700000.000000 USD"
    )


@pytest.mark.parametrize("ratio", ["0.142857142857142849", "0.14285714285714285", "0.142857"])
def test_a_reverse_split_leaves_whole_shares_where_they_divide(ratio: str):
    books = opened().posted(fill(opened(), Side.BUY, 21, "20.00"))
    after = books.posted(ledger.split("AAA", START + timedelta(days=1), D(ratio), D(140), books))
    assert after.holdings["AAA"] == ledger.Holding(D(3), D(420))
    assert after.cash == books.cash


def test_a_reverse_split_of_a_tiny_holding_pays_all_of_it_out():
    cost = Money(amount=D("500000"), currency="USD")
    books = opened().posted(ledger.brought_in("AAA", SHARE_STEP, cost, START))
    day = START + timedelta(days=1)
    after = books.posted(ledger.split("AAA", day, D("0.1"), D(5_000_000), books))
    assert after.holdings["AAA"] == ledger.Holding(D(0), D(0))
    assert after.cash == books.cash + D("0.50")


def test_a_dividend_counts_the_shares_of_before_its_day_after_a_split_of_that_day():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 10, "20.00"))
    day = START + timedelta(days=1)
    books = books.posted(ledger.split("AAA", day, D(2), D(10), books))
    books = books.posted(fill(books, Side.BUY, 5, "10.00", day=1, n=2))
    assert amount_of(ledger.dividend("AAA", day, D("0.10"), books), Book.CASH) == 2


def test_every_price_in_a_memo_names_its_currency():
    day = START + timedelta(days=1)
    brought = ledger.brought_in("AAA", D(3), Money(amount=D("0.000493"), currency="USD"), START)
    bought = fill(opened(), Side.BUY, 101, "20.00")
    books = opened().posted(bought)
    parted = ledger.split("AAA", day, D("1.5"), D("14.00"), books)
    paid = ledger.dividend("AAA", day, D("0.10"), books)
    assert [entry.memo for entry in (brought, bought, parted, paid)] == [
        "brought in: 3 AAA at 0.000493 USD",
        "buy 101 AAA at 20.00 USD",
        "1.5 new shares for one: 101 became 151.5",
        "101 shares at 0.1 USD",
    ]


# --- in another currency --------------------------------------------------------------------------


def test_a_foreign_buy_is_paid_through_the_exchange_and_balances_in_each_currency():
    entry = fill(opened(), Side.BUY, 10, "20.00", rate=euro("1.10"))
    told = [(line.book.value, line.currency, line.foreign, line.amount) for line in entry.lines]
    assert told == [
        ("position", "EUR", D("200.00"), D("220.00")),
        ("fees", "EUR", D("0.50"), D("0.55")),
        ("exchange", "EUR", D("-200.50"), D("-220.55")),
        ("exchange", None, 0, D("220.55")),
        ("cash", None, 0, D("-220.55")),
    ]
    assert entry.memo == "buy 10 AAA at 20.00 EUR, EURUSD 1.1 of 2012-07-02"


def test_what_the_rate_did_is_part_of_the_gain():
    books = opened().posted(fill(opened(), Side.BUY, 10, "20.00", rate=euro("1.10")))
    sale = fill(books, Side.SELL, 10, "20.00", n=2, rate=euro("1.20"))
    # Sold at what it cost in euros; ten cents a euro are gained on 200 of them.
    assert amount_of(sale, Book.REALISED) == D("-20.00")
    assert sum(line.foreign for line in sale.lines if line.book is Book.REALISED) == 0
    assert books.posted(sale).holdings["AAA"] == ledger.Holding(D(0), D(0), "EUR", D(0))


def test_a_foreign_dividend_on_a_fraction_comes_in_as_the_accounts_cash():
    books = opened().posted(fill(opened(), Side.BUY, 101, "20.00", rate=euro("1.10")))
    day = START + timedelta(days=1)
    parted = ledger.split("AAA", day, D("1.5"), D("14.00"), books, euro("1.20"))
    paid = ledger.dividend("AAA", day, D("0.10"), books.posted(parted), euro("1.20"))
    assert amount_of(parted, Book.CASH) == 0
    assert amount_of(paid, Book.CASH) == D("18.18")  # on 151.5 shares
    assert balances(parted)
    assert balances(paid)


# --- whatever happens -----------------------------------------------------------------------------


def balances(entry: LedgerEntry) -> bool:
    """Whether the lines of every currency sum to zero, as they were traded and in dollars."""
    sums: dict[str | None, tuple[Decimal, Decimal]] = {}
    for line in entry.lines:
        amount, foreign = sums.get(line.currency, (D(0), D(0)))
        sums[line.currency] = (amount + line.amount, foreign + line.foreign)
    return all(pair == (0, 0) for pair in sums.values())


RATIOS = {
    D(2): Fraction(2),
    D("1.5"): Fraction(3, 2),
    D("0.1"): Fraction(1, 10),
    D("0.333"): Fraction(1, 3),
    D(repr(1 / 7)): Fraction(1, 7),
    D("1.0345"): Fraction(10345, 10000),
}
"""What each ratio as a source writes it means."""
STEP = st.tuples(
    st.sampled_from(["buy", "sell", "close", "split", "dividend"]),
    st.integers(1, 50),
    st.decimals(D("0.01"), D(500), places=2),
    st.sampled_from(list(RATIOS)),
    st.decimals(D("0.0001"), D(200), places=10),
)


def next_entry(books: Books, step: tuple, day: int, *, abroad: bool) -> LedgerEntry | None:
    kind, quantity, price, ratio, told = step
    rate = euro(str(told)) if abroad else None
    session, held = START + timedelta(days=day), books.quantity("AAA")
    if kind == "buy" and trade_value(price, D(quantity)) + D("0.50") <= purse(books.cash, rate):
        return fill(books, Side.BUY, quantity, str(price), day, n=day, rate=rate)
    if held == 0 or kind == "buy":
        return None
    if kind in {"sell", "close"}:
        sold = min(held, kept_shares(D(quantity) / 7)) if kind == "sell" else held
        return fill(books, Side.SELL, sold, str(price), day, n=day, rate=rate)
    if kind == "split":
        return ledger.split("AAA", session, ratio, price, books, rate)
    return ledger.dividend("AAA", session, price, books, rate)


def conserves(books: Books, entry: LedgerEntry, ratio: Decimal) -> None:
    """Only fills and splits move shares, and a split keeps or pays out every part of one."""
    moved = sum((line.quantity for line in entry.lines), D(0))
    if entry.kind is ledger.EntryKind.DIVIDEND:
        assert moved == 0
    if entry.kind is ledger.EntryKind.SPLIT:
        held = Fraction(books.quantity("AAA"))
        assert 0 <= held * RATIOS[ratio] - held - Fraction(moved) < Fraction(SHARE_STEP)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(STEP, max_size=20), st.booleans(), st.decimals(D("0.000001"), D(99), places=6))
def test_any_history_balances_to_the_cent_in_every_currency_and_reads_back_day_by_day(
    steps, abroad, brought
):
    rate = euro("1.1") if abroad else None
    cost = Money(amount=D("12.34"), currency="EUR" if abroad else "USD")
    books = opened().posted(ledger.brought_in("AAA", brought, cost, START, rate))
    history = {}
    for day, step in enumerate(steps, start=1):
        entry = next_entry(books, step, day, abroad=abroad)
        if entry is not None:
            assert balances(entry)
            cents = [number for line in entry.lines for number in (line.amount, line.foreign)]
            assert all(number == number.quantize(D("0.01")) for number in cents)
            conserves(books, entry, step[3])
            books = books.posted(entry)
            assert books.cash >= 0
        history[day] = books
        assert books.quantity("AAA") == books.quantity("AAA").quantize(SHARE_STEP) >= 0
    assert sum(books.sums.values()) == 0
    assert books.sums.get(Book.EXCHANGE, D(0)) == 0
    lines = [line for entry in books.recent for line in entry.lines]
    assert books.cash == sum((li.amount for li in lines if li.book is Book.CASH), D(0))
    for day, then in history.items():
        read = books.as_of(START + timedelta(days=day))
        assert (read.cash, read.quantity("AAA")) == (then.cash, then.quantity("AAA"))
        assert {k: v for k, v in read.sums.items() if v} == {
            k: v for k, v in then.sums.items() if v
        }


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(STEP, max_size=20), st.decimals(D("0.01"), D(500), places=2))
def test_the_parts_of_the_gain_sum_to_it_at_any_price(steps, close):
    """equity = starting cash + realised + unrealised + dividends - fees."""
    books = opened()
    for day, step in enumerate(steps, start=1):
        entry = next_entry(books, step, day, abroad=True)
        books = books if entry is None else books.posted(entry)
    closes = {("AAA", date.max): PriceMark(close, "EUR", close)}
    (taken,) = snapshots(books, [date.max], closes, {}, "EUR")
    assert taken.worth is not None
    parts = taken.realised + taken.worth.gain + taken.dividends - taken.fees
    assert taken.equity == 10_000 + parts
