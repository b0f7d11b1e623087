"""What a person does over HTTP to keep a desk going: letters, jobs, halts, and what is seen."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from contracts.subjects.subject import BACKBONE, SERVICES
from libs.bus.streams import DEAD_LETTER_STREAM, streams
from libs.quant.ticks import tick_of
from libs.runtime import ids
from libs.runtime.schedule_settings import Schedule
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, Json, calling
from tests.integration.desk.conftest import Desk, desk_in
from tests.integration.desk.over_http import got, refused

LETTER_S = 20.0
JOBS = {"books": {"kind": "snapshot", "when": ["close+45m"], "account": "timed"}}


@pytest.fixture(scope="module")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """A desk of its own with a job that only runs by hand."""
    folder = make_open_dir()
    schedule = Schedule.model_validate({"clock": "replay", "jobs": JOBS})
    rules = folder / "exit_signals.toml"
    rules.write_text("[default.stop_loss]\npct = 15\n[default.take_profit]\npct = 90\n")
    given = {"http_enabled": True, "http_port": 0, "schedule": schedule, "exit_rules_file": rules}
    with desk_in(folder, own_environment_in, **given) as running:
        yield running


async def done(http: httpx2.AsyncClient, path: str, **body: Any) -> Json:
    answer = await http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    said: Json = answer.json()
    return said


async def ended(http: httpx2.AsyncClient, user: Caller, **fields: object) -> str:
    """A decision cycle for the account, at its end."""
    answer = await http.post("/cycles", json={"as_of": "2012-06-29", **fields})
    assert answer.status_code == 202, answer.text
    cycle_id = str(answer.json()["cycle_id"])
    await user.ended(cycle_id)
    return cycle_id


# --- dead letters -------------------------------------------------------------------------------


async def letter_about(desk: Desk, http: httpx2.AsyncClient, body: bytes) -> int:
    """A letter that the trader writes; its number."""
    async with calling(desk.url, desk.secrets_dir, "trader") as trader:
        given = {"Desk-Code": "invalid"}
        kept = await trader.nats.request("desk.v1.dlq.trader.picks", body, LETTER_S, headers=given)
        number: int = json.loads(kept.data)["seq"]  # a stream stores it, and answers
    found = (await got(http, "/bus"))["streams"]
    assert number == next(e["last_sequence"] for e in found if e["name"] == DEAD_LETTER_STREAM)
    return number


async def test_a_dead_letter_is_sent_again_while_its_operation_is_open(
    desk: Desk, http: httpx2.AsyncClient, user: Caller
) -> None:
    account = f"a{uuid4().hex[:12]}"
    wish = {"as_of": "2012-06-29", "pipelines": [{"name": "rules", "account": account}]}
    async with desk.held_back("trader-picks"):
        cycle_id = (await http.post("/cycles", json=wish)).json()["cycle_id"]
        await user.events.first(cycle_id=cycle_id, type="state_entered", state="deciding")
        op_id = ids.operation_id(UUID(cycle_id), "rules", "deciding", "picks", 1)
        number = await letter_about(desk, http, json.dumps({"op_id": str(op_id)}).encode())
        said = await done(http, f"/dead-letters/{number}/retry")
        assert (said["outcome"], said["op_id"]) == ("accepted", str(op_id))
    assert (await user.ended(cycle_id))["status"] == "completed"
    told = await user.events.first(cycle_id=cycle_id, type="letter_retried")
    assert told["data"]["by"] == "console"
    late = await http.post(f"/dead-letters/{number}/retry")
    refused(late, 409, "ended")


async def test_a_dead_letter_is_discarded_for_a_reason_that_stays_on_record(
    desk: Desk, http: httpx2.AsyncClient, user: Caller
) -> None:
    number = await letter_about(desk, http, b"<script>alert(1)</script>")
    listed = (await got(http, "/dead-letters"))["letters"]
    assert number in {each["sequence"] for each in listed}
    shown = await got(http, f"/dead-letters/{number}")
    assert (shown["body"], shown["failure"]["code"]) == ("<script>alert(1)</script>", "invalid")
    refused(await http.post(f"/dead-letters/{number}/retry"), 409, "no_operation")

    await done(http, f"/dead-letters/{number}/discard", reason="torn by a test")
    told = await user.events.first(type="letter_discarded")
    refused(await http.get(f"/dead-letters/{number}"), 404, "not_found")
    refused(await http.post(f"/dead-letters/{number}/discard"), 404, "not_found")
    assert (told["data"]["by"], told["data"]["reason"]) == ("console", "torn by a test")


# --- the schedule and the switch ----------------------------------------------------------------


async def test_a_job_is_paused_resumed_and_run(http: httpx2.AsyncClient, user: Caller) -> None:
    assert (await done(http, "/schedule/books/pause", reason="a holiday"))["changed"]
    (job,) = (await got(http, "/schedule"))["jobs"]
    assert (job["paused_by"], job["paused_reason"]) == ("console", "a holiday")
    assert (await done(http, "/schedule/books/resume"))["changed"]
    assert not (await done(http, "/schedule/books/resume"))["changed"]

    at = {"at": "2012-07-09T21:00:00Z"}
    run = (await done(http, "/schedule/books/run", **at))["run"]
    assert (await user.ended(run["cycle_id"]))["status"] == "completed"
    assert (await done(http, "/schedule/books/run", **at))["run"]["cycle_id"] == run["cycle_id"]
    refused(await http.post("/schedule/nobodys/run"), 404, "not_found")
    early = await http.post("/schedule/books/run", json={"at": "2100-01-01T00:00:00Z"})
    assert early.status_code == 422
    naive = await http.post("/schedule/books/run", json={"at": "2012-07-09T21:00:00"})
    assert refused(naive, 422, "invalid")["field"] == "at"


async def test_buys_are_stopped_and_freed(http: httpx2.AsyncClient) -> None:
    assert (await done(http, "/halts", reason="a test"))["changed"]
    (halt,) = (await got(http, "/halts"))["halts"]
    assert (halt["account"], halt["by"], halt["reason"]) == (None, "console", "a test")
    assert (await done(http, "/halts/resume"))["halts"] == []
    nobodys = {"account": "nobodys"}
    told = {
        refused(await http.post("/halts", json=nobodys), 404, "unknown_account")["detail"],
        refused(await http.get("/decisions", params=nobodys), 404, "unknown_account")["detail"],
        refused(await http.get("/portfolio", params=nobodys), 404, "unknown_account")["detail"],
        refused(await http.get("/exit-signals", params=nobodys), 404, "unknown_account")["detail"],
    }
    (told_alike,) = told
    assert "nobodys" in told_alike


# --- what is to be seen -------------------------------------------------------------------------


async def test_positions_are_told_by_how_far_they_are_from_being_sold(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    account = f"a{uuid4().hex[:12]}"
    lane = [{"name": "rules", "account": account}]
    await ended(http, user, pipelines=lane)
    await ended(http, user, pipelines=lane, as_of="2012-10-31", universe=["IBM"])
    view = await got(http, "/exit-signals", account=account)
    books = (await got(http, "/portfolio", account=account))["portfolio"]
    assert {each["ticker"] for each in view["positions"]} == {
        each["ticker"] for each in books["positions"]
    }
    nearest = [each["nearest"] for each in view["positions"] if each["nearest"] is not None]
    assert nearest == sorted(nearest)
    for each in view["positions"]:
        triggers = {rule["rule"]: rule for rule in each["triggers"]}
        loss, gain = triggers["stop_loss"], triggers["take_profit"]
        cost = Decimal(each["average_cost"]["amount"])
        for rule, share in ((loss, Decimal("0.85")), (gain, Decimal("1.9"))):
            at = Decimal(rule["at"]["amount"])
            assert abs(at - cost * share) <= tick_of(at), "a trigger stands on its tick"
        answer = await http.post(
            f"/exit-signals/{each['ticker']}/check", params={"account": account}
        )
        assert answer.json()["overall_assessment"] == each["assessment"]
    refused(await http.get("/exit-signals", params={"account": "nobodys"}), 404, "unknown_account")


async def test_a_person_sells_a_part_of_a_position_now(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    account = f"a{uuid4().hex[:12]}"
    await ended(http, user, pipelines=[{"name": "rules", "account": account}], universe=["MSFT"])
    (held,) = (await got(http, "/portfolio", account=account))["portfolio"]["positions"]
    assert held["plan"]["thesis"].startswith("For: ")
    sale = {"account": account, "share_pct": "25", "as_of": "2012-07-02"}
    answer = await http.post("/exit-signals/MSFT/sell", json=sale)
    assert answer.status_code == 202, answer.text
    view = await user.ended(answer.json()["cycle_id"])
    assert view["status"] == "completed"
    (after,) = (await got(http, "/portfolio", account=account))["portfolio"]["positions"]
    shares = Decimal(held["quantity"])
    assert shares - Decimal(after["quantity"]) == shares // 4

    refused(await http.post("/exit-signals/NOPE/sell", json=sale), 422, "unknown_ticker")
    wrong = await http.post("/exit-signals/MSFT/sell", json={**sale, "share_pct": "101"})
    assert refused(wrong, 422, "invalid")["field"] == "share_pct"


async def test_the_bus_shows_its_streams_its_consumers_and_who_is_there(
    desk: Desk, http: httpx2.AsyncClient
) -> None:
    view = await got(http, "/bus")
    assert {each["name"] for each in view["streams"]} == {each.name for each in streams()}
    picks = next(each for each in view["consumers"] if each["name"] == "trader-picks")
    assert (picks["service"], picks["stream"], picks["pending"]) == ("trader", "COMMANDS", 0)
    there = {each["name"]: each["instances"] for each in view["services"]}
    assert there == dict.fromkeys((*BACKBONE, *SERVICES), 1)
    if view["servers"]:  # there are none where they are one's own
        servers = {each["name"]: each["healthy"] for each in view["servers"]}
        assert servers == {"nats": True, "postgres": True}


async def test_the_board_the_days_report_and_the_costs_are_as_on_the_bus(
    http: httpx2.AsyncClient, user: Caller
) -> None:
    account = f"a{uuid4().hex[:12]}"
    await ended(http, user, pipelines=[{"name": "boarded", "account": account}])
    board = await got(http, "/leaderboard", pipelines=["boarded"])
    assert board == await user.query("leaderboard", pipelines=["boarded"])
    assert "boarded" in {each["name"] for each in board["rows"]}
    report = await got(http, "/report", account=account)
    assert account in report["markdown"]
    refused(await http.get("/report", params={"account": "nobodys"}), 404, "not_found")
    early = {"account": account, "session": "1743-01-27"}
    refused(await http.get("/report", params=early), 422, "outside_calendar")
    assert (await got(http, "/costs"))["rows"] == []
