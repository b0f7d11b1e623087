"""The designer by rules: draws that can be repeated, and that keep away from what did poorly."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest

from contracts.strategy import StrategyDraft
from contracts.strategy_cycle import PastStrategy
from libs.llm.rules import designer
from libs.llm.rules.rule_set import EvidenceIndex

HISTORIES = {
    ticker: {"first": "2000-03-01", "last": "2013-03-01", "bars": 3_270}
    for ticker in ("AAPL", "IBM", "MSFT")
}
DRAWS = [f"draw {number}" for number in range(40)]


def drawn(draw: str, past: Sequence[PastStrategy] = ()) -> StrategyDraft:
    told = [each.model_dump(mode="json") for each in past]
    task: dict[str, Any] = {"draw": draw, "histories": HISTORIES, "past": told}
    return designer.answer(task, EvidenceIndex(()))


def as_past(spec: StrategyDraft, ended: Any = "training_gate", **more: Any) -> PastStrategy:
    return PastStrategy(
        name=spec.name,
        as_of=date(2013, 3, 1),
        hypothesis=spec.hypothesis,
        universe=spec.universe,
        features=tuple(feature.key for feature in spec.features),
        horizon_bars=spec.label.horizon_bars,
        model=spec.model.kind,
        ended=ended,
        **more,
    )


def shared(one: StrategyDraft, other: StrategyDraft) -> float:
    mine, theirs = ({f.key for f in each.features} for each in (one, other))
    return len(mine & theirs) / len(mine | theirs)


@pytest.mark.parametrize("draw", DRAWS[:5])
def test_the_same_draw_and_past_give_the_same_design(draw: str) -> None:
    past = [as_past(drawn("another"))]
    assert drawn(draw) == drawn(draw)
    assert drawn(draw, past) == drawn(draw, past)


@pytest.mark.parametrize("ended", ["training_gate", "backtest_gate"])
def test_what_a_gate_stopped_is_not_drawn_again(ended: str) -> None:
    for draw in DRAWS:
        poor = drawn(draw)
        again = drawn(draw, [as_past(poor, ended)])
        assert shared(again, poor) < 0.5
        assert "drawn away from 1 that did poorly" in again.hypothesis


def test_a_poor_verdict_counts_and_a_better_one_does_not() -> None:
    first = drawn("a")
    assert drawn("a", [as_past(first, "assessed", verdict="mediocre")]) == first
    assert drawn("a", [as_past(first, "not_finished")]) == first
    assert drawn("a", [as_past(first, "assessed", verdict="poor")]).features != first.features


def test_draws_share_less_with_poor_ones_than_draws_that_know_of_none() -> None:
    poor = [drawn(draw) for draw in DRAWS[:4]]
    past = [as_past(each) for each in poor]

    def nearest(spec: StrategyDraft) -> float:
        return max(shared(spec, each) for each in poor)

    knowing = [nearest(drawn(draw, past)) for draw in DRAWS[4:]]
    blind = [nearest(drawn(draw)) for draw in DRAWS[4:]]
    assert sum(knowing) < 0.8 * sum(blind)


def test_names_fit_and_end_with_the_kind_of_model() -> None:
    names = [drawn(draw).name for draw in DRAWS]
    assert {name.rsplit("-", 1)[-1] for name in names} == {"boosting", "mlp"}
    assert max(map(len, names)) <= 50


def test_keeping_away_does_not_mean_fewer_features() -> None:
    past = [as_past(drawn(draw)) for draw in DRAWS[:4]]
    blind = [len(drawn(draw).features) for draw in DRAWS]
    assert [len(drawn(draw, past).features) for draw in DRAWS] == blind
