"""The page of a desk without an account, wherever it is asked for."""

from datetime import UTC, datetime
from functools import partial

import pytest
from fastapi import Request

from libs.runtime.nearest import UnknownAccount
from services.console.pages.account.portfolio import no_account
from services.console.pages.show import Show
from services.console.pages.statics import Statics

SHOW = Show(
    Statics(),
    lambda: datetime(2026, 11, 25, tzinfo=UTC),
    has_login=lambda: False,
    is_demo=False,
    first_request="deskbus cycle request --wait",
)


def asked(path: str) -> Request:
    return Request({"type": "http", "path": path, "headers": [], "query_string": b""})


@pytest.mark.parametrize(
    ("path", "title"), [("/portfolio", "Portfolio"), ("/reports", "Daily reports")]
)
def test_it_has_the_title_that_the_menu_has(path: str, title: str) -> None:
    page = bytes(SHOW(asked(path), "no_account.html", account="main").body).decode()
    assert page.count("<h1>") == 1
    assert f"<h1>{title}</h1>" in page


def test_it_names_the_command_that_this_desks_data_can_be_asked_by() -> None:
    page = bytes(SHOW(asked("/portfolio"), "no_account.html", account="main").body).decode()
    assert "<code>deskbus cycle request --wait</code>" in page


def test_a_tickers_page_is_titled_by_the_ticker() -> None:
    answer = no_account(partial(SHOW, asked("/tickers/AAPL")), "main", (), title="AAPL")
    assert "<h1>AAPL</h1>" in bytes(answer.body).decode()


def test_where_there_are_accounts_a_mistyped_one_is_refused() -> None:
    with pytest.raises(UnknownAccount, match="main"):
        no_account(partial(SHOW, asked("/portfolio")), "mian", ("main",))
