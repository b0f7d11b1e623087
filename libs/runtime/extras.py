"""The parts of Deskbus that are installed only where they are wanted, as pyproject.toml has them.

`pip install deskbus` brings what `deskbus run` and `deskbus demo` need. The rest is in extras.
Whatever needs one says so before it begins.
"""

import importlib.util
from collections.abc import Mapping

from libs.runtime.errors import DeskError

EXTRAS: Mapping[str, str] = {
    "claude": "anthropic",
    "openai": "openai",
    "yahoo": "yfinance",
    "strategies": "sklearn",
    "notify": "apprise",
    "mcp": "mcp",
}
"""Extras, each with the package that tells whether it is installed. That of traces is told of where
they begin."""


class ExtraMissing(DeskError):
    """This needs packages that are not installed."""

    code = "extra_missing"


def is_installed(extra: str) -> bool:
    """Whether the packages of this extra are here. None of them is imported."""
    return importlib.util.find_spec(EXTRAS[extra]) is not None


def installing(extra: str) -> str:
    """The command that installs it."""
    return f"pip install 'deskbus[{extra}]'"


def require(extra: str, what: str) -> None:
    """Raise ExtraMissing where `what` cannot be done without this extra, with the command."""
    if not is_installed(extra):
        raise ExtraMissing(
            f"{what} needs packages that are not installed; install them: {installing(extra)}"
        )
