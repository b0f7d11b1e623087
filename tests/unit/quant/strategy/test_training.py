"""Training: labels, folds and models that see nothing of what comes later."""

import subprocess
import sys
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from contracts.strategy import FoldSpec, LabelSpec, MlpSpec, Period, StrategySpec
from libs.quant.strategy import fitting, models, training
from libs.quant.strategy.folds import TooShortForFolds, folds
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.training import CannotTrain, labels, places, train
from tests.unit.quant.strategy import panels

pytestmark = pytest.mark.slow

START = date(2003, 1, 1)
MODELS: dict[str, dict[str, Any]] = {
    "mlp": {"kind": "mlp", "hidden": [6, 4], "epochs": 8},
    "tanh": {"kind": "mlp", "hidden": [5], "activation": "tanh", "epochs": 5},
    "logistic": {"kind": "logistic"},
    "gradient_boosting": {"kind": "gradient_boosting", "trees": 12},
}


def spec(**changes: Any) -> StrategySpec:
    given: dict[str, Any] = {
        "name": "tried",
        "hypothesis": "Yesterday knows something.",
        "universe": ["T0", "T1"],
        "features": [
            {"indicator": "return", "parameters": {"bars": 1}},
            {"indicator": "sma_distance", "parameters": {"bars": 10}},
        ],
        "label": {"horizon_bars": 3},
        "model": MODELS["logistic"],
        "entry": {"long": [{"of": "probability", "above": 0.5}]},
        "exit": {"hold_bars_max": 3},
        "train": {"first": START, "last": START + timedelta(days=449)},
        "held_out": {"first": START + timedelta(days=450), "last": START + timedelta(days=599)},
        "folds": {"count": 3, "embargo_bars": 2},
    }
    return StrategySpec.model_validate(given | changes)


@pytest.fixture(scope="module")
def prices() -> Panel:
    return panels.walk(21, 2, 600)


def changed_after(prices: Panel, place: int) -> Panel:
    other = panels.walk(99, 2, 600)
    rows = {}
    for name in ("open", "high", "low", "close", "volume"):
        rows[name] = getattr(prices, name).copy()
        rows[name][:, place:] = getattr(other, name)[:, place:]
    return Panel(prices.tickers, prices.sessions, **rows)


# Labels.


def test_a_label_is_the_return_from_the_next_open_over_the_horizon():
    found = labels(panels.of([10, 10, 11, 9, 12, 12]), LabelSpec(horizon_bars=2))
    # Close 0: open 1 to open 3, 10 to 9. Close 1: 11 to 12. Close 2: 9 to 12.
    assert found[0].tolist()[:3] == [0.0, 1.0, 1.0]
    assert np.isnan(found[0, 3:]).all()


def test_a_label_needs_more_than_the_least_return():
    prices = panels.of([10, 10, 11, 11, 11])
    for least, wanted in ((9.9, 1.0), (10.1, 0.0)):
        found = labels(prices, LabelSpec(horizon_bars=1, return_pct_min=least))
        assert found[0, 0] == wanted


def test_prices_too_few_for_the_horizon_have_no_label():
    assert np.isnan(labels(panels.of([10, 10, 10]), LabelSpec(horizon_bars=5))).all()


# Folds.


def test_no_training_label_reaches_into_the_test_nor_the_embargo():
    horizon, embargo = 4, 3
    for fold in folds(10, 310, horizon, FoldSpec(count=5, embargo_bars=embargo)):
        last_trained = fold.train_end - 1
        last_read = last_trained + 1 + horizon  # the open at which the label's horizon ends
        assert last_read + embargo < fold.test
        assert fold.train_end + 1 + horizon + embargo == fold.test, "and no session more is lost"


def test_the_tests_follow_one_another_to_the_end():
    cut = folds(10, 311, 1, FoldSpec(count=5, embargo_bars=0))
    assert [fold.first for fold in cut] == [10] * 5
    assert cut[-1].end == 311
    assert all(one.end == other.test for one, other in pairwise(cut))
    assert {fold.end - fold.test for fold in cut} == {50}


@pytest.mark.parametrize(("sessions", "enough"), [(54, True), (53, False)])
def test_a_period_too_short_for_its_folds_is_refused(sessions: int, enough: bool):
    spec = FoldSpec(count=5, embargo_bars=5)
    if enough:
        assert len(folds(0, sessions, 2, spec)) == 5
        return
    with pytest.raises(TooShortForFolds, match="folds: 53 sessions") as caught:
        folds(0, sessions, 2, spec)
    assert caught.value.field == "folds"


# Periods against the data.


@pytest.mark.parametrize(
    ("first", "last", "field"),
    [
        (START - timedelta(days=8), START + timedelta(days=99), "train.first"),
        (START, START + timedelta(days=607), "train.last"),
    ],
)
def test_a_period_outside_the_data_is_named(prices: Panel, first: date, last: date, field: str):
    with pytest.raises(CannotTrain) as caught:
        places(Period(first=first, last=last), prices, "train")
    assert caught.value.field == field


