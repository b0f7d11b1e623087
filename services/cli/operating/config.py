"""`deskbus config`: every setting in force."""

import os
from pathlib import Path

from rich.text import Text

from libs.report.settings import PREFIX, in_force
from libs.runtime.settings import SETTINGS_FILE
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import load_settings
from services.cli.shell.terminal import emit, err, out, table, write

app = group()


@app.command()
def config(json: JsonOption = False) -> None:
    """Show every setting: its value, where that came from, and what it means.

    The environment (DESKBUS_...) counts above deskbus.toml in the working directory, which counts
    above the defaults. Secrets are masked.
    """
    entries = in_force(load_settings(), os.environ, Path(SETTINGS_FILE))
    if json:
        emit(entries)
        return
    grid = table("setting", ("value", "gives"), "from", "meaning")
    for entry in entries:
        is_set = entry.source != "default"
        grid.add_row(
            entry.name,
            Text(entry.value, style="bold green" if is_set else ""),
            Text(entry.source, style="green" if is_set else "dim"),
            Text(entry.meaning, style="dim"),
        )
    write(grid, out())
    example = f"{PREFIX}{entries[0].name.upper()}"
    err().print(f"set one as {example}=... or in {SETTINGS_FILE}", style="dim")
