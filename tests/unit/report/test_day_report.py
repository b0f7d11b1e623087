"""The daily report as Markdown."""

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import OrderStatus, OrderType, Side
from contracts.cycle import CycleStatus
from contracts.report import (
    Attention,
    CycleLine,
    DayReport,
    DecisionLine,
    FillLine,
    Gains,
    HeldAtClose,
    OrderLine,
    StopLine,
    Worth,
)
from contracts.risk import DecisionAction
from contracts.types import Usage
from contracts.venue import DESK_STOPS, BoundTo
from libs.report.day_report import markdown

DAY = date(2012, 7, 2)
EARNED = Gains(realised=Decimal(50), unrealised=Decimal(-20), dividends=Decimal(5), fees=Decimal(1))
WORTH = Worth(
    cash=Decimal(60034),
    positions=Decimal(40000),
    equity=Decimal(100034),
    previous=date(2012, 6, 29),
    earned=EARNED,
    ever=EARNED,
)
EMPTY = DayReport(
    account="main", session=DAY, currency="USD", made_at=datetime(2012, 7, 2, 21, tzinfo=UTC)
)
CYCLE = CycleLine(
    cycle_id=UUID(int=1),
    kind="decision",
    pipeline="claude",
    requester="schedule",
    status=CycleStatus.COMPLETED,
    decisions=(DecisionLine(action=DecisionAction.BUY, asset="AAPL", quantity=Decimal(12)),),
    vetoed=("MSFT",),
    usage=Usage(input_tokens=1200, cost_usd=Decimal("0.25")),
)


def section(text: str, name: str) -> str:
    return text.partition(f"## {name}\n")[2].partition("\n## ")[0].strip()


def test_a_day_without_anything_says_so_in_each_section() -> None:
    text = markdown(EMPTY)

    assert text.startswith("# main, Mon 2012-07-02\n")
    assert section(text, "Needs a person") == "Nothing."
    assert section(text, "Decided") == "Nothing was asked of the desk."
    assert section(text, "Done") == "Nothing was ordered and nothing filled."
    assert section(text, "Earned") == "Not known: see above."
    assert section(text, "Spent").startswith("Nothing on models.")


def test_what_was_earned_is_the_sum_of_its_parts_less_the_fees() -> None:
    text = markdown(EMPTY.model_copy(update={"worth": WORTH}))

    assert "100,034.00 USD, +34.00 USD (+0.03%) since Fri 2012-06-29" in text
    assert "| **Total**  |       +34.00 |" in section(text, "Earned")
    assert "| Fees       |        -1.00 |" in section(text, "Earned")


@pytest.mark.parametrize(
    ("flow", "told"),
    [("0", ""), ("10000", " 10,000.00 USD paid in."), ("-700.5", " 700.50 USD taken out.")],
)
def test_what_was_paid_in_or_taken_out_stands_beside_the_gain(flow: str, told: str) -> None:
    worth = WORTH.model_copy(update={"paid_in": Decimal(flow)})
    assert f"positions 40,000.00 USD.{told}\n" in markdown(
        EMPTY.model_copy(update={"worth": worth})
    )


def test_decisions_orders_and_fills_are_told_with_their_fate() -> None:
    order = OrderLine(
        asset="AAPL",
        side=Side.BUY,
        type=OrderType.MARKET,
        quantity=Decimal(12),
        status=OrderStatus.CANCELLED,
        reason="no open",
    )
    fill = FillLine(
        asset="IBM",
        side=Side.SELL,
        type=OrderType.MARKET,
        quantity=Decimal(1200),
        price=Decimal("196.5"),
        fee=Decimal("1.2"),
    )
    text = markdown(
        EMPTY.model_copy(update={"cycles": (CYCLE,), "orders": (order,), "fills": (fill,)})
    )

    assert section(text, "Decided").startswith("| Cycle ")
    assert "buy 12 AAPL; vetoed MSFT" in section(text, "Decided")
    assert "cancelled: no open" in section(text, "Done")
    assert "| sell   |  1,200 | IBM   | 196.50 | 1.20 |" in section(text, "Done")


