"""The score of a study of picks, by small cases computed by hand and by arms of known kind."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta

import numpy as np
import pytest
from pydantic import ValidationError

from contracts.probe import Guess
from contracts.stages import Substitute, Why
from contracts.study import Study, StudyArm, StudyDates
from contracts.study_score import (
    Estimate,
    Foresight,
    LeakVerdict,
    Measure,
    NotShown,
    StudyScore,
)
from libs.study.statistics.canary import overlap
from libs.study.statistics.outcomes import outcomes
from libs.study.statistics.record import AssetBars, Decided, Probed, StudyRecord
from libs.study.statistics.score import EQUAL_WEIGHT, score_picks

ASSETS = ("AA", "BB", "CC", "DD")
Arm = Callable[[int], Mapping[str, float]]


def sessions(count: int) -> tuple[date, ...]:
    return tuple(date(2010, 1, 4) + timedelta(days=number) for number in range(count))


def walk(count: int, seed: int = 1) -> Mapping[str, AssetBars]:
    """Random prices whose opens are the closes before them."""
    random = np.random.default_rng(seed)
    days, bars = sessions(count), {}
    for asset in ASSETS:
        close = 100 * np.cumprod(1 + random.normal(0, 0.02, count))
        opens = np.concatenate([[100.0], close[:-1]])
        bars[asset] = AssetBars(sessions=days, open=tuple(opens), close=tuple(close))
    return bars


def study_of(names: Sequence[str], **fields: object) -> Study:
    return Study(
        name="it",
        dates=StudyDates(first=date(2010, 1, 4), last=date(2013, 1, 4)),
        universe=ASSETS,
        arms=tuple(
            StudyArm(
                name=name,
                models={"large": name.removesuffix("-masked")},
                masked=name.endswith("-masked"),
            )
            for name in names
        ),
        **fields,
    )


def recorded(
    arms: Mapping[str, Arm],
    dates: int = 100,
    every: int = 5,
    horizon: int = 5,
    cost_bps: float = 0.0,
    seed: int = 1,
    **fields: object,
) -> StudyRecord:
    """Cells at every `every`-th session, an arm's weights by the place of the session."""
    bars = walk(dates * every + 30, seed)
    days = sessions(dates * every + 30)
    return StudyRecord(
        study=study_of(tuple(arms)),
        horizon=horizon,
        cost_bps=cost_bps,
        benchmark="candidates",
        sessions=days,
        bars=bars,
        decided=tuple(
            Decided(
                arm=name,
                number=number,
                sample=0,
                on=days[number * every],
                weights=dict(arm(number * every)),
            )
            for name, arm in arms.items()
            for number in range(dates)
        ),
        **fields,
    )


def coin(seed: int) -> Arm:
    random = np.random.default_rng(seed)
    return lambda _: {asset: 0.25 for asset in ASSETS if random.random() < 0.5}


def prophet(horizon: int = 5, seed: int = 1, dates: int = 100) -> Arm:
    """One who knows which asset will be the best of the sessions to come."""
    bars = walk(dates * 5 + 30, seed)

    def knows(place: int) -> Mapping[str, float]:
        after = {
            asset: each.close[place + horizon] / each.open[place + 1]
            for asset, each in bars.items()
        }
        return {max(after, key=after.__getitem__): 1.0}

    return knows


def momentum(place: int) -> Mapping[str, float]:
    """Honest: what did best over the sessions before."""
    bars = walk(530)
    before = {
        asset: each.close[place] / each.open[max(place - 9, 0)] for asset, each in bars.items()
    }
    return {max(before, key=before.__getitem__): 1.0}


def arm_of(score: StudyScore, name: str) -> object:
    return next(arm for arm in score.arms if arm.name == name)


def shown(value: object) -> Estimate:
    assert isinstance(value, Estimate), value
    return value


