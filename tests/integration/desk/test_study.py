"""Studies on the shared desk: cells are ordinary cycles, once each, and out of the desk's sight."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from tests.integration.desk.caller import Caller, Json, wish
from tests.integration.desk.conftest import Desk
from tests.integration.desk.test_replay import replayed

UNIVERSE = ["AAPL", "GOOG", "IBM", "MSFT"]
STUDY_S = 90.0


def study(**fields: Any) -> Json:
    """A study's file under a name that no other test has."""
    return {
        "name": f"s{uuid4().hex[:12]}",
        "dates": {"first": "2012-03-01", "last": "2012-06-29", "count": 3},
        "universe": UNIVERSE,
        "arms": [{"name": "rules"}],
        **fields,
    }


async def begun(user: Caller, file: Json, **fields: Any) -> Json:
    return await user.ask({"study": file, **fields}, "run_study", "study")


async def standing(user: Caller, name: str) -> Json:
    (view,) = (await user.query("studies", "study", name=name))["studies"]
    return dict(view)


async def ended(user: Caller, name: str) -> Json:
    """The study once it no longer runs."""
    async with asyncio.timeout(STUDY_S):
        while True:
            view = await standing(user, name)
            if view["status"] != "running":
                return view
            await asyncio.sleep(0.1)


async def cells(desk: Desk, name: str) -> list[dict[str, Any]]:
    async with desk.postgres() as db:
        rows = await db.fetch("select * from study_cells where study = $1 order by number", name)
    return [dict(row) for row in rows]


async def test_every_cell_is_a_cycle_of_its_own_account_and_a_replay_decides_the_same(
    desk: Desk, user: Caller
) -> None:
    file = study(samples=2)
    assert (await begun(user, file))["outcome"] == "accepted"

    view = await ended(user, file["name"])

    assert (view["status"], view["cells"], view["completed"]) == ("completed", 6, 6)
    done = await cells(desk, file["name"])
    assert sorted((row["number"], row["sample"]) for row in done) == [
        (number, sample) for number in range(3) for sample in range(2)
    ]
    accounts = set()
    for row in done:
        cycle = await user.query("cycle", cycle_id=str(row["cycle_id"]))
        (pipeline,) = cycle["pipelines"]
        accounts.add(pipeline["account"])
        assert pipeline["contracts"]["portfolio"]["positions"] == []
    assert len(accounts) == 6
    assert all(account.startswith("study-") for account in accounts)
    assert (await replayed(desk, str(done[0]["cycle_id"]))).same


async def test_a_study_that_is_asked_for_again_changes_nothing(desk: Desk, user: Caller) -> None:
    file = study()
    await begun(user, file)
    await ended(user, file["name"])
    before = await cells(desk, file["name"])

    again = await begun(user, file)

    assert (again["outcome"], again["changed"], again["status"]) == ("accepted", False, "completed")
    assert await cells(desk, file["name"]) == before


async def test_another_file_of_the_same_name_is_refused_and_a_larger_budget_is_not(
    user: Caller,
) -> None:
    file = study()
    await begun(user, file)

    other = await begun(user, {**file, "samples": 2})
    richer = await begun(user, {**file, "budget": {"cost_usd": "20"}})

    assert (other["outcome"], other["code"]) == ("rejected", "changed_file")
    assert richer["outcome"] == "accepted"
    view = await ended(user, file["name"])
    assert view["study"]["budget"]["cost_usd"] == "20"


async def test_a_stopped_study_goes_on_where_it_was(desk: Desk, user: Caller) -> None:
    file = study(dates={"first": "2011-01-03", "last": "2012-06-29", "count": 12})
    await begun(user, file)
    stopped = await user.ask({"name": file["name"], "reason": "lunch"}, "stop_study", "study")
    assert stopped["outcome"] == "accepted"
    view = await standing(user, file["name"])
    assert (view["status"], view["reason"]) == ("stopped", "lunch")

    assert (await begun(user, file))["changed"]

    assert (await ended(user, file["name"]))["completed"] == 12
    assert len(await cells(desk, file["name"])) == 12


