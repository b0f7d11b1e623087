"""`deskbus config`: every setting in force, and a limit that is set."""

import os
from pathlib import Path

import typer

from libs.report import view
from libs.report.settings import in_force
from libs.report.tones import Tone
from libs.report.view import Column, Table
from libs.runtime.settings import SETTINGS_FILE
from services.cli.operating.set_limit import set_
from services.cli.render.described import show
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import load_settings

app = group()
app.command("set")(set_)


@app.callback(invoke_without_command=True, no_args_is_help=False)
def config(context: typer.Context, json: JsonOption = False) -> None:
    """Show every setting: its value, its source and its meaning.

    The environment (DESKBUS_...) overrides deskbus.toml in the working directory, which overrides
    the defaults. Secrets are masked.
    """
    if context.invoked_subcommand is not None:
        return
    entries = in_force(load_settings(), os.environ, Path(SETTINGS_FILE))
    example = f"DESKBUS_HTTP_PORT=... or `port` below [http] in {SETTINGS_FILE}"
    table = Table(
        (
            Column("Setting"),
            Column("Value", wraps=True),
            Column("From"),
            Column("Meaning", wraps=True),
        ),
        tuple(
            view.row(
                entry.name,
                view.say(entry.value, tone).strong if tone else view.say(entry.value),
                view.say(entry.source, tone or Tone.QUIET),
                view.say(entry.meaning, Tone.QUIET),
            )
            for entry in entries
            for tone in [None if entry.source == "default" else Tone.GOOD]
        ),
        notes=view.notes(f"set http.port, for example, as {example}"),
    )
    show(entries, [table], json=json)
