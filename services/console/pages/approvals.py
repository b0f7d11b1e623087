"""The inbox: proposals that wait for a person."""

from fastapi import APIRouter, Response

from contracts.approval import ApprovalsQuery
from contracts.message import PAGE_MAX
from services.console import handler
from services.console.http.requests import Desk
from services.console.pages.show import ShowPage

POSITION = "position"
"""The book of an account's balances that has shares."""


pages = APIRouter()


@pages.get("/approvals")
async def approvals_page(desk: Desk, show: ShowPage) -> Response:
    """The page; its buttons call the API's paths below /approvals."""
    page = await handler.approvals(ApprovalsQuery(limit=PAGE_MAX), store=desk.store)
    held = {
        (account, row["ticker"]): row["quantity"]
        for account in dict.fromkeys(waiting.account for waiting in page.approvals)
        for row in await desk.store.balances(account)
        if row["book"] == POSITION
    }
    return show("approvals.html", it=page, held=held)