def test_a_decisions_excess_is_its_weights_times_returns_after_costs_less_the_benchmark():
    days = sessions(12)
    flat = AssetBars(sessions=days, open=(100.0,) * 12, close=(100.0,) * 12)
    up = AssetBars(sessions=days, open=(100.0,) * 12, close=(110.0,) * 12)
    study = study_of(("one",))
    record = StudyRecord(
        study=study,
        horizon=2,
        cost_bps=10,
        benchmark="candidates",
        sessions=days,
        bars={"AA": up, "BB": flat, "CC": flat, "DD": flat},
        decided=tuple(
            Decided(arm="one", number=n, sample=0, on=days[n], weights={"AA": 0.5, "BB": 0.25})
            for n in range(8)
        ),
    )
    score = score_picks(record)
    # The benchmark gains 2.5 %. AA: 0.5 x (10 % - 2.5 %), BB: 0.25 x -2.5 %; both pay 20 bp.
    expected = 0.5 * (0.10 - 0.025 - 0.002) + 0.25 * (0 - 0.025 - 0.002)
    assert arm_of(score, "one").curve[0] == pytest.approx(expected)
    # Right about AA (bought, better), CC and DD (not bought, not better), wrong about BB.
    assert score.dates == 8
    assert score.overlap == 2
    hits = arm_of(score_picks(record.model_copy(update={"horizon": 1})), "one").hits
    assert shown(hits).estimate == pytest.approx(0.75)
    assert arm_of(score, EQUAL_WEIGHT).curve[0] == pytest.approx(0)


def test_samples_of_a_date_count_as_one():
    record = recorded({"one": coin(3)})
    again = tuple(
        each.model_copy(update={"sample": sample}) for each in record.decided for sample in range(3)
    )
    tripled = record.model_copy(update={"decided": again})
    first, second = score_picks(record), score_picks(tripled)
    assert arm_of(first, "one").excess == arm_of(second, "one").excess
    assert arm_of(first, "one").hits == arm_of(second, "one").hits


def test_a_horizon_overlaps_the_dates_before_its_end():
    assert overlap([0, 5, 10, 15], 5) == 1
    assert overlap([0, 5, 10, 15], 6) == 2
    assert overlap([0, 5, 10, 15], 20) == 4
    assert overlap([], 20) == 1


def test_what_has_no_prices_is_left_out_and_named():
    days = sessions(10)
    bars = {
        asset: AssetBars(sessions=days, open=(1.0,) * 10, close=(1.0,) * 10) for asset in ASSETS[:3]
    }
    of = outcomes([days[0], days[7]], ASSETS, bars, days, horizon=5)
    assert of.ends == (days[5],)
    assert of.dates == (days[0],)
    assert [(each.on, each.ticker) for each in of.left_out] == [(days[0], "DD"), (days[7], None)]


def test_permuting_the_arms_permutes_the_results():
    arms = {"a": coin(1), "b": coin(2), "c": momentum}
    record = recorded(arms, dates=40)
    turned = record.model_copy(
        update={"study": study_of(("c", "a", "b")), "decided": record.decided[::-1]}
    )
    one, other = score_picks(record), score_picks(turned)
    assert {arm.name: arm for arm in one.arms} == {arm.name: arm for arm in other.arms}
    swapped = {
        (each.measure, each.second, each.first): each.difference for each in other.differences
    }
    for each in one.differences:
        there = next(
            (
                it
                for it in other.differences
                if (it.measure, it.first, it.second) == (each.measure, each.first, each.second)
            ),
            None,
        )
        if there is not None:
            assert there.difference == each.difference
        else:
            back = shown(swapped[each.measure, each.first, each.second])
            assert shown(each.difference).estimate == pytest.approx(-back.estimate)
            assert shown(each.difference).p == pytest.approx(back.p)
    assert set(one.ranks) == set(other.ranks)


def test_who_knows_the_week_to_come_is_convicted_and_the_honest_are_cleared():
    score = score_picks(recorded({"knows": prophet(), "coin": coin(7), "momentum": momentum}))
    assert isinstance(score.canary, Foresight)
    assert score.canary.verdict is LeakVerdict.LEAKS
    verdicts = {arm.name: arm.foresight for arm in score.arms if not arm.control}
    assert verdicts["knows"].verdict is LeakVerdict.LEAKS
    assert verdicts["coin"].verdict is LeakVerdict.CLEAR
    assert verdicts["momentum"].verdict is LeakVerdict.CLEAR
    assert verdicts["knows"].captured == pytest.approx(1.0)


