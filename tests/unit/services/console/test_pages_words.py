"""Words of single pages, drawn from what they are given."""

from datetime import UTC, date, datetime
from types import SimpleNamespace

from fastapi import Request

from services.console.pages.show import Show
from services.console.pages.statics import Statics

SHOW = Show(
    Statics(),
    lambda: datetime(2026, 11, 25, tzinfo=UTC),
    has_login=False,
    is_demo=False,
    first_request="deskbus up",
)


def test_an_account_that_holds_nothing_is_not_told_to_begin() -> None:
    asked = Request({"type": "http", "path": "/exits", "headers": [], "query_string": b""})
    exits = SimpleNamespace(as_of=date(2012, 6, 29), positions=())
    answer = SHOW(asked, "exits.html", it=exits, account="main", accounts=("main",), why="")

    page = bytes(answer.body).decode()
    assert "No open positions" in page
    assert 'href="/portfolio?account=main"' in page
    assert "cycle request --as-of" not in page
