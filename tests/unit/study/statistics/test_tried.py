"""Luck is judged among all configurations that the desk has tried, wherever that was."""

from collections.abc import Sequence

import numpy as np
import pytest

from contracts.study_score import SOURCES_MAX, ConfigurationKind
from libs.quant.strategy.performance import daily_returns, sharpe_ratio
from libs.quant.strategy.skill import deflated_sharpe
from libs.study.statistics.record import Tried
from libs.study.statistics.tried import on_record

PATH, STRATEGY, PICKS = (
    ConfigurationKind.PATH,
    ConfigurationKind.STRATEGY,
    ConfigurationKind.PICKS,
)


def curve(seed: int, count: int = 300) -> tuple[float, ...]:
    random = np.random.default_rng((5, seed))
    return tuple(np.cumprod(np.concatenate([[1.0], 1 + random.normal(0.0005, 0.01, count - 1)])))


def own(*curves: Sequence[float]) -> dict[tuple[str, int], np.ndarray]:
    return {
        (f"a{number}", 0): daily_returns(np.array(values)) for number, values in enumerate(curves)
    }


def elsewhere(count: int) -> list[Tried]:
    return [Tried(kind=PATH, source="other", worth=curve(100 + number)) for number in range(count)]


def test_each_kind_is_counted_with_where_it_is_from_and_how_many_have_daily_returns():
    tried = [
        *elsewhere(3),
        Tried(kind=PATH, source="shorter"),
        Tried(kind=STRATEGY, source="trend", worth=curve(7)),
        Tried(kind=STRATEGY, source="untested"),
        Tried(kind=PICKS, source="looks"),
    ]
    result = on_record(own(curve(1), curve(2)), tried)

    counted = [(it.kind.value, it.count, it.with_returns, it.sources) for it in result.counted]
    assert counted == [
        ("own", 2, 2, ()),
        ("path", 4, 3, ("other", "shorter")),
        ("strategy", 2, 1, ("trend", "untested")),
        ("picks", 1, 0, ("looks",)),
    ]
    assert result.count == 9
    assert result.returns.shape == (299, 6)


def test_accounts_that_did_the_same_are_one_configuration_wherever_they_are():
    again = [Tried(kind=PATH, source="again", worth=curve(1))]
    larger = [Tried(kind=PATH, source="larger", worth=tuple(9 * it for it in curve(1)))]

    result = on_record(own(curve(1), curve(1)), [*again, *larger])

    assert [(it.kind, it.count) for it in result.counted] == [(ConfigurationKind.OWN, 1)]
    assert result.besides(("a1", 0)).count == 0


def test_the_deflated_ratio_is_by_all_configurations_and_the_variance_of_known_ratios():
    tried = [*elsewhere(20), *[Tried(kind=PICKS, source="looks")] * 5]
    result = on_record(own(curve(1), curve(2)), tried)

    besides = result.besides(("a0", 0))

    others = [curve(2), *(one.worth for one in elsewhere(20))]
    ratios = [float(sharpe_ratio(daily_returns(np.array(it)))) for it in others]
    assert (besides.count, besides.with_ratio) == (26, 21)
    assert besides.ratio_variance == pytest.approx(np.var(ratios, ddof=1))
    alone = on_record(own(curve(1), curve(2)), []).besides(("a0", 0))
    returns = result.own["a0", 0]
    assert deflated_sharpe(returns, besides) < deflated_sharpe(returns, alone)


def test_an_account_that_never_traded_is_a_try_without_a_ratio():
    result = on_record(own(curve(1), [1.0] * 300), [])

    assert (result.count, result.besides(("a0", 0)).with_ratio) == (2, 0)


def test_sources_beyond_the_first_are_counted():
    many = [Tried(kind=PICKS, source=f"s{number}") for number in range(SOURCES_MAX + 4)]

    (_, picks) = on_record(own(curve(1)), many).counted

    assert (len(picks.sources), picks.more) == (SOURCES_MAX, 4)
