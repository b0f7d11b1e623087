"""Dependencies are used by what they promise: no private attribute, nothing of theirs replaced.

A release of theirs may change what is private. What stands in `KNOWN` has no public way; its value
says what it is for, and what a new version has to be tried for.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

OURS = ("contracts", "libs", "services")
OWNERS = {"self", "cls"}
PUBLIC = {"_replace", "_asdict", "_fields", "_make"}
"""Methods of named tuples: the standard library documents them."""

KNOWN: dict[str, str] = {
    "contracts/audit.py: member._value_": "the standard library's way to set an enum's value",
    "libs/bus/connection.py: super()._process_info": "refuses plain text for a tls address",
    "libs/bus/connection.py: super()._process_connect_init": "renewed keys; certificates",
    "libs/bus/connection.py: super()._attempt_reconnect": "waits for no goodbye of a silent host",
    "libs/bus/connection.py: super()._process_err": "comes back after a server's error",
    "libs/bus/connection.py: super()._send_ping": "sends what was published before a flush",
    "libs/market/yahoo/calls.py: page._price_history._dividends": "a dividend's currency",
    "libs/market/yahoo/calls.py: page._price_history": "the same",
    "libs/market/yahoo/calls.py: yfinance.config.debug.hide_exceptions =": "its documented setting",
    "services/cli/main.py: sys.stdout =": "the standard library's way to change a stream",
}


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _foreign(tree: ast.AST) -> Iterator[str]:
    """The names under which a file knows other people's modules and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if not name.name.startswith(OURS):
                    yield name.asname or name.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(OURS):
            yield from (name.asname or name.name for name in node.names)


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
        case _:
            return []


def intrusions(code: str) -> Iterator[str]:
    """Every use of a private attribute of something else, and every assignment to foreign code."""
    tree = ast.parse(code)
    foreign = set(_foreign(tree))
    for node in ast.walk(tree):
        for target in _targets(node):
            if isinstance(target, ast.Attribute):
                root = _root(target)
                if target.attr == "__class__" or (
                    isinstance(root, ast.Name) and root.id in foreign
                ):
                    yield f"{ast.unparse(target)} ="
        if isinstance(node, ast.Attribute) and node.attr not in PUBLIC:
            is_private = node.attr.startswith("_") and not node.attr.endswith("__")
            if is_private and not (isinstance(node.value, ast.Name) and node.value.id in OWNERS):
                yield ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith(OURS):
            parts = [*(node.module or "").split("."), *(name.name for name in node.names)]
            yield from (
                f"{node.module}: {part}"
                for part in parts
                if part.startswith("_") and not part.endswith("__")
            )


@pytest.mark.slow
def test_dependencies_are_used_by_their_public_side(root: Path) -> None:
    used = {
        f"{path.relative_to(root).as_posix()}: {what}"
        for package in OURS
        for path in sorted((root / package).rglob("*.py"))
        for what in intrusions(path.read_text(encoding="utf-8"))
    }
    assert used == set(KNOWN)


def test_each_kind_of_intrusion_is_seen() -> None:
    code = (
        "import requests\n"
        "from typer._click import Context\n"
        "from rich.console import Console\n"
        "requests.sessions.HTTPAdapter = None\n"
        "Console.width = 80\n"
        "thing.__class__ = Console\n"
        "Console()._color_system\n"
        "del requests.get\n"
        "self._own = self._own\n"
        "pair._replace(a=1)\n"
    )
    assert set(intrusions(code)) == {
        "typer._click: _click",
        "requests.sessions.HTTPAdapter =",
        "Console.width =",
        "thing.__class__ =",
        "Console()._color_system",
        "requests.get =",
    }
