"""What the terminal shows of a description."""

import io
from collections.abc import Iterable

from rich.console import Console

from services.cli.render.described import Shown, write_screen


def printed(
    parts: Iterable[Shown], width: int = 110, encoding: str = "utf-8", *, colour: bool = False
) -> str:
    """The parts as they are printed."""
    raw = io.BytesIO()
    sink = io.TextIOWrapper(raw, encoding=encoding)
    system = "standard" if colour else None
    console = Console(
        file=sink, width=width, highlight=False, force_terminal=colour, color_system=system
    )
    write_screen(parts, console)
    sink.flush()
    return raw.getvalue().decode(encoding)


def lines(parts: Iterable[Shown], width: int = 110) -> list[str]:
    """The lines, with one blank between words."""
    return [" ".join(line.split()) for line in printed(parts, width).splitlines()]
