"""The cells of a study: the same file gives the same cells, spread over the whole stretch."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from contracts.study import Study
from libs.study.statistics.design import (
    CellCosts,
    DesignError,
    cells_of,
    dates_of,
    key_of,
    request_of,
    seed_of,
)

SESSIONS = [
    day
    for number in range(400)
    if (day := date(2010, 1, 1) + timedelta(days=number)).isoweekday() <= 5
]


def study(**fields: Any) -> Study:
    return Study.model_validate(
        {
            "name": "it",
            "dates": {"first": "2010-01-01", "last": "2010-12-31", "count": 20},
            "universe": ["AAPL", "IBM"],
            "arms": [{"name": "rules"}, {"name": "hidden", "masked": True}],
            **fields,
        }
    )


def test_dates_are_drawn_one_from_each_equal_stretch() -> None:
    dates = dates_of(study(), SESSIONS)

    within = [day for day in SESSIONS if day.year == 2010]
    places = [within.index(day) * 20 // len(within) for day in dates]
    assert len(dates) == 20
    assert [*dates] == sorted(set(dates))
    assert all(abs(place - number) <= 1 for number, place in enumerate(places))
    assert dates_of(study(), SESSIONS) == dates
    assert dates_of(study(seed=7), SESSIONS) != dates


def test_drawn_dates_are_as_far_apart_as_their_horizons_are_long() -> None:
    for seed in range(20):
        apart = study(seed=seed, dates={"first": "2010-01-01", "last": "2011-01-31", "count": 12})
        places = [SESSIONS.index(day) for day in dates_of(apart, SESSIONS)]
        assert min(b - a for a, b in pairwise(places)) >= 20


def test_listed_dates_are_taken_as_they_are_and_a_day_off_is_named() -> None:
    listed = {"sessions": ["2010-03-01", "2010-04-01"]}

    assert dates_of(study(dates=listed), SESSIONS) == (date(2010, 3, 1), date(2010, 4, 1))
    with pytest.raises(DesignError, match="2010-03-06 is no session"):
        dates_of(study(dates={"sessions": ["2010-03-06"]}), SESSIONS)


def test_a_path_checks_its_exits_at_each_session_and_decides_at_every_nth() -> None:
    path = study(kind="path", dates={"first": "2010-01-01", "last": "2010-01-08", "every": 2})

    cells = cells_of(path, dates_of(path, SESSIONS))

    assert [(cell.number, cell.kind) for cell in cells] == [
        (0, "decision"),
        (1, "exit"),
        (2, "exit"),
        (2, "decision"),
        (3, "exit"),
        (4, "exit"),
        (4, "decision"),
        (5, "exit"),
    ]


def test_every_cell_has_a_key_an_account_and_a_seed_of_its_own() -> None:
    wanted = study(samples=3)
    cells = cells_of(wanted, dates_of(wanted, SESSIONS))
    requests = [request_of(wanted, cell) for cell in cells]

    assert len({key_of("it", cell) for cell in cells}) == len(cells) == 60
    assert len({seed_of(wanted, cell) for cell in cells}) == 60
    accounts = [p.account for request in requests for p in request.pipelines]
    assert len(set(accounts)) == 120
    assert max(map(len, accounts)) <= 40


def test_a_path_keeps_the_accounts_of_its_arms() -> None:
    path = study(kind="path", samples=2, dates={"first": "2010-01-01", "last": "2010-02-01"})
    cells = cells_of(path, dates_of(path, SESSIONS))

    accounts = {p.account for cell in cells for p in request_of(path, cell).pipelines}

    assert len(accounts) == 4


def test_a_session_that_another_study_samples_too_is_put_to_models_in_the_same_words() -> None:
    one, other = study(), study(name="other", cost_bps=3)
    cells = cells_of(one, dates_of(one, SESSIONS))

    assert [seed_of(one, cell) for cell in cells] == [seed_of(other, cell) for cell in cells]


@pytest.mark.parametrize(
    ("spent", "left"), [("0", "1"), ("0.00018515", "0.999814"), ("1.00000001", "0")]
)
def test_a_cell_that_is_tried_again_may_cost_what_it_has_left_to_a_millionth(
    spent: str, left: str
) -> None:
    wanted = study()
    cell = cells_of(wanted, dates_of(wanted, SESSIONS))[0]

    request = request_of(wanted, cell, round_=2, spent=CellCosts(10, Decimal(spent)))

    assert request.budgets.cost_usd == Decimal(left)


def test_the_budget_may_grow_and_nothing_else_may_change() -> None:
    assert study().sha256 == study(budget={"cost_usd": "99"}).sha256
    assert study().sha256 != study(seed=1).sha256


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"budget": {"cost_usd": "0.5"}}, "cannot pay one cell"),
        ({"dates": {"first": "2010-02-01", "last": "2010-01-01"}}, "first is after last"),
        ({"dates": {"sessions": ["2010-04-01", "2010-03-01"]}}, "the earliest first"),
        ({"dates": {}}, "give first and last"),
        (
            {"arms": [{"name": "a"}, {"name": "b"}]},
            "a and b ask the same, both provider rules: give",
        ),
        ({"arms": [{"name": "a"}, {"name": "a", "masked": True}]}, "same name"),
        ({"universe": ["IBM", "IBM"]}, "named twice"),
        ({"universe": ["IBM"]}, "at least 2"),
        ({"horizons": [0]}, "greater than or equal to 1"),
        ({"sample": 3}, "Extra inputs"),
    ],
)
def test_a_file_that_is_no_study_is_refused_with_its_reason(fields: Any, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        study(**fields)


MODEL = {"name": "gpt", "provider": "openai"}
BLIND = {"name": "blind", "provider": "openai", "masked": True}


def test_probes_are_cells_of_their_own_at_dates_equally_far_apart() -> None:
    probed = study(arms=[MODEL, BLIND, {"name": "rules"}], probe=4, samples=2)

    cells = cells_of(probed, dates_of(probed, SESSIONS))

    asked = [cell for cell in cells if cell.kind == "probe"]
    assert [(cell.number, cell.sample) for cell in asked] == [(0, 0), (5, 0), (10, 0), (15, 0)]
    assert len(cells) == 20 * 2 + 4
    request = request_of(probed, asked[1])
    decision = next(cell for cell in cells if cell.number == 5)
    assert (request.kind, key_of("it", asked[1])) == ("probe", "it/probe/5/0")
    assert [pipeline.name for pipeline in request.pipelines] == ["blind"]
    assert request.pipelines[0] == request_of(probed, decision).pipelines[1], "the same codes"


def test_without_probes_a_study_is_the_one_that_it_was_before_there_were_any() -> None:
    assert "probe" not in study().model_dump_json()
    assert study(probe=0).sha256 == study().sha256


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"arms": [MODEL]}, "no arm is a masked model's"),
        ({"arms": [MODEL, {"name": "hidden", "masked": True}]}, "no arm is a masked model's"),
        ({"arms": [BLIND], "kind": "path"}, "only a study of kind picks"),
    ],
)
def test_a_probe_that_would_ask_nobody_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        study(probe=4, **fields)


def test_more_probes_than_dates_are_refused() -> None:
    with pytest.raises(DesignError, match="there are 20 dates"):
        cells_of(probed := study(arms=[BLIND], probe=21), dates_of(probed, SESSIONS))
