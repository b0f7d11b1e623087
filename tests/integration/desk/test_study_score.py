"""Studies scored on the shared desk: from the record alone, each figure with its cycles."""

from datetime import date
from decimal import Decimal

import pytest

from tests.integration.desk.caller import Caller
from tests.integration.desk.conftest import Desk
from tests.integration.desk.test_study import begun, ended, study

DATES = {"first": "2011-01-03", "last": "2012-06-29", "count": 10}
SCORE_S = 90.0
"""Statistics, and the packages for them, on a busy machine."""
ARMS = [{"name": "rules"}, {"name": "blind", "masked": True}]


async def test_a_study_is_scored_from_the_record_and_costs_nothing(
    desk: Desk, user: Caller
) -> None:
    file = study(dates=DATES, arms=ARMS)
    await begun(user, file)
    await ended(user, file["name"])
    async with desk.postgres() as db:
        before = await db.fetchval("select count(*) from operations")

    score = await user.query("study_score", "study", within_s=SCORE_S, name=file["name"])
    later = await user.query(
        "study_score", "study", within_s=SCORE_S, name=file["name"], horizon=20, cost_bps=50
    )

    assert (score["status"], score["cells"], score["dates"]) == ("completed", 10, 10)
    assert (score["decided"], score["failed"]) == (20, 0)
    assert (score["horizon"], later["horizon"], later["cost_bps"]) == (5, 20, 50)
    rules, blind, equal = score["arms"]
    assert rules["excess"] == blind["excess"]
    assert equal["excess"]["estimate"] == pytest.approx(0, abs=1e-12)
    (gap,) = score["masked"]
    assert (gap["changed"], gap["moved"]) == (0, 0)
    assert "dates" in score["canary"]
    assert len(score["audit"]) == 13
    async with desk.postgres() as db:
        assert await db.fetchval("select count(*) from operations") == before


async def test_a_figures_cells_are_cycles_whose_decisions_they_show(user: Caller) -> None:
    file = study(dates=DATES)
    await begun(user, file)
    await ended(user, file["name"])

    first = await user.query("study_cells", "study", name=file["name"], arm="rules", limit=4)
    rest = await user.query("study_cells", "study", name=file["name"], arm="rules", skip=4)
    on = await user.query("study_cells", "study", name=file["name"], on=first["cells"][2]["on"])

    assert (len(first["cells"]), first["more"], len(rest["cells"]), rest["more"]) == (
        4,
        True,
        6,
        False,
    )
    assert [cell["number"] for cell in on["cells"]] == [2]
    for cell in first["cells"]:
        view = await user.query("cycle", cycle_id=cell["cycle_id"])
        (pipeline,) = view["pipelines"]
        equity = Decimal(pipeline["contracts"]["portfolio"]["equity"]["amount"])
        bought = {
            each["asset"]: float(
                Decimal(each["quantity"]) * Decimal(each["price"]["amount"]) / equity
            )
            for each in pipeline["contracts"]["decision_validation"]["decisions"]
            if each["action"] == "buy"
        }
        assert view["as_of"] == cell["on"]
        assert cell["weights"] == pytest.approx(bought)


async def test_a_path_has_equity_beside_its_controls(user: Caller) -> None:
    days = {"first": "2012-05-01", "last": "2012-06-29", "every": 10}
    file = study(kind="path", dates=days, arms=ARMS)
    await begun(user, file)
    await ended(user, file["name"])

    score = await user.query("study_score", "study", within_s=SCORE_S, name=file["name"])

    rows = {row["name"]: row for row in score["equity"]}
    assert set(rows) == {"rules 0", "blind 0", "hold", "equal weight"}
    assert rows["rules 0"]["total_return"] == rows["blind 0"]["total_return"]
    assert rows["hold"]["total_return"] < 0  # May 2012
    assert score["differences"] == []
    assert score["first"] == "2012-05-01"
    assert date.fromisoformat(score["last"]) <= date(2012, 6, 29)


async def test_a_study_that_there_is_not_is_answered_with_those_that_there_are(
    user: Caller,
) -> None:
    file = study(dates=DATES)
    await begun(user, file)
    score = await user.query("study_score", "study", within_s=SCORE_S, name="nobody")
    assert not score["found"]
    assert file["name"] in score["studies"]
    assert not (await user.query("study_cells", "study", name="nobody"))["found"]
    await ended(user, file["name"])
