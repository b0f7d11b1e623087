"""How tickers move together: by scikit-learn as the oracle, and what is not measured."""

from collections.abc import Mapping
from datetime import date, timedelta
from importlib import import_module

import numpy as np
import polars as pl
import pytest

from contracts.facts import Moves
from libs.quant.risk.movement import CLUSTER_CORRELATION, UNKNOWN_VOLATILITY_PCT, Movement
from libs.quant.risk.moves import MOVES_CLOSES_WANTED, shrunk_covariance
from libs.quant.risk.moves import moves as moves_of_bars
from libs.quant.risk.score import RISK_CLOSES_MIN
from tests.fakes.moves import moving

FIRST = date(2010, 1, 4)


@pytest.fixture(scope="module")
def oracle():
    """Loaded when it is needed: collecting the tests takes a second less."""
    return import_module("sklearn.covariance").LedoitWolf


def closes(seed: int, count: int, first: date = FIRST, noise: float = 0.01) -> dict[date, float]:
    rng = np.random.default_rng(seed)
    prices = 100 * np.exp(np.cumsum(rng.normal(0, noise, count)))
    return {first + timedelta(days=n): float(price) for n, price in enumerate(prices)}


def moves(offered: Mapping[str, Mapping[date, float]]) -> Moves:
    """The movements of these closes, as bars."""
    return moves_of_bars(
        {
            name: pl.DataFrame({"date": list(by_day), "close": list(by_day.values())})
            for name, by_day in offered.items()
        }
    )


@pytest.mark.parametrize(("sessions", "count"), [(252, 3), (252, 60), (63, 10), (64, 100), (63, 1)])
def test_the_covariance_is_shrunk_as_by_scikit_learn(oracle, sessions, count):
    rng = np.random.default_rng(count)
    returns = rng.normal(0, 0.02, (sessions, count)) + rng.normal(0, 0.01, (sessions, 1))
    expected = oracle().fit(returns).covariance_
    np.testing.assert_allclose(shrunk_covariance(returns), expected, rtol=1e-10, atol=1e-18)


def test_a_volatility_is_a_years_and_a_correlation_is_of_the_shrunk_covariance(oracle):
    offered = {"AAA": closes(1, 300), "BBB": closes(2, 300, noise=0.03)}
    measured = moves(offered)
    days = sorted(offered["AAA"])[-MOVES_CLOSES_WANTED:]
    table = np.log([[offered[name][day] for name in ("AAA", "BBB")] for day in days])
    expected = oracle().fit(np.diff(table, axis=0)).covariance_
    deviations = np.sqrt(np.diag(expected))
    assert measured.sessions == MOVES_CLOSES_WANTED - 1
    assert measured.tickers == ("AAA", "BBB")
    assert measured.volatility_pct == pytest.approx(deviations * np.sqrt(252) * 100, abs=1e-4)
    correlation = expected[0, 1] / deviations[0] / deviations[1]
    assert measured.correlations == pytest.approx([correlation], abs=1e-4)


def test_what_shares_too_few_sessions_with_the_others_is_not_measured():
    late = FIRST + timedelta(days=300 - RISK_CLOSES_MIN)
    just = moves({"AAA": closes(1, 300), "NEW": closes(2, RISK_CLOSES_MIN, late)})
    assert (just.tickers, just.sessions) == (("AAA", "NEW"), RISK_CLOSES_MIN - 1)
    short = moves({"AAA": closes(1, 300), "NEW": closes(2, RISK_CLOSES_MIN - 1, late)})
    assert (short.tickers, short.sessions) == (("AAA",), MOVES_CLOSES_WANTED - 1)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_close_that_is_no_price_leaves_its_ticker_unmeasured_and_the_others_measured(bad):
    spoilt = {**closes(2, 300), FIRST: bad}
    assert moves({"AAA": closes(1, 300), "BAD": spoilt}).tickers == ("AAA",)


def test_nothing_measured_and_a_price_that_never_moves_are_no_errors():
    assert moves({}).tickers == ()
    assert moves({"AAA": closes(1, 10)}).tickers == ()
    flat = moves({"AAA": dict.fromkeys(closes(1, 100), 10.0)})
    assert (flat.tickers, flat.volatility_pct) == (("AAA",), (0.0,))


def test_what_is_not_known_moves_the_most_and_with_everything():
    known = Movement(moving({"AAA": 10.0, "BBB": 20.0}))
    assert known.volatility_pct("NEW") == UNKNOWN_VOLATILITY_PCT
    assert known.correlation("AAA", "NEW") == 1
    assert known.correlation("NEW", "OTHER") == 1
    assert known.together_with("AAA", {"AAA", "BBB", "NEW"}) == {"AAA", "NEW"}
    assert known.together_with("NEW", {"AAA", "BBB", "NEW"}) == {"AAA", "BBB", "NEW"}


def test_a_hedge_counts_as_nothing():
    against = Movement(moving({"AAA": 10.0, "BBB": 20.0}, {("AAA", "BBB"): -0.9}))
    assert against.correlation("BBB", "AAA") == 0


def test_a_chain_of_correlations_is_one_cluster_from_the_threshold_on():
    near = float(CLUSTER_CORRELATION)
    names = dict.fromkeys(("AAA", "BBB", "CCC", "DDD"), 10.0)
    chain = {("AAA", "BBB"): near, ("BBB", "CCC"): near, ("CCC", "DDD"): near - 0.0001}
    moved = Movement(moving(names, chain))
    assert moved.together_with("AAA", set(names)) == {"AAA", "BBB", "CCC"}
    assert moved.together_with("AAA", {"AAA", "CCC"}) == {"AAA"}  # nobody is between them
    assert moved.together_with("DDD", set(names)) == {"DDD"}
