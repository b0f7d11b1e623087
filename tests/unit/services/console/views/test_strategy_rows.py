"""A strategy as its rows have it: a later version's is told as one, a defect of ours is not."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from contracts.message import Contract
from contracts.strategy_query import CURVE_POINTS_MAX
from services.console.logic import UnreadableRecord
from services.console.views import strategies, strategy
from tests.unit.services.strategy_results import backtest, design

CYCLE = UUID(int=1)


def row(**changes: Any) -> dict[str, Any]:
    """A run that came to its backtest, as the statement reads it."""
    return {
        "name": design().spec.name,
        "cycle_id": CYCLE,
        "as_of": date(2012, 6, 29),
        "designed_at": datetime(2026, 11, 22, tzinfo=UTC),
        "status": "completed",
        "reason": None,
        "runs": 1,
        "design": body(design()),
        "training": None,
        "backtest": body(backtest()),
        "assessment": None,
        **changes,
    }


def body(contract: Contract) -> bytes:
    return contract.model_dump_json().encode()


def changed(contract: Contract, **fields: Any) -> bytes:
    return orjson.dumps(contract.model_dump(mode="json") | fields)


def test_both_curves_have_the_same_few_points_and_the_first_and_the_last_of_all() -> None:
    whole = tuple(float(point) for point in range(200))
    days = tuple(date(2012, 1, 1) + timedelta(days=number) for number in range(200))
    long = backtest(sessions=days, equity=whole, benchmark=whole[::-1])

    figures = strategies.strategy_view(row(backtest=body(long))).backtest

    assert figures is not None
    assert (figures.equity[0], figures.equity[-1]) == (whole[0], whole[-1])
    assert len(figures.benchmark) == len(figures.equity) == CURVE_POINTS_MAX


@pytest.mark.parametrize(
    "later",
    [
        {"design": b"{}"},
        {"design": changed(design(), spec=None)},
        {"backtest": changed(backtest(), equity=None)},
        {"backtest": changed(backtest(), gate={"of": "a later version"})},
        {"assessment": b'{"verdict": "of a later version"}'},
    ],
)
def test_a_later_versions_is_named(later: dict[str, bytes]) -> None:
    with pytest.raises(UnreadableRecord, match=design().spec.name):
        strategies.strategy_view(row(**later))


def test_what_a_later_version_added_is_left_out() -> None:
    view = strategies.strategy_view(row(design=changed(design(), added="of a later version")))

    assert view.path == design().path


@pytest.mark.parametrize("defect", [KeyError("ours"), TypeError("ours")])
def test_a_defect_of_ours_is_not_told_as_a_later_versions(
    defect: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise defect

    monkeypatch.setattr(strategies, "picked", fail)
    monkeypatch.setattr(strategy, "_written", fail)

    with pytest.raises(type(defect), match="ours"):
        strategies.strategy_view(row())
    with pytest.raises(type(defect), match="ours"):
        strategy._results({"design": {"result": body(design())}})
