"""Turns on an account, over the real bus: settled by the desk at the request, kept ever after."""

from datetime import date

from contracts.cycle import Rotation
from services.orchestrator.machine.rotation import turn
from tests.integration.desk.caller import Caller, Json, wish
from tests.integration.desk.conftest import Desk
from tests.integration.desk.test_replay import replayed

DAY, NEXT = "2012-06-29", "2012-07-02"
ORDER = ("ann", "bob")


def body(account: str, as_of: str | None, order: tuple[str, ...] = ORDER) -> Json:
    """Pipelines of names, and so of accounts, that no other test has."""
    return wish(
        as_of=as_of,
        pipelines=[{"name": f"{account}-{name}", "provider": "rules"} for name in ORDER],
        rotation={"account": account, "order": [f"{account}-{name}" for name in order]},
    )


def short(name: str) -> str:
    return name.rpartition("-")[2]


def accounts(view: Json) -> dict[str, str]:
    return {short(each["name"]): each["account"] for each in view["pipelines"]}


def turn_of(day: str, order: tuple[str, ...] = ORDER) -> str:
    return turn(Rotation(order=order), date.fromisoformat(day))


async def test_two_sessions_are_two_pipelines_turns_and_each_holds_what_it_bought(
    user: Caller,
) -> None:
    views = {day: await user.run(body("turns", day)) for day in (DAY, NEXT)}

    for day, view in views.items():
        other = next(name for name in ORDER if name != turn_of(day))
        assert accounts(view) == {turn_of(day): "turns", other: f"turns-{other}"}
        assert view["status"] == "completed"
    assert turn_of(DAY) != turn_of(NEXT)
    # The second one's books of the account hold what the first one bought.
    pipelines = {short(each["name"]): each["contracts"] for each in views[NEXT]["pipelines"]}
    held = pipelines[turn_of(NEXT)]["portfolio"]["positions"]
    assert {each["ticker"] for each in held} == {"AAPL", "MSFT"}


async def test_a_request_that_comes_again_is_the_same_cycle_and_a_replay_the_same_decision(
    desk: Desk, user: Caller
) -> None:
    order = ORDER if turn_of(DAY) == ORDER[1] else (ORDER[1], ORDER[0])
    asked = body("again", DAY, order)
    view = await user.run(asked)
    again = await user.ask(asked)

    assert accounts(view)[ORDER[1]] == "again", "it is not the first pipeline that is main"
    assert (again["outcome"], again["cycle_id"]) == ("accepted", view["cycle_id"])
    assert (await replayed(desk, view["cycle_id"])).same


async def test_where_whose_turn_it_is_does_not_run_the_account_is_left_alone(
    user: Caller,
) -> None:
    absent = tuple("carl" if name == turn_of(DAY) else name for name in ORDER)

    view = await user.run(body("alone", DAY, absent))

    assert accounts(view) == {name: f"alone-{name}" for name in ORDER}
    assert not (await user.query("account", account="alone"))["found"]


async def test_an_account_that_a_request_names_is_traded_in_no_ones_turn(user: Caller) -> None:
    asked = body("kept", DAY)
    for pipeline in asked["pipelines"]:
        pipeline["account"] = f"scratch-{pipeline['name']}"

    view = await user.run(asked)

    assert accounts(view) == {name: f"scratch-kept-{name}" for name in ORDER}
    assert not (await user.query("account", account="kept"))["found"]
