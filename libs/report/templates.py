"""How HTML is made of facts: every text is escaped, and a name that is not there is an error."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_in(*folders: Path) -> Environment:
    """The templates of these folders."""
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