def test_a_stop_that_was_reached_and_one_that_is_open_are_told_as_such() -> None:
    fill = FillLine(
        asset="IBM",
        side=Side.SELL,
        type=OrderType.STOP,
        quantity=Decimal(12),
        price=Decimal(190),
        fee=Decimal("1.2"),
    )
    stop = StopLine(
        ticker="AAPL",
        quantity=Decimal(17),
        stop_price=Decimal("565.5"),
        currency="USD",
        as_of=date(2012, 6, 29),
    )
    text = markdown(EMPTY.model_copy(update={"fills": (fill,), "stops": (stop,)}))

    bound = BoundTo(venue="alpaca-paper", account_number="PA3")
    at_broker = EMPTY.model_copy(update={"stops": (stop,), "venue": bound})
    assert DESK_STOPS not in text
    assert DESK_STOPS in section(markdown(at_broker), "Held at the close")
    assert "| sell at its stop |     12 | IBM   |" in section(text, "Done")
    held = section(text, "Held at the close")
    assert "| AAPL    |     17 | 565.50 USD | Fri 2012-06-29 |" in held


def test_what_was_spent_is_told_in_tokens_and_dollars() -> None:
    text = markdown(EMPTY.model_copy(update={"usage": CYCLE.usage}))

    assert section(text, "Spent").startswith("1,200 tokens, 0.2500 USD on models.")


def test_tokens_that_cost_nothing_were_still_spent() -> None:
    text = markdown(EMPTY.model_copy(update={"usage": Usage(input_tokens=1200)}))

    assert section(text, "Spent").startswith("1,200 tokens, 0.0000 USD on models.")


def test_what_needs_a_person_comes_with_what_to_do() -> None:
    halted = Attention(what="halt", text="buys of main are halted", todo="deskbus resume")
    text = markdown(EMPTY.model_copy(update={"attention": (halted,)}))

    assert "| buys of main are halted | deskbus resume |" in section(text, "Needs a person")


def test_a_position_without_a_price_is_not_guessed() -> None:
    held = HeldAtClose(ticker="AAPL", quantity=Decimal(2), cost=Decimal(100))
    text = markdown(EMPTY.model_copy(update={"held": (held,)}))

    assert "no price" in section(text, "Held at the close")


def test_a_position_at_an_older_price_says_of_which_day_it_is() -> None:
    held = HeldAtClose(
        ticker="AAPL",
        quantity=Decimal(2),
        cost=Decimal(100),
        price=Decimal(55),
        value=Decimal(110),
        gain=Decimal(10),
        priced_on=date(2012, 6, 29),
    )
    text = markdown(EMPTY.model_copy(update={"held": (held,)}))

    assert "55.00 of Fri 2012-06-29" in section(text, "Held at the close")


@pytest.mark.parametrize("reason", ["a | b", "[x](javascript:y)", "<b>", "two\nlines", "\x1b[2J"])
def test_strangers_words_stay_words(reason: str) -> None:
    failed = CYCLE.model_copy(update={"decisions": (), "vetoed": (), "reason": reason})
    (line,) = section(
        markdown(EMPTY.model_copy(update={"cycles": (failed,)})), "Decided"
    ).splitlines()[2:]

    assert line.count("|") == 6
    assert not any(sign in line for sign in ("](", "<", "\x1b"))


def test_all_lines_of_a_table_are_equally_long() -> None:
    text = markdown(EMPTY.model_copy(update={"cycles": (CYCLE, CYCLE), "worth": WORTH}))

    for name in ("Decided", "Earned"):
        rows = [line for line in section(text, name).splitlines() if line.startswith("|")]
        assert len({len(row) for row in rows}) == 1
