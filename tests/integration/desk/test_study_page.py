"""A study's page over HTTP: there at once, while its scores are computed beside all other pages."""

import asyncio
from threading import Event
from typing import Any

import httpx2
import pytest

from contracts.study import CELLS_MAX
from libs.runtime.computing import ComputingBroke
from services.console.studies import score
from tests.integration.desk.caller import Caller, Json
from tests.integration.desk.test_study import begun, ended, study

SCORED_S = 90.0
COMING = "Its scores are being computed"


async def completed(user: Caller) -> Json:
    """A study that has run."""
    file = study()
    await begun(user, file)
    assert (await ended(user, file["name"]))["completed"] == 3
    return file


async def page(site: httpx2.AsyncClient, path: str) -> str:
    answer = await site.get(path)
    assert answer.status_code == 200, answer.text
    return str(answer.text)


async def once_scored(site: httpx2.AsyncClient, path: str) -> httpx2.Response:
    """The page when it no longer says that its scores are on the way."""
    async with asyncio.timeout(SCORED_S):
        while True:
            answer = await site.get(path)
            if COMING not in answer.text:
                return answer
            await asyncio.sleep(0.05)


async def test_a_studys_page_and_others_are_there_while_its_scores_are_computed(
    site: httpx2.AsyncClient, user: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, asked, computed = Event(), [], score.computed

    async def held(*request: Any) -> Any:
        asked.append(request)
        while not go.is_set():  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.01)
        return await computed(*request)

    monkeypatch.setattr(score, "computed", held)
    path = f"/studies/{(await completed(user))['name']}"

    for _ in range(3):
        text = await page(site, path)
        assert COMING in text
        assert "3 of 3 cells" in text
        assert 'data-live-s="1"' in text
    assert "3 of 3 cells" in await page(site, "/studies")
    assert "<h1" in await page(site, "/approvals")

    go.set()
    assert "In short" in (await once_scored(site, path)).text
    assert len(asked) == 1, "whoever looks again has the one score that is computed"


async def test_scores_that_cannot_be_computed_are_told_and_not_waited_for_for_ever(
    site: httpx2.AsyncClient, user: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise ComputingBroke("it ran out of memory")

    monkeypatch.setattr(score, "computed", broken)
    path = f"/studies/{(await completed(user))['name']}"

    assert (await once_scored(site, path)).status_code == 500


async def test_a_page_of_cells_beyond_all_that_a_study_may_have_is_refused(
    site: httpx2.AsyncClient,
) -> None:
    assert (await site.get(f"/studies/any/cells?skip={CELLS_MAX + 1}")).status_code == 422
