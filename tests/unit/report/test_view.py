"""One description, rendered in the terminal, on a page and as JSON: the same words everywhere."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from contracts.types import Money
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import BLANK, Absence, Column, Facts, NoRows, Part, Table
from services.cli.render.described import placed
from services.cli.shell.terminal import write
from services.console.pages.show import Show
from services.console.pages.statics import Statics

FIRST = date(2012, 6, 29)
HELD = Table(
    (
        Column("Ticker"),
        Column("Shares", right=True, spare=2),
        Column("Stop", right=True),
        Column("P&L", right=True),
        Column("Since", spare=1),
        Column("Note", wraps=True),
    ),
    (
        view.row(
            view.say("AAPL", link="/tickers/AAPL"),
            view.shares(Decimal(39)),
            view.price(Money(amount=Decimal("545.2"), currency="USD")),
            view.gain(Decimal("-86.104"), "USD", Decimal("-0.857")),
            view.day(FIRST),
            BLANK,
            key="AAPL",
        ),
        view.row(
            view.say("EEE.L", link="/tickers/EEE.L"),
            view.shares(Decimal(1200)),
            view.price(Money(amount=Decimal("552.69"), currency="GBX")),
            view.gain(Decimal(12), "USD"),
            view.day(None),
            BLANK,
            key="EEE.L",
        ),
    ),
    title="Positions",
    currency="USD",
    notes=view.notes("2 fills after this close are not counted yet", ""),
)
SUMS = Facts(
    (("Equity", view.money(Decimal("100.5"), "USD").strong), ("Return", view.gain_percent(None)))
)


def printed(part: Part | tuple[Facts, ...], width: int = 100) -> str:
    """The part as the terminal shows it."""
    console = Console(file=io.StringIO(), width=width)
    write(placed(part, console), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def page(part: Table | Facts, macro: str) -> str:
    """The part as a page shows it."""
    statics = cast("Statics", SimpleNamespace(url=str))
    show = Show(
        statics, lambda: datetime.now(UTC), has_login=lambda: False, is_demo=False, first_request=""
    )
    source = "{% import 'view.html' as view with context %}{{ view." + macro + "(it) }}"
    facts: dict[str, Any] = {"it": part, "now": datetime.now(UTC), "path": "/"}
    return show.environment.from_string(source).render(**facts)


def test_a_price_in_another_currency_than_the_table_says_carries_its_own() -> None:
    for text in (printed(HELD), page(HELD, "table")):
        assert "552.69 GBX" in text
        assert "545.20" in text
        assert "545.20 USD" not in text


def test_what_is_not_known_is_a_dash_and_no_zero() -> None:
    assert printed(SUMS).splitlines()[-1].split() == ["return", "-"]
    assert "\N{EN DASH}" in page(SUMS, "facts")
    assert view.data(SUMS)["facts"] == {
        "Equity": {"value": "100.5", "unit": "USD"},
        "Return": {"value": None},
    }


def test_a_column_in_which_nothing_is_said_is_left_out() -> None:
    assert "note" not in printed(HELD)
    assert "Note" not in page(HELD, "table")


@pytest.mark.parametrize("width", [40, 46, 60, 80])
def test_a_narrow_terminal_loses_spare_columns_first_and_never_a_figure(width: int) -> None:
    text = printed(HELD, width)
    assert "-86.10 (-0.86%)" in text
    assert "552.69 GBX" in text
    assert max(map(len, text.splitlines())) <= width
    assert ("Fri 2012-06-29" in text) == (width >= 60)


def test_a_gain_is_toned_and_a_link_leads_to_its_page() -> None:
    html = page(HELD, "table")
    assert '<td class="right loss">-86.10 (-0.86%)</td>' in html
    assert '<a href="/tickers/AAPL">AAPL</a>' in html
    assert html.count("<th ") == 5 + 2  # heads, and the first cell of each row


@pytest.mark.parametrize("absence", list(Absence))
def test_the_three_absences_stay_apart(absence: Absence) -> None:
    none = Table(HELD.columns, (), empty=NoRows("No position.", absence))
    assert printed(none).strip() == "No position."
    assert "No position." in page(none, "table")
    assert view.data(none)["absent"] == absence.value


def test_programs_get_exact_values_with_their_units() -> None:
    first = cast("list[dict[str, Any]]", view.data(HELD)["rows"])[0]
    assert first["P&L"] == {"value": "-86.104", "unit": "USD"}
    assert first["Since"] == {"value": "2012-06-29"}


def test_rows_are_sorted_by_their_exact_values_unknown_ones_last() -> None:
    rows = [
        view.row(view.say(name), cell)
        for name, cell in (
            ("a", view.unknown()),
            ("b", view.money(Decimal(2), "USD")),
            ("c", view.money(Decimal(10), "USD")),
        )
    ]
    assert [it.cells[0].text for it in view.by_value(rows, 1)] == ["c", "b", "a"]


def test_facts_stand_side_by_side_only_where_they_fit() -> None:
    both = (SUMS, SUMS)
    assert printed(both, 80).count("equity") == 2
    assert len([line for line in printed(both, 80).splitlines() if "equity" in line]) == 1
    wide = Facts((("A long label that needs much room here", view.say("and words")),))
    assert len(printed((wide, wide), 60).splitlines()) == 3


def test_a_note_has_its_tone() -> None:
    assert view.notes("a", "", tone=Tone.WARN) == (view.Text("a", Tone.WARN),)


@pytest.mark.parametrize(
    ("amount", "shown", "tone"),
    [
        ("0", "+0.00%", Tone.QUIET),
        ("0.004", "+0.00%", Tone.QUIET),
        ("-0.004", "+0.00%", Tone.QUIET),
        ("0.01", "+0.01%", Tone.GOOD),
        ("-0.01", "-0.01%", Tone.BAD),
    ],
)
def test_a_return_has_the_tone_of_what_is_shown(amount: str, shown: str, tone: Tone) -> None:
    cell = view.gain_percent(Decimal(amount))
    assert (cell.text, cell.tone) == (shown, tone)
    assert view.gain(Decimal(amount), "USD").tone is tone
