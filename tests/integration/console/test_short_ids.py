"""Addresses: ids by their first digits, and parameters that a path does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.console.over_http import problem

if TYPE_CHECKING:
    import httpx2

    from tests.integration.console.conftest import Made


async def test_a_cycle_is_named_by_its_first_digits_in_every_address(
    http: httpx2.AsyncClient, made: Made
) -> None:
    await made.operation("planning", "plan")
    short, whole = str(made.cycle_id)[:8], str(made.cycle_id)
    assert (await http.get(f"/api/v1/cycles/{short}")).json()["cycle_id"] == whole
    for path in (f"/cycles/{short}/operations", f"/cycles/{short}/events"):
        assert (await http.get(f"/api/v1{path}")).status_code == 200
    for path in ("/api/v1/decisions", "/api/v1/approvals"):
        assert (await http.get(f"{path}?cycle_id={short}")).status_code == 200
    page = await http.get(f"/cycles/{short}")
    assert (page.status_code, whole in page.text) == (200, True)
    for wrong in ("abc", "no-id", f"{short}{'0' * 20}"):
        problem(await http.get(f"/api/v1/cycles/{wrong}"), 404, "not_found")
    problem(await http.get(f"/api/v1/cycles/{'0' * 500}"), 422, "invalid")


async def test_an_operation_is_named_by_its_first_digits_in_every_address(
    http: httpx2.AsyncClient, made: Made
) -> None:
    whole = str(await made.operation("planning", "plan"))
    short, cycle = whole[:8], str(made.cycle_id)
    for path in (f"/api/v1/operations/{short}", f"/api/v1/operations/{whole}"):
        assert (await http.get(path)).json()["data"]["op_id"] == whole
    assert (await http.get(f"/api/v1/operations/{cycle[:8]}")).json()["data"]["op_id"] == cycle
    assert (await http.get(f"/api/v1/operations/{short}/record")).status_code == 200
    page = await http.get(f"/operations/{short}")
    assert (page.status_code, whole in page.text) == (200, True)
    for wrong in ("abc", "no-id", f"{short}{'0' * 20}"):
        problem(await http.get(f"/api/v1/operations/{wrong}"), 404, "not_found")


async def test_a_parameter_that_the_path_does_not_take_is_refused_with_what_was_meant(
    http: httpx2.AsyncClient,
) -> None:
    told = problem(await http.get("/api/v1/portfolio?acount=mine"), 422, "invalid")
    assert told["field"] == "query.acount"
    assert told["detail"] == (
        "query.acount: unknown; the path has only account, fills; did you mean account?"
    )
    told = problem(await http.get("/api/v1/halts?day=1"), 422, "invalid")
    assert told["detail"] == "query.day: unknown; the path has no query parameters"
