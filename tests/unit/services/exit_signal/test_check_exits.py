"""The check of all that an account holds, as a cycle asks for it."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from contracts.account import OpenOrder, Portfolio, Position, Side
from contracts.cycle import EXIT, CycleRequest, SellNow
from contracts.exit_signal import CheckExits, ExitReport
from contracts.message import Pipeline
from contracts.operation import JournalEntry
from contracts.types import Money
from contracts.venue import DESK_STOPS, BoundTo
from libs.market.calendar import exchange_calendar
from libs.market.errors import SourceUnavailable
from libs.market.exit_terms import BadExitTerms, DeskExitRules
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.runtime.errors import Unavailable
from libs.runtime.journal import Journal, RecordedJournal
from services.exit_signal import reads as reading
from services.exit_signal.handler import ExitsUnchecked, NotHeld, check_exits
from services.exit_signal.reads import ExitReads

D = Decimal
AS_OF = date(2012, 6, 29)
ID = UUID(int=7)
SESSIONS = exchange_calendar().sessions(date(2011, 12, 30), AS_OF)
UP = (100.0, 110.0, 121.0, 133.1, 146.41, 161.051)
DOWN = (*UP[:5], 139.0895)


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    for ticker, levels in (("AAPL", DOWN), ("MSFT", UP)):
        rows = [
            f"{day},{p},{p},{p},{p},1000"
            for day in SESSIONS
            for p in [levels[day.month - 1] if day.year == 2012 else 90.0]
        ]
        head = "date,open,high,low,close,volume"
        (tmp_path / f"{ticker}.csv").write_text("\n".join([head, *rows]) + "\n")
    return tmp_path


def command(*tickers: str, universe: tuple[str, ...] | None = None, **books: Any) -> CheckExits:
    positions = tuple(
        Position(
            ticker=ticker,
            quantity=D(40),
            average_cost=Money(amount=D(100)),
            price=Money(amount=D("139.09")),
            opened_on=date(2012, 2, 1),
        )
        for ticker in tickers
    )
    names = {"cycle_id": ID, "op_id": ID, "as_of": AS_OF}
    cash = Money(amount=D(0))
    return CheckExits(
        **names,
        now=datetime(2026, 11, 22, tzinfo=UTC),
        pipeline=Pipeline(name="rules"),
        state="checking_exits",
        step="check_exits",
        workflow_version=1,
        seed=0,
        request=CycleRequest(idempotency_key="k", kind=EXIT, universe=universe),
        portfolio=Portfolio(
            **names, account="main", cash=cash, equity=cash, positions=positions, **books
        ),
    )


async def checked(
    prices: Path, asked: CheckExits, terms: str = ""
) -> tuple[ExitReport, list[JournalEntry]]:
    entries: list[JournalEntry] = []

    async def record(new: Any, *_: object) -> None:
        entries.extend(new)

    journal = Journal((), record)
    path = prices / "exit_signals.toml"
    path.write_text(terms)
    reads = ExitReads(ReplayMarket(ReplayStore(prices)))
    report = await check_exits(asked, journal, reads=reads, rules=DeskExitRules(path))
    await journal.flush()
    return report, entries


async def test_each_of_several_sales_by_hand_says_what_becomes_of_it(prices: Path) -> None:
    sales = tuple(SellNow(ticker=ticker, quantity_max=D(30)) for ticker in ("AAPL", "MSFT"))
    request = CycleRequest(idempotency_key="k", kind=EXIT, sell_all=sales)
    asked = command("AAPL").model_copy(update={"request": request})
    report, _ = await checked(prices, asked)
    assert [(each.ticker, each.quantity) for each in report.checks] == [
        ("AAPL", D(30)),
        ("MSFT", None),
    ]
    assert "no longer held" in report.checks[1].note
    none = command().model_copy(update={"request": request})
    with pytest.raises(NotHeld):
        await checked(prices, none)


async def test_every_position_is_checked_and_only_those_that_fire_are_to_be_sold(
    prices: Path,
) -> None:
    report, _ = await checked(prices, command("AAPL", "MSFT"), "[default]\nstop_pct = 10")

    found = {each.ticker: each for each in report.checks}
    assert found["AAPL"].assessment == "EXIT (momentum)"
    assert (found["AAPL"].quantity, found["AAPL"].sell_pct) == (30, 75)
    assert found["AAPL"].stop_price == Money(amount=D("125.19"))
    assert found["MSFT"].assessment == "HOLD"
    assert found["MSFT"].quantity is None
    assert [each.rule for each in found["MSFT"].signals] == ["momentum", "regime"]


async def test_a_universe_leaves_out_what_it_does_not_name(prices: Path) -> None:
    report, _ = await checked(prices, command("AAPL", "MSFT", universe=("MSFT", "IBM")))
    assert [each.ticker for each in report.checks] == ["MSFT"]


async def test_nothing_held_is_nothing_to_check(prices: Path) -> None:
    report, _ = await checked(prices, command())
    assert report.checks == ()


async def test_a_position_that_cannot_be_checked_says_why_beside_the_others(prices: Path) -> None:
    report, _ = await checked(prices, command("AAPL", "GONE"))

    found = {each.ticker: each for each in report.checks}
    assert found["GONE"].failure is not None
    assert found["GONE"].failure.code == "unknown_ticker"
    assert (found["GONE"].assessment, found["GONE"].quantity) == ("", None)
    assert found["AAPL"].quantity == 30


async def test_where_not_one_position_can_be_checked_the_check_has_failed(prices: Path) -> None:
    with pytest.raises(ExitsUnchecked, match="none of 2 positions could be checked; GONE: GONE is"):
        await checked(prices, command("GONE", "LOST"))


async def test_a_silent_source_is_waited_for_unless_it_answers_for_some(
    prices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars, silent = ReplayMarket.bars, {"AAPL", "MSFT"}

    async def some(self: ReplayMarket, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        if ticker in silent:
            raise SourceUnavailable(f"prices of {ticker}", "HTTP 500")
        return await bars(self, ticker, as_of, sessions)

    monkeypatch.setattr(ReplayMarket, "bars", some)
    with pytest.raises(Unavailable, match="prices of AAPL: HTTP 500"):
        await checked(prices, command("AAPL", "MSFT", "GONE"))

    silent.remove("MSFT")
    report, _ = await checked(prices, command("AAPL", "MSFT"))
    failures = {each.ticker: each.failure and each.failure.code for each in report.checks}
    assert failures == {"AAPL": "source_unavailable", "MSFT": None}


async def test_positions_known_to_have_no_price_do_not_fail_the_check(prices: Path) -> None:
    asked = command("GONE", "LOST")
    gone, lost = (
        each.model_copy(update={"priced_on": AS_OF}) for each in asked.portfolio.positions
    )

    def holding(*positions: Position) -> CheckExits:
        books = asked.portfolio.model_copy(update={"positions": positions})
        return asked.model_copy(update={"portfolio": books})

    report, _ = await checked(prices, holding(gone, lost))
    codes = [each.failure.code for each in report.checks if each.failure is not None]
    assert codes == ["unknown_ticker", "unknown_ticker"]
    with pytest.raises(ExitsUnchecked):
        await checked(prices, holding(gone, *command("LOST").portfolio.positions))


async def test_a_wrong_file_fails_the_check(prices: Path) -> None:
    with pytest.raises(BadExitTerms, match="stop_los"):
        await checked(prices, command("AAPL"), "[default]\nstop_los = 1")


async def test_what_is_being_sold_already_is_not_proposed_again(prices: Path) -> None:
    order = OpenOrder(
        order_id=ID,
        asset="AAPL",
        side=Side.SELL,
        quantity=D(7),
        hold=Money(amount=D(0)),
        as_of=AS_OF,
    )
    report, _ = await checked(prices, command("AAPL", open_orders=(order,)))
    assert report.checks[0].quantity is None
    assert "sells 7 shares already" in report.checks[0].note

    stop = order.model_copy(update={"stop_price": Money(amount=D(90))})
    report, _ = await checked(prices, command("AAPL", open_orders=(stop,)))
    assert report.checks[0].quantity == 30


async def test_an_account_at_a_broker_is_told_whose_stops_are(prices: Path) -> None:
    bound = BoundTo(venue="alpaca-paper", account_number="PA3")
    report, _ = await checked(prices, command("AAPL", venue=bound))
    assert report.warnings == (DESK_STOPS,)
    report, _ = await checked(prices, command("AAPL"))
    assert report.warnings == ()


async def test_a_replay_finds_the_same_without_a_read_or_a_file(
    prices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TICKERS_A_CALL", 1)
    note = "provisional until the next morning"
    monkeypatch.setattr(ReplayMarket, "session_notes", lambda *_: [note], raising=False)
    monkeypatch.setattr(ReplayMarket, "whole_volume", lambda _: True, raising=False)
    asked = command("AAPL", "MSFT", "GONE")
    report, entries = await checked(prices, asked, "[position.AAPL]\nstop_pct = 10")
    assert [entry.name for entry in entries] == ["exit rules", *["months of 1 tickers"] * 3]

    assert report.market_source.endswith(", provisional until the next morning")

    monkeypatch.setattr(ReplayMarket, "session_notes", lambda *_: [])
    nowhere = ExitReads(ReplayMarket(ReplayStore(prices)))
    for ticker in ("AAPL", "MSFT"):
        (prices / f"{ticker}.csv").unlink()
    again = await check_exits(
        asked, RecordedJournal(entries), reads=nowhere, rules=DeskExitRules(prices / "gone.toml")
    )
    assert again == report


async def test_a_report_says_that_its_exit_rules_are_the_last_good_ones(prices: Path) -> None:
    path = prices / "exit_signals.toml"
    path.write_text("[default]\nstop_pct = 10")
    rules, reads = DeskExitRules(path), ExitReads(ReplayMarket(ReplayStore(prices)))
    entries: list[JournalEntry] = []

    async def record(new: Any, *_: object) -> None:
        entries.extend(new)

    path.write_text("[default]\nstop_pct = ")
    asked, journal = command("AAPL"), Journal((), record)
    report = await check_exits(asked, journal, reads=reads, rules=rules)
    await journal.flush()
    assert report.checks[0].stop_price is not None
    assert report.warnings[0].startswith("the exit rules read before stand: exit_signals.toml")
    path.write_text("[default]\nstop_pct = 10")
    again = await check_exits(asked, RecordedJournal(entries), reads=reads, rules=rules)
    assert again.warnings == report.warnings
