"""Coins beside a file: always the same for a seed, and no more often wrong than is said."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from contracts.study_score import NotShown
from libs.study.decisions.score import CoinScore, beside_coins
from libs.study.statistics.walks import Orders, PricePanel, WalkTerms, coins, turned, walk
from tests.fakes.decided import FLAT, UP, folder, scored

TERMS = WalkTerms(100_000, 10)
SESSIONS, STEP, DRAWS, FILES = 253, 6, 150, 120
ALARMS_MAX = 13
"""Of 120 files without skill; with 5 % of false alarms there are more in fewer than 1 of 100."""
Decide = Callable[[np.random.Generator, PricePanel, int], np.ndarray]


def market(rng: np.random.Generator, tickers: int) -> PricePanel:
    """Tickers with a drift of their own each, and a common part."""
    drift = rng.normal(0, 0.001, tickers)
    moves = rng.normal(drift, 0.015, (SESSIONS, tickers)) + rng.normal(0, 0.01, (SESSIONS, 1))
    closes = 100 * np.exp(np.cumsum(moves, axis=0))
    return PricePanel(np.vstack([closes[:1], closes[:-1]]), closes)


def one_of(rng: np.random.Generator, panel: PricePanel, _: int) -> np.ndarray:
    part = np.zeros(panel.closes.shape[1])
    part[rng.integers(len(part))] = 1
    return part


def in_or_out(rng: np.random.Generator, panel: PricePanel, _: int) -> np.ndarray:
    return np.full(panel.closes.shape[1], float(rng.random() < 0.5))


def foreseeing(_: np.random.Generator, panel: PricePanel, session: int) -> np.ndarray:
    end = min(session + STEP, SESSIONS - 1)
    part = np.zeros(panel.closes.shape[1])
    part[np.argmax(panel.opens[end] / panel.opens[session])] = 1
    return part


def beside(seed: int, tickers: int, decide: Decide, keeps: float = 0.0) -> CoinScore | NotShown:
    """A file that decides anew at each time, or keeps what it has with the chance `keeps`."""
    rng = np.random.default_rng(seed)
    panel = market(rng, tickers)
    part, orders = np.zeros(tickers), []
    for session in range(1, SESSIONS, STEP):
        if session == 1 or rng.random() >= keeps:
            part = decide(rng, panel, session)
        orders.append(Orders.exactly(session, part))
    own = walk(panel, orders, TERMS)
    if tickers == 1:
        return beside_coins(own, walk(panel, turned(orders, DRAWS), TERMS), is_timing=True)
    return beside_coins(own, coins(panel, orders, own, TERMS, DRAWS, seed), is_timing=False)


@pytest.mark.parametrize(
    ("tickers", "decide", "keeps"),
    [(6, one_of, 0.0), (6, one_of, 0.9), (2, one_of, 0.5), (1, in_or_out, 0.0)],
    ids=["anew each time", "kept for long", "two tickers", "one ticker"],
)
def test_a_file_without_skill_is_seldom_told_from_luck(
    tickers: int, decide: Decide, keeps: float
) -> None:
    told = [beside(seed, tickers, decide, keeps) for seed in range(FILES)]

    shown = [it for it in told if isinstance(it, CoinScore)]
    assert len(shown) == FILES
    assert sum(it.resolved for it in shown) <= ALARMS_MAX


@pytest.mark.parametrize("tickers", [2, 5])
def test_a_file_that_knows_the_prices_to_come_is_told_from_luck(tickers: int) -> None:
    for seed in range(10):
        told = beside(seed, tickers, foreseeing)
        assert isinstance(told, CoinScore)
        assert told.resolved
        assert told.difference > 0 < told.low
        assert told.earned_less == 1


def test_a_coin_trades_as_much_as_the_file_and_holds_as_long() -> None:
    rng = np.random.default_rng(3)
    panel = market(rng, 6)
    parts = [one_of(rng, panel, 0) for _ in range(1, SESSIONS, STEP)]
    orders = [Orders.exactly(1 + n * STEP, part) for n, part in enumerate(parts)]
    own = walk(panel, orders, TERMS)

    lots = coins(panel, orders, own, TERMS, DRAWS, 1)

    assert (lots.held[:, 1:] / lots.curve[:, 1:]).min() > 0.99
    times = own.traded[0] / own.curve.mean()
    assert np.median(lots.traded / lots.curve.mean(axis=1)) == pytest.approx(times, rel=0.05)


def test_a_coin_holds_what_was_drawn_and_the_file_holds_at_the_same_opens() -> None:
    """One coin by hand: the file enters the second ticker, then leaves it for the first."""
    panel = PricePanel(np.array([[10.0, 20.0, 40.0]] * 4), np.array([[10.0, 20.0, 40.0]] * 4))
    parts = [np.array([0.0, 0.5, 0.0]), np.array([1.0, 0.0, 0.0])]
    orders = [Orders.exactly(session, part) for session, part in enumerate(parts, start=1)]
    own = walk(panel, orders, WalkTerms(100.0, 100))
    heard: list[float] = []

    lots = coins(panel, orders, own, WalkTerms(100.0, 100), 3, 1, heard.append)

    # Bought for 50, sold for 50, then all but the cost of it bought: at 1 % each.
    money = 100 - 0.5 - 0.5
    assert lots.curve[:, 1] == pytest.approx([99.5] * 3)
    assert lots.curve[:, 3] == pytest.approx([money / 1.01] * 3)
    assert lots.traded == pytest.approx([100 + money / 1.01] * 3)
    assert lots.held[:, 3] == pytest.approx(lots.curve[:, 3])
    assert heard == [0.0, 0.5]


async def test_the_same_seed_gives_the_same_coins(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP, "BBB": FLAT, "CCC": FLAT})
    text = "time,ticker,weight\n2024-01-02,AAA,1\n2024-01-04,BBB,1\n"

    first, again, other = [await scored(prices, text, seed=seed) for seed in (1, 1, 2)]

    assert first == again
    assert isinstance(first.coin, CoinScore)
    assert isinstance(other.coin, CoinScore)
    assert first.coin.earned_less != other.coin.earned_less


async def test_where_a_coin_has_no_choice_nothing_is_claimed(tmp_path: Path) -> None:
    prices = folder(tmp_path / "p", {"AAA": UP, "BBB": FLAT})
    alike = "time,ticker,weight\n2024-01-02,AAA,0.5\n2024-01-02,BBB,0.5\n"

    both = await scored(prices, alike)
    alone = await scored(prices, "time,ticker,weight\n2024-01-02,AAA,1\n")

    assert both.coin == NotShown(
        why="a coin has no choice here: every one holds what the file holds"
    )
    assert isinstance(alone.coin, NotShown)
    assert "one ticker and 1 time:" in alone.coin.why
    assert all(isinstance(it, NotShown) for it in alone.differences.values())
