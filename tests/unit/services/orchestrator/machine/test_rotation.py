"""Who trades the main account when: the same for everybody, from the session alone."""

from datetime import date, timedelta
from itertools import pairwise

import pytest
from pydantic import ValidationError

from contracts.cycle import CycleRequest, Rotation
from contracts.message import Pipeline
from libs.market.calendar import exchange_calendar
from services.orchestrator.machine.rotation import in_turn, turn

FRIDAY, MONDAY, TUESDAY = date(2012, 6, 29), date(2012, 7, 2), date(2012, 7, 3)
HOLIDAY, THURSDAY = date(2012, 7, 4), date(2012, 7, 5)
THREE = Rotation(order=("claude", "minimax", "rules"))


def request(*names: str, rotation: Rotation | None = THREE) -> CycleRequest:
    pipelines = tuple(Pipeline(name=name) for name in names)
    return CycleRequest(idempotency_key="a", pipelines=pipelines, rotation=rotation)


def accounts(asked: CycleRequest) -> dict[str, str]:
    return {pipeline.name: pipeline.account for pipeline in asked.pipelines}


def test_each_takes_one_session_in_order_and_holidays_and_week_ends_take_no_turn() -> None:
    first = THREE.order.index(turn(THREE, FRIDAY))
    wanted = [THREE.order[(first + place) % 3] for place in range(4)]

    assert [turn(THREE, day) for day in (FRIDAY, MONDAY, TUESDAY, THURSDAY)] == wanted
    assert turn(THREE, HOLIDAY) == turn(THREE, TUESDAY)
    assert turn(THREE, FRIDAY + timedelta(days=1)) == turn(THREE, FRIDAY)


def test_over_a_year_the_turns_are_shared_out_evenly() -> None:
    days = exchange_calendar().sessions(date(2012, 1, 1), date(2012, 12, 31))
    turns = [turn(THREE, day) for day in days]

    assert all(one != two for one, two in pairwise(turns))
    counts = [turns.count(name) for name in THREE.order]
    assert max(counts) - min(counts) <= 1


def test_whose_turn_it_is_trades_the_account_and_is_main_and_the_others_their_own() -> None:
    name = turn(THREE, FRIDAY)
    others = {each: each for each in THREE.order if each != name}

    settled = in_turn(request(*THREE.order), FRIDAY)

    assert accounts(settled) == {**others, name: "main"}
    assert settled.main_pipeline == name
    # What is stored and sent to services is read again there.
    assert CycleRequest.model_validate_json(settled.model_dump_json()) == settled


def test_where_the_one_whose_turn_it_is_does_not_run_nobody_trades_the_account() -> None:
    others = [name for name in THREE.order if name != turn(THREE, FRIDAY)]

    settled = in_turn(request(*others), FRIDAY)

    assert "main" not in accounts(settled).values()
    assert settled.main_pipeline == others[0]


@pytest.mark.parametrize("day", [FRIDAY, MONDAY, TUESDAY])
def test_an_account_that_is_named_is_the_one_that_is_traded_whosever_turn_it_is(day: date) -> None:
    for name in THREE.order:
        named = Pipeline(name=name, account="scratch")
        asked = CycleRequest(idempotency_key="a", pipelines=(named,), rotation=THREE)
        # As it comes over the bus.
        asked = CycleRequest.model_validate_json(asked.model_dump_json())

        assert accounts(in_turn(asked, day)) == {name: "scratch"}
        assert asked.accounts == ("scratch", "main")


@pytest.mark.parametrize("day", [FRIDAY, MONDAY, TUESDAY])
def test_who_names_an_account_leaves_the_others_their_turns(day: date) -> None:
    named, *others = (Pipeline(name=name) for name in THREE.order)
    named = Pipeline(name=named.name, account="scratch")
    asked = CycleRequest(idempotency_key="a", pipelines=(named, *others), rotation=THREE)

    settled = accounts(in_turn(asked, day))

    assert settled.pop(named.name) == "scratch"
    whose = turn(THREE, day)
    assert settled == {each.name: "main" if each.name == whose else each.name for each in others}


def test_without_a_rotation_the_first_trades_main_and_the_others_their_own() -> None:
    asked = request("claude", "rules", rotation=None)

    assert accounts(asked) == {"claude": "main", "rules": "rules"}
    assert CycleRequest.model_validate_json(asked.model_dump_json()) == asked


def test_two_that_would_trade_one_account_outside_their_turns_are_refused() -> None:
    two = (Pipeline(name="claude"), Pipeline(name="rules", account="claude"))
    with pytest.raises(ValidationError, match="two trade the same account"):
        CycleRequest(idempotency_key="a", pipelines=two, rotation=THREE)


def test_without_a_rotation_nothing_changes() -> None:
    asked = request("claude", "rules", rotation=None)

    assert in_turn(asked, FRIDAY) is asked


def test_nobody_may_trade_the_rotations_account_outside_the_turns() -> None:
    main = Pipeline(name="rules", account="main")
    with pytest.raises(ValidationError, match="rules trades main outside its turn"):
        CycleRequest(idempotency_key="a", pipelines=(main,), rotation=THREE)


def test_who_settles_the_turn_itself_must_be_whole_about_it() -> None:
    own = (Pipeline(name="claude", account="main"), Pipeline(name="rules", account="own"))
    asked = CycleRequest(idempotency_key="a", pipelines=own, main="claude", rotation=THREE)

    for day in (FRIDAY, MONDAY, TUESDAY):
        assert in_turn(asked, day) is asked
    with pytest.raises(ValidationError, match="main is rules, which does not trade main"):
        CycleRequest(idempotency_key="a", pipelines=own, main="rules", rotation=THREE)


def test_a_name_takes_one_turn_only() -> None:
    with pytest.raises(ValidationError, match="named twice"):
        Rotation(order=("rules", "claude", "rules"))
