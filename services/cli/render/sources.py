"""Where the figures in a ticker's texts are from."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from libs.facts import amounts
from libs.report.cited import TextPiece
from libs.report.tickers import TickerRow


def of_ticker(row: TickerRow) -> RenderableType | None:
    """Each figure once, with the stage that wrote it first and its facts; None without figures."""
    pieces: dict[tuple[str, Sequence[str]], tuple[str, TextPiece]] = {}
    for stage, lines in row.texts.items():
        for piece in (entry for line in lines for entry in line):
            if piece.figure is not None:
                pieces.setdefault((piece.text, piece.figure.facts), (stage, piece))
    if not pieces:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    for stage, piece in pieces.values():
        grid.add_row(amounts.plain(piece.text), stage, amounts.plain(piece.source))
    return grid
