"""The check of one position on recorded prices, with an account that a test holds."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from contracts.account import OpenOrder, Position, Side
from contracts.exit_signal import (
    CheckExitSignals,
    ExitFormat,
    ExitOutput,
    Holdings,
    HoldingsQuery,
)
from contracts.types import Money
from libs.market.calendar import exchange_calendar
from libs.market.exit_terms import DeskExitRules
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.runtime.errors import DeskError
from services.exit_signal.files import ResultFiles
from services.exit_signal.handler import Checking, check_exit_signals
from services.exit_signal.reads import ExitReads

D = Decimal
AS_OF = date(2012, 6, 29)
SESSIONS = exchange_calendar().sessions(date(2011, 12, 30), date(2012, 8, 31))
STEADY = {1: 100.0, 2: 110.0, 3: 121.0, 4: 133.1, 5: 146.41, 6: 161.051}
"""Each month 10% more than the one before."""
TURNED = {**STEADY, 6: 139.0895}
"""In June 5% less."""


class UnknownAccount(DeskError):
    code = "unknown_account"


class Account:
    """What is held, of which nothing is asked twice."""

    open_orders: tuple[OpenOrder, ...] = ()
    accounts: tuple[str, ...] = ()

    def __init__(self, *tickers: str, opened_on: date = date(2012, 2, 1)) -> None:
        self.positions = tuple(
            Position(
                ticker=ticker,
                quantity=D(40),
                average_cost=Money(amount=D(100)),
                price=Money(amount=D("139.09")),
                opened_on=opened_on,
            )
            for ticker in tickers
        )

    async def holdings(self, query: HoldingsQuery) -> Holdings:
        if query.account != "main":
            raise UnknownAccount(f"there is no account {query.account}")
        return Holdings(
            account="main",
            as_of=query.as_of or AS_OF,
            positions=self.positions,
            open_orders=self.open_orders,
            accounts=self.accounts,
        )


class Prices:
    """Writes recorded prices: the level of each month, from its first session on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def share(self, ticker: str, levels: dict[int, float], since: date = SESSIONS[0]) -> None:
        rows = ["date,open,high,low,close,volume"]
        for day in SESSIONS:
            price = levels.get(day.month, 1_000.0) if day.year == 2012 else 90.0
            if day >= since:
                rows.append(f"{day},{price},{price},{price},{price},1000")
        (self.path / f"{ticker}.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    (tmp_path / "prices").mkdir()
    made = Prices(tmp_path / "prices")
    made.share("AAPL", TURNED)
    made.share("MSFT", STEADY)
    return made


async def checked(
    prices: Prices, holder: Account, ticker: str = "AAPL", terms: str = "", **asked: Any
) -> dict[str, Any]:
    terms_path = prices.path.parent / "exit_signals.toml"
    terms_path.write_text(terms)
    files = ResultFiles(prices.path.parent / "saved", lambda: datetime.now(UTC))
    reads = ExitReads(ReplayMarket(ReplayStore(prices.path)))
    query = CheckExitSignals(ticker=ticker, **{"format": ExitFormat.FULL, **asked})
    answer = await check_exit_signals(
        query, checking=Checking(reads, holder, DeskExitRules(terms_path), files)
    )
    return dict(answer.answer)


async def test_a_position_whose_momentum_has_turned_is_sold_by_three_quarters(
    prices: Prices,
) -> None:
    told = await checked(prices, Account("AAPL", "MSFT"))

    momentum, regime = told["signals"]
    assert told["overall_assessment"] == "EXIT (momentum)"
    assert momentum["values"] == {
        "last_month": pytest.approx(-0.05),
        "mean_before": pytest.approx(0.1),
        "gap": pytest.approx(-0.15),
        "least_gap": 0.005,
        "spread_before": pytest.approx(0.004969, abs=1e-6),  # 11.1% from 90 to 100, then 10%
    }
    assert momentum["severity"] == 1.0
    assert regime["values"]["members"] == 2
    assert told["position"]["shares"] == 40
    assert told["sizing"]["sell_quantity"] == 30
    assert told["as_of"] == "2012-06-29"


async def test_a_day_before_the_months_last_session_its_return_is_not_known(
    prices: Prices,
) -> None:
    told = await checked(prices, Account("AAPL", "MSFT"), as_of=date(2012, 6, 28))
    assert told["overall_assessment"] == "HOLD"


async def test_nothing_after_as_of_is_seen(prices: Prices) -> None:
    before = await checked(prices, Account("AAPL", "MSFT"))
    prices.share("AAPL", {**TURNED, 7: 1.0, 8: 900.0})
    prices.share("MSFT", {**STEADY, 7: 1.0, 8: 900.0})
    assert await checked(prices, Account("AAPL", "MSFT")) == before


async def test_the_terms_name_the_basket_and_what_is_held_where_they_do_not(
    prices: Prices,
) -> None:
    alone = await checked(prices, Account("AAPL"))
    named = await checked(prices, Account("AAPL"), terms='[default]\nbasket = ["MSFT"]')

    returns = [told["signals"][1]["values"]["basket_return"] for told in (alone, named)]
    assert returns == pytest.approx([1.1 * 1.1 * 0.95 - 1, 1.1**3 - 1])


async def test_a_member_of_the_basket_that_nobody_knows_is_left_out(prices: Prices) -> None:
    told = await checked(prices, Account("AAPL"), terms='[default]\nbasket = ["MSFT", "GONE"]')
    assert told["signals"][1]["status"] == "ok"
    assert "left out: GONE" in told["signals"][1]["detail"]


async def test_a_ticker_of_the_rules_that_nobody_knows_is_told_with_what_was_meant(
    prices: Prices,
) -> None:
    terms = """
        [default]
        basket = ["MSFT", "GONE"]
        [position.AAPLE]
        stop_pct = 3
        [position."growth/NONE"]
        stop_pct = 3
    """
    told = await checked(prices, Account("AAPL"), terms=terms)

    assert told["status"] == "success"
    basket, position = sorted(told["warnings"])
    assert basket.startswith("exit rules, default.basket: GONE ")
    assert position.startswith("exit rules, position.AAPLE: AAPLE ")
    assert position.endswith("; did you mean AAPL?")


async def test_an_account_of_the_rules_that_there_is_not_is_told_with_what_was_meant(
    prices: Prices,
) -> None:
    holder = Account("AAPL")
    holder.accounts = ("main", "growth")
    terms = """
        [position."mian/AAPL"]
        stop_pct = 3
        [position."growth/AAPL"]
        stop_pct = 3
    """
    told = await checked(prices, holder, terms=terms)
    (warning,) = told["warnings"]
    assert warning.startswith("exit rules, position.mian/AAPL: no account is named mian; ")
    assert warning.endswith("there are main, growth; did you mean main?")
    assert "warnings" not in await checked(prices, Account("AAPL"), terms=terms)


async def test_rules_of_tickers_that_are_known_and_not_held_are_no_mistake(prices: Prices) -> None:
    told = await checked(prices, Account("AAPL"), terms="[position.MSFT]\nstop_pct = 3")
    assert "warnings" not in told


async def test_too_few_months_are_an_error_of_the_rule_and_nothing_is_sold(
    prices: Prices,
) -> None:
    prices.share("AAPL", TURNED, since=date(2012, 4, 2))
    told = await checked(prices, Account("AAPL", "MSFT"))

    assert told["status"] == "success"
    assert told["overall_assessment"] == "ERROR (momentum)"
    assert told["signals"][0]["status"] == "error"
    assert told["signals"][0]["triggered"] is False
    assert told["trade_eligible"] is False


async def test_a_stop_is_proposed_on_what_the_sale_leaves(prices: Prices) -> None:
    told = await checked(prices, Account("AAPL"), terms="[default]\nstop_pct = 10")

    sale, stop = told["recommended_actions"]
    assert (sale["quantity"], stop["quantity"]) == (30, 10)
    assert (stop["stop_price"], stop["time_in_force"]) == ("125.19", "gtc")


async def test_a_trailing_stop_and_a_hold_period_count_from_the_opening(prices: Prices) -> None:
    terms = "[default.trailing_stop]\npct = 5\n[default.hold_period]\nsessions = 500"
    told = await checked(prices, Account("MSFT", "AAPL"), terms=terms)

    found = {each["rule_name"]: each for each in told["signals"]}
    assert found["trailing_stop"]["triggered"] is True
    assert found["trailing_stop"]["values"]["fall"] == pytest.approx(
        1 - 139.0895 / 146.41, abs=1e-4
    )
    assert found["hold_period"]["triggered"] is False
    assert found["hold_period"]["values"]["sessions_held"] == 104


async def test_what_was_bought_after_the_close_is_held_for_no_session_and_fell_from_nowhere(
    prices: Prices,
) -> None:
    terms = "[default.trailing_stop]\npct = 5\n[default.hold_period]\nsessions = 1"
    told = await checked(prices, Account("AAPL", opened_on=date(2012, 7, 2)), terms=terms)

    found = {each["rule_name"]: each for each in told["signals"]}
    assert found["trailing_stop"]["values"]["fall"] == 0
    assert found["hold_period"]["values"]["sessions_held"] == 0
    assert told["overall_assessment"] == "EXIT (momentum)"


async def test_of_a_buy_that_waits_for_its_open_the_answer_says_so(prices: Prices) -> None:
    order = {"order_id": uuid4(), "asset": "AAPL", "side": Side.BUY, "quantity": D(7)}
    holder = Account("MSFT")
    holder.open_orders = (OpenOrder(**order, hold=Money(amount=D(1000)), as_of=AS_OF),)

    bought, unknown = await checked(prices, holder), await checked(prices, holder, "IBM")

    assert bought["error_code"] == unknown["error_code"] == "not_held"
    assert bought["error"] == (
        "account main holds no share of AAPL at the close of 2012-06-29: "
        "7 are bought at the open after it, and can be sold once that session is over"
    )
    assert unknown["error"] == "account main holds no share of IBM at the close of 2012-06-29"


@pytest.mark.parametrize(
    ("ticker", "asked", "code"),
    [
        ("IBM", {}, "not_held"),
        ("AAPL", {"account": "growth"}, "unknown_account"),
        ("AAPL", {"as_of": date(2012, 6, 30)}, "not_a_session"),
        ("GONE", {}, "unknown_ticker"),
    ],
)
async def test_what_keeps_a_check_from_being_made_is_told_with_its_code(
    prices: Prices, ticker: str, asked: dict[str, Any], code: str
) -> None:
    told = await checked(prices, Account("AAPL", "GONE"), ticker, **asked)

    assert (told["status"], told["error_code"]) == ("error", code)
    assert told["error"]


async def test_a_file_of_terms_that_is_wrong_fails_the_check(prices: Prices) -> None:
    told = await checked(prices, Account("AAPL"), terms="[default]\nstop_los = 1")
    assert (told["status"], told["error_code"]) == ("error", "bad_exit_terms")
    assert "default.stop_los" in told["error"]


async def test_a_failed_check_is_saved_too_where_a_file_is_asked_for(prices: Prices) -> None:
    told = await checked(
        prices, Account("AAPL"), "IBM", output=ExitOutput.FILE, format=ExitFormat.AGENT
    )
    assert told["status"] == "error"
    (saved,) = (prices.path.parent / "saved").iterdir()
    assert told["file_path"] == str(saved.absolute())
    assert b"not_held" in saved.read_bytes()
