"""Panels: bars are taken as they should be or refused with the ticker and the session."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from libs.quant.strategy.panel import BadPanel, panel

DAYS = [date(2011, 1, 3) + timedelta(days=n) for n in range(4)]


def bars(ticker: str, **changes: list[float | None]) -> pl.DataFrame:
    columns: dict[str, list[float | None]] = {
        "open": [1.0, 2.0, 3.0, 4.0],
        "high": [1.5, 2.5, 3.5, 4.5],
        "low": [0.5, 1.5, 2.5, 3.5],
        "close": [1.2, 2.2, 3.2, 4.2],
        "volume": [10.0, 0.0, 30.0, 40.0],
    }
    frame = pl.DataFrame({"date": DAYS} | columns | changes, strict=False)
    return frame.insert_column(0, pl.lit(ticker).alias("ticker"))


def test_rows_are_tickers_as_asked_and_columns_sessions_in_order():
    both = pl.concat([bars("BBB"), bars("AAA", close=[9.0, 8.0, 7.0, 6.0])])
    made = panel(both.sample(fraction=1, shuffle=True, seed=1), ["BBB", "AAA"])

    assert made.tickers == ("BBB", "AAA")
    assert made.sessions.tolist() == DAYS
    assert made.close.tolist() == [[1.2, 2.2, 3.2, 4.2], [9.0, 8.0, 7.0, 6.0]]
    assert made.close[0].flags.c_contiguous


def test_a_cut_has_the_sessions_between_and_place_finds_the_next():
    made = panel(bars("AAA"))
    assert made.place(DAYS[2]) == 2
    assert made.place(DAYS[0] - timedelta(days=9)) == 0
    assert made.place(DAYS[3] + timedelta(days=1)) == len(made)
    assert made.cut(1, 3).close.tolist() == [[2.2, 3.2]]


def test_the_hash_changes_with_any_price():
    made = panel(bars("AAA"))
    assert made.sha256() == panel(bars("AAA")).sha256()
    assert made.sha256() != panel(bars("AAA", volume=[10.0, 0.0, 30.0, 41.0])).sha256()
    assert made.sha256() != panel(bars("AAB")).sha256()
    assert made.sha256() != made.cut(0, 3).sha256()


@pytest.mark.parametrize("bad", [float("nan"), 0.0, -1.0, float("inf"), None])
@pytest.mark.parametrize("column", ["open", "high", "low", "close"])
def test_a_price_that_is_none_is_named(bad: float | None, column: str):
    with pytest.raises(BadPanel) as caught:
        panel(bars("AAA", **{column: [1.0, bad, 3.0, 4.0]}))
    assert caught.value.field == "universe.AAA"
    assert f"{column} on 2011-01-04 is" in str(caught.value)


def test_a_negative_volume_is_named():
    with pytest.raises(BadPanel, match="volume on 2011-01-05 is -3, not a volume from zero up"):
        panel(bars("AAA", volume=[1.0, 2.0, -3.0, 4.0]))


def test_a_gap_is_named_with_ticker_and_session():
    both = pl.concat([bars("AAA"), bars("BBB").filter(pl.col("date") != DAYS[2])])
    with pytest.raises(BadPanel, match=r"universe.BBB: has no bar on 2011-01-05") as caught:
        panel(both)
    assert caught.value.field == "universe.BBB"


def test_a_ticker_that_begins_later_is_named():
    both = pl.concat([bars("AAA"), bars("FB").filter(pl.col("date") >= DAYS[1])])
    with pytest.raises(BadPanel, match=r"universe.FB: has no bar on 2011-01-03"):
        panel(both)


@pytest.mark.parametrize(
    ("frame", "universe", "words"),
    [
        (bars("AAA").clear(), None, "there are no bars"),
        (bars("AAA"), ["AAA", "ZZZ"], "universe.ZZZ: has no bars"),
        (pl.concat([bars("AAA"), bars("BBB")]), ["AAA"], "bars of BBB"),
        (pl.concat([bars("AAA"), bars("AAA")]), None, "two bars on 2011-01-03"),
    ],
)
def test_bars_that_are_not_what_was_asked_for_are_refused(frame, universe, words: str):
    with pytest.raises(BadPanel, match=words):
        panel(frame, universe)


def test_whole_numbers_are_prices_too():
    assert panel(bars("AAA", open=[1, 2, 3, 4])).open.dtype == np.float64