def test_a_period_may_begin_and_end_beside_the_data(prices: Panel):
    edge = Period(first=START - timedelta(days=7), last=START + timedelta(days=606))
    assert prices.sessions[-1].astype(object) + timedelta(days=7) == edge.last
    assert places(edge, prices, "train") == (0, 600)


# What training knows.


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_nothing_after_the_training_period_changes_the_model(prices: Panel, model: Any):
    one, other = (train(spec(model=model), each) for each in (prices, changed_after(prices, 450)))
    assert models.to_bytes(one.model) == models.to_bytes(other.model)
    assert one.data_sha256 == other.data_sha256
    assert one.folds == other.folds


def test_the_last_day_of_the_training_period_does_count(prices: Panel):
    one, other = (train(spec(), each) for each in (prices, changed_after(prices, 449)))
    assert one.data_sha256 != other.data_sha256
    assert models.to_bytes(one.model) != models.to_bytes(other.model)


def test_a_fold_is_scaled_and_trained_by_what_came_before_it(prices: Panel):
    one, other = (train(spec(), each) for each in (prices, changed_after(prices, 300)))
    first, *_, last = zip(one.folds, other.folds, strict=True)
    assert first[0].test[1] < START + timedelta(days=290)
    assert first[0] == first[1]
    assert last[0] != last[1]


def test_the_same_spec_and_prices_give_the_same_model(prices: Panel):
    for model in MODELS.values():
        one, other = (train(spec(model=model), prices) for _ in range(2))
        assert models.to_bytes(one.model) == models.to_bytes(other.model)


def test_another_seed_gives_another_perceptron(prices: Panel):
    one, other = (train(spec(model=MODELS["mlp"], seed=seed), prices) for seed in (1, 2))
    assert models.to_bytes(one.model) != models.to_bytes(other.model)


# What it says.


def test_something_to_learn_is_learned_and_noise_is_not():
    rng = np.random.default_rng(5)
    steps = np.zeros((2, 600))
    for at in range(1, 600):
        steps[:, at] = 0.6 * steps[:, at - 1] + rng.normal(0, 0.01, 2)
    trending = panels.of(50 * np.exp(np.cumsum(steps, axis=1)))
    found = train(spec(label={"horizon_bars": 1}), trending)
    assert found.mean("accuracy") > found.mean("base_rate") + 0.1
    assert found.mean("log_loss") < found.mean("base_log_loss")

    noise = train(spec(label={"horizon_bars": 1}), panels.walk(3, 2, 600))
    assert abs(noise.mean("accuracy") - noise.mean("base_rate")) < 0.08


def test_the_figures_of_a_fold_are_those_by_hand(prices: Panel):
    found = train(spec(), prices).folds[-1]
    first, last = (int((day - START).days) for day in found.test)
    came = labels(prices.cut(0, 450), LabelSpec(horizon_bars=3))[:, first : last + 1]
    assert found.test_rows == came.size
    trained_on = labels(prices.cut(0, 450), LabelSpec(horizon_bars=3))
    before = trained_on[:, (found.train[0] - START).days : (found.train[1] - START).days + 1]
    assert found.train_rows == before.size
    more_often = float(before.mean() > 0.5)
    assert found.base_rate == pytest.approx((came == more_often).mean())
    assert found.base_log_loss == pytest.approx(
        -(came * np.log(before.mean()) + (1 - came) * np.log(1 - before.mean())).mean()
    )


@pytest.mark.parametrize("name", ["logistic", "gradient_boosting"])
def test_the_first_loss_of_logistic_and_boosting_is_the_base_rates(prices: Panel, name: str):
    found = train(spec(model=MODELS[name]), prices)
    known = labels(prices.cut(0, 450), LabelSpec(horizon_bars=3))[:, 10:]
    share = np.nanmean(known)
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert found.loss_curve[0] == pytest.approx(entropy, rel=1e-3)
    assert found.loss_curve[-1] < found.loss_curve[0]


def test_the_losses_of_a_perceptron_are_those_of_its_epochs(prices: Panel):
    found = train(spec(model=MODELS["mlp"]), prices)
    assert len(found.loss_curve) == 8
    assert found.loss_curve[-1] < found.loss_curve[0]


def test_progress_rises_to_the_end_and_says_what_is_done(prices: Panel):
    told: list[tuple[float, str]] = []
    train(spec(model=MODELS["mlp"]), prices, lambda part, step: told.append((part, step)))
    parts = [part for part, _ in told]
    assert parts == sorted(parts)
    assert parts[-1] == 1
    assert len(parts) == 4 * 8
    assert {step for _, step in told} == {
        *(f"fold {number} of 3" for number in (1, 2, 3)),
        "the final fit",
    }


class Stopped(Exception):
    """What a caller raises to end a training."""


@pytest.mark.parametrize("name", MODELS)
def test_what_the_callback_raises_ends_the_training(prices: Panel, name: str):
    def stop(part: float, step: str) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        train(spec(model=MODELS[name]), prices, stop)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"label": {"return_pct_min": 50}}, "label"),
        ({"features": [{"indicator": "rsi", "parameters": {"bars": 50}}]}, "train"),
        ({"folds": {"count": 20, "embargo_bars": 100}}, "folds"),
    ],
)
def test_a_spec_that_the_prices_do_not_allow_is_named(prices: Panel, changes: Any, field: Any):
    with pytest.raises((CannotTrain, TooShortForFolds)) as caught:
        train(spec(**changes), prices)
    assert caught.value.field == field


