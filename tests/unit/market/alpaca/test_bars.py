"""Alpaca's corporate actions as the desk's: rates that were rounded, tickers that changed."""

from datetime import date

import polars as pl
import pytest

from libs.market.alpaca.bars import (
    ROWS,
    AlpacaEvent,
    Renamed,
    earlier_symbols,
    events_of,
    frame_of,
    rows_of,
)
from libs.market.errors import BadVendorData

DAY = "2024-03-15"


def split(new: float, old: float, group: str = "reverse_splits") -> float:
    row = {"symbol": "X", "ex_date": DAY, "process_date": DAY, "new_rate": new, "old_rate": old}
    (event,) = events_of({group: [row]})
    assert isinstance(event, AlpacaEvent)
    return event.factor


@pytest.mark.parametrize(
    ("new", "old", "factor"),
    [
        (1, 10, 0.1),
        (0.06667, 1, 1 / 15),
        (0.00125, 1, 1 / 800),
        (1.33333, 1, 4 / 3),
        (3, 2, 1.5),
        (20, 1, 20),
        (1, 15, 1 / 15),
        (1.05, 1, 1.05),
    ],
)
def test_a_rate_is_the_whole_parts_that_were_meant(new: float, old: float, factor: float) -> None:
    assert split(new, old) == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize(("new", "old"), [(0, 1), (1, 0), (-1, 2), (float("nan"), 1)])
def test_a_rate_that_is_none_is_refused(new: float, old: float) -> None:
    row = {"symbol": "X", "ex_date": DAY, "process_date": DAY, "new_rate": new, "old_rate": old}
    (event,) = events_of({"reverse_splits": [row]})
    assert isinstance(event, AlpacaEvent)
    assert event.broken


def test_stock_dividends_are_splits_and_other_kinds_are_left_out() -> None:
    row = {"symbol": "X", "ex_date": DAY, "process_date": DAY, "rate": 0.05}
    assert events_of({"stock_dividends": [row], "spin_offs": [{}], "cash_mergers": [{}]}) == [
        AlpacaEvent("X", date(2024, 3, 15), factor=1.05)
    ]
    assert events_of({}) == []


def bars_of(*days: date) -> pl.DataFrame:
    prices = {name: [100.0] * len(days) for name in ("open", "high", "low", "close")}
    columns = {"symbol": ["X"] * len(days), "date": list(days), **prices}
    return pl.DataFrame({**columns, "volume": [10.0] * len(days)}, schema=ROWS)


def test_what_cannot_be_read_costs_its_own_ticker_alone_and_nothing_before_it_happens() -> None:
    row = {"symbol": "X", "ex_date": DAY, "process_date": DAY, "rate": 1.0, "currency": "CAD"}
    other = {**row, "symbol": "Y", "currency": "USD"}
    events = list(events_of({"cash_dividends": [row, other]}))
    own = [each for each in events if isinstance(each, AlpacaEvent)]
    spans = [("X", date.min, date.max)]
    before, on = date(2024, 3, 14), date(2024, 3, 15)
    assert frame_of("X", bars_of(before), own, spans, before)["dividend"].to_list() == [0.0]
    with pytest.raises(BadVendorData, match="2024-03-15: ValueError a dividend in CAD"):
        frame_of("X", bars_of(before, on), own, spans, on)
    assert [(each.symbol, each.broken) for each in own if not each.broken] == [("Y", "")]


@pytest.mark.parametrize("ex_date", [None, "soon", 20240315])
def test_an_action_without_a_day_might_have_happened(ex_date: object) -> None:
    row = {"symbol": "X", "ex_date": ex_date, "process_date": DAY, "rate": 1.0}
    (event,) = events_of({"cash_dividends": [row]})
    assert isinstance(event, AlpacaEvent)
    day = date(2024, 3, 15)
    with pytest.raises(BadVendorData):
        frame_of("X", bars_of(day), [event], [("X", date.min, date.max)], day)


def test_the_tickers_of_a_company_are_those_it_had_up_to_the_day() -> None:
    changes = [
        Renamed("A", "B", date(2020, 1, 2)),
        Renamed("B", "C", date(2022, 6, 1)),
        Renamed("C", "D", date(2024, 1, 2)),
        Renamed("X", "C", date(2019, 1, 2)),
    ]
    assert earlier_symbols("C", changes, date(2023, 1, 1)) == [
        ("C", date(2022, 6, 1), date.max),
        ("B", date(2020, 1, 2), date(2022, 6, 1)),
        ("A", date.min, date(2020, 1, 2)),
    ]
    assert earlier_symbols("D", changes, date(2023, 1, 1)) == [("D", date.min, date.max)]
    circle = [Renamed("A", "B", date(2020, 1, 2)), Renamed("B", "A", date(2021, 1, 4))]
    assert len(earlier_symbols("A", circle, date(2022, 1, 3))) == 3


def test_a_split_that_is_listed_twice_counts_once() -> None:
    bars = pl.DataFrame(
        {
            "symbol": ["X", "X"],
            "date": [date(2024, 3, 14), date(2024, 3, 15)],
            **{key: [100.0, 50.0] for key in ("open", "high", "low", "close")},
            "volume": [10.0, 20.0],
        },
        schema=ROWS,
    )
    twice = [AlpacaEvent("X", date(2024, 3, 15), factor=2.0)] * 2
    frame = frame_of("X", bars, twice, [("X", date.min, date.max)], date(2024, 3, 15))
    assert frame["split_factor"].to_list() == [1.0, 2.0]


@pytest.mark.parametrize(
    "bar",
    [
        {"t": "2024-03-15T04:00:00Z", "o": "1", "h": 1, "l": 1, "c": 1, "v": 1},
        {"t": "2024-03-15T04:00:00Z", "o": True, "h": 1, "l": 1, "c": 1, "v": 1},
        {"t": "2024-03-15T04:00:00", "o": 1, "h": 1, "l": 1, "c": 1, "v": 1},
        {"t": 1710475200, "o": 1, "h": 1, "l": 1, "c": 1, "v": 1},
        {"t": "2024-03-15T04:00:00Z", "h": 1, "l": 1, "c": 1, "v": 1},
        {"t": "2024-03-15T04:00:00Z", "o": None, "h": 1, "l": 1, "c": 1, "v": 1},
    ],
)
def test_a_bar_of_another_shape_costs_its_own_ticker(bar: dict[str, object]) -> None:
    good = {"t": "2024-03-15T04:00:00Z", "o": 1, "h": 1, "l": 1, "c": 1, "v": 1}
    page = rows_of({"X": [bar], "Y": [good]}, ["X", "Y"])
    assert set(page.broken) == {"X"}
    assert page.rows["symbol"].to_list() == ["Y"]


def test_a_bar_is_of_the_day_in_new_york_whose_midnight_it_names() -> None:
    bar = {"o": 1, "h": 1, "l": 1, "c": 1, "v": 1}
    summer, winter = ({**bar, "t": at} for at in ("2024-03-15T04:00:00Z", "2024-01-16T05:00:00Z"))
    page = rows_of({"X": [summer, winter]}, ["X"])
    assert page.rows["date"].to_list() == [date(2024, 3, 15), date(2024, 1, 16)]
    with pytest.raises(ValueError, match="not requested"):
        rows_of({"Y": [summer]}, ["X"])
