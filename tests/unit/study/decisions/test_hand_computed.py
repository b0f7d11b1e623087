"""Decisions whose money can be computed by hand: when they count, and at which prices."""

from datetime import date
from pathlib import Path

import pytest

from libs.study.decisions.priced import NothingToScore
from tests.fakes.decided import DAYS, FLAT, UP, folder, money, scored


async def test_one_decision_is_bought_at_the_next_open_and_held_to_the_end(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})

    score = await scored(prices, "time,ticker,weight\n2024-01-02,AAA,1\n")

    assert score.first == date(2024, 1, 3)
    assert money(score) == pytest.approx(100_000 * 1.1**5)
    assert money(score, "holding") == pytest.approx(money(score))
    assert (score.trades, score.last) == (1, date(2024, 1, 9))


async def test_a_trade_costs_its_basis_points_on_each_side(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": FLAT})
    text = "time,ticker,weight\n2024-01-02,AAA,1\n2024-01-04,AAA,0\n"

    score = await scored(prices, text, cost_bps=100)

    assert money(score) == pytest.approx(100_000 / 1.01 * 0.99)
    assert next(iter(score.paths)).costs == pytest.approx(100_000 - money(score))


@pytest.mark.parametrize(
    ("time", "session"),
    [
        ("2024-01-03T09:29:59-05:00", "2024-01-03"),
        ("2024-01-03T14:29:59Z", "2024-01-03"),
        ("2024-01-03T09:30:00-05:00", "2024-01-04"),
        ("2024-01-03T12:00:00-05:00", "2024-01-04"),
        ("2024-01-03T16:00:01-05:00", "2024-01-04"),
        ("2024-01-03", "2024-01-04"),
        ("2024-01-05T20:00:00-05:00", "2024-01-08"),
        ("2024-01-06", "2024-01-08"),
    ],
)
async def test_a_decision_counts_at_the_first_open_after_it_was_known(
    tmp_path: Path, time: str, session: str
) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})

    score = await scored(prices, f"time,ticker,weight\n{time},AAA,1\n")

    assert score.first.isoformat() == session
    left = len(DAYS) - DAYS.index(session)
    assert money(score) == pytest.approx(100_000 * 1.1**left)


@pytest.mark.parametrize(
    ("time", "session"),
    [
        ("2024-01-04", "2024-01-05"),
        ("2024-01-04T18:00:00-05:00", "2024-01-05"),
        ("2024-01-04T19:00:00-05:00", "2024-01-09"),
    ],
    ids=["after New York's close", "an hour before Tokyo opens", "as Tokyo opens"],
)
async def test_a_share_of_another_exchange_is_traded_when_that_one_opens(
    tmp_path: Path, time: str, session: str
) -> None:
    # Tokyo opened on 4, 5 and 9 January 2024, each time on New York's evening before.
    days = ("2024-01-04", "2024-01-05", "2024-01-09")
    prices = folder(tmp_path / "p", {"7203.T": [(100, 100, 0, 1)] * 3, "AAA": []}, days)
    folder(tmp_path / "p", {"AAA": UP})

    score = await scored(prices, f"time,ticker,weight\n{time},7203.T,1\n")

    assert score.first.isoformat() == session


async def test_a_portfolio_of_two_exchanges_stays_one(tmp_path: Path) -> None:
    days = ("2024-01-04", "2024-01-05", "2024-01-09")
    prices = folder(tmp_path / "p", {"7203.T": [(100, 100, 0, 1)] * 3}, days)
    folder(prices, {"AAA": UP, "BBB": UP})
    first = "2024-01-03,BBB,1\n"
    both = "2024-01-04T19:00:00-05:00,7203.T,0.5\n2024-01-04T19:00:00-05:00,AAA,0.5\n"

    score = await scored(prices, f"time,ticker,weight\n{first}{both}")

    # BBB rises on the 4th and is sold at the 5th's open; half is in AAA from then, for 3 sessions.
    assert money(score) == pytest.approx(110_000 * (0.5 + 0.5 * 1.1**3))
    assert [(it.line, it.ticker) for it in score.untraded] == [(3, "7203.T")], (
        "half of more by then"
    )


async def test_shares_are_split_with_the_share(tmp_path: Path) -> None:
    bars = [(100, 100, 0, 1), (100, 100, 0, 1), (50, 50, 0, 2), (55, 55, 0, 1)]
    prices = folder(tmp_path / "p", {"AAA": bars})
    text = "time,ticker,action,quantity\n2024-01-02,AAA,buy,10\n2024-01-04,AAA,sell,20\n"

    score = await scored(prices, text, until=date(2024, 1, 5))

    assert money(score) == pytest.approx(100_000 + 20 * 55 - 10 * 100)
    assert score.untraded == ()


async def test_a_split_at_the_very_open_applies_to_an_order_from_before(tmp_path: Path) -> None:
    bars = [(100, 100, 0, 1), (100, 100, 0, 1), (50, 50, 0, 2), (55, 55, 0, 1)]
    prices = folder(tmp_path / "p", {"AAA": bars})

    score = await scored(prices, "time,ticker,action,quantity\n2024-01-03,AAA,buy,10\n")

    assert money(score) == pytest.approx(100_000 + 20 * 5)


async def test_a_dividend_is_put_into_its_share_again(tmp_path: Path) -> None:
    bars = [(100, 100, 0, 1), (100, 100, 0, 1), (95, 95, 5, 1)]
    prices = folder(tmp_path / "p", {"AAA": bars})

    score = await scored(prices, "time,ticker,weight\n2024-01-02,AAA,1\n")

    assert money(score) == pytest.approx(100_000)