def test_who_always_likes_the_asset_that_did_best_is_not_accused():
    """An opinion that never changes is luck or merit, but nothing seen ahead week by week."""
    record = recorded({"stubborn": lambda _: {"AA": 1.0}})
    rising = AssetBars(
        sessions=record.sessions,
        open=tuple(100 * 1.01**n for n in range(len(record.sessions))),
        close=tuple(100 * 1.01 ** (n + 1) for n in range(len(record.sessions))),
    )
    score = score_picks(record.model_copy(update={"bars": {**record.bars, "AA": rising}}))
    assert arm_of(score, "stubborn").foresight.deviations > 4
    assert arm_of(score, "stubborn").foresight.verdict is LeakVerdict.CLEAR


@pytest.mark.slow
def test_no_coin_among_a_hundred_is_accused():
    for seed in range(100):
        score = score_picks(recorded({"coin": coin(seed)}, dates=30, seed=seed))
        assert arm_of(score, "coin").foresight.verdict is not LeakVerdict.LEAKS


def test_with_too_few_dates_nothing_is_shown_and_it_is_said_how_many_are_needed():
    score = score_picks(recorded({"a": coin(1), "b": coin(2)}, dates=5))
    assert all(isinstance(each.difference, NotShown) for each in score.differences)
    assert score.differences[0].difference.needed == 8
    assert isinstance(score.canary, NotShown)
    assert not score.ranks


def test_a_difference_has_its_resolution():
    score = score_picks(recorded({"knows": prophet(), "coin": coin(5)}))
    each = next(
        it for it in score.differences if it.measure is Measure.EXCESS and it.second == "coin"
    )
    assert shown(each.difference).resolved
    assert shown(each.difference).resolution > 1
    best = {rank.arm: (rank.best, rank.worst) for rank in score.ranks if rank.measure == "excess"}
    assert best["knows"] == (1, 1)
    assert best["coin"] == best[EQUAL_WEIGHT] == (2, 3)


def test_an_arm_that_failed_on_a_date_is_not_compared_there():
    record = recorded({"a": coin(1), "b": coin(2)}, dates=20)
    failed = tuple(
        each.model_copy(update={"ended": False, "weights": {}})
        if each.arm == "a" and each.number < 5
        else each
        for each in record.decided
    )
    score = score_picks(record.model_copy(update={"decided": failed}))
    assert arm_of(score, "a").failed == 5
    assert (
        next(
            shown(it.difference).dates
            for it in score.differences
            if (it.first, it.second, it.measure) == ("a", "b", Measure.EXCESS)
        )
        == 15
    )


def test_a_decision_with_a_fallback_is_left_out_and_counted():
    record = recorded({"a": coin(1), "b": coin(2)}, dates=20)
    given = Substitute(stage="planner", by="rules", why=Why.SETTING)
    fallback = Substitute(stage="trader", by="rules", why=Why.FALLBACK, reason="timed_out")
    fell = tuple(
        each.model_copy(
            update={"ended": False, "weights": {}, "substitutes": (given, fallback)}
            if each.arm == "a" and each.number < 5
            else {"substitutes": (given,)}
        )
        for each in record.decided
    )
    score = score_picks(record.model_copy(update={"decided": fell}))
    arm = arm_of(score, "a")
    assert (arm.decisions, arm.failed, arm.fallbacks) == (15, 0, 5)
    assert (score.failed, score.fallbacks) == (0, 5)
    assert arm.substitutes == (given,), "as it is set: part of what the arm is"


def test_named_less_masked_is_of_the_same_provider_and_models():
    record = recorded({"m": prophet(), "m-masked": coin(4), "other": coin(5)})
    score = score_picks(record)
    (gap,) = score.masked
    assert (gap.named, gap.masked) == ("m", "m-masked")
    assert shown(gap.excess).low > 0
    assert 0 < gap.changed < 1
    assert gap.moved > 0


