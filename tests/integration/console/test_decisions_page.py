"""The page of decisions: what did nothing is folded; what a later version wrote hides no other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import orjson

from contracts.approval import ApprovalsQuery
from contracts.cycle_query import CycleQuery
from contracts.execution import DecisionsQuery
from contracts.message import Message
from contracts.strategy_query import StrategiesQuery
from contracts.subjects.approvals import APPROVALS, DECISIONS
from contracts.subjects.cycles import CYCLE
from contracts.subjects.strategies import STRATEGIES
from libs.bus.client import Client
from tests.integration.console.conftest import AS_OF, Made
from tests.integration.console.over_http import problem
from tests.unit.services.strategy_results import design, training

MESSAGES = Path(__file__).parents[2] / "data/messages"
IDLE = orjson.loads((MESSAGES / "DecisionValidation.json").read_bytes()) | {
    "decisions": [],
    "vetoed_tickers": [],
}


async def test_decisions_that_did_nothing_are_one_line_until_everything_is_asked_for(
    http: httpx2.AsyncClient, made: Made
) -> None:
    account = f"quiet-{made.cycle_id.hex[:8]}"
    for step in ("validate", "validate_exits"):
        done = await made.operation("deciding", step, result=IDLE)
        await made.db.execute("update operations set account = $2 where op_id = $1", done, account)
    page = {"Accept": "text/html"}

    folded = await http.get(f"/decisions?account={account}&everything=", headers=page)
    whole = await http.get(f"/decisions?account={account}&everything=true", headers=page)

    assert (folded.status_code, whole.status_code) == (200, 200)
    assert "2 decisions, nothing to do" in folded.text
    assert str(made.cycle_id) not in folded.text
    assert "nothing to do" not in whole.text
    assert whole.text.count(f"/decisions/{made.cycle_id}/rules") == 2


async def test_a_decision_that_cannot_be_read_takes_no_page_down(
    http: httpx2.AsyncClient, made: Made
) -> None:
    account = f"newer-{made.cycle_id.hex[:8]}"
    await decided(made, account, {"of": "a newer desk"}, "now()")
    paths = ("/", f"/decisions?account={account}", f"/decisions?account={account}&everything=true")
    for path in paths:
        page = await http.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 200, path
        assert "unreadable" in page.text, path
        assert f'href="/cycles/{made.cycle_id}"' in page.text, path


async def test_the_api_and_the_bus_give_the_decisions_that_can_be_read_and_name_the_others(
    http: httpx2.AsyncClient, client: Client, made: Made
) -> None:
    account = f"mixed-{made.cycle_id.hex[:8]}"
    await decided(made, account, IDLE, "now()", "validate_exits")
    await decided(made, account, {"of": "a newer desk"}, "now() + interval '1 s'")

    page = (await http.get(f"/api/v1/decisions?account={account}")).raise_for_status().json()
    cycle = (await http.get(f"/api/v1/decisions?cycle_id={made.cycle_id}")).json()
    newest = await http.get("/api/v1/decisions")
    asked = await client.ask(DECISIONS, DecisionsQuery(account=account))

    (unreadable,), (read,) = page["unreadable"], page["decisions"]
    assert (unreadable["cycle_id"], unreadable["account"]) == (str(made.cycle_id), account)
    assert (unreadable["pipeline"], unreadable["as_of"]) == ("rules", str(AS_OF))
    assert (read["account"], read["decision"]["decisions"], page["more"]) == (account, [], False)
    assert (cycle["unreadable"], newest.status_code) == (page["unreadable"], 200)
    assert (len(asked.decisions), len(asked.unreadable), asked.more) == (1, 1, False)


async def test_a_proposal_that_cannot_be_read_waits_beside_the_others(
    http: httpx2.AsyncClient, client: Client, made: Made
) -> None:
    written = orjson.loads((MESSAGES / "ReviewPicks.json").read_bytes())
    readable = {**written, "decision_validation": IDLE}
    for pipeline, command in (("rules", {"of": "a newer desk"}), ("other", readable)):
        op_id = await made.operation(
            "awaiting_approval", "approval", pipeline=pipeline, status="pending", command=command
        )
        await made.db.execute(
            "update operations set finished_at = null, deadline_at = now() where op_id = $1", op_id
        )
    try:
        for path in ("/", "/approvals", "/decisions"):
            page = await http.get(path, headers={"Accept": "text/html"})
            assert page.status_code == 200, path
            if path != "/decisions":
                assert "unreadable" in page.text, path
                assert f'href="/cycles/{made.cycle_id}"' in page.text, path
        listed = (await http.get("/api/v1/approvals")).raise_for_status().json()
        asked = await client.ask(APPROVALS, ApprovalsQuery(cycle_id=str(made.cycle_id)))
    finally:  # other tests count what waits
        await made.db.execute("delete from operations where cycle_id = $1", made.cycle_id)

    assert str(made.cycle_id) in {each["cycle_id"] for each in listed["unreadable"]}
    assert [each.pipeline for each in asked.approvals] == ["other"]
    assert [each.pipeline for each in asked.unreadable] == ["rules"]


async def test_the_pages_of_a_cycle_whose_decision_cannot_be_read_are_there(
    http: httpx2.AsyncClient, made: Made
) -> None:
    account = f"newer-{made.cycle_id.hex[:8]}"
    done = await decided(made, account, {"of": "a newer desk"}, "now()")
    await made.lanes(rules={"decision_validation": done, "execution_result": done, "plan": done})
    for path in ("cycles/{}", "decisions/{}/rules", "api/v1/cycles/{}", "operations?cycle_id={}"):
        page = await http.get("/" + path.format(made.cycle_id), headers={"Accept": "text/html"})
        assert page.status_code == 200, path
    page = await http.get(f"/operations/{done}", headers={"Accept": "text/html"})
    assert page.status_code == 200


async def test_a_strategy_that_cannot_be_read_is_named_and_hides_no_other(
    http: httpx2.AsyncClient, client: Client, made: Made
) -> None:
    name = f"later-{made.cycle_id.hex[:8]}"
    designed = await made.operation("designing", "design", result={"spec": {"of": "later"}})
    async with strategy(made, name, designed, designed):
        page = await client.ask(STRATEGIES, StrategiesQuery())
        shown = await http.get("/strategies", headers={"Accept": "text/html"})
        one = await http.get(f"/api/v1/strategies/{name}")

    assert name in page.unreadable
    assert (shown.status_code, name in shown.text) == (200, True)
    assert problem(one, 409, "unreadable")["detail"].startswith(f"strategy {name} is on record")


async def test_a_strategys_page_and_report_name_the_figures_that_cannot_be_read(
    http: httpx2.AsyncClient, client: Client, made: Made
) -> None:
    name = f"later-{made.cycle_id.hex[:8]}"
    designed = await made.operation("designing", "design", result=on_record(design()))
    newer = on_record(training()) | {"folds": [{"of": "a newer desk"}]}
    trained = await made.operation("training", "train", result=newer)
    async with strategy(made, name, designed, trained):
        listed = await client.ask(STRATEGIES, StrategiesQuery(names=(name,)))
        whole = await http.get(f"/api/v1/strategies/{name}")
        report = await http.get(f"/api/v1/strategies/{name}/report")

    assert len(listed.strategies) == 1, "its figures can be read"
    for answer in (whole, report):
        assert problem(answer, 409, "unreadable")["detail"].startswith(f"strategy {name} is on")


@asynccontextmanager
async def strategy(made: Made, name: str, designed: UUID, trained: UUID) -> AsyncIterator[None]:
    """A strategy on record, by its operations. Other tests list all there are: it goes again."""
    await made.db.execute(
        "insert into strategies (cycle_id, name, spec_sha256, as_of, design_op_id, train_op_id)"
        " values ($1, $2, $3, $4, $5, $6)",
        made.cycle_id,
        name,
        "0" * 64,
        AS_OF,
        designed,
        trained,
    )
    try:
        yield
    finally:
        await made.db.execute("delete from strategies where name = $1", name)


def on_record(result: Message) -> dict[str, Any]:
    return result.model_dump(mode="json")


async def decided(
    made: Made, account: str, result: object, at: str, step: str = "validate"
) -> UUID:
    """A decision of this account, made at this time."""
    done = await made.operation("deciding", step, result=result)
    await made.db.execute(
        f"update operations set account = $2, finished_at = {at} where op_id = $1", done, account
    )
    return done


async def test_a_cycle_counts_the_later_outcomes_that_cannot_be_read(
    http: httpx2.AsyncClient, client: Client, made: Made
) -> None:
    about = {"cycle_id": str(made.cycle_id), "pipeline": "rules"}
    read = about | {"as_of": "2012-06-29", "sessions": 5, "session": "2012-07-09"}
    newer = about | {"of": "a newer desk"}
    # Two cycles at once may tell the same outcome.
    for state, told in (("memorizing", [read, newer]), ("again", [read, newer])):
        memory = await made.operation(state, "memorize", result={"outcomes": told})
        await made.db.execute("update operations set as_of = as_of + 10 where op_id = $1", memory)

    view = await client.ask(CYCLE, CycleQuery(cycle_id=str(made.cycle_id)))
    page = await http.get(f"/decisions/{made.cycle_id}/rules", headers={"Accept": "text/html"})

    (pipeline,) = view.pipelines
    assert [outcome.sessions for outcome in pipeline.outcomes] == [5]
    assert pipeline.unreadable_outcomes == 1
    assert "1 outcome cannot be read" in page.text
