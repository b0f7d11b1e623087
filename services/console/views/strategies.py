"""The strategies that the desk has tried, as people see them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import orjson
from pydantic import ValidationError

from contracts.cycle import CycleStatus
from contracts.http import StrategyDetail
from contracts.strategy_cycle import StrategyDesign
from contracts.strategy_query import (
    CURVE_POINTS_MAX,
    NEAR_MAX,
    AssessmentView,
    BacktestFigures,
    StrategiesPage,
    StrategiesQuery,
    StrategyView,
    TrainingFigures,
    UnknownStrategy,
)
from contracts.strategy_result import BacktestResult, StrategyAssessment, TrainingResult
from contracts.types import Value
from libs.report.strategies.page import page
from libs.runtime.nearest import nearest_few
from services.console.logic import Row, UnreadableRecord, picked
from services.console.sizes import fitting
from services.console.store import Store, sql

CURVES = ("equity", "benchmark")


async def strategies(query: StrategiesQuery, *, store: Store) -> StrategiesPage:
    """The newest strategies, or the newest run of each that is named. Raises `UnreadableRecord` for
    one that is named."""
    if query.names:
        return await _named(query.names, store)
    rows = await store.rows(sql.newest_strategies, query.limit + 1)
    views, unreadable = [], []
    for row in rows[: query.limit]:
        try:
            views.append(strategy_view(row))
        except UnreadableRecord as error:
            unreadable.append(error.name)
    kept = fitting(views)
    return StrategiesPage(
        strategies=tuple(kept),
        more=len(kept) < len(views) or len(rows) > query.limit,
        unreadable=tuple(unreadable),
    )


async def _named(names: Sequence[str], store: Store) -> StrategiesPage:
    rows = {row["name"]: row for row in await store.rows(sql.strategies_named, list(names))}
    kept = fitting(strategy_view(rows[name]) for name in dict.fromkeys(names) if name in rows)
    unknown: list[UnknownStrategy] = []
    if missing := [name for name in dict.fromkeys(names) if name not in rows]:
        known = await store.strategy_names()
        unknown = [
            UnknownStrategy(name=name, near=tuple(nearest_few(name, known, NEAR_MAX)))
            for name in missing
        ]
    return StrategiesPage(
        strategies=tuple(kept), unknown=tuple(unknown), more=len(kept) < len(rows)
    )


async def strategy(name: str, *, store: Store) -> StrategyDetail | None:
    """The newest run of one strategy; None where none has the name. Raises `UnreadableRecord`."""
    row = await store.row(sql.strategy_whole, name)
    if row is None:
        return None
    view = strategy_view(row)
    training = orjson.loads(row["training"]) if row["training"] else {}
    backtest = orjson.loads(row["backtest"]) if row["backtest"] else {}
    with _reading(name):
        return StrategyDetail.model_validate(
            {
                "strategy": view,
                "loss_curve": training.get("loss_curve", ()),
                "folds": training.get("folds", ()),
                "sessions": tuple(picked(backtest.get("sessions", ()), CURVE_POINTS_MAX)),
            }
        )


async def report(name: str, *, store: Store) -> str | None:
    """The strategy's report as its cycle exported it, made from the record; None where there is
    none, or no training to tell of. Raises `UnreadableRecord`."""
    row = await store.row(sql.strategy_whole, name)
    if row is None or row["training"] is None:
        return None
    backtest, judged = row["backtest"], row["assessment"]
    with _reading(name):
        design = StrategyDesign.model_validate_json(row["design"])
        training = TrainingResult.model_validate_json(row["training"])
        tested = BacktestResult.model_validate_json(backtest) if backtest else None
        assessment = StrategyAssessment.model_validate_json(judged) if judged else None
    return page(design, training, tested, assessment)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Reads what is on record of a strategy. Raises `UnreadableRecord`."""
    try:
        yield
    except ValidationError:
        raise UnreadableRecord("strategy", name) from None


class _WholeCurves(BacktestFigures):
    """The figures with the curves as they are on record: a point for each session."""

    equity: tuple[float, ...]
    benchmark: tuple[float, ...]


class _Outputs(Value):
    """The results of the steps of a strategy's run so far, as a row has them."""

    design: StrategyDesign
    training: TrainingFigures | None
    backtest: _WholeCurves | None
    assessment: AssessmentView | None


def strategy_view(row: Row) -> StrategyView:
    """One strategy as the statements read it. Raises `UnreadableRecord`."""
    results = {
        name: orjson.loads(row[name]) if row[name] else None for name in _Outputs.model_fields
    }
    with _reading(row["name"]):
        outputs = _Outputs.model_validate(results, extra="ignore")
    spec = outputs.design.spec
    ended, reason = _end(row, outputs)
    return StrategyView(
        name=spec.name,
        **{name: row[name] for name in ("cycle_id", "as_of", "designed_at", "runs")},
        path=outputs.design.path,
        hypothesis=spec.hypothesis,
        universe=spec.universe,
        features=tuple(feature.key for feature in spec.features),
        model=spec.model.kind,
        horizon_bars=spec.label.horizon_bars,
        train=spec.train,
        held_out=spec.held_out,
        ended=ended,
        reason=reason,
        training=outputs.training,
        backtest=_thinned(outputs.backtest) if outputs.backtest else None,
        assessment=outputs.assessment,
    )


def _thinned(backtest: _WholeCurves) -> BacktestFigures:
    few = {name: tuple(picked(getattr(backtest, name), CURVE_POINTS_MAX)) for name in CURVES}
    return BacktestFigures(**backtest.model_dump() | few)


def _end(row: Row, outputs: _Outputs) -> tuple[str, str]:
    """How far it came, and why no further: a gate's reason, else its cycle's."""
    if outputs.assessment:
        return "assessed", ""
    for name, figures in (("backtest", outputs.backtest), ("training", outputs.training)):
        if figures and figures.gate and not figures.gate.passed:
            return f"{name}_gate", figures.gate.reason
    if row["status"] in {CycleStatus.RUNNING, CycleStatus.CANCELLED}:
        return row["status"], row["reason"] or ""
    return "failed", row["reason"] or ""