async def test_a_path_is_one_account_an_arm_over_all_sessions_with_exits_between(
    desk: Desk, user: Caller
) -> None:
    days = {"first": "2012-06-18", "last": "2012-06-29", "every": 5}
    file = study(kind="path", dates=days, arms=[{"name": "a"}, {"name": "b", "masked": True}])
    await begun(user, file)

    view = await ended(user, file["name"])

    assert (view["status"], view["failed"]) == ("completed", 0)
    done = sorted(await cells(desk, file["name"]), key=lambda row: row["accepted_at"])
    kinds = [(row["number"], row["kind"]) for row in done]
    assert kinds == [
        (0, "decision"),
        (1, "exit"),
        (2, "exit"),
        (3, "exit"),
        (4, "exit"),
        (5, "exit"),
        (5, "decision"),
        (6, "exit"),
        (7, "exit"),
        (8, "exit"),
        (9, "exit"),
    ]
    async with desk.postgres() as db:
        accounts = await db.fetch(
            "select account, clock from accounts where account like 'study-' || $1 || '%'",
            view["sha256"][:8],
        )
    assert len(accounts) == 2


async def test_nothing_of_a_study_is_among_the_desks_own(desk: Desk, user: Caller) -> None:
    file = study()
    await begun(user, file)
    await ended(user, file["name"])

    board = await user.query("leaderboard")
    decisions = await user.query("decisions", limit=50)
    performance = await user.query("performance", account="nobody")
    listed = await user.query("cycles", limit=50)

    mine = {str(row["cycle_id"]) for row in await cells(desk, file["name"])}
    assert mine.isdisjoint(cycle["cycle_id"] for cycle in listed["cycles"])
    assert not [name for row in board["rows"] for name in row["accounts"] if "study-" in name]
    assert not [row for row in decisions["decisions"] if row["account"].startswith("study-")]
    assert not [name for name in performance["accounts"] if name.startswith("study-")]
    async with desk.postgres() as db:
        spent = await db.fetchval("select count(*) from notifications")
    assert spent == 0


async def test_nobody_else_may_ask_for_what_studies_may(user: Caller) -> None:
    masked = await user.ask(wish(pipelines=[{"name": "m", "masked": True}]))
    less = await user.ask(wish(pipelines=[{"name": "m", "without": ["risk"]}]))
    account = await user.ask(wish(pipelines=[{"name": "m", "account": "study-1"}]))
    cell = await user.ask(wish(study={"study": "mine", "number": 0}))
    probe = await user.ask(wish(kind="probe"))

    answers = (masked, less, account, cell, probe)
    assert [answer["code"] for answer in answers] == ["invalid"] * 5
    fields = ["pipelines", "pipelines.0.without", "pipelines", "study", "kind"]
    assert [answer["field"] for answer in answers] == fields


async def test_a_study_that_cannot_be_run_is_refused_before_anything_begins(user: Caller) -> None:
    saturday = await begun(user, study(dates={"sessions": ["2012-06-30"]}))
    late = await begun(user, study(dates={"first": "2012-06-29", "last": "2031-01-02"}))
    nobody = await begun(user, study(arms=[{"name": "x", "provider": "nobody"}]))
    none = await begun(user, study(universe=["NOPE", "NADA"]))
    june = {"first": "2012-06-01", "last": "2012-06-29", "count": 99}
    many = await begun(user, study(dates=june))

    far = await begun(user, study(dates={"sessions": ["2013-02-28"]}, horizons=[252]))

    answers = (saturday, late, nobody, none, many, far)
    assert [(answer["code"], answer["field"]) for answer in answers] == [
        ("not_a_session", "dates"),
        ("no_history", "dates"),
        ("provider_unknown", "arms"),
        ("unknown_ticker", "universe"),
        ("invalid", "dates.count"),
        ("invalid", "horizons"),
    ]


async def test_the_key_of_studies_requests_cells_in_accounts_of_studies_and_nothing_else(
    desk: Desk,
) -> None:
    cell = {"study": "s", "number": 0}
    own = {"name": "rules", "account": f"study-{uuid4().hex[:8]}"}
    wrong: Sequence[Json] = (
        {"pipelines": [own]},
        {"study": cell},
        {"study": cell, "pipelines": [own, {"name": "coin", "provider": "coin"}]},
        {"study": cell, "kind": "strategy", "pipelines": [own]},
    )
    async with desk.calling("study") as service:
        for body in wrong:
            asked = {"idempotency_key": uuid4().hex, "as_of": "2012-06-29", **body}
            answer = await service.ask(asked)
            assert (answer["outcome"], answer["code"]) == ("rejected", "invalid"), body
            assert "may only request cells" in answer["message"]