async def test_who_holds_what_trades_no_more_keeps_its_last_close_and_is_told(
    tmp_path: Path,
) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP[:3], "BBB": FLAT})
    text = "time,ticker,weight\n2024-01-02,AAA,1\n2024-01-04,BBB,1\n"

    score = await scored(prices, text, until=date(2024, 1, 9))

    assert money(score) == pytest.approx(100_000 * 1.1**2)
    assert score.ended == {"AAA": date(2024, 1, 4)}
    missed = {(it.line, it.ticker): it.why for it in score.untraded}
    assert missed[0, "AAA"] == "did not trade at the open of 2024-01-05"
    assert missed[3, "BBB"].startswith("cut on 2024-01-05")


async def test_unknown_tickers_stay_in_cash_and_are_listed_with_their_lines(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})
    text = "time,ticker,weight\n2024-01-02,AAA,0.5\n2024-01-02,ZZZ,0.5\n2024-01-02,BTC-USD,0\n"

    score = await scored(prices, text)

    assert money(score) == pytest.approx(50_000 + 50_000 * 1.1**5)
    assert set(score.absent) == {"BTC-USD", "ZZZ"}
    assert [(it.line, it.why) for it in score.untraded] == [(3, "no prices"), (4, "no prices")]


async def test_decisions_after_the_last_price_are_listed(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})
    text = "time,ticker,weight\n2024-01-02,AAA,1\n2024-01-09,AAA,0\n1776-07-04,AAA,0\n"

    score = await scored(prices, text)

    assert [it.line for it in score.untraded] == [3, 4]
    assert "after 2024-01-09" in score.untraded[0].why
    assert "calendar" in score.untraded[1].why


async def test_it_begins_with_the_first_decision_that_has_prices(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})
    text = "time,ticker,weight\n1999-12-31,AAA,1\n2024-01-02,AAA,1\n"

    score = await scored(prices, text, until=date(2024, 1, 9))

    assert (score.points[0], score.first) == (date(2024, 1, 2), date(2024, 1, 3))
    assert [(it.line, it.why) for it in score.untraded] == [
        (2, "it counts at the open of 2000-01-03, before its first price")
    ]


async def test_a_ticker_that_is_not_named_is_sold_or_kept_as_it_is_said(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP, "BBB": FLAT})
    text = "time,ticker,weight\n2024-01-02,AAA,0.5\n2024-01-03,BBB,0.5\n"
    options = {"until": date(2024, 1, 9)}

    sold = await scored(prices, text, **options)
    kept = await scored(prices, text, sells_unnamed=False, **options)

    assert money(sold) == pytest.approx(50_000 + 50_000 * 1.1)
    assert money(kept) == pytest.approx(50_000 + 50_000 * 1.1**5)


async def test_of_two_decisions_before_one_open_the_later_counts(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})
    text = "time,ticker,weight\n2024-01-03T12:00:00Z,AAA,1\n2024-01-03T11:00:00Z,AAA,0\n"

    score = await scored(prices, text)

    assert money(score) == pytest.approx(100_000 * 1.1**5)
    assert any("replaced by a later one" in note for note in score.notes)


async def test_a_purchase_beyond_the_cash_and_a_sale_beyond_what_is_held_are_cut_and_told(
    tmp_path: Path,
) -> None:
    prices = folder(tmp_path / "p", {"AAA": FLAT})
    text = (
        "time,ticker,action,quantity\n2024-01-02,AAA,buy,3000\n2024-01-03,AAA,hold,\n"
        "2024-01-04,AAA,sell,9000\n"
    )

    score = await scored(prices, text)

    assert money(score) == pytest.approx(100_000)
    assert [it.line for it in score.untraded] == [2, 4]
    assert all(it.why.startswith("cut on") for it in score.untraded)


async def test_shares_have_no_value_at_adjusted_prices(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.mkdir()
    rows = "".join(f"{day},1,1,1,1,1,1\n" for day in DAYS)
    (path / "AAA.csv").write_text("Date,Open,High,Low,Close,Adj Close,Volume\n" + rows)

    with pytest.raises(NothingToScore, match="worth something else"):
        await scored(path, "time,ticker,action,quantity\n2024-01-02,AAA,buy,10\n")


async def test_odd_prices_and_tickers_that_come_later_are_told(tmp_path: Path) -> None:
    bars = {"AAA": [(100, 100, 0, 1), (100, 100, 0, 1), (10, 10, 0, 1), (10, 10, 0, 1)]}
    prices = folder(tmp_path / "p", bars)
    folder(prices, {"BBB": FLAT[3:]}, DAYS[3:])
    text = "time,ticker,weight\n2024-01-02,AAA,1\n2024-01-05,BBB,1\n"

    score = await scored(prices, text)

    assert any("AAA: 2024-01-04: the close moved by -90.0%" in note for note in score.notes)
    assert "holding is without BBB: no price at the first open" in score.notes


async def test_nothing_to_score_is_said(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP})

    with pytest.raises(NothingToScore, match="none of its decisions"):
        await scored(prices, "time,ticker,weight\n2024-01-02,ZZZ,1\n")
    with pytest.raises(NothingToScore, match="no decision is known before"):
        await scored(prices, "time,ticker,weight\n2025-01-02,AAA,1\n")
