"""The score of a study of accounts: money beside controls."""

from datetime import date, timedelta

import numpy as np
import pytest

from contracts.study import Study, StudyArm, StudyDates, StudyKind
from contracts.study_score import (
    RATIO_SESSIONS_LEAST,
    ConfigurationKind,
    Equity,
    NotShown,
    OverfittingScore,
    StudyScore,
)
from libs.study.statistics.path import EQUAL_WEIGHT, HOLD, score_path
from libs.study.statistics.record import AccountEquity, AssetBars, Decided, StudyRecord, Tried


def path(count: int, curves: dict[tuple[str, int], list[float]], **fields: object) -> StudyScore:
    days = tuple(date(2010, 1, 4) + timedelta(days=number) for number in range(count))
    up = AssetBars(
        sessions=days,
        open=tuple(100 * 1.01**n for n in range(count)),
        close=tuple(100 * 1.01**n for n in range(count)),
    )
    flat = AssetBars(sessions=days, open=(50.0,) * count, close=(50.0,) * count)
    names = sorted({arm for arm, _ in curves})
    record = StudyRecord(
        study=Study(
            name="it",
            kind=StudyKind.PATH,
            dates=StudyDates(first=days[0], last=days[-1]),
            universe=("AA", "BB"),
            arms=tuple(StudyArm(name=name, models={"large": name}) for name in names),
        ),
        horizon=5,
        cost_bps=10,
        benchmark="candidates",
        sessions=days,
        bars={"AA": up, "BB": flat},
        decided=tuple(
            Decided(arm=arm, number=0, sample=sample, on=days[0], tokens=900, cost_usd=0.3)
            for arm, sample in curves
        ),
        accounts=tuple(
            AccountEquity(arm=arm, sample=sample, sessions=days, worth=tuple(curve))
            for (arm, sample), curve in curves.items()
        ),
    )
    return score_path(record.model_copy(update=fields))


def test_the_controls_are_the_universe_held_and_in_equal_parts():
    score = path(3, {("a", 0): [1.0, 1.0, 1.2]})
    rows = {row.name: row for row in score.equity}
    held = (1.01**2 + 1) / 2 * (1 - 0.001) - 1
    assert rows[HOLD].total_return == pytest.approx(held)
    assert rows[EQUAL_WEIGHT].total_return == pytest.approx(1.005**2 - 1)
    assert rows["a"].total_return == pytest.approx(0.2)
    assert rows["a"].tokens_decision == 900
    assert rows["a"].usd_bp == pytest.approx(0.3 / ((0.2 - held) * 10_000))
    assert [row.control for row in score.equity] == [False, True, True]


def test_drawdown_and_ratio_are_of_the_accounts_own_curve():
    score = path(4, {("a", 0): [1.0, 1.2, 0.9, 1.0]})
    row = score.equity[0]
    returns = np.array([0.2, -0.25, 1 / 0.9 - 1])
    assert row.drawdown == pytest.approx(0.25)
    assert row.sharpe == pytest.approx(returns.mean() / returns.std(ddof=1) * 252**0.5)


def test_of_many_without_skill_the_best_one_is_deflated_and_overfitting_is_a_half():
    random = np.random.default_rng(4)
    curves = {
        (f"a{n}", 0): list(np.cumprod(np.concatenate([[1.0], 1 + random.normal(0, 0.01, 399)])))
        for n in range(8)
    }
    score = path(400, curves)
    best = max((row for row in score.equity if row.arm), key=lambda row: row.sharpe)
    assert best.deflated_sharpe < 0.9
    assert isinstance(score.overfitting, OverfittingScore)
    assert score.overfitting.configurations == 8
    assert 0.2 < score.overfitting.probability < 0.9


def test_a_short_path_says_what_it_does_not_show():
    score = path(4, {("a", 0): [1.0, 1.2, 0.9, 1.0]})
    assert isinstance(score.overfitting, NotShown)
    assert "needs 48 of 2" in score.overfitting.why
    none = path(2, {("a", 0): [1.0, 1.1]})
    assert not none.equity
    assert "sessions in common" in none.message


def walk(count: int, seed: int = 6) -> list[float]:
    random = np.random.default_rng(seed)
    return list(np.cumprod(np.concatenate([[1.0], 1 + random.normal(0.001, 0.01, count - 1)])))


def test_a_ratio_has_an_interval_and_a_verdict_from_so_many_sessions_and_two_configurations_on():
    few, enough = RATIO_SESSIONS_LEAST, RATIO_SESSIONS_LEAST + 1

    def row(count: int, *others: list[float]) -> Equity:
        return path(
            count, {(f"a{n}", 0): it for n, it in enumerate([walk(count), *others])}
        ).equity[0]

    short = row(few, walk(few, 7))
    assert short.sharpe is not None
    assert (short.sharpe_low, short.deflated_sharpe, short.sessions_needed) == (None, None, None)
    alone = row(enough)
    assert alone.sharpe_low < alone.sharpe < alone.sharpe_high
    assert alone.deflated_sharpe is None
    assert row(enough, walk(enough, 7)).deflated_sharpe is not None


def test_an_account_of_less_than_a_year_has_no_return_a_year():
    assert path(252, {("a", 0): walk(252)}).equity[0].annual_return is None
    assert path(253, {("a", 0): walk(253)}).equity[0].annual_return is not None


def test_what_other_studies_tried_counts_and_is_in_the_report():
    tried = tuple(
        Tried(kind=ConfigurationKind.PATH, source="older", worth=tuple(walk(300, seed)))
        for seed in range(20, 40)
    )
    curves = {("a", 0): walk(300, 7), ("b", 0): walk(300, 8)}
    alone, among = path(300, curves), path(300, curves, tried=tried)

    assert [(it.kind.value, it.count) for it in among.configurations] == [("own", 2), ("path", 20)]
    assert isinstance(among.overfitting, OverfittingScore)
    assert among.overfitting.configurations == 22
    for before, after in zip(alone.equity[:2], among.equity[:2], strict=True):
        assert after.deflated_sharpe < before.deflated_sharpe
