"""How cycles end other than by plain success: time, cancel, one pipeline of two, the clock."""

from decimal import Decimal

import pytest

from libs.runtime import ids
from tests.integration.desk.caller import Caller, Json, account_of, picked, wish
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

TWO = [
    {"name": "first", "account": "rules-of-two", "provider": "rules"},
    {"name": "second", "account": "ahead-of-two", "provider": "rules"},
]
"""The second one's account is at a later day already, and no clock goes back."""


async def run_ahead(user: Caller) -> None:
    """Bring the second pipeline's account to a day after the one that both are asked for."""
    await user.run(wish(pipelines=[TWO[1]], as_of="2012-07-02"))


async def fills(user: Caller, account: str) -> list[Json]:
    view = await user.query("account", account=account)
    found: list[Json] = view["fills"]
    return found


async def run_out(desk: Desk, cycle_id: str) -> None:
    """The cycle's time limit passes now."""
    async with desk.postgres() as db:
        await db.execute(
            "update cycles set deadline_at = clock_timestamp() where cycle_id = $1", cycle_id
        )


async def test_a_cycle_whose_time_limit_passes_fails_where_it_was_and_remembers_it(
    desk: Desk, user: Caller
) -> None:
    body = wish(timeout_s=3600)
    async with desk.held_back("trader-picks"):
        cycle_id = await user.accepted(body)
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
        await run_out(desk, cycle_id)
        ended = await user.ended(cycle_id)

    view = await user.query("cycle", cycle_id=cycle_id)
    assert ended == {"status": "failed", "reason": "deciding: time limit of 3600 s passed"}
    assert "time limit" in picked(view, "agent_memory")["short_term_summary"]
    stopped = [e["data"] for e in user.events.heard if e["type"] == "operation_cancelled"]
    assert stopped == [{"step": "picks", "message": ended["reason"]}]
    assert await fills(user, account_of(body)) == []


async def test_a_cancel_before_executing_is_accepted_and_nothing_is_ordered(
    desk: Desk, user: Caller
) -> None:
    body = wish()
    async with desk.held_back("execution-execute"), desk.held_back("trader-picks"):
        cycle_id = await user.accepted(body)
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
        answer = await user.ask({"cycle_id": cycle_id, "reason": "changed my mind"}, "cancel")
        again = await user.ask({"cycle_id": cycle_id}, "cancel")

    assert (answer["outcome"], answer["status"]) == ("accepted", "cancelled")
    assert again == answer
    assert await user.ended(cycle_id) == {"status": "cancelled", "reason": "changed my mind"}
    assert (await user.ask(body))["status"] == "cancelled"
    assert await fills(user, account_of(body)) == []
    nodes = (await user.query("operations", cycle_id=cycle_id))["operations"]
    assert "memorize" not in {node["name"] for node in nodes}
    picks = next(node for node in nodes if node["name"] == "picks")
    assert (picks["status"], picks["epoch"]) == ("cancelled", 0)


async def test_a_cancel_once_it_executes_is_too_late_and_the_orders_stand(
    desk: Desk, user: Caller
) -> None:
    body = wish()
    async with desk.held_back("execution-execute"):
        cycle_id = await user.accepted(body)
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="executing")
        answer = await user.ask({"cycle_id": cycle_id}, "cancel")
    ended = await user.ended(cycle_id)
    after = await user.ask({"cycle_id": cycle_id}, "cancel")

    assert (answer["outcome"], answer["code"]) == ("rejected", "too_late")
    assert answer["status"] == "running"
    assert ended == {"status": "completed", "reason": ""}
    assert (after["code"], after["status"]) == ("too_late", "completed")
    assert len(await fills(user, account_of(body))) == 2


async def test_executing_is_not_ended_by_the_time_limit(desk: Desk, user: Caller) -> None:
    body = wish(timeout_s=3600)
    async with desk.held_back("execution-execute"):
        cycle_id = await user.accepted(body)
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="executing")
        await run_out(desk, cycle_id)
        # Whole rounds of the sweep: another cycle that runs out of its time shows that one went by.
        # It may not reach its own execution before the sweep looks.
        async with desk.held_back("trader-picks"):
            other = await user.run(wish(timeout_s=0.001))
        assert other["status"] == "failed"
        assert (await user.query("cycle", cycle_id=cycle_id))["status"] == "running"

    assert (await user.ended(cycle_id))["status"] == "completed"
    assert len(await fills(user, account_of(body))) == 2