def test_the_verdict_is_on_a_provider_by_all_of_its_arms():
    record = recorded({"m": prophet(), "m-masked": coin(4), "o": momentum, "o-masked": momentum})
    score = score_picks(record)
    knows, honest = score.leakage
    assert (knows.arms, knows.verdict) == (("m", "m-masked"), LeakVerdict.LEAKS)
    assert (knows.foresight, knows.names) == (LeakVerdict.LEAKS, LeakVerdict.LEAKS)
    assert (honest.arms, honest.verdict) == (("o", "o-masked"), LeakVerdict.CLEAR)
    alone = score_picks(recorded({"m": coin(3)}))
    assert alone.leakage[0].verdict is LeakVerdict.NOT_SHOWN


def guesses(right: int) -> tuple[Guess, ...]:
    """Of four inputs so many are identified; who does not know says nothing."""
    return tuple(
        Guess(
            ticker=asset,
            guessed=asset if place < right else "",
            days_off=[0, 90, 91, None][place],
            industry_right=[True, False, None, None][place],
        )
        for place, asset in enumerate(ASSETS)
    )


def test_a_probe_counts_inputs_that_were_identified_sectors_and_dates():
    record = recorded({"m": coin(1), "m-masked": coin(1)}, dates=30)
    probed = tuple(
        Probed(arm="m-masked", number=number, on=record.sessions[number * 5], guesses=guesses(1))
        for number in range(30)
    )
    (probe,) = score_picks(record.model_copy(update={"probed": probed})).probes
    assert (probe.arm, probe.cells, probe.hits, probe.asked) == ("m-masked", 30, 30, 120)
    assert (probe.industries, probe.industries_asked, probe.dates) == (30, 60, 60)
    assert not probe.blind


def test_who_recognises_masked_inputs_is_not_cleared_by_choosing_alike_without_names():
    record = recorded({"m": momentum, "m-masked": momentum})

    def verdict(right: int) -> LeakVerdict:
        probed = tuple(
            Probed(arm="m-masked", number=n, on=record.sessions[n * 5], guesses=guesses(right))
            for n in range(40)
        )
        (row,) = score_picks(record.model_copy(update={"probed": probed})).leakage
        assert row.blind is (right == 0)
        return row.verdict

    assert verdict(0) is LeakVerdict.CLEAR
    assert verdict(4) is LeakVerdict.NOT_SHOWN


def test_before_and_after_the_knowledge_cutoff_needs_a_cutoff():
    bars_end = sessions(530)
    cutoff = bars_end[260]

    def forgets(place: int) -> Mapping[str, float]:
        return prophet()(place) if place <= 260 else flip(place)

    flip = coin(8)
    record = recorded({"knows": forgets, "other": coin(6)})
    score = score_picks(record.model_copy(update={"cutoffs": {"knows": cutoff, "other": None}}))
    known, unknown = score.cutoffs
    assert shown(known.gap).low > 0
    assert isinstance(unknown.gap, NotShown)
    assert "knowledge_cutoff" in unknown.gap.why


def test_stability_is_over_what_any_sample_bought():
    record = recorded({"a": lambda _: {}}, dates=2)
    bought = ({"AA": 0.2}, {"AA": 0.2}, {"AA": 0.2, "BB": 0.1})
    cells = tuple(
        Decided(arm="a", number=0, sample=sample, on=record.sessions[0], weights=weights)
        for sample, weights in enumerate(bought)
    )
    (row,) = score_picks(record.model_copy(update={"decided": cells})).stability
    assert row.choices == 2
    assert row.agreement == pytest.approx((1 + 2 / 3) / 2)
    assert row.stable == 0.5


def test_confidences_are_scored_as_probabilities():
    random = np.random.default_rng(2)
    record = recorded({"sure": coin(1)}, dates=100)
    stated = tuple(
        each.model_copy(
            update={"stated": {asset: float(random.uniform(0.85, 0.95)) for asset in ASSETS}}
        )
        for each in record.decided
    )
    (row,) = score_picks(record.model_copy(update={"decided": stated})).calibration
    assert shown(row.overconfidence).low > 0.3
    assert row.outcomes == 400
    (none,) = score_picks(record).calibration
    assert "states a confidence" in none.why


