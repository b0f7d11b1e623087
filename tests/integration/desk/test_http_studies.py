"""Studies over HTTP: begun, stopped and resumed, and read as people and programs want them."""

import asyncio
from typing import Any

import httpx2

from contracts.study import Study
from tests.integration.desk.caller import Json
from tests.integration.desk.over_http import got, refused
from tests.integration.desk.test_study import STUDY_S, study


async def begun(http: httpx2.AsyncClient, file: Json) -> httpx2.Response:
    answer = await http.post("/studies", json={"study": file})
    assert answer.status_code == 202, answer.text
    return answer


async def ended(http: httpx2.AsyncClient, name: str) -> Json:
    """The study once it no longer runs."""
    async with asyncio.timeout(STUDY_S):
        while True:
            view = await got(http, f"/studies/{name}")
            if view["status"] != "running":
                return view
            await asyncio.sleep(0.1)


async def test_a_study_is_begun_followed_and_read_as_its_score_page_and_cells(
    http: httpx2.AsyncClient,
) -> None:
    file = study()
    answer = await begun(http, file)
    name = file["name"]
    assert answer.json()["outcome"] == "accepted"
    assert answer.headers["Location"] == f"/api/v1/studies/{name}"

    view = await ended(http, name)

    assert (view["status"], view["cells"], view["completed"]) == ("completed", 3, 3)
    assert name in [it["study"]["name"] for it in (await got(http, "/studies"))["studies"]]
    chosen: Json = {"horizon": 20, "cost_bps": 0, "benchmark": "cash"}
    score = await got(http, f"/studies/{name}/score", **chosen)
    assert (score["study"]["name"], score["horizon"], score["benchmark"]) == (name, 20, "cash")
    cells = await got(http, f"/studies/{name}/cells", arm="rules", limit=2)
    assert (len(cells["cells"]), cells["more"]) == (2, True)
    assert (await got(http, f"/studies/{name}/cells", kind="probe"))["cells"] == []
    told = await http.get(f"/studies/{name}/report", params=chosen)
    assert told.headers["Content-Type"] == "text/html; charset=utf-8"
    assert told.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert name in told.text
    assert "<script" not in told.text
    every = (await got(http, f"/studies/{name}/cells"))["cells"]
    assert all(cell["cycle_id"][:8] in told.text for cell in every)


async def test_a_study_stopped_with_a_reason_is_resumed_by_the_same_file(
    http: httpx2.AsyncClient,
) -> None:
    file = study(dates={"first": "2005-01-03", "last": "2012-06-29", "count": 300})
    name = file["name"]
    await begun(http, file)
    stopped = await http.post(f"/studies/{name}/stop", json={"reason": "lunch"})
    assert stopped.json() | {"changed": True, "status": "stopped"} == stopped.json()
    view = await got(http, f"/studies/{name}")
    assert (view["status"], view["reason"]) == ("stopped", "lunch")

    again = await begun(http, file)

    assert again.json() | {"changed": True, "status": "running"} == again.json()
    # Without a body it is stopped too, in the console's name.
    assert (await http.post(f"/studies/{name}/stop")).json()["status"] == "stopped"
    assert (await got(http, f"/studies/{name}"))["reason"] == "stopped by console"


async def test_a_refusal_says_which_field_and_names_what_there_is_not(
    http: httpx2.AsyncClient,
) -> None:
    file = study()
    await begun(http, file)
    changed = await http.post("/studies", json={"study": {**file, "seed": 5}})
    assert refused(changed, 409, "changed_file")["field"] == "name"
    for wrong in ({"universe": ["AAPL"]}, {"dates": {"first": "2012-03-01"}}, {"what": 1}):
        refused(await http.post("/studies", json={"study": study(**wrong)}), 422, "invalid")
    unknown = study(universe=["AAPL", "IBN"])
    no = refused(await http.post("/studies", json={"study": unknown}), 422, "unknown_ticker")
    assert (no["field"], "IBM" in no["detail"]) == ("universe", True)
    for word in (True, "a bc", "", "the whole market"):
        odd = study(universe=["AAPL", word])
        refused(await http.post("/studies", json={"study": odd}), 422, "invalid")
    poor = {"tokens": 1_000, "cell_tokens": 2_000}
    no = refused(await http.post("/studies", json={"study": study(budget=poor)}), 422, "invalid")
    assert "it cannot pay one cell" in no["detail"]
    ahead = study(dates={"sessions": ["2031-01-02"]})
    no = refused(await http.post("/studies", json={"study": ahead}), 422, "no_history")
    assert no["field"] == "dates"
    weekend = study(dates={"sessions": ["2012-06-30"]})
    no = refused(await http.post("/studies", json={"study": weekend}), 422, "not_a_session")
    assert "2012-06-29" in no["detail"], "the nearest session"
    late = study(dates={"sessions": ["2013-02-28"]})
    no = refused(await http.post("/studies", json={"study": late}), 422, "invalid")
    assert no["field"] == "horizons"
    for path in ("", "/score", "/report", "/cells"):
        refused(await http.get(f"/studies/nobody{path}"), 404, "not_found")
    refused(await http.post("/studies/nobody/stop"), 404, "not_found")
    outside: dict[str, Any] = {"horizon": 10_000}
    refused(await http.get(f"/studies/{file['name']}/score", params=outside), 422, "invalid")


async def test_what_a_study_will_not_show_is_told_before_it_begins(
    http: httpx2.AsyncClient,
) -> None:
    """Arms that are not paired, and horizons that are not over: `dry_run` begins nothing."""
    path = study(
        kind="path",
        arms=[{"name": "rules"}, {"name": "coin", "provider": "coin"}],
        dates={"first": "2012-12-03", "last": "2013-02-28"},
        horizons=[5, 252],
    )
    answer = await http.post("/studies", json={"study": path, "dry_run": True})

    assert answer.status_code == 202, answer.text
    horizons, paired = answer.json()["notes"][:2], answer.json()["notes"][-1]
    assert [note.split(":")[0] for note in horizons] == ["horizon 5", "horizon 252"]
    assert "kind picks" in paired
    assert (answer.json()["changed"], answer.json()["status"]) == (False, None)
    refused(await http.get(f"/studies/{path['name']}"), 404, "not_found")

    alone = study()
    begun_alone = await begun(http, alone)
    assert "only arm" in begun_alone.json()["notes"][0]
    again = await http.post("/studies", json={"study": alone, "dry_run": True})
    assert again.json()["changed"] is False


async def test_no_two_studies_and_nobody_else_have_one_account(http: httpx2.AsyncClient) -> None:
    one, other = study(kind="path"), study(kind="path")
    accounts = {Study.model_validate(it).account("rules", 0) for it in (one, other)}
    assert len(accounts) == 2, "the same but for their names"

    await begun(http, one)

    for account in accounts:
        wished = {"as_of": "2012-06-29", "idempotency_key": account}
        wished["pipelines"] = [{"name": "rules", "account": account}]
        answer = await http.post("/cycles", json=wished)
        assert refused(answer, 422, "invalid")["field"] == "pipelines"
