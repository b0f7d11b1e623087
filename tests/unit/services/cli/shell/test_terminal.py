"""Tables on narrow terminals: nothing is cut and nothing is a ribbon."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from services.cli.shell.terminal import one_line, table, write

WHY = "the last complete month's return is 0.5 points or more below the mean of three months"


def _printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    grid = table("position", "assessment", ("sell", "right"), ("then a stop at", "right"), "why")
    grid.add_row(Text("AAPL", "bold"), "STRONG EXIT (momentum, regime)", "29", "514.83 USD", WHY)
    grid.add_row(Text("GOOG", "bold"), "HOLD", "", "", one_line("nothing fired " * 9))
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
    grid.add_row("└─ a branch of the tree", "28f4da97", one_line(WHY))
    console = Console(file=io.StringIO(), width=40)
    write(grid, console)

    assert isinstance(console.file, io.StringIO)
    head, row = console.file.getvalue().splitlines()
    assert head.split()[:2] == ["what", "id"]
    assert row.startswith("└─ a branch of the tree  28f4da97  ")


def test_what_may_be_cut_makes_no_blocks() -> None:
    grid = table("cycle", "why")
    grid.add_row("28f4da97", one_line(WHY))
    console = Console(file=io.StringIO(), width=20)
    write(grid, console)

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "cycle     why\n28f4da97  the last …\n"
