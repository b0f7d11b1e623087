"""A ticker as an account traded it: days, average cost and stops on the scale of its prices."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from libs.market.errors import NoHistory
from libs.market.source import BAR_SCHEMA
from services.console.views import ticker as view

MON, TUE, WED, THU, FRI = (date(2012, 6, 25 + n) for n in range(5))
CYCLE = UUID(int=7)
D = Decimal


class Tables:
    """The rows of one account's ticker."""

    def __init__(self, entries: Sequence[Any], closes: Sequence[Any], clock: date = THU) -> None:
        self.entries, self.closes, self.clock = entries, closes, clock

    async def account(self, account: str) -> Any:
        return {"account": account, "clock": self.clock} if account == "main" else None

    async def ticker_entries(self, account: str, ticker: str, limit: int) -> Sequence[Any]:
        return self.entries

    async def ticker_closes(self, account: str, ticker: str) -> Sequence[Any]:
        return self.closes


class Prices:
    """A source with one bar a day, `close` each; it notes up to which session it was asked."""

    described = "made up"

    def __init__(
        self, close: Sequence[float] = (100.0, 110.0, 55.0, 60.0), until: date = THU
    ) -> None:
        self.close, self.until = close, until
        self.asked: list[date] = []

    async def bars(self, ticker: str, as_of: date, sessions: int) -> Sequence[Any]:
        raise NotImplementedError

    async def currency(self, ticker: str, as_of: date) -> str:
        return "USD"

    async def frame(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        self.asked.append(as_of)
        if as_of > self.until:
            raise NoHistory(f"it trades no more on {as_of}")
        days = [day for day in (MON, TUE, WED, THU) if day <= as_of]
        rows = [(day, it, it, it, it, 1e6) for day, it in zip(days, self.close, strict=False)]
        return pl.DataFrame(rows, schema=BAR_SCHEMA, orient="row")


def entry(session: date, shares: int, cost: str, **given: Any) -> dict[str, Any]:
    buys = shares > 0
    return {
        "session": session,
        "quantity": D(shares),
        "cost": D(cost),
        "gain": D(-1),
        "cycle_id": CYCLE,
        "pipeline": "rules",
        "side": "buy" if buys else "sell",
        "type": "market",
        "exit": not buys,
        "exit_rules": None if buys else ["momentum"],
        "thesis": "it rises" if buys else "",
        "as_of": MON,
        "filled": D(abs(shares)),
        "price": D(100),
        "currency": "USD",
        "account_currency": "USD",
        **given,
    }


def split(session: date, shares: int) -> dict[str, Any]:
    return entry(session, shares, "0", cycle_id=None, gain=D(0), filled=None, side=None)


def close(session: date, price: str, stop: str | None = None) -> dict[str, Any]:
    at = None if stop is None else D(stop)
    return {"session": session, "price": D(price), "currency": "USD", "stop_price": at}


async def test_cost_and_stop_are_drawn_while_something_is_held_and_a_split_moves_them_along() -> (
    None
):
    tables = Tables(
        # Bought on Tuesday at 220, split two for one on Wednesday, sold on Thursday.
        [entry(TUE, 10, "2200"), split(WED, 10), entry(THU, -20, "-2200")],
        [close(TUE, "220", "200"), close(WED, "55", "50")],
    )
    # The bars are those of after the split: 110 was 220 then.
    chart = await view.chart("main", "AAPL", 100, store=tables, prices=Prices())  # type: ignore[arg-type]
    assert chart is not None
    assert chart.average_cost == (None, 110.0, 110.0, None)
    assert chart.stop == (None, 100.0, 50.0, None)
    assert chart.currency == "USD"


class Split(Prices):
    """A source of a share that was split two for one at the open of Wednesday."""

    async def frame(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        bars = await super().frame(ticker, as_of, sessions)
        if as_of < WED:
            return bars
        halved = {**dict.fromkeys(("open", "high", "low", "close"), 0.5), "volume": 2.0}
        factor = pl.when(pl.col("date") < WED)
        return bars.with_columns(
            pl.col(name) * factor.then(by).otherwise(1.0) for name, by in halved.items()
        )


async def test_the_chart_of_a_decision_shows_the_prices_that_the_decision_saw() -> None:
    prices = Split(close=(200.0, 220.0, 112.0, 115.0))
    tables = Tables([entry(TUE, 10, "2200"), split(WED, 10)], [close(TUE, "220", "200")])

    async def drawn(adjusted_to: date | None) -> Any:
        return await view.chart("main", "AAPL", 9, adjusted_to, store=tables, prices=prices)  # type: ignore[arg-type]

    decided, now = await drawn(TUE), await drawn(None)
    assert (now.adjusted_to, now.close) == (THU, (100.0, 110.0, 112.0, 115.0))
    assert (decided.adjusted_to, decided.as_of) == (TUE, THU)
    # What came of it follows on the scale of the decision: 112 after the split was 224 before.
    assert decided.close == (200.0, 220.0, 224.0, 230.0)
    assert decided.volume == (1e6, 1e6, 0.5e6, 0.5e6)
    assert (now.average_cost[1], decided.average_cost[1]) == (110.0, 220.0)
    assert (now.stop[1], decided.stop[1]) == (100.0, 200.0)
    assert (await drawn(FRI)).adjusted_to == THU


async def test_a_price_below_a_cent_keeps_its_digits_in_the_chart() -> None:
    prices = Prices(close=(0.000493, 0.000481, 0.0005, 0.0005129))
    chart = await view.chart("main", "PNY", 9, store=Tables([], []), prices=prices)  # type: ignore[arg-type]
    assert chart is not None
    assert chart.close[-1] == 0.0005129


async def test_nothing_newer_than_the_accounts_clock_is_asked_for() -> None:
    prices = Prices()
    later = Tables([entry(FRI, 10, "1000")], [])
    chart = await view.chart("main", "AAPL", 100, store=later, prices=prices)  # type: ignore[arg-type]
    assert chart is not None
    assert prices.asked == [THU]
    assert max(chart.sessions) == THU
    # What was filled at the open after it is told; its close is not.
    assert [day.session for day in chart.days] == [FRI]


async def test_a_share_that_trades_no_more_is_shown_up_to_its_last_close() -> None:
    delisted = Prices(until=WED)
    tables = Tables([entry(TUE, 10, "1100")], [close(TUE, "110"), close(WED, "55")])
    chart = await view.chart("main", "AAPL", 100, store=tables, prices=delisted)  # type: ignore[arg-type]
    assert chart is not None
    assert (chart.sessions, chart.as_of) == ((MON, TUE, WED), THU)
    with pytest.raises(NoHistory):
        await view.chart("main", "AAPL", 100, store=Tables([], []), prices=delisted)  # type: ignore[arg-type]


async def test_trades_of_a_session_are_one_day_with_what_how_much_why_and_where() -> None:
    stop = entry(TUE, -4, "-400", type="stop", gain=D("-41.50"))
    tables = Tables([entry(TUE, 10, "1000"), stop, entry(WED, -6, "-600")], [])
    history = await view.history("main", "AAPL", store=tables)  # type: ignore[arg-type]
    tuesday, wednesday = history
    assert (tuesday.bought, tuesday.sold, tuesday.gain) == (10, 4, D("-42.50"))
    assert [fill.why for fill in tuesday.fills] == ["it rises", "stop"]
    assert wednesday.fills[0].why == "exit signal: momentum"
    assert {fill.cycle_id for fill in tuesday.fills} == {CYCLE}


async def test_of_an_account_that_is_not_there_there_is_no_chart() -> None:
    tables = Tables([], [])
    assert await view.chart("nobody", "AAPL", 9, store=tables, prices=Prices()) is None  # type: ignore[arg-type]
