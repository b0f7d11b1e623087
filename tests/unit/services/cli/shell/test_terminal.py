"""Tables on narrow terminals: nothing is cut and nothing is a ribbon."""

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from services.cli.shell.terminal import (
    WIDTH_MAX,
    WIDTH_MIN,
    Sheet,
    err,
    facts,
    out,
    table,
    write,
)

WHY = "the last complete month's return is 0.5 points or more below the mean of three months"


def _cut(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    grid = table("position", "assessment", ("sell", "right"), ("then a stop at", "right"), "why")
    grid.add_row(Text("AAPL", "bold"), "STRONG EXIT (momentum, regime)", "29", "514.83 USD", WHY)
    grid.add_row(Text("GOOG", "bold"), "HOLD", "", "", _cut("nothing fired " * 9))
    write(grid, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [100, 118, 160])
def test_where_there_is_room_it_is_a_table(width: int) -> None:
    lines = _printed(width).splitlines()

    assert lines[0].split() == ["position", "assessment", "sell", "then", "a", "stop", "at", "why"]
    assert lines[1].startswith("AAPL      STRONG EXIT (momentum, regime)    29      514.83 USD  ")
    assert all(len(line) <= width for line in lines)


def test_at_80_columns_each_row_is_a_block_with_every_figure_whole() -> None:
    assert _printed(80) == (
        "AAPL\n"
        "  assessment       STRONG EXIT (momentum, regime)\n"
        "  sell             29\n"
        "  then a stop at   514.83 USD\n"
        "  why              the last complete month's return is 0.5 points or more below\n"
        "                   the mean of three months\n"
        "GOOG\n"
        "  assessment       HOLD\n"
        "  why              nothing fired nothing fired nothing fired nothing fired\n"
        "                   nothing fired nothing fired nothing fired nothing fired\n"
        "                   nothing fired\n"
    )


def test_a_tree_keeps_its_rows() -> None:
    grid = table("what", "id", "result")
    grid.keeps_rows = True
    grid.add_row("└─ a branch of the tree", "28f4da97", _cut(WHY))
    console = Console(file=io.StringIO(), width=40)
    write(grid, console)

    assert isinstance(console.file, io.StringIO)
    head, row = console.file.getvalue().splitlines()
    assert head.split()[:2] == ["what", "id"]
    assert row.startswith("└─ a branch of the tree  28f4da97  ")


def test_what_may_be_cut_makes_no_blocks() -> None:
    grid = table("cycle", "why")
    grid.add_row("28f4da97", _cut(WHY))
    console = Console(file=io.StringIO(), width=24)
    write(grid, console)

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "cycle     why\n28f4da97  the last comp…\n"


def _text(renderable: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    write(renderable, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _books() -> Sheet:
    grid = table(
        "account",
        ("equity", "right"),
        ("fee", "right"),
        "note",
        "as of",
        "why",
        spare=("as of", "fee"),
    )
    grid.add_row("main", "103,110.65 USD", "2.34", "", "2012-06-29", "the trader picked nothing")
    return grid


def test_where_the_line_is_too_narrow_a_table_does_without_what_can_be_spared() -> None:
    heads = [_text(_books(), width).splitlines()[0].split() for width in (80, 62, 50)]

    assert heads == [
        ["account", "equity", "fee", "note", "as", "of", "why"],
        ["account", "equity", "fee", "why"],
        ["account", "equity", "why"],
    ]
    block = _text(_books(), 30)
    assert block.splitlines()[0] == "main"
    assert "  fee       2.34\n" in block, "a block has room for what a table spares"


@pytest.mark.parametrize(
    "around",
    [
        lambda grid: Padding(grid, (0, 0, 0, 2)),
        lambda grid: Group(Text("head"), Padding(grid, (0, 0, 0, 2))),
        lambda grid: facts([("Cost", Group(grid, Text("and 3 tool calls")))]),
    ],
)
def test_no_figure_is_cut_however_deep_the_table_stands(
    around: Callable[[Sheet], RenderableType],
) -> None:
    for width in range(44, 120):
        text = _text(around(_books()), width)
        assert "103,110.65 USD" in text, width
        assert max(map(len, text.splitlines())) <= width


FIGURES = st.decimals(min_value=-9_999_999, max_value=9_999_999, places=2).map("{:,.2f}".format)
WORDS = st.sampled_from(["", "sell", "exit signal: momentum", WHY])


@given(
    rows=st.lists(st.tuples(WORDS, FIGURES, FIGURES, FIGURES, WORDS), min_size=1, max_size=4),
    width=st.integers(min_value=40, max_value=160),
)
def test_whatever_a_table_holds_its_figures_are_whole_or_their_column_is_spared(
    rows: list[tuple[str, ...]], width: int
) -> None:
    grid = table(
        "what",
        ("price", "right"),
        ("value", "right"),
        ("P&L", "right"),
        "why",
        spare=("P&L",),
    )
    for row in rows:
        grid.add_row(*row)
    text = _text(grid, width)

    for _, price, value, gain, _ in rows:
        assert price in text
        assert value in text
        assert gain in text or "P&L" not in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("columns", "data", "words"),
    [("20", WIDTH_MIN, 20), ("60", 60, 60), ("200", WIDTH_MAX, WIDTH_MAX)],
)
def test_data_have_a_width_in_which_figures_stay_whole_and_words_the_terminals_own(
    columns: str, data: int, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for console in (out, err):
        console.cache_clear()
    assert (out().width, err().width) == (data, words)
    for console in (out, err):
        console.cache_clear()