def test_confidences_are_paired_where_both_arms_picked_and_state_another_number():
    """Two arms that state one number alike differ in nothing that a loss could show."""

    def of(second: Callable[[int], float]) -> object:
        record = recorded({"a": lambda _: {"AA": 0.5}, "b": lambda _: {"AA": 0.5, "BB": 0.5}})
        stated = tuple(
            each.model_copy(
                update={
                    "stated": {
                        asset: 0.6 if each.arm == "a" else second(each.number)
                        for asset in each.weights
                    }
                }
            )
            for each in record.decided
        )
        score = score_picks(record.model_copy(update={"decided": stated}))
        assert all(row.score > 0 for row in score.calibration), "each has a loss of its own"
        return next(it for it in score.differences if it.measure is Measure.BRIER)

    alike = of(lambda _: 0.6)
    assert (alike.compared, alike.differing) == (100, 0)
    assert isinstance(alike.difference, NotShown)
    assert alike.difference.why == "both state the same confidence in all picks of both"
    apart = of(lambda number: 0.6 if number % 4 else 0.9)
    assert (apart.compared, apart.differing) == (100, 25)
    assert shown(apart.difference).estimate != 0


def test_arms_that_never_pick_the_same_have_no_confidence_to_compare():
    record = recorded({"a": lambda _: {"AA": 0.5}, "b": lambda _: {"BB": 0.5}})
    stated = tuple(
        each.model_copy(update={"stated": dict.fromkeys(each.weights, 0.6)})
        for each in record.decided
    )
    score = score_picks(record.model_copy(update={"decided": stated}))
    pair = next(it for it in score.differences if it.measure is Measure.BRIER)
    assert (pair.compared, pair.differing) == (0, 0)
    assert pair.difference.why == "no pick of both has a stated confidence"


def test_the_same_choices_are_a_result_and_counted():
    score = score_picks(recorded({"a": momentum, "b": momentum}))
    hits, excess = [
        next(
            it
            for it in score.differences
            if it.measure is measure and (it.first, it.second) == ("a", "b")
        )
        for measure in (Measure.HITS, Measure.EXCESS)
    ]
    assert (hits.compared, hits.differing) == (400, 0)
    assert (excess.compared, excess.differing) == (100, 0)
    assert shown(hits.difference).high == shown(excess.difference).low == 0


def test_an_arm_is_shown_beside_the_same_without_an_agent_and_beside_no_other():
    whole = {"name": "whole", "provider": "gpt"}
    arms = [
        whole,
        {**whole, "name": "less", "without": ["quant", "risk"]},
        {**whole, "name": "other", "models": {"large": "x"}},
        {**whole, "name": "masked", "masked": True},
    ]
    record = recorded(
        {name: prophet() for name in ("whole", "other", "masked")} | {"less": momentum}
    )
    study = record.study.model_copy(
        update={"arms": tuple(StudyArm.model_validate(arm) for arm in arms)}
    )

    (gap,) = score_picks(record.model_copy(update={"study": study})).agents

    assert (gap.arm, gap.less, gap.stages) == ("whole", "less", ("quant", "risk"))
    assert 0.2 < gap.changed < 1
    assert gap.hits.resolved


def test_an_arm_without_agents_asks_somebody_else_and_is_no_pair_of_a_whole_masked_one():
    arms = (
        StudyArm(name="less", provider="gpt", without=("risk",)),
        StudyArm(name="masked", provider="gpt", masked=True),
    )
    record = recorded({"less": momentum, "masked": momentum})
    score = score_picks(
        record.model_copy(update={"study": record.study.model_copy(update={"arms": arms})})
    )
    assert (score.masked, score.agents) == ((), ())


@pytest.mark.parametrize("fields", [{"provider": "coin"}, {"without": ["risk", "risk"]}])
def test_only_models_are_left_out_and_each_once(fields):
    arm = {"name": "less", "provider": "gpt", "without": ["risk"], **fields}
    with pytest.raises(ValidationError, match="without: "):
        StudyArm.model_validate(arm)


def test_a_file_without_such_arms_is_the_same_study_as_before():
    assert "without" not in study_of(("a",)).model_dump_json()
