"""`deskbus new`: a file of your own to start from, with its test."""

import builtins
import keyword
import re
import sys
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from contracts.plugins import EXIT_RULES, is_a_desk_tool
from services.cli.desk.init import show_written, write_new
from services.cli.shell.options import group
from services.cli.shell.problem import CliProblem, ExitCode, WrongUsage
from services.cli.shell.terminal import aside, put

TEMPLATES = Path(__file__).parent / "plugin"
_NAME = re.compile(r"(?!test|conftest)[a-z][a-z0-9_]{0,39}(?<!_test)")
"""Of a module and of a function, and no name by which pytest looks for tests."""
TAKE_ANOTHER = "take another name"

app = group()

NameArgument = Annotated[
    str, typer.Argument(help="Name of the function and its file: small letters, digits and _.")
]
FolderOption = Annotated[
    Path,
    typer.Option("--in", help="The folder of your deskbus.toml; created if it does not exist."),
]


@app.command()
def rule(name: NameArgument, folder: FolderOption = Path()) -> None:
    """Write a risk rule: a function that returns the most shares a buy may have.

    It writes NAME.py and test_NAME.py and never overwrites a file. It does not change your
    settings: it prints the line to add.
    """
    _write(folder, name, "rule", "plugins")


@app.command(name="exit")
def exit_rule(name: NameArgument, folder: FolderOption = Path()) -> None:
    """Write an exit rule: a function that returns how much of a position to sell, and why.

    It writes NAME.py and test_NAME.py and never overwrites a file. It does not change your
    settings: it prints the line to add.
    """
    if name in EXIT_RULES:
        raise WrongUsage(f"{name} is the name of a built-in exit rule", TAKE_ANOTHER)
    _write(folder, name, "exit rule", "exit_plugins")


@app.command()
def tool(name: NameArgument, folder: FolderOption = Path()) -> None:
    """Write a tool: a function that models may call with a ticker during research and trading.

    It writes NAME.py and test_NAME.py and never overwrites a file. It does not change your
    settings: it prints the line to add.
    """
    if is_a_desk_tool(name):
        raise WrongUsage(f"{name} is the name of a built-in tool", TAKE_ANOTHER)
    _write(folder, name, "tool", "tool_plugins")


def _write(folder: Path, name: str, kind: str, setting: str) -> None:
    _require_free(name)
    template = setting.removesuffix("s")
    contents = {
        folder / f"{name}.py": (f"the {kind}", f"{template}.txt"),
        folder / f"test_{name}.py": ("its test, which needs only pytest", f"test_{template}.txt"),
    }
    if there := [path for path in contents if path.exists()]:
        raise _there(there[0])
    rows = [
        write_new(path, meaning, partial(_filled, source, name), "name your own folder with --in")
        for path, (meaning, source) in contents.items()
    ]
    if late := [row.file for row in rows if not row.written]:
        raise _there(late[0])
    show_written(rows)
    aside(f"in {folder / 'deskbus.toml'}, above its first table; or add it to the list there:")
    put(f'{setting} = ["{name}:{name}"]')
    aside("then `deskbus check` tests it, and the desk uses it from its next start")


def _filled(source: str, name: str) -> str:
    return Template((TEMPLATES / source).read_text(encoding="utf-8")).substitute(name=name)


def _require_free(name: str) -> None:
    """Raises `CliProblem` (usage) where the name is none, or would load something else."""
    if not _NAME.fullmatch(name):
        raise WrongUsage(
            f"{name!r} cannot be the name of a plug-in",
            "use small letters, digits and _, at most 40, e.g. penny_stock; not `test...` or "
            "`..._test`, which pytest reads as tests",
        )
    # An installed module comes first, and a builtin would hide what the function itself calls.
    if (
        name in sys.stdlib_module_names
        or keyword.iskeyword(name)
        or hasattr(builtins, name)
        or _is_installed(name)
    ):
        raise WrongUsage(
            f"{name!r} is the name of a Python module or an installed package", TAKE_ANOTHER
        )


def _is_installed(name: str) -> bool:
    here = {"", str(Path.cwd())}
    spec = PathFinder.find_spec(name, [place for place in sys.path if place not in here])
    return spec is not None and spec.origin is not None


def _there(path: Path) -> CliProblem:
    return CliProblem(f"{path} exists already; not changed", TAKE_ANOTHER, ExitCode.REJECTED)
