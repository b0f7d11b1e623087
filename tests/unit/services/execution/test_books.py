"""Double entry: whatever happens, every entry sums to zero and the past can be read again."""

from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.account import Side
from libs.broker.broker import Filled
from libs.quant.sizing import trade_value
from services.execution import books as ledger
from services.execution.books import Book, Books, Entry

D = Decimal
START = date(2012, 7, 2)


def balance(entry: Entry) -> Decimal:
    return sum((line.amount for line in entry.lines), D(0))


def opened(cash: int = 10_000) -> Books:
    return Books().posted(ledger.opening(D(cash), START))


def fill(books: Books, side: Side, quantity: int, price: str, day: int = 0, n: int = 1) -> Entry:
    session = START + timedelta(days=day)
    return ledger.filled(
        UUID(int=n), "AAA", side, Filled(D(price), D(quantity), D("0.50"), session), books
    )


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


def test_a_fraction_left_by_a_split_is_paid_out_at_the_open():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 101, "20.00"))
    entry = ledger.split("AAA", START + timedelta(days=1), D("1.5"), D("14.00"), books)
    assert balance(entry) == 0
    assert entry.lines[0].quantity == 50
    assert entry.lines[1].amount == 7


def test_a_reverse_split_of_too_few_shares_pays_all_of_them_out():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 1, "20.00"))
    after = books.posted(ledger.split("AAA", START + timedelta(days=1), D("0.1"), D("200"), books))
    assert after.holdings["AAA"] == ledger.Holding(D(0), D(0))
    assert after.cash == books.cash + 20


def test_a_dividend_counts_the_shares_of_before_its_day_after_a_split_of_that_day():
    books = opened()
    books = books.posted(fill(books, Side.BUY, 10, "20.00"))
    day = START + timedelta(days=1)
    books = books.posted(ledger.split("AAA", day, D(2), D(10), books))
    books = books.posted(fill(books, Side.BUY, 5, "10.00", day=1, n=2))
    assert ledger.dividend("AAA", day, D("0.10"), books).lines[0].amount == 2


STEP = st.tuples(
    st.sampled_from(["buy", "sell", "split", "dividend"]),
    st.integers(1, 50),
    st.decimals(D("0.01"), D(500), places=2),
    st.sampled_from([D(2), D("1.5"), D("0.1"), D("0.333")]),
)


def next_entry(books: Books, step: tuple, day: int) -> Entry | None:
    kind, quantity, price, ratio = step
    session, held = START + timedelta(days=day), books.quantity("AAA")
    if kind == "buy" and trade_value(price, D(quantity)) + 1 <= books.cash:
        return fill(books, Side.BUY, quantity, str(price), day, n=day)
    if held == 0 or kind == "buy":
        return None
    if kind == "sell":
        return fill(books, Side.SELL, min(quantity, int(held)), str(price), day, n=day)
    if kind == "split":
        return ledger.split("AAA", session, ratio, price, books)
    return ledger.dividend("AAA", session, price, books)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEP, max_size=20))
def test_any_history_balances_to_the_cent_and_reads_back_day_by_day(steps):
    books = opened()
    history = {}
    for day, step in enumerate(steps, start=1):
        entry = next_entry(books, step, day)
        if entry is not None:
            assert balance(entry) == 0
            assert all(line.amount == line.amount.quantize(D("0.01")) for line in entry.lines)
            books = books.posted(entry)
        history[day] = books
        assert books.quantity("AAA") == books.quantity("AAA").to_integral_value() >= 0
    lines = [line for entry in books.recent for line in entry.lines]
    assert books.cash == sum((li.amount for li in lines if li.book is Book.CASH), D(0))
    for day, then in history.items():
        read = books.as_of(START + timedelta(days=day))
        assert (read.cash, read.quantity("AAA")) == (then.cash, then.quantity("AAA"))