def test_a_perceptron_whose_weights_grow_without_end_is_told_and_not_kept():
    rows = np.sign(np.random.default_rng(1).normal(size=(50, 2))) * 1.7e308
    wanted = (rows[:, 0] > 0).astype(np.int64)
    model = MlpSpec(learning_rate=1.0, epochs=50, l2=100)
    with pytest.raises(fitting.Diverged, match="use a smaller rate") as caught:
        fitting.fit(model, rows, wanted, 0, lambda _: None)
    assert caught.value.field == "model.learning_rate"


# Models that are kept.


@pytest.mark.parametrize("name", MODELS)
def test_our_prediction_is_scikit_learns_to_1e_12(name: str, monkeypatch: pytest.MonkeyPatch):
    """scikit-learn's own object is caught as the fit begins, and asked the same."""
    caught: list[Any] = []

    def catching(made: Any) -> Any:
        def fit(self: Any, *args: Any, **more: Any) -> Any:
            caught.append(self)
            return made(self, *args, **more)

        return fit

    from sklearn import ensemble, linear_model, neural_network  # noqa: PLC0415 - two seconds

    mlp = neural_network.MLPClassifier
    for kind in (ensemble.GradientBoostingClassifier, linear_model.LogisticRegression, mlp):
        way = "partial_fit" if kind is mlp else "fit"
        monkeypatch.setattr(kind, way, catching(getattr(kind, way)))
    rng = np.random.default_rng(17)
    rows = rng.normal(size=(400, 5))
    wanted = (rows[:, 0] + 0.5 * rows[:, 1] ** 2 + rng.normal(size=400) > 0.5).astype(np.int64)
    fitted = fitting.fit(spec(model=MODELS[name]).model, rows, wanted, 3, lambda _: None)
    ours = fitted.predictor.probability(rows)
    theirs = caught[-1].predict_proba(rows)[:, 1]
    assert np.abs(ours - theirs).max() < 1e-12
    if name != "tanh":
        assert fitted.loss_curve[-1] == pytest.approx(fitting.log_loss(wanted, ours), rel=0.15)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_from_its_bytes_as_it_was(prices: Panel, name: str):
    model = train(spec(model=MODELS[name]), prices).model
    kept = models.to_bytes(model)
    again = models.from_bytes(kept, models.sha256(kept))
    readings = {each: np.random.default_rng(1).normal(size=(2, 50)) for each in model.features}
    assert np.array_equal(again.probability(readings), model.probability(readings))
    assert models.to_bytes(again) == kept


def test_where_a_reading_is_not_known_there_is_no_probability(prices: Panel):
    model = train(spec(), prices).model
    readings = {each: np.zeros((2, 4)) for each in model.features}
    readings[model.features[1]][1, 2] = np.nan
    found = model.probability(readings)
    assert np.isnan(found[1, 2])
    assert np.isfinite(np.delete(found.ravel(), 6)).all()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda kept: kept.replace(b'"format":1', b'"format":2'), "format 2"),
        (lambda kept: kept.replace(b'"kind":"layers"', b'"kind":"pickle"'), "unknown kind"),
        (lambda kept: kept[:-5], "not a model"),
        (lambda kept: b"cos\nsystem\n(S'echo'\ntR.", "not a model"),
        (lambda kept: b"{}", "not a model"),
        (lambda kept: kept + b" " * models.MODEL_BYTES_MAX, "is the most"),
    ],
)
def test_bytes_that_are_not_a_model_are_refused(prices: Panel, damage: Any, words: str):
    kept = damage(models.to_bytes(train(spec(), prices).model))
    with pytest.raises(models.BadModel, match=words):
        models.from_bytes(kept)


def test_another_model_than_the_one_wanted_is_refused(prices: Panel):
    kept = models.to_bytes(train(spec(), prices).model)
    with pytest.raises(models.BadModel, match="wanted was"):
        models.from_bytes(kept, "0" * 64)


def test_the_largest_models_that_a_spec_can_ask_for_can_be_kept():
    rng = np.random.default_rng(0)
    sizes = (32, 256, 256, 256, 1)
    layers = models.Layers(
        tuple(rng.normal(size=pair) for pair in pairwise(sizes)),
        tuple(rng.normal(size=size) for size in sizes[1:]),
    )
    nodes = 2**7 - 1
    tree = models.Tree(
        *(rng.integers(0, nodes, nodes) for _ in range(3)), *rng.normal(size=(2, nodes))
    )
    for predictor in (layers, models.Trees(0.0, 0.1, (tree,) * 300)):
        model = models.Model(("a",) * 32, np.zeros(32), np.ones(32), predictor)
        assert len(models.to_bytes(model)) < models.MODEL_BYTES_MAX


def test_scikit_learn_is_imported_only_to_fit():
    program = (
        "import sys;"
        "from libs.quant.strategy import backtest, models, training;"
        "sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert training.EVEN == 0.5
