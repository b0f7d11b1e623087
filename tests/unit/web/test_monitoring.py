"""What watches a process over HTTP, without a socket."""

from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from libs.runtime.http_address import HttpAddress
from libs.telemetry import metrics, readiness
from libs.telemetry.metric import REGISTRY
from libs.web.guard import Guard
from libs.web.monitoring import Measured, Watched, nothing_else

TOKEN = "a-token-of-some-length"


def asking(app: ASGIApp) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost")


def counted(route: str, status: int, method: str = "GET") -> float:
    labels = {"route": route, "method": method, "status": str(status)}
    return REGISTRY.get_sample_value("deskbus_http_requests_total", labels) or 0


def shop() -> FastAPI:
    router = APIRouter(prefix="/cycles")

    @router.get("/{cycle_id}")
    async def get_cycle(cycle_id: str) -> str:
        return cycle_id

    app = FastAPI()
    app.include_router(router, prefix="/api/v1")
    return app


async def test_the_metrics_are_read_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    async def halts() -> None:
        read.append(1)
        metrics.HALTS.set(len(read))

    with readiness.sampled("t", halts, (metrics.HALTS,)):
        async with asking(Watched(nothing_else)) as http:
            said = await http.get("/metrics")
            again = await http.get("/metrics")
    assert said.headers["content-type"].startswith("text/plain")
    assert "\ndeskbus_halts 1.0\n" in said.text
    assert "\nprocess_cpu_seconds_total " in said.text
    assert read == [1], "two who ask at the same time get the same figures"
    assert again.status_code == 200


async def test_a_process_is_ready_only_where_its_checks_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "FRESH_S", 0.0)
    wrong: list[str] = ["not connected"]

    async def nats() -> str:
        return wrong[0]

    with readiness.checked("nats risk", nats):
        async with asking(Watched(nothing_else)) as http:
            refused = await http.get("/readyz")
            alive = await http.get("/livez")
            wrong[0] = ""
            ready = await http.get("/readyz")
    assert (refused.status_code, refused.text) == (503, "nats risk: not connected\n")
    assert (alive.status_code, ready.status_code) == (200, 200)


async def test_a_port_that_is_watched_has_nothing_else() -> None:
    async with asking(Watched(nothing_else)) as http:
        assert (await http.get("/api/v1/cycles")).status_code == 404
        assert (await http.post("/metrics")).status_code == 404


async def test_requests_are_counted_by_the_route_that_took_them() -> None:
    before = counted("/api/v1/cycles/{cycle_id}", 200)
    async with asking(Measured(Watched(shop()))) as http:
        for cycle_id in "abc":
            await http.get(f"/api/v1/cycles/{cycle_id}")
    assert counted("/api/v1/cycles/{cycle_id}", 200) == before + 3


async def test_files_of_a_folder_are_counted_together(tmp_path: Path) -> None:
    (tmp_path / "page.css").write_text("")
    app = shop()
    app.mount("/static", StaticFiles(directory=tmp_path))
    async with asking(Measured(app)) as http:
        for name in ("page.css", "nothing.css", "nor-this.css"):
            await http.get(f"/static/{name}")
    assert counted("/static/*", 200) == 1
    assert counted("/static/*", 404) == 2


async def test_a_strangers_paths_are_counted_together() -> None:
    before = counted("unmatched", 404)
    async with asking(Measured(Watched(shop()))) as http:
        for path in ("/wp-admin", "/.env", "/api/v1/nothing"):
            await http.get(path)
    assert counted("unmatched", 404) == before + 3


@pytest.mark.parametrize(
    ("sent", "status"), [((), 401), ((("authorization", f"Bearer {TOKEN}"),), 200)]
)
async def test_where_there_is_a_token_the_metrics_take_it(
    sent: Sequence[tuple[str, str]], status: int
) -> None:
    address = HttpAddress("127.0.0.1", 1, TOKEN)
    before = counted("/metrics", status)
    async with asking(Measured(Guard(Watched(shop()), address))) as http:
        answer = await http.get("/metrics", headers=dict(sent))
    assert answer.status_code == status
    assert counted("/metrics", status) == before + 1