async def test_pipelines_end_separately_and_the_cycle_takes_the_main_ones_status(
    user: Caller,
) -> None:
    await run_ahead(user)
    before = await fills(user, "ahead-of-two")
    view = await user.run(wish(pipelines=TWO))

    assert [each["status"] for each in view["pipelines"]] == ["completed", "failed"]
    assert "(clock_back)" in view["pipelines"][1]["reason"]
    assert (view["status"], view["reason"]) == ("completed", "")
    assert picked(view, "execution_result")["orders"]
    assert len(await fills(user, "rules-of-two")) == 2
    assert await fills(user, "ahead-of-two") == before


async def test_the_main_pipelines_failure_is_the_cycles(user: Caller) -> None:
    lanes = [{**lane, "account": f"main-{lane['account']}"} for lane in TWO]
    await user.run(wish(pipelines=[lanes[1]], as_of="2012-07-02"))
    view = await user.run(wish(pipelines=lanes, main="second"))

    assert [each["status"] for each in view["pipelines"]] == ["completed", "failed"]
    assert view["status"] == "failed"
    assert view["reason"] == view["pipelines"][1]["reason"]


async def test_two_pipelines_decide_the_same_on_the_same_digest(user: Caller) -> None:
    names = ["one", "two"]
    view = await user.run(wish(pipelines=[{"name": n, "account": f"twin-{n}"} for n in names]))

    digests = [picked(view, "signal_digest", n)["op_id"] for n in (0, 1)]
    picks = [picked(view, "daily_picks", n)["picks"] for n in (0, 1)]
    assert digests[0] == digests[1]
    assert picks[0] == picks[1]
    assert [len(await fills(user, f"twin-{name}")) for name in names] == [2, 2]


async def test_an_accounts_clock_never_goes_back(user: Caller) -> None:
    pipelines = [{"name": "rules", "account": "one-way"}]
    first = await user.run(wish(pipelines=pipelines))
    books = await user.query("account", account="one-way")

    assert first["status"] == "completed"
    for kind in ("decision", "exit", "report", "snapshot"):
        earlier = wish(pipelines=pipelines, as_of="2012-06-28", kind=kind)
        answer = await user.ask(earlier)
        assert (answer["outcome"], answer["code"], answer["field"]) == (
            "rejected",
            "clock_back",
            "as_of",
        )
        assert (answer["given"], answer["suggestion"]) == ("2012-06-28", "2012-06-29")
        cycle_id = ids.cycle_id("user", earlier["idempotency_key"])
        assert not (await user.query("cycle", cycle_id=str(cycle_id)))["found"]
    assert await user.query("account", account="one-way") == books


async def test_a_request_that_the_clock_has_passed_since_is_known_when_it_comes_again(
    user: Caller,
) -> None:
    body = wish(pipelines=[{"name": "rules", "account": "passed-since"}])
    first = await user.run(body)
    await user.run(wish(pipelines=body["pipelines"], as_of="2012-07-02"))

    again = await user.ask(body)
    assert (again["outcome"], again["cycle_id"]) == ("accepted", first["cycle_id"])


async def test_on_the_last_day_of_the_data_an_order_waits_for_an_open_that_is_not_there(
    user: Caller,
) -> None:
    body = wish(as_of="2013-03-01")
    view = await user.run(body)

    orders = picked(view, "execution_result")["orders"]
    assert view["status"] == "completed"
    assert orders
    assert {order["status"] for order in orders} == {"working"}
    books = await user.query("account", account=account_of(body))
    assert books["fills"] == []
    assert {each["asset"] for each in books["portfolio"]["open_orders"]} == {
        order["asset"] for order in orders
    }
    assert Decimal(books["portfolio"]["cash"]["amount"]) == 100_000
