"""Pages render the tables of libs/report: every cell of them is there, escaped, with its link."""

import html
import re
from datetime import UTC, datetime
from typing import Any

from fastapi import Request

from contracts.cycle_query import CycleView
from contracts.types import Failure
from contracts.upkeep import DeadLetter
from libs.report import letters, story
from libs.report.exits import distances
from libs.report.strategies import tables
from libs.report.view import Table
from services.console.pages.decisions import tables_of
from services.console.pages.show import Show
from services.console.pages.statics import Statics
from tests.unit.services.cli.render.test_distances import held, view_of
from tests.unit.services.cli.trading.test_strategies import stopped, view

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SHOW = Show(Statics(), lambda: NOW, has_login=lambda: False, is_demo=False, first_request="")
REQUEST = Request({"type": "http", "path": "/x", "headers": [], "query_string": b""})


def page(template: str, **facts: Any) -> str:
    return bytes(SHOW(REQUEST, template, **facts).body).decode()


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def assert_shown(of: Table, body: str) -> None:
    assert of.rows
    shown = words(body)
    cells = [cell for row in of.in_use.rows for cell in row.cells]
    texts = [" ".join(cell.shown(of.currency).split()) for cell in cells]
    assert [text for text in texts if text not in shown] == []
    assert [cell.link for cell in cells if html.escape(cell.link) not in body] == []


def test_a_decision_shows_what_was_looked_into_what_the_rules_said_and_the_orders(
    cycle_view: CycleView,
) -> None:
    told = story.tell(cycle_view)
    one = told.pipelines[0]
    shown = tables_of(one, cycle_view.as_of)
    body = page(
        "decision.html",
        it=cycle_view,
        story=told,
        one=one,
        reports=one.reports,
        charted=(),
        tables=shown,
    )

    for name in ("tickers", "rules", "kept", "orders"):
        if shown[name].rows:
            assert_shown(shown[name], body)
    assert_shown(shown["tickers"], body)
    assert_shown(shown["orders"], body)


def test_positions_have_a_check_each_and_lead_to_their_chart() -> None:
    shown = distances(view_of(held(), held(ticker="IBM")), "main")
    body = page(
        "exits.html",
        it=view_of(held()),
        positions=shown,
        why="",
        account="main",
        accounts=("main",),
    )

    assert_shown(shown, body)
    assert body.count("/check?account=main") == 2


def test_strategies_lead_to_their_pages_and_can_be_selected() -> None:
    strategies = [view(), stopped()]
    shown = tables.listed(strategies)
    body = page(
        "strategies.html",
        it={"unreadable": (), "strategies": strategies, "more": False},
        listed=shown,
        names_max=8,
    )

    assert "/strategies/rise-and-fall" in body
    assert body.count('type="checkbox"') == len(strategies)


def test_a_dead_letter_is_escaped_and_leads_to_its_page() -> None:
    failure = Failure(code="poison", message="<b>bad</b>")
    letter = DeadLetter(sequence=3, subject="desk.v1", at=NOW, failure=failure, size_bytes=12)
    shown = letters.listed([letter])
    body = page("letters.html", letters=shown, shown=50)

    assert '<a href="/letters/3">3</a>' in body
    assert "<b>bad" not in body


def test_a_screen_without_rows_says_so() -> None:
    none = distances(view_of(), "main")
    body = page(
        "exits.html",
        it=view_of(),
        positions=none,
        why="",
        account="main",
        accounts=("main",),
    )

    assert none.empty.text in body
