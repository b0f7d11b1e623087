"""`deskbus init`: a folder to start from."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.text import Text

from services.cli.shell.invalid import writing
from services.cli.shell.options import JsonOption, group
from services.cli.shell.terminal import aside, emit, put

TEMPLATES = Path(__file__).parent / "folder"
EXAMPLES = ("AAPL", "GOOG", "IBM", "MSFT")
EXAMPLE_SINCE = date(2011, 1, 3)
"""Of the example's prices: two years, enough for every indicator."""
INTO_YOURS = "name a folder of yours: deskbus init my-desk"

app = group()


class Written(BaseModel):
    """One file: whether it was written now, or was there and was left as it is."""

    file: Path
    written: bool
    meaning: str


def _template(name: str) -> Callable[[], str]:
    return (TEMPLATES / name).read_text


def _prices(ticker: str) -> Callable[[], str]:
    """The bundled prices of a ticker as a file of one's own would have them."""

    def csv() -> str:
        import polars as pl  # noqa: PLC0415 - slow, and only wanted here

        from libs.market.replay.files import read_bundled  # noqa: PLC0415
        from libs.market.replay.layout import find_bundled  # noqa: PLC0415

        bars = read_bundled(find_bundled())[ticker]
        return bars.filter(pl.col("date") >= EXAMPLE_SINCE).write_csv()

    return csv


FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "deskbus.toml": ("settings and scheduled jobs", _template("deskbus.toml")),
    "exit_signals.toml": ("exit rules and stops", _template("exit_signals.toml")),
    "study.yaml": ("a study: do the rules beat a coin flip", _template("study.yaml")),
    "strategy.yaml": (
        "a strategy to train and backtest, on the prices that come with Deskbus",
        _template("strategy.yaml"),
    ),
    **{
        f"data/{ticker}.csv": (
            f"example prices in the CSV format, real ones of {ticker}, {EXAMPLE_SINCE:%Y} to 2013",
            _prices(ticker),
        )
        for ticker in EXAMPLES
    },
    "data/sectors.csv": (
        "each ticker's sector, which the risk rules need",
        _template("sectors.csv"),
    ),
    "data/source.toml": ("the data's name, currency and exchange", _template("source.toml")),
}


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder; created if it does not exist.")] = (
        Path()
    ),
    json: JsonOption = False,
) -> None:
    """Write a folder to start from: settings, jobs, exit rules, data as CSV, a study, a strategy.

    It never changes an existing file. Commands that you run in the folder use these files.
    """
    rows = [write_new(folder / name, meaning, text) for name, (meaning, text) in FILES.items()]
    if json:
        emit(rows)
        return
    show_written(rows)
    aside(_next(folder))


def show_written(rows: Sequence[Written]) -> None:
    """A line for each file."""
    width = max(len(str(row.file)) for row in rows)
    for row in rows:
        mark, style = ("✓", "green") if row.written else ("·", "dim")
        words = row.meaning if row.written else "existed already; not changed"
        line = Text.assemble((f"{mark} ", style), f"{row.file!s:<{width}}  ", (words, "dim"))
        put(line)


def write_new(path: Path, meaning: str, text: Callable[[], str], hint: str = INTO_YOURS) -> Written:
    """Write the file unless one is there, which stays as it is. Raises `CliProblem` with the
    `hint` where it cannot be written."""
    row = Written(file=path, written=not path.exists(), meaning=meaning)
    if row.written:
        with writing(path, hint):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with path.open("x") as file:  # never over one that has come meanwhile
                    file.write(text())
            except FileExistsError:
                row.written = False
    return row


def _next(folder: Path) -> str:
    enter = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    return (
        f"next: {enter}deskbus up --detach, then deskbus open; or replay the jobs of half a year:\n"
        "  deskbus schedule replay --since 2012-01-03 --until 2012-06-29"
    )
