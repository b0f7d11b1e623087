"""The page of decisions: what did nothing is folded, and unfolded on demand."""

from pathlib import Path

import httpx2
import orjson

from tests.integration.console.conftest import Made

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
        await made.db.execute(
            "update operations set account = $2 where op_id = $1", *(done, account)
        )
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
    done = await made.operation("deciding", "validate", result={"of": "a newer desk"})
    await made.db.execute(
        "update operations set account = $2, finished_at = now() where op_id = $1", done, account
    )
    paths = ("/", f"/decisions?account={account}", f"/decisions?account={account}&everything=true")
    try:
        for path in paths:
            page = await http.get(path, headers={"Accept": "text/html"})
            assert page.status_code == 200, path
            assert "unreadable" in page.text, path
            assert f'href="/cycles/{made.cycle_id}"' in page.text, path
    finally:  # the API reads contracts, and other tests ask it for the newest decisions
        await made.db.execute("delete from operations where op_id = $1", done)
